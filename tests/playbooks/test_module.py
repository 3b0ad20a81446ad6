"""The bundle module, called as Ansible calls it."""

from pathlib import Path

import pytest

from tests.playbooks.support import MANIFEST, bundle, call, data, file, items, snapshot
from vela.model.change import Change

SYSCTL = "/etc/sysctl.d/60-vela.conf"
FILES = (
    file("/etc/hosts", "127.0.0.1 localhost\n"),
    file(SYSCTL, "vm.swappiness = 1\nvm.nr_hugepages = 4\n", restart=("systemd-sysctl.service",)),
    file("/usr/local/sbin/vela-tune", "#!/bin/sh\n", mode="0755", change=Change.HOST_DRAIN),
)


@pytest.fixture
def applied(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    call(bundle(root, FILES))
    return root


def test_first_run_writes_and_second_changes_nothing(tmp_path: Path) -> None:
    first = call(bundle(tmp_path, FILES))
    assert items(first) == [(entry.path, "missing") for entry in FILES]
    assert first["changed"] is True
    assert first["restart"] == ["systemd-sysctl.service"]
    assert first["real"] is False
    for entry in FILES:
        path = tmp_path / entry.path[1:]
        assert path.read_text() == entry.content
        assert f"0{path.stat().st_mode & 0o7777:o}" == entry.mode
    before = snapshot(tmp_path)
    second = call(bundle(tmp_path, FILES))
    assert (second["changed"], second["changes"], second["restart"]) == (False, [], [])
    assert snapshot(tmp_path) == before


def test_check_changes_nothing_on_disk(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/hosts").write_text("other\n")
    before = snapshot(tmp_path)
    said = call(bundle(tmp_path, FILES), check=True)
    assert said["changed"] is True
    assert items(said) == [
        ("/etc/hosts", "content"),
        (SYSCTL, "missing"),
        ("/usr/local/sbin/vela-tune", "missing"),
    ]
    assert snapshot(tmp_path) == before


def test_each_kind_of_change_is_told_with_its_values(applied: Path) -> None:
    (applied / SYSCTL[1:]).write_text("vm.swappiness = 1\nvm.nr_hugepages = 3\n")
    (applied / "etc/hosts").unlink()
    (applied / "usr/local/sbin/vela-tune").chmod(0o4711)
    said = call(bundle(applied, FILES), check=True)
    assert said["changes"] == [
        {
            "path": "/etc/hosts",
            "item": "missing",
            "expected": "present",
            "found": None,
            "change": "live",
            "restart": [],
        },
        {
            "path": SYSCTL,
            "item": "content",
            "expected": "line 2: vm.nr_hugepages = 4",
            "found": "line 2: vm.nr_hugepages = 3",
            "change": "live",
            "restart": ["systemd-sysctl.service"],
        },
        {
            "path": "/usr/local/sbin/vela-tune",
            "item": "mode",
            "expected": "0755",
            "found": "04711",
            "change": "host-drain",
            "restart": [],
        },
    ]
    assert call(bundle(applied, FILES))["changes"] == said["changes"]
    assert call(bundle(applied, FILES))["changes"] == []
    assert (applied / "usr/local/sbin/vela-tune").stat().st_mode & 0o7777 == 0o755


def test_units_are_named_once_and_in_order(tmp_path: Path) -> None:
    files = [
        file("/etc/a", restart=("second.service", "first.service")),
        file("/etc/b", restart=("first.service", "third.service")),
    ]
    units = call(bundle(tmp_path, files))["restart"]
    assert units == ["second.service", "first.service", "third.service"]


def test_diff_is_true_and_only_made_when_asked_for(applied: Path) -> None:
    (applied / "etc/hosts").write_text("other\n")
    (applied / SYSCTL[1:]).unlink()
    (applied / "usr/local/sbin/vela-tune").chmod(0o600)
    assert "diff" not in call(bundle(applied, FILES), check=True)
    text, missing, mode = call(bundle(applied, FILES), check=True, diff=True)["diff"]
    assert (text["before"], text["after"]) == ("other\n", "127.0.0.1 localhost\n")
    assert (text["before_header"], text["after_header"]) == ("/etc/hosts", "/etc/hosts")
    assert (missing["before"], missing["after"]) == ("", FILES[1].content)
    assert missing["before_header"] == f"{SYSCTL} (missing)"
    assert (mode["before"]["mode"], mode["after"]["mode"]) == ("0600", "0755")


def test_diff_of_a_long_file_is_cut_and_still_differs(tmp_path: Path) -> None:
    call(bundle(tmp_path, [file("/etc/long", "x" * 60_000)]))
    said = call(bundle(tmp_path, [file("/etc/long", "x" * 59_999 + "y")]), check=True, diff=True)
    (diff,) = said["diff"]
    assert 20_000 < len(diff["before"]) < 20_200
    assert diff["before"][:20_000] == diff["after"][:20_000] == "x" * 20_000
    assert diff["before"] != diff["after"]


def test_private_content_is_shown_nowhere(tmp_path: Path) -> None:
    call(bundle(tmp_path, [file("/etc/key", "canary-old\n", mode="0600")]))
    said = call(
        bundle(tmp_path, [file("/etc/key", "canary-new\n", mode="0600")]), check=True, diff=True
    )
    assert items(said) == [("/etc/key", "content")]
    assert said["diff"][0]["before"] != said["diff"][0]["after"]
    assert "canary" not in str(said)
    assert "canary" not in (tmp_path / MANIFEST[1:]).read_text()


def test_answer_does_not_carry_the_bundle_back(tmp_path: Path) -> None:
    said = call(bundle(tmp_path, [file("/etc/a", "canary\n")]))
    assert "canary" not in str(said)
    assert said["invocation"] == {}


def test_what_a_node_says_cannot_command_a_terminal(applied: Path) -> None:
    (applied / "etc/hosts").write_text("\x1b[31mred\x07" + "y" * 500)
    (change,) = call(bundle(applied, FILES), check=True)["changes"]
    assert change["found"].startswith("line 1: \ufffd[31mred\ufffdyyy")
    assert len(change["found"]) == 128


def test_bytes_that_are_no_text_are_a_difference(applied: Path) -> None:
    (applied / "etc/hosts").write_bytes(b"127.0.0.1 localhost\r\n")
    (ends,) = call(bundle(applied, FILES), check=True)["changes"]
    assert (ends["item"], ends["found"]) == ("content", "other line ends or encoding")
    (applied / "etc/hosts").write_bytes(b"\xff\xfe")
    assert items(call(bundle(applied, FILES))) == [("/etc/hosts", "content")]
    assert (applied / "etc/hosts").read_text() == "127.0.0.1 localhost\n"


def test_file_that_was_managed_and_is_not_any_more_goes(applied: Path) -> None:
    (applied / "etc/foreign").write_text("not ours\n")
    fewer = bundle(applied, FILES[1:])
    said = call(fewer, check=True)
    assert [(c["path"], c["item"], c["expected"], c["found"]) for c in said["changes"]] == [
        ("/etc/hosts", "obsolete", None, "present")
    ]
    assert (applied / "etc/hosts").exists()
    assert call(fewer)["changes"] == said["changes"]
    assert not (applied / "etc/hosts").exists()
    assert (applied / "etc/foreign").read_text() == "not ours\n"
    assert call(fewer)["changed"] is False


def test_obsolete_file_that_was_edited_is_told_as_such(applied: Path) -> None:
    (applied / "etc/hosts").write_text("edited\n")
    (change,) = call(bundle(applied, FILES[1:]), check=True)["changes"]
    assert (change["item"], change["found"]) == ("obsolete", "present, edited since")


def test_removing_an_obsolete_file_restarts_what_read_it(applied: Path) -> None:
    said = call(bundle(applied, [FILES[0], FILES[2]]))
    assert items(said) == [(SYSCTL, "obsolete")]
    assert said["restart"] == ["systemd-sysctl.service"]


def test_manifest_is_private_and_the_same_for_the_same_bundle(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        call(bundle(tmp_path / name, FILES))
    texts = {(tmp_path / name / MANIFEST[1:]).read_text() for name in ("a", "b")}
    assert len(texts) == 1
    assert f'"sha256": "{FILES[0].sha256}"' in texts.pop()
    assert (tmp_path / "a" / MANIFEST[1:]).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("damage", "item"),
    [("", "content"), ("{}", "content"), ('{"files": [1]}', "content"), (None, "missing")],
)
def test_lost_manifest_is_told_and_written_anew(
    applied: Path, damage: str | None, item: str
) -> None:
    path = applied / MANIFEST[1:]
    whole = path.read_text()
    path.unlink()
    if damage is not None:
        path.write_text(damage)
    assert items(call(bundle(applied, FILES), check=True)) == [(MANIFEST, item)]
    assert items(call(bundle(applied, FILES))) == [(MANIFEST, item)]
    assert path.read_text() == whole
    assert call(bundle(applied, FILES))["changed"] is False


def test_folders_are_for_all_whatever_the_umask(tmp_path: Path) -> None:
    import os  # noqa: PLC0415 - runs in the module's process

    call(bundle(tmp_path, FILES), before=lambda: os.umask(0o077))
    assert (tmp_path / "usr/local/sbin").stat().st_mode & 0o777 == 0o755


def test_file_that_was_already_right_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    path = tmp_path / "etc/hosts"
    path.write_text(FILES[0].content)
    path.chmod(0o644)
    inode = path.stat().st_ino
    said = call(bundle(tmp_path, FILES[:1]))
    assert items(said) == [(MANIFEST, "missing")]
    assert path.stat().st_ino == inode


def test_change_classes_reach_the_answer(tmp_path: Path) -> None:
    files = [file(f"/etc/{change}", change=change) for change in Change]
    said = call(bundle(tmp_path, files), check=True)
    assert {c["path"].removeprefix("/etc/"): c["change"] for c in said["changes"]} == {
        str(change): str(change) for change in Change
    }


def test_unknown_argument_is_refused(tmp_path: Path) -> None:
    made = {**data(bundle(tmp_path, FILES)), "surprise": 1}
    said = call(made, code=1)
    assert "surprise" in said["msg"]
    assert snapshot(tmp_path) == {}
