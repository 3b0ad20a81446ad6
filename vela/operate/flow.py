"""The commands on a whole cluster: up, plan, drift, destroy."""

import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from vela.finding import Finding, Kind
from vela.operate import heal, lab
from vela.operate.ansible import NodeEvent
from vela.operate.cloud import Cloud
from vela.operate.configure import Configured, configure
from vela.operate.drift import cloud_findings, drifted_rules, step_findings
from vela.operate.errors import Failure
from vela.operate.session import (
    Cluster,
    Engines,
    engines,
    locked,
    save_outputs,
    saved_outputs,
)
from vela.operate.stack import EngineFailure, Run, Step
from vela.outputs import ClusterOutputs

MAX_ADOPTIONS = 6
"""Rounds of adoption: a VPC, its subnets, their interfaces, servers, and what hangs on them."""


class Watcher(Protocol):
    """Shows a person what is going on; quiet where there is no terminal."""

    def say(self, text: str) -> None:
        """One line."""

    def phase(self, text: str, total: int | None = None) -> None:
        """A new part of the work begins, with so many steps."""

    def step(self, step: Step, phase: str) -> None:
        """A step of the cloud part."""

    def node(self, event: NodeEvent) -> None:
        """An event on a node."""


@dataclass(slots=True)
class Outcome:
    """What a command did or found.

    Attributes:
        command: Such as ``up``.
        environment: Name.
        seconds: Wall-clock time.
        cloud: What the engine did or would do; None where it was not asked.
        nodes: What the playbooks did or would do; None likewise.
        findings: Differences and failures, of both.
        adopted: Resources that existed and were taken into the state.
        notes: What a person should know, one line each.
        clean: Whether a second look found nothing to change; None where none was needed.
    """

    command: str
    environment: str
    seconds: float = 0.0
    cloud: Run | None = None
    nodes: Configured | None = None
    findings: tuple[Finding, ...] = ()
    adopted: tuple[heal.Adopted, ...] = ()
    notes: list[str] = field(default_factory=list)
    clean: bool | None = None

    @property
    def failures(self) -> tuple[Finding, ...]:
        """What kept us from doing or looking."""
        return tuple(f for f in self.findings if f.kind is Kind.FAILURE)

    @property
    def differences(self) -> tuple[Finding, ...]:
        """What differs from the plan."""
        return tuple(f for f in self.findings if f.kind is Kind.DIFFERENCE)

    @property
    def changed(self) -> bool:
        """Whether anything was, or would be, changed."""
        cloud = bool(self.cloud and self.cloud.changes)
        return cloud or bool(self.nodes and self.nodes.changed)


@dataclass(frozen=True, slots=True)
class Limits:
    """Outer time limits, seconds."""

    cloud: float = 7200
    nodes: float = 3600


Confirm = Callable[[Sequence[Step]], bool]
"""Asked before the cloud is changed; False ends the command with nothing done."""


def up(cluster: Cluster, watch: Watcher, confirm: Confirm, limits: Limits) -> Outcome:
    """Make cloud, hosts and switches what the environment says; then look again.

    Raises:
        Failure: The cloud part failed; running again goes on where it stopped.
    """
    begun = time.monotonic()
    outcome = Outcome("up", cluster.name)
    with locked(cluster, f"vela up {cluster.name}"):
        tools = engines(cluster, watch.say)
        _recover(cluster, tools, outcome, watch)
        look = _look(cluster, tools, outcome, watch, limits)
        left = _mend(cluster, tools, outcome)
        if look.changes:
            if not confirm(look.changes):
                message = "nothing was changed"
                raise Failure(message)
            watch.phase("cloud", len(look.changes))
            outcome.cloud = tools.stack.up(limits.cloud, watch.step)
        else:
            outcome.cloud = look
        outputs = _outputs(tools)
        save_outputs(cluster, outputs)
        watch.phase("hosts and switches", len(cluster.plan.nodes))
        outcome.nodes = configure(
            cluster, outputs, check=False, seconds=limits.nodes, on_event=watch.node
        )
        outcome.findings = (*left, *_failures(outcome.nodes.findings))
        if outcome.changed and not outcome.failures:
            _second_look(cluster, tools, outputs, outcome, watch, limits)
    outcome.seconds = time.monotonic() - begun
    return outcome


def _recover(cluster: Cluster, tools: Engines, outcome: Outcome, watch: Watcher) -> None:
    freed = heal.free_lock(tools.stack, tools.backend, cluster.name)
    if freed:
        outcome.notes.append(freed)
        watch.say(freed)
    pending = heal.forget_pending(tools.stack)
    if pending:
        names = ", ".join(pending)
        outcome.notes.append(f"an interrupted run was busy with {names}; looked for by name")


def _look(
    cluster: Cluster, tools: Engines, outcome: Outcome, watch: Watcher, limits: Limits
) -> Run:
    """Preview, and adopt what exists without being in the state, until nothing more does."""
    watch.phase("looking at the cloud")
    cloud = Cloud(cluster.plan.environment.cloud.region, tools.variables)
    for _ in range(MAX_ADOPTIONS):
        look = tools.stack.preview(limits.cloud)
        if not any(step.op == "create" for step in look.changes):
            return look
        adopted = heal.adopt(tools.stack, cloud, look)
        outcome.adopted += adopted
        if not adopted:
            return look
        watch.say(f"found {len(adopted)} resources of ours that the state did not know")
        cloud = Cloud(cluster.plan.environment.cloud.region, tools.variables)
    return tools.stack.preview(limits.cloud)


