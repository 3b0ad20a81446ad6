"""Healing after interrupted runs, with a state and a cloud made of plain data."""

import json
import os
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from vela.operate import heal
from vela.operate.errors import Busy
from vela.operate.stack import Run, Step

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
STACK = "urn:pulumi:local::vela::pulumi:pulumi:Stack::vela-local"
NETWORK = "urn:pulumi:local::vela::vela:network:Network::network"
PROVIDER = "urn:pulumi:local::vela::pulumi:providers:ibm::ibm"
VPC = "urn:pulumi:local::vela::vela:network:Network$ibm:index/isVpc:IsVpc::network-vpc"
SUBNET = "urn:pulumi:local::vela::vela:network:Network$ibm:index/isSubnet:IsSubnet::network-a"


class FakeStack:
    """Holds a state as the engine would."""

    def __init__(self, deployment: dict[str, Any]) -> None:
        self.deployment = deployment
        self.unlocked = 0

    def export(self) -> dict[str, Any]:
        return json.loads(json.dumps(self.deployment))  # type: ignore[no-any-return]

    def load(self, deployment: Mapping[str, Any]) -> None:
        self.deployment = dict(deployment)

    def unlock(self) -> None:
        self.unlocked += 1


class FakeCloud:
    """Knows resources by type and name."""

    def __init__(self, known: dict[tuple[str, str], str]) -> None:
        self.known = known

    def find(self, kind: str, inputs: Mapping[str, Any]) -> str | None:
        return self.known.get((kind, str(inputs.get("name"))))


def state() -> dict[str, Any]:
    return {
        "resources": [
            {"urn": STACK, "type": "pulumi:pulumi:Stack"},
            {"urn": PROVIDER, "type": "pulumi:providers:ibm", "id": "p-1", "custom": True},
            {"urn": NETWORK, "type": "vela:network:Network", "parent": STACK},
        ]
    }


def create(urn: str, kind: str, inputs: dict[str, Any]) -> Step:
    new = {
        "urn": urn,
        "type": kind,
        "custom": True,
        "parent": NETWORK,
        "protect": True,
        "inputs": inputs,
        "provider": f"{PROVIDER}::{UNKNOWN}",
        "id": "",
        "delete": False,
    }
    return Step("create", urn, kind, new=new)


def look(*steps: Step) -> Run:
    return Run(steps, (), 0.1)


def test_an_existing_resource_is_put_into_the_state() -> None:
    stack = FakeStack(state())
    kind = "ibm:index/isVpc:IsVpc"
    step = create(VPC, kind, {"name": "local", "tags": ["vela"], "resourceGroup": UNKNOWN})
    cloud = FakeCloud({(kind, "local"): "r014-1"})
    adopted = heal.adopt(stack, cloud, look(step))  # type: ignore[arg-type]
    assert adopted == (heal.Adopted(kind, "network-vpc", "r014-1"),)
    assert stack.deployment["resources"][3] == {
        "urn": VPC,
        "type": kind,
        "custom": True,
        "parent": NETWORK,
        "protect": True,
        "provider": f"{PROVIDER}::p-1",
        "id": "r014-1",
        "inputs": {},
        "outputs": {},
    }


def test_what_does_not_exist_is_left_to_the_engine() -> None:
    stack = FakeStack(state())
    step = create(VPC, "ibm:index/isVpc:IsVpc", {"name": "local"})
    assert heal.adopt(stack, FakeCloud({}), look(step)) == ()  # type: ignore[arg-type]
    assert stack.deployment == state()


def test_a_resource_whose_parent_is_unknown_waits() -> None:
    bare = state()
    del bare["resources"][2]
    stack = FakeStack(bare)
    kind = "ibm:index/isSubnet:IsSubnet"
    cloud = FakeCloud({(kind, "a"): "0757-1"})
    assert heal.adopt(stack, cloud, look(create(SUBNET, kind, {"name": "a"}))) == ()  # type: ignore[arg-type]
    assert stack.deployment == bare


def test_pending_operations_are_forgotten_by_name() -> None:
    deployment = state()
    deployment["pending_operations"] = [
        {"resource": {"urn": SUBNET, "type": "ibm:index/isSubnet:IsSubnet"}, "type": "creating"}
    ]
    stack = FakeStack(deployment)
    assert heal.forget_pending(stack) == ("network-a",)  # type: ignore[arg-type]
    assert stack.deployment["pending_operations"] == []
    assert heal.forget_pending(stack) == ()  # type: ignore[arg-type]


def lock_file(folder: Path, pid: int, host: str) -> str:
    locks = folder / ".pulumi" / "locks" / "organization" / "vela" / "local"
    locks.mkdir(parents=True)
    holder = {"pid": pid, "username": "ops", "hostname": host, "timestamp": "2026-12-01"}
    (locks / "one.json").write_text(json.dumps(holder))
    return f"file://{folder}"


def dead_pid() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_lock_of_a_dead_run_is_removed(tmp_path: Path) -> None:
    pid = dead_pid()
    stack = FakeStack(state())
    backend = lock_file(tmp_path, pid, socket.gethostname())

    def unlock() -> None:
        next(tmp_path.rglob("one.json")).unlink()

    stack.unlock = unlock  # type: ignore[method-assign]
    said = heal.free_lock(stack, backend, "local")  # type: ignore[arg-type]
    assert said == (
        f"removed the lock of process {pid} of ops on {socket.gethostname()}, which is dead"
    )


def test_lock_of_a_living_run_is_never_taken(tmp_path: Path) -> None:
    stack = FakeStack(state())
    backend = lock_file(tmp_path, os.getpid(), socket.gethostname())
    with pytest.raises(Busy) as caught:
        heal.free_lock(stack, backend, "local")  # type: ignore[arg-type]
    assert f"process {os.getpid()} of ops" in caught.value.message
    assert stack.unlocked == 0


def test_lock_of_another_machine_is_not_judged(tmp_path: Path) -> None:
    stack = FakeStack(state())
    backend = lock_file(tmp_path, dead_pid(), "elsewhere")
    with pytest.raises(Busy) as caught:
        heal.free_lock(stack, backend, "local")  # type: ignore[arg-type]
    assert caught.value.hint == "when that run is dead: pulumi cancel --stack local"
    assert stack.unlocked == 0


def test_no_lock_nothing_to_do(tmp_path: Path) -> None:
    assert heal.free_lock(FakeStack(state()), f"file://{tmp_path}", "local") is None  # type: ignore[arg-type]
    assert heal.free_lock(FakeStack(state()), "s3://bucket", "local") is None  # type: ignore[arg-type]
