"""Security groups, their rules and targets, and SSH keys."""

import base64
import hashlib
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from lab.cloud.acls import PROTOCOLS
from lab.cloud.api import (
    Answer,
    Cloud,
    Request,
    given,
    group_reference,
    name_of,
    need,
    now,
    page,
    patch,
    quota,
    read,
    reference,
    refuse,
    required,
    route,
)
from lab.cloud.store import Resource, each, shown

MAX_GROUPS = 5
"""Security groups of a virtual network interface."""


def make_group(
    cloud: Cloud, vpc: Resource, body: Mapping[str, Any], *, default: bool = False
) -> Resource:
    """Make a security group."""
    identity = cloud.store.new_id("r014")
    group: Resource = {
        "_scope": vpc["id"],
        "_default": default,
        "id": identity,
        "name": name_of(cloud, "security_groups", vpc["id"], body, f"sg-{identity[-6:]}"),
        "crn": cloud.crn("security-group", identity),
        "href": cloud.href(f"/security_groups/{identity}"),
        "created_at": now(),
        "resource_group": group_reference(cloud, body) if not default else vpc["resource_group"],
        "rules": [],
        "targets": [],
        "vpc": reference(vpc),
    }
    cloud.store.add("security_groups", group)
    for rule in each(body.get("rules")):
        group["rules"].append(_rule(cloud, group, rule))
    return group


def default_security_group(cloud: Cloud, vpc: Resource) -> Resource:
    """The group of a new VPC: everything out, and everything in from its own members."""
    group = make_group(cloud, vpc, {"name": f"{vpc['name']}-default-sg"}, default=True)
    for body in (
        {"direction": "outbound", "protocol": "icmp_tcp_udp"},
        {"direction": "inbound", "protocol": "icmp_tcp_udp", "remote": {"id": group["id"]}},
    ):
        group["rules"].append(_rule(cloud, group, body))
    return group


def _rule(cloud: Cloud, group: Resource, body: Mapping[str, Any]) -> Resource:
    protocol = body.get("protocol", "any")
    if protocol not in PROTOCOLS and not str(protocol).startswith("number_"):
        refuse(400, "invalid_value", f"protocol {protocol} is not known", "protocol")
    if required(body, "direction") not in {"inbound", "outbound"}:
        refuse(400, "invalid_value", "direction is inbound or outbound", "direction")
    identity = cloud.store.new_id("r014")
    rule: Resource = {
        "id": identity,
        "name": body.get("name") or f"rule-{identity[-8:]}",
        "href": cloud.href(f"/security_groups/{group['id']}/rules/{identity}"),
        "resource_type": "security_group_rule",
        "direction": body["direction"],
        "protocol": protocol,
        "ip_version": "ipv4",
        "local": _side(cloud, body.get("local"), "local"),
        "remote": _side(cloud, body.get("remote"), "remote"),
    }
    if protocol in {"tcp", "udp"}:
        low, high = int(body.get("port_min") or 1), int(body.get("port_max") or 65535)
        if not 1 <= low <= high <= 65535:
            refuse(400, "invalid_value", f"ports {low} to {high} are not a range", "port_min")
        rule |= {"port_min": low, "port_max": high}
    if protocol == "icmp":
        rule |= {key: body[key] for key in ("type", "code") if body.get(key) is not None}
    for other in group["rules"]:
        if other["name"] == rule["name"]:
            message = f"Provided Name ({rule['name']}) is not unique"
            refuse(409, "validation_unique_failed", message, "name")
        if _meaning(other) == _meaning(rule):
            refuse(409, "rule_exists", f"rule {other['name']} says the same")
    return rule


def _meaning(rule: Resource) -> tuple[Any, ...]:
    keys = ("direction", "protocol", "port_min", "port_max", "type", "code")
    remote = rule["remote"]
    whose = remote.get("id") or remote.get("cidr_block") or remote.get("address")
    return (*(rule.get(key) for key in keys), whose)


def _side(cloud: Cloud, body: Any, target: str) -> dict[str, Any]:
    """Local or remote of a rule: a group, an address or a network."""
    if not body:
        return {"cidr_block": "0.0.0.0/0"}
    if body.get("cidr_block"):
        try:
            return {"cidr_block": str(IPv4Network(body["cidr_block"]))}
        except ValueError:
            message = f"{body['cidr_block']} is not a CIDR block"
            refuse(400, "invalid_value", message, f"{target}.cidr_block")
    if body.get("address"):
        try:
            return {"address": str(IPv4Address(body["address"]))}
        except ValueError:
            message = f"{body['address']} is not an address"
            refuse(400, "invalid_value", message, f"{target}.address")
    group = given(cloud, "security_groups", body, f"{target}.id")
    return {key: group[key] for key in ("id", "name", "crn", "href")}


