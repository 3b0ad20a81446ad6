"""Findings about the cloud: from the engine's preview, and from IBM's own client."""

from collections.abc import Iterator, Mapping
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
    resources = [r for r in state.get("resources", []) if r.get("custom") and not r.get("delete")]
    yield from _rules(resources, cloud)
    for kind in SERVER_TYPES:
        ours = {str(r["inputs"].get("name")): r for r in resources if r["type"] == kind}
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


def _rules(resources: list[dict[str, Any]], cloud: Cloud) -> Iterator[Finding]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for resource in resources:
        if resource["type"] == RULE_TYPE:
            groups.setdefault(str(resource["inputs"]["group"]), []).append(resource)
    for group, rules in sorted(groups.items()):
        found = {str(rule["id"]): rule for rule in cloud.rules(group)}
        for resource in rules:
            name = str(resource["urn"]).rsplit("::", 1)[-1]
            there = found.pop(str(resource["id"]).rsplit(".", 1)[-1], None)
            if there is None:
                continue  # the preview says that it will be made again
            expected, actual = rule_inputs(resource["inputs"]), rule_found(there)
            if expected != actual:
                yield _rule_finding(name, expected, actual, "006")
        for rule in found.values():
            yield _rule_finding(str(rule.get("name", rule["id"])), None, rule_found(rule), "007")


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
