"""Network ACLs with their rules, and public gateways."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from lab.cloud.api import (
    Answer,
    Cloud,
    Request,
    begin,
    given,
    group_reference,
    name_of,
    need,
    now,
    page,
    patch,
    read,
    reference,
    refuse,
    required,
    route,
    zone_reference,
)
from lab.cloud.store import Resource, each, shown

PORTS = {
    "destination_port_min": 1,
    "destination_port_max": 65535,
    "source_port_min": 1,
    "source_port_max": 65535,
}
PROTOCOLS = {
    "any", "icmp", "tcp", "udp", "icmp_tcp_udp", "ah", "esp", "gre", "ip_in_ip", "l2tp",
    "rsvp", "sctp", "vrrp",
}  # fmt: skip


def make_acl(
    cloud: Cloud, vpc: Resource, body: Mapping[str, Any], *, default: bool = False
) -> Resource:
    """Make an ACL; a default one lets everything pass."""
    identity = cloud.store.new_id("r014")
    acl: Resource = {
        "_scope": vpc["id"],
        "_default": default,
        "id": identity,
        "name": name_of(cloud, "network_acls", vpc["id"], body, f"acl-{identity[-6:]}"),
        "crn": cloud.crn("network-acl", identity),
        "href": cloud.href(f"/network_acls/{identity}"),
        "created_at": now(),
        "resource_group": group_reference(cloud, body) if not default else vpc["resource_group"],
        "rules": [],
        "subnets": [],
        "vpc": reference(vpc),
    }
    cloud.store.add("network_acls", acl)
    rules = list(each(body.get("rules")))
    if default:
        rules = [
            {"name": f"allow-{way}", "action": "allow", "direction": way, "protocol": "any",
             "source": "0.0.0.0/0", "destination": "0.0.0.0/0"}
            for way in ("inbound", "outbound")
        ]  # fmt: skip
    for rule in rules:
        acl["rules"].append(_rule(cloud, acl, rule))
    _chain(acl)
    return acl


def _rule(cloud: Cloud, acl: Resource, body: Mapping[str, Any]) -> Resource:
    protocol = body.get("protocol", "any")
    if protocol not in PROTOCOLS:
        refuse(400, "invalid_value", f"protocol {protocol} is not known", "protocol")
    for key, known in (("action", {"allow", "deny"}), ("direction", {"inbound", "outbound"})):
        if required(body, key) not in known:
            refuse(400, "invalid_value", f"{key} {body[key]} is not known", key)
    identity = cloud.store.new_id("r014")
    name = body.get("name") or f"rule-{identity[-6:]}"
    if any(rule["name"] == name for rule in acl["rules"]):
        refuse(409, "validation_unique_failed", f"Provided Name ({name}) is not unique", "name")
    rule: Resource = {
        "id": identity,
        "name": name,
        "href": cloud.href(f"/network_acls/{acl['id']}/rules/{identity}"),
        "created_at": now(),
        "action": body["action"],
        "direction": body["direction"],
        "protocol": protocol,
        "ip_version": "ipv4",
        "source": body.get("source", "0.0.0.0/0"),
        "destination": body.get("destination", "0.0.0.0/0"),
    }
    if protocol in {"tcp", "udp"}:
        rule |= {key: int(body.get(key, default)) for key, default in PORTS.items()}
    if protocol == "icmp":
        rule |= {key: body[key] for key in ("type", "code") if body.get(key) is not None}
    return rule


def _chain(acl: Resource) -> None:
    """Each rule names the one before which it stands."""
    rules = acl["rules"]
    for rule, following in zip_longest(rules, rules[1:]):
        rule.pop("before", None)
        if following:
            rule["before"] = {key: following[key] for key in ("id", "name", "href")}


@route("POST", "/v1/network_acls")
def create_acl(cloud: Cloud, request: Request) -> Answer:
    """Make an ACL."""
    body = request.body or {}
    vpc = given(cloud, "vpcs", required(body, "vpc"), "vpc.id")
    return Answer(201, shown(make_acl(cloud, vpc, body)))


@route("GET", "/v1/network_acls")
def list_acls(cloud: Cloud, request: Request) -> Answer:
    """List ACLs."""
    return page(cloud, request, "network_acls", cloud.store.all("network_acls"))


@route("GET", "/v1/network_acls/{id}")
def get_acl(cloud: Cloud, request: Request) -> Answer:
    """Read an ACL."""
    return read(cloud, "network_acls", request.params["id"])


@route("PATCH", "/v1/network_acls/{id}")
def patch_acl(cloud: Cloud, request: Request) -> Answer:
    """Rename an ACL."""
    acl = need(cloud, "network_acls", request.params["id"])
    return patch(cloud, "network_acls", request, acl, ())


@route("DELETE", "/v1/network_acls/{id}")
def delete_acl(cloud: Cloud, request: Request) -> Answer:
    """Delete an ACL that no subnet uses."""
    acl = need(cloud, "network_acls", request.params["id"])
    if acl["_default"]:
        refuse(409, "network_acl_default", f"{acl['name']} is the VPC's default ACL")
    if acl["subnets"]:
        names = ", ".join(subnet["name"] for subnet in acl["subnets"])
        refuse(409, "network_acl_in_use", f"{acl['name']} is used by {names}")
    cloud.store.remove("network_acls", acl)
    return Answer(204)


@route("POST", "/v1/network_acls/{acl}/rules")
def create_acl_rule(cloud: Cloud, request: Request) -> Answer:
    """Add a rule, before another one where the body says so."""
    acl = need(cloud, "network_acls", request.params["acl"])
    body = request.body or {}
    rule = _rule(cloud, acl, body)
    before = (body.get("before") or {}).get("id")
    places = [index for index, other in enumerate(acl["rules"]) if other["id"] == before]
    acl["rules"].insert(places[0] if places else len(acl["rules"]), rule)
    _chain(acl)
    cloud.store.touch()
    return Answer(201, shown(rule))


@route("GET", "/v1/network_acls/{acl}/rules")
def list_acl_rules(cloud: Cloud, request: Request) -> Answer:
    """List rules."""
    acl = need(cloud, "network_acls", request.params["acl"])
    return page(cloud, request, "rules", acl["rules"])


def _find_rule(cloud: Cloud, request: Request) -> tuple[Resource, Resource]:
    acl = need(cloud, "network_acls", request.params["acl"])
    for rule in acl["rules"]:
        if rule["id"] == request.params["id"]:
            return acl, rule
    refuse(404, "not_found", f"rule {request.params['id']} was not found")


@route("GET", "/v1/network_acls/{acl}/rules/{id}")
def get_acl_rule(cloud: Cloud, request: Request) -> Answer:
    """Read a rule."""
    return Answer(200, shown(_find_rule(cloud, request)[1]))


@route("PATCH", "/v1/network_acls/{acl}/rules/{id}")
def patch_acl_rule(cloud: Cloud, request: Request) -> Answer:
    """Change a rule."""
    _, rule = _find_rule(cloud, request)
    body = request.body or {}
    for key in ("name", "action", "direction", "source", "destination", *PORTS, "type", "code"):
        if key in body:
            rule[key] = body[key]
    cloud.store.touch()
    return Answer(200, shown(rule))


@route("DELETE", "/v1/network_acls/{acl}/rules/{id}")
def delete_acl_rule(cloud: Cloud, request: Request) -> Answer:
    """Delete a rule."""
    acl, rule = _find_rule(cloud, request)
    acl["rules"].remove(rule)
    _chain(acl)
    cloud.store.touch()
    return Answer(204)


# --- public gateways


@route("POST", "/v1/public_gateways")
def create_gateway(cloud: Cloud, request: Request) -> Answer:
    """Make a public gateway, the only one of its VPC in its zone."""
    body = request.body or {}
    vpc = given(cloud, "vpcs", required(body, "vpc"), "vpc.id")
    zone = str(required(body, "zone")["name"])
    if cloud.store.find("zones", zone) is None:
        refuse(400, "bad_reference", f"zone {zone} does not exist", "zone.name")
    for other in cloud.store.all("public_gateways"):
        if other["vpc"]["id"] == vpc["id"] and other["zone"]["name"] == zone:
            message = f"{vpc['name']} has a public gateway in {zone}: {other['name']}"
            refuse(409, "public_gateway_exists", message)
    identity = cloud.store.new_id("r014")
    name = name_of(cloud, "public_gateways", vpc["id"], body, f"pgw-{identity[-6:]}")
    number = len(cloud.store.all("public_gateways")) + 1
    address_id = cloud.store.new_id("r014")
    gateway: Resource = {
        "_scope": vpc["id"],
        "id": identity,
        "name": name,
        "crn": cloud.crn("public-gateway", identity, zone),
        "href": cloud.href(f"/public_gateways/{identity}"),
        "resource_type": "public_gateway",
        "created_at": now(),
        "resource_group": group_reference(cloud, body),
        "floating_ip": {
            "id": address_id,
            "name": f"{name}-ip",
            "address": f"198.51.100.{number % 250 + 1}",
            "crn": cloud.crn("floating-ip", address_id, zone),
            "href": cloud.href(f"/floating_ips/{address_id}"),
        },
        "vpc": reference(vpc),
        "zone": zone_reference(cloud, zone),
    }
    begin(cloud, "public_gateways", gateway, "status", "pending", "available")
    return Answer(201, shown(cloud.store.add("public_gateways", gateway)))


@route("GET", "/v1/public_gateways")
def list_gateways(cloud: Cloud, request: Request) -> Answer:
    """List public gateways."""
    return page(cloud, request, "public_gateways", cloud.store.all("public_gateways"))


@route("GET", "/v1/public_gateways/{id}")
def get_gateway(cloud: Cloud, request: Request) -> Answer:
    """Read a public gateway."""
    return read(cloud, "public_gateways", request.params["id"])


@route("PATCH", "/v1/public_gateways/{id}")
def patch_gateway(cloud: Cloud, request: Request) -> Answer:
    """Rename a public gateway."""
    gateway = need(cloud, "public_gateways", request.params["id"])
    return patch(cloud, "public_gateways", request, gateway, ())


@route("DELETE", "/v1/public_gateways/{id}")
def delete_gateway(cloud: Cloud, request: Request) -> Answer:
    """Delete a public gateway that no subnet uses."""
    gateway = need(cloud, "public_gateways", request.params["id"])
    for subnet in cloud.store.all("subnets"):
        if subnet.get("public_gateway", {}).get("id") == gateway["id"]:
            message = f"{gateway['name']} is attached to subnet {subnet['name']}"
            refuse(409, "public_gateway_in_use", message)
    cloud.store.remove("public_gateways", gateway)
    return Answer(204)
