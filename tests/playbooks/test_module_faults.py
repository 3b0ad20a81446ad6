"""The bundle module against bad bundles, bad nodes and bad moments."""

import fcntl
import os
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.playbooks.support import (
    MANIFEST,
    bundle,
    call,
    data,
    file,
    items,
    snapshot,
    without_override,
)

OLD = [file("/etc/a", "old\n"), file("/etc/b", "old\n"), file("/opt/x/c", "old\n")]
NEW = [file("/etc/a", "new\n"), file("/etc/b", "new\n"), file("/opt/x/c", "new\n")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    call(bundle(path, OLD))
    return path


def altered(root: Path, **values: object) -> dict[str, Any]:
    """The new bundle with its last entry spoiled."""
    made = data(bundle(root, NEW))
    made["files"][-1] |= values
    return made


@pytest.mark.parametrize(
    ("values", "path", "reason"),
    [
        ({"sha256": "0" * 64}, "/opt/x/c", "does not have the checksum that the bundle says"),
        ({"path": "/etc/a"}, "/etc/a", "is named twice"),
        ({"path": "etc/c"}, "etc/c", "is not a normalised absolute path"),
        ({"path": "/etc/../c"}, "/etc/../c", "is not a normalised absolute path"),
        ({"path": "//etc/c"}, "//etc/c", "is not a normalised absolute path"),
        ({"path": "/etc/c\0"}, "/etc/c\0", "is not a normalised absolute path"),
        ({"path": "/etc/a/c"}, "/etc/a", "is named as a file, and as a folder of /etc/a/c"),
        ({"path": MANIFEST}, MANIFEST, "is the module's own file"),
        ({"mode": "755"}, "/opt/x/c", "has the mode '755', which is not four octal digits"),
    ],
)
def test_bad_bundle_leaves_no_half_a_change(
    root: Path, values: dict[str, object], path: str, reason: str
) -> None:
    before = snapshot(root)
    for check in (True, False):
        said = call(altered(root, **values), check=check, code=1)
        assert said["reasons"] == {path: reason}
        assert said["msg"] == f"{path} {reason}"
    assert snapshot(root) == before


def test_every_reason_is_given(root: Path) -> None:
    made = altered(root, sha256="0" * 64)
    made["files"][0]["mode"] = "rw"
    assert set(call(made, code=1)["reasons"]) == {"/etc/a", "/opt/x/c"}


def test_directory_in_a_files_place(root: Path) -> None:
    (root / "opt/x/c").unlink()
    (root / "opt/x/c").mkdir()
    before = snapshot(root)
    assert call(bundle(root, NEW), code=1)["msg"] == "/opt/x/c is a directory"
    assert snapshot(root) == before


def test_file_in_a_folders_place(root: Path) -> None:
    shutil.rmtree(root / "opt/x")
    (root / "opt/x").write_text("in the way\n")
    before = snapshot(root)
    said = call(bundle(root, NEW), code=1)
    assert said["reasons"] == {"/opt/x/c": "has a file among its folders"}
    assert snapshot(root) == before


def test_root_that_is_not_there(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert call(bundle(missing, NEW), code=1)["msg"] == f"{missing} is not a directory"
    assert not missing.exists()


def test_link_in_a_files_place_is_replaced_and_not_followed(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("old\n")
    (root / "etc/a").unlink()
    (root / "etc/a").symlink_to(outside)
    (change,) = call(bundle(root, OLD), check=True)["changes"]
    assert (change["item"], change["expected"]) == ("content", "a file")
    assert change["found"] == f"a symbolic link to {outside}"
    assert items(call(bundle(root, OLD))) == [("/etc/a", "content")]
    assert (root / "etc/a").read_text() == "old\n"
    assert not (root / "etc/a").is_symlink()
    assert outside.read_text() == "old\n"


@pytest.mark.parametrize("managed", ["/opt/x/c", MANIFEST])
def test_link_in_a_folders_place_cannot_lead_out(root: Path, tmp_path: Path, managed: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = (root / managed[1:]).parent
    shutil.rmtree(folder)
    folder.symlink_to(outside)
    said = call(bundle(root, NEW), code=1)
    assert f"leads out of {root}, to {outside}" in said["msg"]
    assert list(outside.iterdir()) == []
    assert (root / "etc/a").read_text() == "old\n"


def test_obsolete_path_behind_a_link_cannot_lead_out(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "c").write_text("precious\n")
    shutil.rmtree(root / "opt/x")
    (root / "opt/x").symlink_to(outside)
    said = call(bundle(root, OLD[:2]), code=1)
    assert set(said["reasons"]) == {"/opt/x/c"}
    assert (outside / "c").read_text() == "precious\n"


def test_link_that_stays_inside_is_followed(root: Path) -> None:
    (root / "opt/x").rename(root / "opt/y")
    (root / "opt/x").symlink_to("y")
    assert items(call(bundle(root, NEW))) == [(entry.path, "content") for entry in NEW]
    assert (root / "opt/y/c").read_text() == "new\n"
    assert (root / "opt/x").is_symlink()


def test_pipe_in_a_files_place_does_not_hang(root: Path) -> None:
    (root / "etc/a").unlink()
    os.mkfifo(root / "etc/a")
    (change,) = call(bundle(root, OLD))["changes"]
    assert change["found"] == "a device, socket or pipe"
    assert (root / "etc/a").read_text() == "old\n"


def test_what_a_killed_run_left_is_swept_and_foreign_files_stay(root: Path) -> None:
    stale = [root / "etc/.vela-bundle.abc", root / "var/lib/vela/.vela-bundle.def"]
    for path in (*stale, root / "etc/.other.tmp"):
        path.write_text("half")
    call(bundle(root, OLD), check=True)
    assert all(path.exists() for path in stale)
    assert call(bundle(root, OLD))["changed"] is False
    assert not any(path.exists() for path in stale)
    assert (root / "etc/.other.tmp").exists()


def limited() -> None:
    """Stand in for a full disk: no file of this process may grow beyond 1 MiB."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))


def test_disk_that_fills_up_keeps_every_old_file(root: Path) -> None:
    before = snapshot(root)
    files = [*NEW, file("/var/new/folder/d", "x" * (2 << 20))]
    said = call(bundle(root, files), code=1, before=limited)
    assert said["reasons"] == {
        "/var/new/folder/d": "cannot be written: File too large (EFBIG)",
    }
    assert snapshot(root) == before
    assert items(call(bundle(root, files)))[0] == ("/etc/a", "content")


def test_folder_that_may_not_be_written_to(root: Path) -> None:
    before = snapshot(root)
    (root / "opt/x").chmod(0o555)
    said = call(bundle(root, NEW), code=1, before=without_override)
    assert said["reasons"] == {"/opt/x/c": "cannot be written: Permission denied (EACCES)"}
    (root / "opt/x").chmod(0o755)
    assert snapshot(root) == before
    assert call(bundle(root, NEW), before=without_override)["changed"] is True
    assert call(bundle(root, NEW), before=without_override)["changed"] is False


def test_file_that_may_not_be_read(root: Path) -> None:
    (root / "etc/a").chmod(0)
    said = call(bundle(root, NEW), check=True, code=1, before=without_override)
    assert said["reasons"] == {"/etc/a": "cannot be read: Permission denied (EACCES)"}


def test_obsolete_file_that_may_not_be_removed(root: Path) -> None:
    (root / "opt/x").chmod(0o555)
    said = call(bundle(root, OLD[:2]), code=1, before=without_override)
    assert said["reasons"] == {"/opt/x/c": "cannot be removed: Permission denied (EACCES)"}
    (root / "opt/x").chmod(0o755)
    assert items(call(bundle(root, OLD[:2]), before=without_override)) == [("/opt/x/c", "obsolete")]


def test_stale_file_that_may_not_be_removed(root: Path) -> None:
    (root / "etc/.vela-bundle.abc").write_text("half")
    (root / "etc").chmod(0o555)
    said = call(bundle(root, OLD), code=1, before=without_override)
    assert said["msg"].endswith("/etc cannot be tidied: Permission denied (EACCES)")
    (root / "etc").chmod(0o755)


def test_two_runs_at_once_do_not_meet(root: Path) -> None:
    folder = (root / MANIFEST[1:]).parent
    handle = os.open(folder, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        said = call(bundle(root, NEW), code=1)
        assert said["msg"] == "/var/lib/vela is held by another run on this node"
        assert call(bundle(root, NEW), check=True)["changed"] is True
    finally:
        os.close(handle)
    assert call(bundle(root, NEW))["changed"] is True
