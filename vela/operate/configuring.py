"""The command ``configure``: the playbooks alone, from saved outputs."""

import time
from collections.abc import Sequence

from vela.finding import Kind
from vela.operate.configure import Only
from vela.operate.configure import configure as run
from vela.operate.flow import Outcome, Watcher
from vela.operate.session import Cluster, locked, need_outputs


def configure(
    cluster: Cluster, watch: Watcher, *, check: bool, only: Only | None, limit: Sequence[str]
) -> Outcome:
    """Put the bundles on their nodes, or look what that would change.

    Raises:
        Failure: The environment was never up, or the limit names no node of it.
    """
    begun = time.monotonic()
    outcome = Outcome("configure", cluster.name)
    outputs = need_outputs(cluster)
    with locked(cluster, f"vela configure {cluster.name}"):
        watch.phase("hosts and switches", len(limit) or len(cluster.plan.nodes))
        nodes = run(cluster, outputs, check=check, only=only, limit=limit, on_event=watch.node)
    outcome.nodes = nodes
    outcome.findings = tuple(f for f in nodes.findings if check or f.kind is Kind.FAILURE)
    outcome.seconds = time.monotonic() - begun
    return outcome
