"""What events mean, without a run."""

from typing import Any

import pytest

from vela.finding import Kind, Layer
from vela.model.change import Change
from vela.operate.ansible_events import (
    Collector,
    NodeChange,
    NodeEvent,
    NodeResult,
    PlaybookResult,
    findings,
)

CHANGE = {
    "path": "/etc/hosts",
    "item": "content",
    "expected": "line 1: a",
    "found": "line 1: b",
    "change": "live",
    "restart": [],
}


def answer(
    host: str, *changes: dict[str, Any], kind: str = "runner_on_ok", **result: Any
) -> dict[str, Any]:
    base = {"changed": bool(changes), "changes": list(changes), "real": True}
    return {
        "event": kind,
        "host": host,
        "action": "vela_bundle",
        "result": {**base, "restart": [], "reboot": [], **result},
    }


def task(host: str, action: str, kind: str = "runner_on_ok", **result: Any) -> dict[str, Any]:
    return {"event": kind, "host": host, "action": action, "result": result}


def stats(**hosts: tuple[int, int, int]) -> dict[str, Any]:
    """Count of changed, unreachable and failed by node."""
    names = ("changed", "dark", "failures")
    counts = {host: dict(zip(names, given, strict=True)) for host, given in hosts.items()}
    return {"event": "playbook_on_stats", "stats": counts}


def collect(*events: dict[str, Any]) -> Collector:
    collector = Collector()
    for event in events:
        collector.take(event)
    return collector


def test_states_of_nodes_that_answered() -> None:
    collector = collect(
        task("a", "ansible.builtin.validate_argument_spec", changed=False),
        answer("a"),
        answer("b", CHANGE, restart=["x.service"], reboot=["/etc/grub"]),
        task("b", "ansible.builtin.systemd_service", changed=True),
        task("b", "ansible.builtin.include_tasks"),
        stats(a=(0, 0, 0), b=(2, 0, 0)),
    )
    change = NodeChange("/etc/hosts", "content", "line 1: a", "line 1: b", Change.LIVE)
    assert collector.results(["a", "b"]) == {
        "a": NodeResult("a", "ok"),
        "b": NodeResult("b", "changed", (change,), "", ("x.service",), ("/etc/grub",)),
    }
    assert collector.calls == 3


def test_units_of_a_directory_are_not_claimed() -> None:
    collector = collect(answer("a", CHANGE, restart=["x"], real=False), stats(a=(1, 0, 0)))
    assert collector.results(["a"])["a"].restart == ()


@pytest.mark.parametrize(
    ("events", "state", "message"),
    [
        ([], "unknown", "Ansible did not get as far as this node"),
        ([answer("a")], "unknown", "Ansible did not get as far as this node"),
        (
            [stats(a=(0, 0, 0))],
            "unknown",
            "its bundle was compared by no task, or the answer was lost",
        ),
        (
            [task("a", "vela_bundle"), stats(a=(0, 0, 0))],
            "unknown",
            "its bundle was compared by no task, or the answer was lost",
        ),
        (
            [answer("a"), task("a", "copy", censored="x"), stats(a=(1, 0, 0))],
            "unknown",
            "1 change was hidden by no_log",
        ),
        (
            [answer("a"), stats(a=(2, 0, 0))],
            "unknown",
            "2 changes were hidden by no_log",
        ),
        (
            [task("a", "vela_bundle", "runner_on_failed", msg="disk full"), stats(a=(0, 0, 1))],
            "failed",
            "disk full",
        ),
        ([task("a", "vela_bundle", "runner_on_failed", msg=" boom \n")], "failed", "boom"),
        ([answer("a"), stats(a=(0, 0, 1))], "failed", "Ansible did not say why"),
        ([answer("a"), stats(a=(0, 1, 0))], "unreachable", "Ansible did not say why"),
        (
            [task("a", "vela_bundle", "runner_on_unreachable", msg="no route"), stats(a=(0, 1, 0))],
            "unreachable",
            "no route",
        ),
        (
            [answer("a", {**CHANGE, "item": "colour"}), stats(a=(1, 0, 0))],
            "unknown",
            "its answer is not understood: ValueError('item colour')",
        ),
        (
            [answer("a", {**CHANGE, "change": "never"}), stats(a=(1, 0, 0))],
            "unknown",
            "its answer is not understood: ValueError(\"'never' is not a valid Change\")",
        ),
    ],
)
def test_doubt_is_never_ok(events: list[dict[str, Any]], state: str, message: str) -> None:
    result = collect(*events).results(["a"])["a"]
    assert (result.state, result.message) == (state, message)


