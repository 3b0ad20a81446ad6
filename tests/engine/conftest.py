"""A project folder of its own with the real engine, the real provider and the simulated cloud."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from ibm_cloud_sdk_core.authenticators import NoAuthAuthenticator
from ibm_vpc import VpcV1

from tests.conftest import ROOT
from tools.engine import find

PARTS = (
    "Pulumi.yaml", "__main__.py", "ansible.cfg", "components", "environments", "hardware", "lab",
    "playbooks", "templates", "tools", "vela",
)  # fmt: skip


@dataclass(frozen=True)
class Folder:
    """A copy of the project, and the commands that a person types in it."""

    root: Path

    def run(
        self, *arguments: str, seconds: float = 400, variables: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "vela.cli", *arguments],
            cwd=self.root,
            env=self.environment() | dict(variables or {}),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def json(self, *arguments: str, code: int = 0, seconds: float = 400) -> Any:
        done = self.run(*arguments, "--json", seconds=seconds)
        assert done.returncode == code, done.stdout[-3000:] + done.stderr[-3000:]
        return json.loads(done.stdout)

    def begin(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "vela.cli", *arguments],
            cwd=self.root,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(self.root),
            "PULUMI_HOME": str(self.root / ".pulumi-home"),
        }

    @property
    def url(self) -> str:
        ready = json.loads((self.root / ".vela" / "cloud" / "server.json").read_text())
        return str(ready["url"])

    @property
    def cloud(self) -> VpcV1:
        service = VpcV1(authenticator=NoAuthAuthenticator())
        service.set_service_url(f"{self.url}/v1")
        return service

    def lab(self, method: str, path: str, body: object = None) -> Any:
        answer = requests.request(method, f"{self.url}/_lab/{path}", json=body, timeout=10)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def requests(self) -> list[Mapping[str, Any]]:
        text = (self.root / ".vela" / "cloud" / "requests.log").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def wait_for(self, method: str, path: str, seconds: float = 90) -> None:
        """Wait until the cloud was asked for something."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            try:
                if any(r["method"] == method and path in r["path"] for r in self.requests()):
                    return
            except (OSError, ValueError):
                pass
            time.sleep(0.1)
        raise AssertionError(f"nobody asked for {method} {path}")

    def kill(self, process: "subprocess.Popen[str]") -> None:
        """Kill a command and all that it started, without any warning."""
        listing = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
        ).stdout
        parents = {int(a): int(b) for a, b in (line.split() for line in listing.splitlines())}
        family = {process.pid}
        while more := {p for p, parent in parents.items() if parent in family} - family:
            family |= more
        for pid in family:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()


def need_engine() -> None:
    """Skip where there is no engine, saying how to have it; in CI there must be one."""
    missing = [name for name, found in find().items() if found is None]
    if missing and os.environ.get("CI") != "true":
        pytest.skip(f"no engine here ({', '.join(missing)}); make engine gets it, once, 20 minutes")


def folder(tmp: Path) -> Folder:
    need_engine()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, tmp / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp / part)
    (tmp / ".venv").symlink_to(Path(sys.prefix))
    return Folder(tmp)


def finish(made: Folder) -> None:
    subprocess.run(
        [sys.executable, "-m", "lab.cloud", "stop", "--dir", str(made.root / ".vela" / "cloud")],
        cwd=made.root,
        check=True,
        capture_output=True,
        timeout=30,
    )


TINY = """
schema: 1
name: tiny
cloud:
  region: us-east
  zone: us-east-3
  network:
    cidr: 10.243.0.0/16
    subnets: {management: 10.243.0.0/24}
    public_gateway: false
  access:
    ssh_keys: {ops: "%s"}
hosts: {type: lab-q35, racks: 1, per_rack: 1, image: debian-12-kvm}
images:
  debian-12-kvm:
    href: cos://us-east/vela-images/debian-12-kvm.qcow2
    sha256: 4f5e2c1b9a8d7063524130f9e8d7c6b5a49382716054433221100ffeeddccbba
    operating_system: debian-12-amd64
lab: {cloud: simulated, nodes: directories}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Folder]:
    """A project that is empty; its tests bring an environment up and take it down."""
    made = folder(tmp_path_factory.mktemp("project"))
    text = (made.root / "environments" / "local.yaml").read_text()
    key = text.split('ops: "')[1].split('"')[0]
    (made.root / "environments" / "tiny.yaml").write_text(TINY % key)
    yield made
    finish(made)
