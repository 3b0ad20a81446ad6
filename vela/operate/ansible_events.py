"""What a playbook's events mean: the state of every node that was expected, and findings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from vela.finding import Finding, Kind, Layer
from vela.model.change import Change

State = Literal["ok", "changed", "failed", "unreachable", "unknown"]

BUNDLE = "vela_bundle"
_ON_CONTROLLER = frozenset({"validate_argument_spec", "include_tasks", "set_fact", "debug"})
"""Last parts of the names of actions that send nothing to the node."""


@dataclass(frozen=True, slots=True)
class NodeChange:
    """One difference of one node, as the bundle module told it.

    Attributes:
        path: The file; for a package, its name.
        item: ``content``, ``mode``, ``owner``, ``missing``, ``obsolete``, ``restart`` (nothing has
            read the file since it changed) or ``package``.
        expected: Value of the plan; None where the file should not be.
        found: Value found; None where there is nothing.
        change: What the repair costs.
    """

    path: str
    item: str
    expected: str | None
    found: str | None
    change: Change


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """A node got as far as its bundle, or no further."""

    node: str
    state: State


@dataclass(frozen=True, slots=True)
class NodeResult:
    """What became of one node.

    Attributes:
        node: Its name in the plan.
        state: ``unknown`` where Ansible's word cannot be relied on.
        changes: Differences, repaired unless the run was a check.
        message: Why it is failed, unreachable or unknown; else empty.
        restart: Units that were restarted, or would be, in order.
        reboot: Files in place that count only once the node has been restarted.
    """

    node: str
    state: State
    changes: tuple[NodeChange, ...] = ()
    message: str = ""
    restart: tuple[str, ...] = ()
    reboot: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlaybookResult:
    """What became of all nodes; every expected one is there.

    Attributes:
        nodes: By name, in the order in which they were expected.
        elapsed: Wall-clock time, seconds.
        module_calls: Modules that ran on nodes.
    """

    nodes: Mapping[str, NodeResult]
    elapsed: float
    module_calls: int


@dataclass(slots=True)
class _Node:
    """What the events said about one node."""

    bundles: int = 0
    changes: list[NodeChange] = field(default_factory=list)
    restart: list[str] = field(default_factory=list)
    reboot: list[str] = field(default_factory=list)
    trouble: State | None = None
    message: str = ""
    seen_changed: int = 0


class Collector:
    """Takes the events of one run.

    Attributes:
        calls: Modules that ran on nodes.
        code: Exit code of ``ansible-playbook``; None until it has ended.
        output: Its last words.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.calls = 0
        self.code: int | None = None
        self.output = ""
        self._nodes: dict[str, _Node] = {}
        self._stats: dict[str, dict[str, int]] = {}

    def take(self, event: Mapping[str, Any]) -> NodeEvent | None:
        """Take one event as the child process tells it.

        Returns:
            What a person who watches wants to know, if anything.
        """
        match event["event"]:
            case "end":
                self.code, self.output = event["code"], event["output"]
            case "playbook_on_stats":
                self._stats = event["stats"]
            case kind:
                return self._take_result(kind, event)
        return None

    def _take_result(self, kind: str, event: Mapping[str, Any]) -> NodeEvent | None:
        name, result = str(event["host"]), event["result"]
        node = self._nodes.setdefault(name, _Node())
        action = str(event["action"]).rsplit(".", maxsplit=1)[-1]
        if kind == "runner_on_unreachable":
            return self._trouble(name, node, "unreachable", result)
        self.calls += action not in _ON_CONTROLLER
        if kind == "runner_on_failed":
            return self._trouble(name, node, "failed", result)
        node.seen_changed += bool(result.get("changed"))
        if action != BUNDLE or "changes" not in result:
            return None
        try:
            node.changes += [_change(said) for said in result["changes"]]
        except (KeyError, TypeError, ValueError) as error:
            said = {"msg": f"its answer is not understood: {error!r}"}
            return self._trouble(name, node, "unknown", said)
        node.bundles += 1
        # a directory in a node's place has no units
        node.restart += result["restart"] if result["real"] else []
        node.reboot += result["reboot"]
        return NodeEvent(name, "changed" if result.get("changed") else "ok")

    def _trouble(
        self, name: str, node: _Node, state: State, result: Mapping[str, Any]
    ) -> NodeEvent:
        node.trouble, node.message = state, str(result.get("msg") or state).strip()
        return NodeEvent(name, state)

    @property
    def processed(self) -> int:
        """How many nodes Ansible has said anything about."""
        return len({*self._nodes, *self._stats})

    @property
    def compared(self) -> int:
        """How many nodes have given their bundle's result."""
        return sum(node.bundles > 0 for node in self._nodes.values())

    def results(self, expected: Sequence[str]) -> dict[str, NodeResult]:
        """State of every node that was expected, and of any other that was touched."""
        names = dict.fromkeys([*expected, *self._nodes, *self._stats])
        return {name: self._result(name) for name in names}

    def _result(self, name: str) -> NodeResult:
        node = self._nodes.get(name, _Node())
        state, message = self._state(name, node)
        return NodeResult(
            name, state, tuple(node.changes), message, tuple(node.restart), tuple(node.reboot)
        )

    def _state(self, name: str, node: _Node) -> tuple[State, str]:
        """What events say, held against Ansible's own count at the end."""
        if node.trouble:
            return node.trouble, node.message
        stats = self._stats.get(name)
        if stats is None:
            return "unknown", "Ansible did not get as far as this node"
        if stats["dark"] or stats["failures"]:
            return "unreachable" if stats["dark"] else "failed", "Ansible did not say why"
        hidden = stats["changed"] - node.seen_changed
        if not node.bundles or hidden > 0:
            noun = "change was" if hidden == 1 else "changes were"
            lost = "its bundle was compared by no task, or the answer was lost"
            return "unknown", f"{hidden} {noun} hidden by no_log" if hidden > 0 else lost
        return ("changed" if stats["changed"] else "ok"), ""


