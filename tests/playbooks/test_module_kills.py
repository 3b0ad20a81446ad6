"""The bundle module killed at every step that it takes on the disk, and at random moments."""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.playbooks import module_driver
from tests.playbooks.support import MANIFEST, bundle, data, file, snapshot
from vela.render.bundle import Bundle

OLD = [file(f"/etc/old/{n}", f"old {n}\n" * 200) for n in range(4)]
NEW = [
    *(file(f"/etc/old/{n}", f"new {n}\n" * 300) for n in range(1, 4)),
    file("/etc/new/a", "a\n", mode="0600"),
    file("/opt/new/b", "b\n"),
]
STEPS = ("replace", "fsync", "unlink", "mkdir", "chmod", "fchmod", "open")


class Asked:
    """Stands in for Ansible's module object."""

    check_mode = False
    _diff = False


def put(made: Bundle) -> dict[str, Any]:
    """Call the module in this process."""
    result: dict[str, Any] = module_driver.load().put(Asked, data(made))
    return result


def killed_at(step: int, act: Callable[[], object]) -> bool:
    """Do something in a process that is killed before its n-th step on the disk."""
    child = os.fork()
    if not child:
        left = step

        def counting(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **named: Any) -> Any:
                nonlocal left
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments, **named)

            return call

        try:
            for name in STEPS:
                setattr(os, name, counting(getattr(os, name)))
            tempfile.mkstemp = counting(tempfile.mkstemp)
            act()
        except BaseException:  # noqa: BLE001 - nothing of the test may go on in this process
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in {0, signal.SIGKILL}
    return status != 0


def assert_whole(root: Path) -> None:
    """Each managed file is the old one or the new one."""
    old = {entry.path: entry for entry in OLD}
    new = {entry.path: entry for entry in NEW}
    for path in {*old, *new}:
        real = root / path[1:]
        allowed: list[tuple[str, str] | None] = [
            (entry.content, entry.mode) if entry else None
            for entry in (old.get(path), new.get(path))
        ]
        found = None
        if real.exists():
            found = (real.read_text(), f"0{real.stat().st_mode & 0o7777:o}")
        assert found in allowed, path
    manifest = root / MANIFEST[1:]
    assert set(json.loads(manifest.read_text())["files"]) >= {
        path for path in {*old, *new} if (root / path[1:]).exists()
    }


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The tree of a run that nothing disturbed."""
    root = tmp_path_factory.mktemp("wanted")
    put(bundle(root, OLD))
    put(bundle(root, NEW))
    return snapshot(root)


def test_killed_before_every_step(tmp_path: Path, wanted: dict[str, Any]) -> None:
    step, killed = 0, True
    while killed:
        root = tmp_path / str(step)
        root.mkdir()
        put(bundle(root, OLD))
        killed = killed_at(step, lambda root=root: put(bundle(root, NEW)))  # type: ignore[misc]
        assert_whole(root)
        put(bundle(root, NEW))
        assert snapshot(root) == wanted
        assert put(bundle(root, NEW))["changed"] is False
        step += 1
    assert step > 40


def test_killed_run_forgets_no_file(tmp_path: Path) -> None:
    step, killed = 0, True
    while killed:
        root = tmp_path / str(step)
        root.mkdir()
        put(bundle(root, OLD))
        killed = killed_at(step, lambda root=root: put(bundle(root, NEW)))  # type: ignore[misc]
        put(bundle(root, []))
        left = {path for path in root.rglob("*") if path.is_file()} - {root / MANIFEST[1:]}
        assert all(path.name.startswith(".vela-bundle.") for path in left)
        step += 2
    assert step > 40


def writing(root: Path, asked: str) -> "subprocess.Popen[str]":
    """The module in a process of its own, as soon as it has begun to write."""
    process = subprocess.Popen(
        [sys.executable, module_driver.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(asked)
    process.stdin.close()
    while process.poll() is None and not any((root / "etc").glob(".vela-bundle.*")):
        pass
    return process


def test_killed_at_random_moments(tmp_path: Path) -> None:
    old = [file(f"/etc/{n:03}", f"old {n}\n" * 2000) for n in range(40)]
    new = [file(f"/etc/{n:03}", f"new {n}\n" * 2000) for n in range(40)]
    put(bundle(tmp_path, old))
    asked = json.dumps({"bundle": data(bundle(tmp_path, new))})
    process, begun = writing(tmp_path, asked), time.monotonic()
    assert process.wait(60) == 0
    span = time.monotonic() - begun
    moments = random.Random(7)  # noqa: S311 - a seed, for the same moments again
    kills = 0
    for _ in range(20):
        put(bundle(tmp_path, old))
        process = writing(tmp_path, asked)
        time.sleep(moments.uniform(0, span))
        process.kill()
        kills += process.wait() != 0
        for before, after in zip(old, new, strict=True):
            assert (tmp_path / after.path[1:]).read_text() in {before.content, after.content}
        put(bundle(tmp_path, new))
        assert put(bundle(tmp_path, new))["changed"] is False
        assert not list(tmp_path.rglob(".vela-bundle.*"))
    assert kills >= 5
