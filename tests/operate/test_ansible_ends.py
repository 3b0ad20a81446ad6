"""Nothing of a run goes on after it, however it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.playbooks.support import PLAYBOOKS, Fleet, file
from vela.operate import ansible
from vela.operate.ansible import NodeEvent, run_playbook
from vela.operate.errors import Failure

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs the kernel's death signal")

PLAY = """\
- hosts: hosts
  gather_facts: false
  roles: [{{role: {role}}}]
  tasks:
    - name: Take long
      ansible.builtin.command:
        argv: [{python}, -c, {code!r}, {base}]
      changed_when: false
"""
LONG = "import os,sys,time; open(f'{sys.argv[1]}/at.{os.getpid()}','w'); time.sleep(300)"
DETACHED = (
    "import os,signal,sys,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "os.fork() and time.sleep(300); os.setsid(); os.fork() and os._exit(0); "
    "open(f'{sys.argv[1]}/at.{os.getpid()}','w'); time.sleep(300)"
)
PARENT = """\
import json, sys
from pathlib import Path
from vela.operate.ansible import run_playbook
base, names = Path(sys.argv[1]), json.loads(sys.argv[2])
run_playbook(base / "long.yml", base / "inventory.json", expected=names, check=False, forks=5,
             timeout=300)
"""


class Long:
    """A fleet and a playbook that takes five minutes once all nodes are at it."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.fleet = Fleet(base)
        for node in ("n1", "n2"):
            self.fleet.add(node, [file("/etc/a")])
        self.playbook = base / "long.yml"
        self.write(LONG)

    def write(self, code: str) -> None:
        """Make the playbook, with the program that takes long."""
        role = PLAYBOOKS / "roles/bundle"
        said = PLAY.format(role=role, python=sys.executable, code=code, base=self.base)
        self.playbook.write_text(said)

    def at_work(self, *_: object) -> bool:
        return len(list(self.base.glob("at.*"))) == len(self.fleet.names)

    def run(
        self,
        *,
        cancel: Callable[[], bool] | None = None,
        on_event: Callable[[NodeEvent], None] | None = None,
        timeout: float = 120,
    ) -> None:
        run_playbook(
            self.playbook,
            self.fleet.inventory,
            expected=self.fleet.names,
            check=False,
            forks=5,
            timeout=timeout,
            cancel=cancel,
            on_event=on_event,
        )

    def processes(self) -> list[str]:
        """Processes of this run, but for the one that the test is."""
        command = ["ps", "-A", "-ww", "-o", "pid=,stat=,args="]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        listed = done.stdout.splitlines()
        own = {str(os.getpid())}
        words = [line.split(maxsplit=2) for line in listed]
        return [
            " ".join(word)
            for word in words
            if len(word) == 3 and word[0] not in own and word[1][0] != "Z"
            # the child is given its settings on standard input, and so is told by its folder
            if str(self.base) in word[2] or self._works_in(word[0])
        ]

    def _works_in(self, process: str) -> bool:
        try:
            return str(self.base).encode() in Path(f"/proc/{process}/environ").read_bytes()
        except OSError:
            return False

    def gone_within(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while self.processes() and time.monotonic() < until:
            time.sleep(0.1)
        return not self.processes()

    def left(self) -> list[Path]:
        """Folders of runs that are still there."""
        return list((self.base / "tmp").glob("vela-ansible-*"))


@pytest.fixture
def long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Long]:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    made = Long(tmp_path)
    yield made
    for line in made.processes():
        os.kill(int(line.split()[0]), signal.SIGKILL)


def test_cancel(long: Long) -> None:
    with pytest.raises(Failure) as caught:
        long.run(cancel=long.at_work)
    assert caught.value.message == "the playbooks were stopped"
    assert caught.value.hint == "run the command again: 2 of 2 nodes are done and stay done"
    assert long.processes() == []
    assert long.left() == []
    assert (long.fleet.root("n1") / "etc/a").read_text() == "text\n"


@linux
def test_cancel_of_what_does_not_listen_and_has_left_its_parent(long: Long) -> None:
    long.write(DETACHED)
    with pytest.raises(Failure, match="were stopped"):
        long.run(cancel=long.at_work)
    assert long.processes() == []


def test_cancel_before_anything_runs(long: Long) -> None:
    with pytest.raises(Failure, match="were stopped"):
        long.run(cancel=lambda: True)
    assert long.processes() == []
    assert long.left() == []
    assert list(long.fleet.root("n1").iterdir()) == []


def test_time_limit(long: Long) -> None:
    with pytest.raises(Failure) as caught:
        long.run(timeout=2)
    assert caught.value.message == "the playbooks did not end within 2 s and were stopped"
    assert long.processes() == []
    assert long.left() == []


def test_watcher_that_fails(long: Long) -> None:
    def fail(_: NodeEvent) -> None:
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - raised above, without words
        long.run(on_event=fail)
    assert long.processes() == []
    assert long.left() == []


def test_child_that_does_not_listen_is_killed(long: Long, monkeypatch: pytest.MonkeyPatch) -> None:
    child = long.base / "deaf.py"
    child.write_text(
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)\n"
    )
    monkeypatch.setattr(ansible, "CHILD", child)
    monkeypatch.setattr(ansible, "SECONDS_TO_STOP", 0.5)
    begun = time.monotonic()
    with pytest.raises(Failure, match="did not end within 1 s"):
        long.run(timeout=1)
    assert time.monotonic() - begun < 20
    assert long.processes() == []


def started(long: Long) -> "subprocess.Popen[bytes]":
    """A program that runs the playbook, once every node is at it."""
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(long.base), json.dumps(long.fleet.names)],
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 60
    while not long.at_work():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.1)
    return process


def test_interrupt(long: Long) -> None:
    process = started(long)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) != 0
    assert long.gone_within(0)
    assert long.left() == []


def test_parent_killed(long: Long) -> None:
    process = started(long)
    process.kill()
    process.wait()
    assert long.gone_within(20)
    assert long.left() == []


@linux
def test_child_killed(long: Long) -> None:
    process = started(long)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 1
    os.kill(int(children[0]), signal.SIGKILL)
    assert process.wait(30) != 0
    assert long.gone_within(20)
    assert long.left() == []


@linux
def test_parent_and_child_killed(long: Long) -> None:
    process = started(long)
    child = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    os.kill(process.pid, signal.SIGSTOP)
    os.kill(int(child), signal.SIGKILL)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert long.gone_within(20)
    # nobody was left to remove the folder: the next run does, and spares those that are in use
    (left,) = long.left()
    used = long.base / f"tmp/vela-ansible-{os.getpid()}-x"
    foreign = long.base / "tmp/vela-ansible-notes-x"
    for path in (used, foreign):
        path.mkdir()
    with pytest.raises(Failure):
        long.run(cancel=lambda: True)
    assert not left.exists()
    assert used.exists()
    assert foreign.exists()
