"""A check finds exactly what was changed: for random trees and random changes to them."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.playbooks import module_driver
from tests.playbooks.support import bundle, data, file, items, snapshot
from vela.render.bundle import BundleFile

MODES = ("0600", "0644", "0640", "0755", "0444")
FOLDERS = ("/etc", "/etc/a", "/etc/a/b", "/opt/c", "/usr/local/lib/d")
ACTIONS = ("leave", "edit", "truncate", "remove", "chmod", "edit and chmod", "link", "drop")

TEXT = st.text(st.characters(codec="utf-8"), max_size=60)
PATHS = st.builds("{}/{}.conf".format, st.sampled_from(FOLDERS), st.integers(0, 9))
FILES = st.builds(file, PATHS, TEXT, mode=st.sampled_from(MODES))
TREES = st.lists(FILES, max_size=12, unique_by=lambda entry: entry.path)


class Asked:
    """Stands in for Ansible's module object."""

    _diff = True

    def __init__(self, *, check: bool) -> None:
        self.check_mode = check


MODULE = module_driver.load()


def put(root: Path, files: list[BundleFile], *, check: bool = False) -> dict[str, Any]:
    result: dict[str, Any] = MODULE.put(Asked(check=check), data(bundle(root, files)))
    return result


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def change(root: Path, entry: BundleFile, action: str) -> list[tuple[str, str]]:
    """Do something to a file; gives what a check must say."""
    path = root / entry.path[1:]
    said = []
    if action == "drop":
        return [(entry.path, "obsolete")]
    if action == "remove":
        path.unlink()
        return [(entry.path, "missing")]
    if action == "link":
        path.unlink()
        path.symlink_to("/etc/passwd")
        return [(entry.path, "content")]
    if action in {"edit", "edit and chmod"} or (action == "truncate" and entry.content):
        path.chmod(0o600)
        path.write_text("" if action == "truncate" else f"{entry.content}x", encoding="utf-8")
        path.chmod(int(entry.mode, 8))
        said.append((entry.path, "content"))
    if action in {"chmod", "edit and chmod"}:
        path.chmod(0o700)
        said.append((entry.path, "mode"))
    return said


@settings(max_examples=300, deadline=None)
@given(
    files=TREES,
    actions=st.lists(st.sampled_from(ACTIONS), min_size=12, max_size=12),
    foreign=st.lists(PATHS, max_size=3),
)
def test_check_finds_exactly_what_was_changed(
    folder: Path, files: list[BundleFile], actions: list[str], foreign: list[str]
) -> None:
    root = folder / "root"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    put(root, files)
    whole = snapshot(root)
    assert put(root, files, check=True)["changes"] == []
    managed = {entry.path for entry in files}
    for path in set(foreign) - managed:
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (root / path[1:]).write_text("not ours\n")
    pairs = list(zip(files, actions, strict=False))
    expected = [said for entry, action in pairs for said in change(root, entry, action)]
    kept = [entry for entry, action in pairs if action != "drop"]
    before = snapshot(root)
    said = put(root, kept, check=True)
    assert snapshot(root) == before
    assert sorted(items(said)) == sorted(expected)
    assert items(put(root, kept)) == items(said)
    assert put(root, kept)["changes"] == []
    dropped = {entry.path for entry, action in pairs if action == "drop"}
    after = snapshot(root)
    for path in managed:
        assert after.get(path[1:]) == (None if path in dropped else whole[path[1:]])
    for path in set(foreign) - managed:
        assert after[path[1:]][1] == b"not ours\n"


@settings(max_examples=150, deadline=None)
@given(trees=st.lists(TREES, min_size=2, max_size=4))
def test_bundles_in_any_order_end_in_the_last(folder: Path, trees: list[list[BundleFile]]) -> None:
    root, fresh = folder / "worn", folder / "fresh"
    for path in (root, fresh):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
    for files in trees:
        put(root, files)
    put(fresh, trees[-1])
    assert {k: v for k, v in snapshot(root).items() if v[1]} == {
        k: v for k, v in snapshot(fresh).items() if v[1]
    }