def _mend(cluster: Cluster, tools: Engines, outcome: Outcome) -> tuple[Finding, ...]:
    """Put right what the engine does not see; give what nobody may put right unasked."""
    state = tools.stack.export()
    if not state.get("resources"):
        return ()
    cloud = Cloud(cluster.plan.environment.cloud.region, tools.variables)
    for rule in list(drifted_rules(state, cloud)):
        cloud.mend_rule(rule.group, rule.id, rule.inputs)
        outcome.notes.append(f"security rule {rule.name} said something else and was put right")
    return tuple(cloud_findings(state, cloud))


def _second_look(
    cluster: Cluster,
    tools: Engines,
    outputs: ClusterOutputs,
    outcome: Outcome,
    watch: Watcher,
    limits: Limits,
) -> None:
    watch.phase("second look")
    cloud = tools.stack.preview(limits.cloud)
    nodes = configure(cluster, outputs, check=True, seconds=limits.nodes)
    beside = Cloud(cluster.plan.environment.cloud.region, tools.variables)
    outcome.findings = (
        *step_findings(cluster, cloud),
        *cloud_findings(tools.stack.export(), beside),
        *nodes.findings,
    )
    outcome.clean = not outcome.findings


def _outputs(tools: Engines) -> ClusterOutputs:
    outputs = tools.stack.outputs().get("cluster")
    if outputs is None:
        message = "the stack has no output called cluster"
        raise Failure(message, "the program did not run to its end; run the command again")
    return ClusterOutputs.model_validate(outputs)


def _failures(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(finding for finding in findings if finding.kind is Kind.FAILURE)


def plan(cluster: Cluster, watch: Watcher, limits: Limits) -> Outcome:
    """Say what an up would change; changes nothing."""
    begun = time.monotonic()
    outcome = Outcome("plan", cluster.name)
    with locked(cluster, f"vela plan {cluster.name}"):
        tools = engines(cluster, watch.say)
        watch.phase("looking at the cloud")
        outcome.cloud = tools.stack.preview(limits.cloud)
        outcome.findings = tuple(step_findings(cluster, outcome.cloud))
        outputs = saved_outputs(cluster)
        if outputs is None or set(outputs.hosts) != {host.name for host in cluster.plan.hosts}:
            outcome.notes.append("hosts and switches are looked at once the cloud part is up")
        else:
            watch.phase("looking at hosts and switches", len(cluster.plan.nodes))
            outcome.nodes = configure(
                cluster, outputs, check=True, seconds=limits.nodes, on_event=watch.node
            )
            outcome.findings += outcome.nodes.findings
    outcome.seconds = time.monotonic() - begun
    return outcome


def drift(cluster: Cluster, watch: Watcher, limits: Limits) -> Outcome:
    """Hold cloud, hosts and switches against the plan, in one report; changes nothing."""
    begun = time.monotonic()
    outcome = Outcome("drift", cluster.name)
    outputs = saved_outputs(cluster)
    if outputs is None:
        message = f"{cluster.name} is not up, so nothing can have drifted"
        raise Failure(message, f"vela plan {cluster.name} shows what an up would make")
    with locked(cluster, f"vela drift {cluster.name}"):
        tools = engines(cluster, watch.say)
        watch.phase("looking at the cloud")
        outcome.cloud = tools.stack.preview(limits.cloud)
        cloud = Cloud(cluster.plan.environment.cloud.region, tools.variables)
        outcome.findings = (
            *step_findings(cluster, outcome.cloud),
            *cloud_findings(tools.stack.export(), cloud),
        )
        watch.phase("looking at hosts and switches", len(cluster.plan.nodes))
        outcome.nodes = configure(
            cluster, outputs, check=True, seconds=limits.nodes, on_event=watch.node
        )
        outcome.findings += outcome.nodes.findings
    outcome.seconds = time.monotonic() - begun
    return outcome


def destroy(cluster: Cluster, watch: Watcher, limits: Limits) -> Outcome:
    """Delete everything that the state knows, and our own files of the environment.

    Raises:
        Failure: The environment is protected, or the cloud part failed.
    """
    begun = time.monotonic()
    outcome = Outcome("destroy", cluster.name)
    if cluster.plan.environment.cloud.protect:
        message = f"{cluster.name} is protected"
        raise Failure(
            message,
            f"set cloud.protect: false, run vela up {cluster.name}, then destroy it",
        )
    with locked(cluster, f"vela destroy {cluster.name}"):
        tools = engines(cluster, watch.say)
        _recover(cluster, tools, outcome, watch)
        known = [r for r in tools.stack.export().get("resources", []) if r.get("custom")]
        watch.phase("cloud", len(known))
        outcome.cloud = tools.stack.destroy(limits.cloud, watch.step)
        tools.stack.remove()
        _forget(cluster)
        if cluster.simulated and lab.is_empty(cluster.project):
            lab.simulator(cluster.project, "stop")
            shutil.rmtree(cluster.project.simulator, ignore_errors=True)
            outcome.notes.append("the simulated cloud was empty and was stopped")
    outcome.seconds = time.monotonic() - begun
    return outcome


def _forget(cluster: Cluster) -> None:
    """Remove what we keep of an environment, and the directories that stood for its nodes."""
    project, name = cluster.project, cluster.name
    project.outputs(name).unlink(missing_ok=True)
    project.inventory(name).unlink(missing_ok=True)
    shutil.rmtree(project.bundles(name), ignore_errors=True)
    if cluster.plan.environment.lab.nodes == "directories":
        shutil.rmtree(project.state / name, ignore_errors=True)


__all__ = ["EngineFailure", "Limits", "Outcome", "Watcher", "destroy", "drift", "plan", "up"]
