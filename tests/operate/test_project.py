import json
from pathlib import Path

import pytest

from vela.operate.errors import Failure
from vela.operate.project import find, read_json, write, write_json


def test_find_goes_upwards(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: vela\n")
    (tmp_path / "environments").mkdir()
    below = tmp_path / "components" / "deep"
    below.mkdir(parents=True)
    assert find(below).root == tmp_path


def test_find_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(Failure) as caught:
        find(tmp_path)
    assert caught.value.message == (
        f"no Pulumi.yaml with environments/ beside it in {tmp_path} or above"
    )


def test_files_are_private_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "run" / "outputs.json"
    write_json(path, {"schema": 1})
    assert json.loads(path.read_text()) == {"schema": 1}
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [p.name for p in path.parent.iterdir()] == ["outputs.json"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "outputs.json"
    write(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write(path, "new \ud800")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["outputs.json"]


def test_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "outputs.json"
    path.write_text("{")
    with pytest.raises(Failure) as caught:
        read_json(path)
    assert caught.value.message.startswith(f"{path} is not readable: ")
    assert read_json(tmp_path / "none.json") is None
