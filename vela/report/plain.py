"""The plan and short answers as text and data; without the libraries of the long commands."""

import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Any

from pydantic import BaseModel

from vela.plan import Plan


def write_json(value: object) -> None:
    """Print a value as JSON."""
    json.dump(value, sys.stdout, indent=2)
    sys.stdout.write("\n")


def summary(plan: Plan) -> str:
    """What a plan consists of, in one line."""
    roles = Counter(switch.role for switch in plan.switches)
    gpus = plan.hardware.server.gpus
    parts = [f"{len(plan.hosts)} hosts in {len(plan.racks)} racks"]
    if gpus:
        parts.append(f"{len(plan.hosts) * gpus.count} GPUs")
    parts += [f"{number} {role}s" for role, number in sorted(roles.items())]
    if plan.cables:
        parts.append(f"{len(plan.cables)} cables")
    return ", ".join(parts)


def plan_text(plan: Plan) -> Iterator[str]:
    """The plan for a person, in pieces: counts, networks, hosts, switches, cables, settings."""
    environment, server = plan.environment, plan.hardware.server
    simulated = " (simulated)" if environment.lab.cloud == "simulated" else ""
    yield f"{plan.name}: {summary(plan)}\n"
    yield f"cloud: {environment.cloud.zone}{simulated}, VPC {plan.vpc_name}\n"
    yield f"hosts: {server.title}\n       profile {server.profile}\n"
    yield from _section("subnets", [(s.name, str(s.cidr)) for s in plan.subnets])
    if plan.cluster_network:
        network = plan.cluster_network
        rows = [(s.name, str(s.cidr)) for s in network.subnets]
        yield from _section(f"cluster network {network.profile}", rows)
    yield from _section(
        "hosts",
        [
            (h.name, "  ".join(str(i.address) for i in h.interfaces), h.image)
            + (("maintenance",) if h.maintenance else ())
            for h in plan.hosts
        ],
    )
    yield from _section(
        "switches",
        [
            (s.name, str(s.management_address), f"AS {s.asn}", f"loopback {s.loopback}", s.type)
            for s in plan.switches
        ],
    )
    yield from _section(
        "cables",
        [
            (f"{c.a.node} {c.a.port}", str(c.a.address), f"{c.b.node} {c.b.port}",
             str(c.b.address), f"{c.speed}G")
            for c in plan.cables
        ],
    )  # fmt: skip
    if plan.system:
        yield from _section("kernel command line", [(a,) for a in plan.system.kernel_arguments])
    yield "\nsettings, defaults included\n"
    yield from _settings(plain(environment), "  ")


def _section(title: str, rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    if not rows:
        return
    columns = max(len(row) for row in rows)
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(columns)]
    yield f"\n{title}\n"
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        yield "  " + "  ".join(cells).rstrip() + "\n"


def _settings(value: Any, indent: str) -> Iterator[str]:
    for key, part in value.items():
        if isinstance(part, dict) and part:
            yield f"{indent}{key}:\n"
            yield from _settings(part, indent + "  ")
        else:
            yield f"{indent}{key}: {part}\n"


def plan_data(plan: Plan) -> dict[str, Any]:
    """The plan as plain data."""
    data = plain(plan)
    data.pop("hardware")
    return {"schema": 1, **data}


def plain(value: Any) -> Any:
    """Records, addresses and enumerations as JSON knows them."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        return {f.alias or name: plain(getattr(value, name)) for name, f in fields.items()}
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    text = isinstance(value, StrEnum | IPv4Address | IPv4Interface | IPv4Network)
    return str(value) if text else value


def lab_text(command: str, answer: Mapping[str, Any]) -> str:
    """What happened to the stand-ins."""
    url = answer.get("url")
    if command == "down" or not url:
        return "the simulated cloud does not run"
    counts = ", ".join(f"{n} {kind}" for kind, n in (answer.get("counts") or {}).items() if n)
    return f"the simulated cloud runs at {url}: {counts or 'empty'}"
