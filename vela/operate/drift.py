"""Findings about the cloud: from the engine's preview, and from IBM's own client."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vela.finding import Finding, Layer
from vela.model.change import Change
from vela.operate.cloud import Cloud, rule_found, rule_inputs
from vela.operate.session import Cluster
from vela.operate.stack import Run, Step

RULE_TYPE = "ibm:index/isSecurityGroupRule:IsSecurityGroupRule"
SERVER_TYPES = ("ibm:index/isBareMetalServer:IsBareMetalServer", "ibm:index/isInstance:IsInstance")

_DRAINS = {
    # the provider stops the server for these
    "ibm:index/isBareMetalServer:IsBareMetalServer": Change.HOST_REBOOT,
}
_LIVE_PROPERTIES = {"name", "tags", "accessTags", "bandwidth"}


def step_findings(cluster: Cluster, run: Run) -> Iterator[Finding]:
    """What a preview would change, as findings."""
    protect = cluster.plan.environment.cloud.protect
    for step in run.changes:
        match step.op:
            case "create" | "create-replacement":
                yield _finding(step, step.type_name, "present", None, Change.LIVE, "001")
            case "delete" | "delete-replaced":
                change = Change.FORBIDDEN if protect else Change.REPROVISION
                yield _finding(step, step.type_name, None, "present", change, "002")
            case "replace":
                change = Change.FORBIDDEN if protect else Change.REPROVISION
                for item in step.diffs or (step.type_name,):
                    yield _difference(step, item, change, "003")
            case "update":
                for item in step.diffs or (step.type_name,):
                    yield _difference(step, item, _change(step, item), "004")


def _change(step: Step, item: str) -> Change:
    if item.split(".", maxsplit=1)[0].split("[", maxsplit=1)[0] in _LIVE_PROPERTIES:
        return Change.LIVE
    return _DRAINS.get(step.type, Change.LIVE)


def _difference(step: Step, item: str, change: Change, number: str) -> Finding:
    return _finding(
        step,
        item,
        _value(step.new.get("inputs") or {}, item),
        _value(step.old.get("outputs") or step.old.get("inputs") or {}, item),
        change,
        number,
    )


def _value(properties: Mapping[str, Any], item: str) -> str | None:
    """Value at a property path such as ``tags[0]`` or ``primaryIp.address``, as text."""
    current: Any = properties
    for step in item.replace("[", ".").replace("]", "").split("."):
        if isinstance(current, Mapping):
            current = current.get(step)
        elif isinstance(current, list) and step.isdigit() and int(step) < len(current):
            current = current[int(step)]
        else:
            return None
    return None if current is None else str(current)


def _finding(
    step: Step, item: str, expected: str | None, found: str | None, change: Change, number: str
) -> Finding:
    return Finding(
        layer=Layer.CLOUD,
        node=step.name,
        item=item,
        expected=expected,
        found=found,
        change=change,
        rule=f"VELA-CLOUD-DRIFT-{number}",
    )


def cloud_findings(state: Mapping[str, Any], cloud: Cloud) -> Iterator[Finding]:
    """What the provider does not see: ports of security rules, foreign rules, stopped servers."""
    for drifted in drifted_rules(state, cloud):
        expected = rule_inputs(drifted.inputs)
        yield _rule_finding(drifted.name, expected, drifted.found, "006")
    for rule in _foreign_rules(state, cloud):
        yield _rule_finding(str(rule.get("name", rule["id"])), None, rule_found(rule), "007")
    for kind in SERVER_TYPES:
        ours = {str(r["inputs"].get("name")): r for r in _custom(state) if r["type"] == kind}
        if not ours:
            continue
        found = cloud.servers(kind)
        for name, resource in sorted(ours.items()):
            status = found.get(name, {}).get("status")
            if status not in {None, "running", "starting", "restarting"}:
                yield Finding(
                    layer=Layer.CLOUD,
                    node=str(resource["urn"]).rsplit("::", 1)[-1],
                    item="status",
                    expected="running",
                    found=str(status),
                    change=Change.LIVE,
                    rule="VELA-CLOUD-DRIFT-005",
                    hint="start it: ibmcloud is bare-metal-server-start, or in the console",
                )


@dataclass(frozen=True, slots=True)
class DriftedRule:
    """A security rule of ours that says something else in the cloud."""

    name: str
    group: str
    id: str
    inputs: Mapping[str, Any]
    found: tuple[object, ...]


def drifted_rules(state: Mapping[str, Any], cloud: Cloud) -> Iterator[DriftedRule]:
    """Rules whose ports, remote or direction were changed, which the provider does not see."""
    for group, rules in _by_group(state):
        found = {str(rule["id"]): rule for rule in cloud.rules(group)}
        for resource in rules:
            identity = str(resource["id"]).rsplit(".", 1)[-1]
            there = found.get(identity)
            # one that is gone is made again by the engine
            if there and rule_inputs(resource["inputs"]) != rule_found(there):
                name = str(resource["urn"]).rsplit("::", 1)[-1]
                yield DriftedRule(name, group, identity, resource["inputs"], rule_found(there))


def _foreign_rules(state: Mapping[str, Any], cloud: Cloud) -> Iterator[Mapping[str, Any]]:
    for group, rules in _by_group(state):
        ours = {str(resource["id"]).rsplit(".", 1)[-1] for resource in rules}
        yield from (rule for rule in cloud.rules(group) if str(rule["id"]) not in ours)


def _by_group(state: Mapping[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for resource in _custom(state):
        if resource["type"] == RULE_TYPE:
            groups.setdefault(str(resource["inputs"]["group"]), []).append(resource)
    return sorted(groups.items())


def _custom(state: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        resource
        for resource in state.get("resources", [])
        # one without inputs was adopted just now, and is not looked at by anyone yet
        if resource.get("custom") and not resource.get("delete") and resource.get("inputs")
    ]


def _rule_finding(
    name: str,
    expected: tuple[object, ...] | None,
    found: tuple[object, ...],
    number: str,
) -> Finding:
    return Finding(
        layer=Layer.CLOUD,
        node=name,
        item="security rule",
        expected=_words(expected) if expected else None,
        found=_words(found),
        change=Change.LIVE,
        rule=f"VELA-CLOUD-DRIFT-{number}",
        hint="vela up puts it right" if expected else "nothing in the plan needs it: remove it",
    )


def _words(rule: tuple[object, ...]) -> str:
    direction, protocol, low, high, remote = rule
    ports = "" if low is None else f" {low}" if low == high else f" {low}-{high}"
    return f"{direction} {protocol}{ports} {remote}"