@route("POST", "/v1/security_groups")
def create_group(cloud: Cloud, request: Request) -> Answer:
    """Make a security group."""
    body = request.body or {}
    vpc = given(cloud, "vpcs", required(body, "vpc"), "vpc.id")
    return Answer(201, shown(make_group(cloud, vpc, body)))


@route("GET", "/v1/security_groups")
def list_groups(cloud: Cloud, request: Request) -> Answer:
    """List security groups."""
    groups = cloud.store.all("security_groups")
    if "vpc.id" in request.query:
        groups = [g for g in groups if g["vpc"]["id"] == request.query["vpc.id"]]
    return page(cloud, request, "security_groups", groups)


@route("GET", "/v1/security_groups/{id}")
def get_group(cloud: Cloud, request: Request) -> Answer:
    """Read a security group."""
    return read(cloud, "security_groups", request.params["id"])


@route("PATCH", "/v1/security_groups/{id}")
def patch_group(cloud: Cloud, request: Request) -> Answer:
    """Rename a security group."""
    group = need(cloud, "security_groups", request.params["id"])
    return patch(cloud, "security_groups", request, group, ())


@route("DELETE", "/v1/security_groups/{id}")
def delete_group(cloud: Cloud, request: Request) -> Answer:
    """Delete a security group without targets."""
    group = need(cloud, "security_groups", request.params["id"])
    if group["_default"]:
        refuse(409, "security_group_default", f"{group['name']} is the VPC's default group")
    if group["targets"]:
        names = ", ".join(target["name"] for target in group["targets"][:3])
        refuse(409, "security_group_in_use", f"{group['name']} is used by {names}")
    for other in cloud.store.all("security_groups"):
        names_it = any(rule["remote"].get("id") == group["id"] for rule in other["rules"])
        if names_it and other["id"] != group["id"]:
            message = f"{group['name']} is named by a rule of {other['name']}"
            refuse(409, "security_group_in_use", message)
    cloud.store.remove("security_groups", group)
    return Answer(204)


@route("POST", "/v1/security_groups/{group}/rules")
def create_rule(cloud: Cloud, request: Request) -> Answer:
    """Add a rule."""
    group = need(cloud, "security_groups", request.params["group"])
    rule = _rule(cloud, group, request.body or {})
    group["rules"].append(rule)
    cloud.store.touch()
    return Answer(201, shown(rule))


@route("GET", "/v1/security_groups/{group}/rules")
def list_rules(cloud: Cloud, request: Request) -> Answer:
    """List rules."""
    group = need(cloud, "security_groups", request.params["group"])
    return Answer(200, {"rules": shown(group["rules"])})


def _find_rule(cloud: Cloud, request: Request) -> tuple[Resource, Resource]:
    group = need(cloud, "security_groups", request.params["group"])
    for rule in group["rules"]:
        if rule["id"] == request.params["id"]:
            return group, rule
    refuse(404, "not_found", f"rule {request.params['id']} was not found")


@route("GET", "/v1/security_groups/{group}/rules/{id}")
def get_rule(cloud: Cloud, request: Request) -> Answer:
    """Read a rule."""
    return Answer(200, shown(_find_rule(cloud, request)[1]))


@route("PATCH", "/v1/security_groups/{group}/rules/{id}")
def patch_rule(cloud: Cloud, request: Request) -> Answer:
    """Change a rule; its protocol stays."""
    _, rule = _find_rule(cloud, request)
    body = request.body or {}
    if body.get("protocol", rule["protocol"]) != rule["protocol"]:
        refuse(400, "invalid_value", "the protocol of a rule cannot be changed", "protocol")
    for key in ("name", "direction", "port_min", "port_max", "type", "code"):
        if key in body:
            rule[key] = body[key]
    for side in ("local", "remote"):
        if side in body:
            rule[side] = _side(cloud, body[side], side)
    cloud.store.touch()
    return Answer(200, shown(rule))


@route("DELETE", "/v1/security_groups/{group}/rules/{id}")
def delete_rule(cloud: Cloud, request: Request) -> Answer:
    """Delete a rule."""
    group, rule = _find_rule(cloud, request)
    group["rules"].remove(rule)
    cloud.store.touch()
    return Answer(204)


# --- targets


