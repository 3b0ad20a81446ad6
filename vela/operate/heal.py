"""What an interrupted run left: locks of the dead, pending operations, resources not in state."""

import json
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from vela.operate.cloud import PLACES, Cloud
from vela.operate.errors import Busy
from vela.operate.stack import PROJECT, Run, Stack, Step

SECONDS_FOR_AN_ENGINE_TO_END = 150
_STATE_KEYS = ("urn", "type", "custom", "parent", "protect", "provider")


@dataclass(frozen=True, slots=True)
class Adopted:
    """A resource that existed in the cloud and was put into the state."""

    type: str
    name: str
    id: str


def free_lock(stack: Stack, backend: str, name: str) -> str | None:
    """Remove the lock of a run that is dead; wait for one whose engine still ends.

    Our own lock is held by the caller, so a living holder is an engine whose vela was killed,
    or a ``pulumi`` that a person started.

    Returns:
        What was done, for a person; None where nothing was to do.

    Raises:
        Busy: The holder lives, or runs on another machine and cannot be judged.
    """
    limit = time.monotonic() + SECONDS_FOR_AN_ENGINE_TO_END
    while True:
        holders = _holders(backend, name)
        if not holders:
            return None
        holder = holders[0]
        who = f"process {holder.get('pid')} of {holder.get('username')} on {holder.get('hostname')}"
        if holder.get("hostname") != socket.gethostname():
            raise Busy(
                f"the state of {name} is locked by {who}, another machine",
                f"when that run is dead: pulumi cancel --stack {name}",
            )
        if not alive(int(holder.get("pid", 0))):
            stack.unlock()
            return f"removed the lock of {who}, which is dead"
        if time.monotonic() > limit or not _orphan(int(holder["pid"])):
            raise Busy(f"the state of {name} is locked by {who}, which runs", "wait for it to end")
        time.sleep(1)


def _holders(backend: str, name: str) -> list[dict[str, Any]]:
    """Locks of a stack in a file backend; other backends look after their own."""
    parts = urlsplit(backend)
    if parts.scheme != "file":
        return []
    folder = Path(parts.netloc + parts.path) / ".pulumi" / "locks" / "organization" / PROJECT / name
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            found.append(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue
    return found


def alive(pid: int) -> bool:
    """Whether a process of this machine runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _orphan(pid: int) -> bool:
    """Whether the process that started it has ended: then it will end by itself."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[1] == "1"


def forget_pending(stack: Stack) -> tuple[str, ...]:
    """Take pending operations out of the state; what they made is found again by name.

    Returns:
        Logical names of the resources that an interrupted run was busy with.
    """
    deployment = stack.export()
    pending = deployment.get("pending_operations") or []
    if not pending:
        return ()
    stack.load({**deployment, "pending_operations": []})
    return tuple(str(entry["resource"]["urn"]).rsplit("::", 1)[-1] for entry in pending)


def adopt(stack: Stack, cloud: Cloud, preview: Run) -> tuple[Adopted, ...]:
    """Put resources into the state that a preview would create though they exist.

    Such a resource is left when the answer to its creation was lost. It is known by its name,
    which at IBM is unique where it counts; security rules are known by all that they say.
    """
    deployment = stack.export()
    resources: list[dict[str, Any]] = list(deployment.get("resources") or [])
    states = {str(resource["urn"]): resource for resource in resources}
    providers = {
        str(resource["urn"]): f"{resource['urn']}::{resource['id']}"
        for resource in resources
        if str(resource["type"]).startswith("pulumi:providers:")
    }
    adopted = []
    for step in preview.changes:
        if step.op != "create" or step.type not in PLACES or step.urn in states:
            continue
        found = cloud.find(step.type, step.new.get("inputs") or {})
        entry = _entry(step, found, states, providers) if found else None
        if found and entry:
            resources.append(entry)
            states[step.urn] = entry
            adopted.append(Adopted(step.type, step.name, found))
    if adopted:
        stack.load({**deployment, "resources": resources})
    return tuple(adopted)


def _entry(
    step: Step, found: str, states: Mapping[str, Any], providers: Mapping[str, str]
) -> dict[str, Any] | None:
    """A state entry from what a preview knows; None while parent or provider is not there."""
    entry = {key: step.new[key] for key in _STATE_KEYS if step.new.get(key) is not None}
    provider = str(entry.get("provider", "")).rsplit("::", 1)[0]
    if entry.get("parent") not in states or provider not in providers:
        return None
    # with nothing known of it, the next refresh imports the resource as it is in the cloud
    return {**entry, "provider": providers[provider], "id": found, "inputs": {}, "outputs": {}}