def _change(said: Mapping[str, Any]) -> NodeChange:
    item = str(said["item"])
    if item not in _RULES:
        message = f"item {item}"
        raise ValueError(message)
    return NodeChange(
        path=str(said["path"]),
        item=item,
        expected=said["expected"],
        found=said["found"],
        change=Change(said["change"]),
    )


_RULES = {
    "content": ("VELA-FILE-001", "somebody edited it, or the environment changed: {apply}"),
    "mode": ("VELA-FILE-002", "{apply}"),
    "owner": ("VELA-FILE-002", "{apply}"),
    "missing": ("VELA-FILE-003", "{apply}"),
    "obsolete": ("VELA-FILE-004", "an earlier bundle brought it; {apply}"),
    "restart": ("VELA-FILE-005", "a run broke off before its restarts; {apply}"),
    "package": ("VELA-NODE-004", "{apply}"),
}
_APPLY = "vela configure puts it right"
_TROUBLES: Mapping[State, tuple[str, str]] = {
    "failed": (
        "VELA-NODE-001",
        "mend the cause, then run the command again: nodes that are done stay done",
    ),
    "unreachable": (
        "VELA-NODE-002",
        "check its power, address, host key and your SSH key: ssh to it by hand",
    ),
    "unknown": (
        "VELA-NODE-003",
        "run the command again; if it stays so, run ansible-playbook -v by hand",
    ),
}


def findings(result: PlaybookResult, layer_of: Mapping[str, Layer]) -> list[Finding]:
    """Differences and failures of a run as findings, node by node.

    Args:
        result: The run.
        layer_of: Layer of each node by name.
    """
    return [
        finding for node in result.nodes.values() for finding in _node(node, layer_of[node.node])
    ]


def _node(node: NodeResult, layer: Layer) -> list[Finding]:
    found = [_difference(node.node, layer, change) for change in node.changes]
    found += [_waiting(node.node, layer, path) for path in node.reboot]
    if node.state in _TROUBLES:
        rule, hint = _TROUBLES[node.state]
        found.append(
            Finding(
                layer=layer,
                node=node.node,
                item=node.state,
                expected=None,
                found=node.message,
                change=Change.LIVE,
                rule=rule,
                kind=Kind.FAILURE,
                hint=hint,
            )
        )
    return found


def _difference(node: str, layer: Layer, change: NodeChange) -> Finding:
    rule, hint = _RULES[change.item]
    return Finding(
        layer=layer,
        node=node,
        item=f"{change.path} ({change.item})",
        expected=change.expected,
        found=change.found,
        change=change.change,
        rule=rule,
        hint=hint.format(apply=_APPLY),
    )


def _waiting(node: str, layer: Layer, path: str) -> Finding:
    return Finding(
        layer=layer,
        node=node,
        item=f"{path} (reboot)",
        expected="in force",
        found="in place since the node started, not yet in force",
        change=Change.HOST_REBOOT,
        rule="VELA-FILE-006",
        hint="drain the node, then restart it: nothing here restarts a node by itself",
    )