def test_failure_after_the_files_keeps_what_changed() -> None:
    collector = collect(
        answer("a", CHANGE),
        task("a", "ansible.builtin.systemd_service", "runner_on_failed", msg="no such unit"),
        stats(a=(1, 0, 1)),
    )
    result = collector.results(["a"])["a"]
    assert (result.state, len(result.changes), result.message) == ("failed", 1, "no such unit")


def test_nodes_nobody_expected_are_told_as_well() -> None:
    collector = collect(answer("a"), answer("b", CHANGE), stats(a=(0, 0, 0), b=(1, 0, 0)))
    assert {name: r.state for name, r in collector.results(["a"]).items()} == {
        "a": "ok",
        "b": "changed",
    }


def test_watcher_hears_once_of_each_node() -> None:
    collector = Collector()
    said = [
        collector.take(event)
        for event in (
            task("a", "validate_argument_spec"),
            answer("a", CHANGE),
            task("a", "systemd_service", changed=True),
            task("b", "vela_bundle", "runner_on_unreachable"),
            stats(a=(1, 0, 0), b=(0, 1, 0)),
            {"event": "end", "code": 4, "output": "words"},
        )
    ]
    assert [event for event in said if event] == [
        NodeEvent("a", "changed"),
        NodeEvent("b", "unreachable"),
    ]
    assert (collector.code, collector.output) == (4, "words")
    assert (collector.compared, collector.processed) == (1, 2)


ITEMS = {
    "content": "VELA-FILE-001",
    "mode": "VELA-FILE-002",
    "owner": "VELA-FILE-002",
    "missing": "VELA-FILE-003",
    "obsolete": "VELA-FILE-004",
    "restart": "VELA-FILE-005",
    "package": "VELA-NODE-004",
}


@pytest.mark.parametrize(("item", "rule"), ITEMS.items())
def test_difference_as_a_finding(item: str, rule: str) -> None:
    change = NodeChange("/etc/a", item, "x", "y", Change.HOST_DRAIN)
    result = PlaybookResult({"n": NodeResult("n", "changed", (change,))}, 1.0, 1)
    (found,) = findings(result, {"n": Layer.SWITCH})
    assert (found.layer, found.node, found.item) == (Layer.SWITCH, "n", f"/etc/a ({item})")
    assert (found.expected, found.found, found.change) == ("x", "y", Change.HOST_DRAIN)
    assert (found.rule, found.kind) == (rule, Kind.DIFFERENCE)
    assert "vela configure puts it right" in found.hint


def test_trouble_and_waiting_as_findings() -> None:
    result = PlaybookResult(
        {
            "a": NodeResult("a", "failed", message="disk full"),
            "b": NodeResult("b", "unreachable", message="no route"),
            "c": NodeResult("c", "unknown", message="no answer"),
            "d": NodeResult("d", "ok", reboot=("/etc/grub",)),
            "e": NodeResult("e", "ok"),
        },
        1.0,
        1,
    )
    found = findings(result, dict.fromkeys("abcde", Layer.HOST))
    assert [(f.node, f.item, f.found, f.rule, f.kind) for f in found] == [
        ("a", "failed", "disk full", "VELA-NODE-001", Kind.FAILURE),
        ("b", "unreachable", "no route", "VELA-NODE-002", Kind.FAILURE),
        ("c", "unknown", "no answer", "VELA-NODE-003", Kind.FAILURE),
        (
            "d",
            "/etc/grub (reboot)",
            "in place since the node started, not yet in force",
            "VELA-FILE-006",
            Kind.DIFFERENCE,
        ),
    ]
    assert found[3].change is Change.HOST_REBOOT
    assert all(f.hint for f in found)