def join(cloud: Cloud, group: Resource, interface: Resource) -> None:
    """Put an interface into a group."""
    if any(target["id"] == interface["id"] for target in group["targets"]):
        return
    if len(interface["security_groups"]) >= MAX_GROUPS:
        message = f"{interface['name']} is in {MAX_GROUPS} security groups already"
        refuse(400, "over_quota", message, "security_groups")
    group["targets"].append(reference(interface))
    interface["security_groups"].append({key: group[key] for key in ("id", "name", "crn", "href")})
    cloud.store.touch()


def leave(cloud: Cloud, group: Resource, interface: Resource) -> None:
    """Take an interface out of a group."""
    group["targets"] = [t for t in group["targets"] if t["id"] != interface["id"]]
    interface["security_groups"] = [
        g for g in interface["security_groups"] if g["id"] != group["id"]
    ]
    cloud.store.touch()


@route("GET", "/v1/security_groups/{group}/targets")
def list_targets(cloud: Cloud, request: Request) -> Answer:
    """List what a group applies to."""
    group = need(cloud, "security_groups", request.params["group"])
    return page(cloud, request, "targets", group["targets"])


@route("GET", "/v1/security_groups/{group}/targets/{id}")
def get_target(cloud: Cloud, request: Request) -> Answer:
    """Read one target."""
    group = need(cloud, "security_groups", request.params["group"])
    for target in group["targets"]:
        if target["id"] == request.params["id"]:
            return Answer(200, target)
    refuse(404, "not_found", f"target {request.params['id']} was not found")


@route("PUT", "/v1/security_groups/{group}/targets/{id}")
def put_target(cloud: Cloud, request: Request) -> Answer:
    """Put an interface into a group."""
    group = need(cloud, "security_groups", request.params["group"])
    interface = need(cloud, "virtual_network_interfaces", request.params["id"])
    join(cloud, group, interface)
    return Answer(200, reference(interface))


@route("DELETE", "/v1/security_groups/{group}/targets/{id}")
def delete_target(cloud: Cloud, request: Request) -> Answer:
    """Take an interface out of a group."""
    group = need(cloud, "security_groups", request.params["group"])
    interface = need(cloud, "virtual_network_interfaces", request.params["id"])
    if len(interface["security_groups"]) == 1:
        message = f"{group['name']} is the last security group of {interface['name']}"
        refuse(409, "security_group_last", message)
    leave(cloud, group, interface)
    return Answer(204)


# --- SSH keys


@route("POST", "/v1/keys")
def create_key(cloud: Cloud, request: Request) -> Answer:
    """Take an SSH public key that the region does not have."""
    body = request.body or {}
    quota(cloud, "keys")
    public = str(required(body, "public_key"))
    parts = public.split()
    try:
        blob = base64.b64decode(parts[1], validate=True)
    except (IndexError, ValueError):
        refuse(400, "invalid_value", "public_key is not an SSH public key", "public_key")
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    fingerprint = f"SHA256:{digest}"
    for other in cloud.store.all("keys"):
        if other["fingerprint"] == fingerprint:
            message = f"key {other['name']} has the same fingerprint"
            refuse(409, "key_fingerprint_conflict", message, "public_key")
    identity = cloud.store.new_id("r014")
    kind = "ed25519" if parts[0] == "ssh-ed25519" else "rsa"
    key: Resource = {
        "id": identity,
        "name": name_of(cloud, "keys", "", body, f"key-{identity[-6:]}"),
        "crn": cloud.crn("key", identity),
        "href": cloud.href(f"/keys/{identity}"),
        "created_at": now(),
        "fingerprint": fingerprint,
        "length": 256 if kind == "ed25519" else 4096,
        "public_key": public,
        "type": kind,
        "resource_group": group_reference(cloud, body),
    }
    return Answer(201, shown(cloud.store.add("keys", key)))


@route("GET", "/v1/keys")
def list_keys(cloud: Cloud, request: Request) -> Answer:
    """List SSH keys."""
    return page(cloud, request, "keys", cloud.store.all("keys"))


@route("GET", "/v1/keys/{id}")
def get_key(cloud: Cloud, request: Request) -> Answer:
    """Read an SSH key."""
    return read(cloud, "keys", request.params["id"])


@route("PATCH", "/v1/keys/{id}")
def patch_key(cloud: Cloud, request: Request) -> Answer:
    """Rename an SSH key."""
    return patch(cloud, "keys", request, need(cloud, "keys", request.params["id"]), ())


@route("DELETE", "/v1/keys/{id}")
def delete_key(cloud: Cloud, request: Request) -> Answer:
    """Delete an SSH key; servers keep what they were given."""
    cloud.store.remove("keys", need(cloud, "keys", request.params["id"]))
    return Answer(204)
