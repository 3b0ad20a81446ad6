"""Bundles onto nodes: renders them, writes the inventory, runs the playbooks."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from vela.finding import Finding, Layer
from vela.operate.ansible import NodeEvent, NodeResult, findings, run_playbook
from vela.operate.errors import Failure
from vela.operate.project import private, write, write_json
from vela.operate.session import Cluster
from vela.outputs import ClusterOutputs
from vela.render.bundle import Bundle
from vela.render.cluster import bundles, inventory
from vela.render.templates import Templates

Only = Literal["hosts", "switches"]
FORKS = 25
"""Nodes at once: more gains nothing on a controller of two cores."""


@dataclass(frozen=True, slots=True)
class Configured:
    """What the playbooks did, or would do.

    Attributes:
        nodes: Result of each node.
        findings: Differences and failures.
        files: Files in the bundles.
        calls: Module calls on the nodes.
        seconds: Wall-clock time.
    """

    nodes: Mapping[str, NodeResult] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    files: int = 0
    calls: int = 0
    seconds: float = 0.0

    @property
    def changed(self) -> tuple[str, ...]:
        """Nodes that differ or were changed."""
        return tuple(name for name, node in self.nodes.items() if node.state == "changed")


def render(cluster: Cluster, outputs: ClusterOutputs | None) -> list[Bundle]:
    """Render the bundles of every node that the playbooks may touch."""
    templates = Templates(cluster.project.root / "templates")
    return bundles(cluster.plan, outputs, templates, cluster.node_root)


def configure(
    cluster: Cluster,
    outputs: ClusterOutputs,
    *,
    check: bool,
    only: Only | None = None,
    limit: Sequence[str] = (),
    seconds: float = 3600,
    on_event: Callable[[NodeEvent], None] | None = None,
) -> Configured:
    """Put the bundles on their nodes, or look what that would change.

    Args:
        cluster: The cluster.
        outputs: What the cloud decided.
        check: Look only.
        only: Hosts or switches alone.
        limit: Names of nodes; none: all.
        seconds: Limit of the run.
        on_event: Takes what happens on a node.

    Raises:
        Failure: ``limit`` names no node of ours, or Ansible cannot be run.
    """
    made = _chosen(cluster, render(cluster, outputs), only, limit)
    if not made:
        return Configured()
    _write(cluster, outputs, made)
    names = [bundle.node for bundle in made]
    result = run_playbook(
        cluster.project.root / "playbooks" / f"{only or 'site'}.yml",
        cluster.project.inventory(cluster.name),
        expected=names,
        check=check,
        forks=FORKS,
        timeout=seconds,
        limit=names if limit else None,
        on_event=on_event,
    )
    layers = {b.node: Layer.HOST if b.kind == "host" else Layer.SWITCH for b in made}
    return Configured(
        nodes=result.nodes,
        findings=tuple(findings(result, layers)),
        files=sum(len(bundle.files) for bundle in made),
        calls=result.module_calls,
        seconds=result.elapsed,
    )


def _chosen(
    cluster: Cluster, made: list[Bundle], only: Only | None, limit: Sequence[str]
) -> list[Bundle]:
    known = set(cluster.plan.nodes)
    unknown = sorted(set(limit) - known)
    if unknown:
        message = f"there is no node {', '.join(unknown)} in {cluster.name}"
        raise Failure(message, f"vela show {cluster.name} lists them")
    kinds = {"hosts": {"host"}, "switches": {"switch"}, None: {"host", "switch"}}[only]
    chosen = [b for b in made if b.kind in kinds and (not limit or b.node in limit)]
    if limit and not chosen:
        message = f"nothing may be done on {', '.join(limit)}"
        raise Failure(message, "hosts in maintenance are left alone")
    return chosen


def _write(cluster: Cluster, outputs: ClusterOutputs, made: Sequence[Bundle]) -> None:
    folder = private(cluster.project.bundles(cluster.name))
    for bundle in made:
        if bundle.root:
            Path(bundle.root).mkdir(parents=True, exist_ok=True)
        write(folder / f"{bundle.node}.json", bundle.model_dump_json(by_alias=True))
    write_json(
        cluster.project.inventory(cluster.name),
        inventory(cluster.plan, outputs, made, folder, sys.executable),
    )


def write_tree(made: Sequence[Bundle], out: Path) -> int:
    """Write every file of every bundle below a folder, for a person to read.

    Returns:
        How many files were written.
    """
    count = 0
    for bundle in made:
        group = "hosts" if bundle.kind == "host" else "switches"
        for file in bundle.files:
            path = out / group / bundle.node / file.path.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.content, encoding="utf-8")
            path.chmod(int(file.mode, 8))
            count += 1
    return count


def write_inventory(
    cluster: Cluster, outputs: ClusterOutputs | None, made: Sequence[Bundle], out: Path
) -> None:
    """Write inventory and bundles below a folder, ready for ``ansible-playbook``."""
    folder = private(out / "bundles")
    for bundle in made:
        write(folder / f"{bundle.node}.json", bundle.model_dump_json(by_alias=True))
    value = inventory(cluster.plan, outputs, made, folder.resolve(), sys.executable)
    (out / "inventory.json").write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
