"""VPCs and their address prefixes."""

from ipaddress import IPv4Network
from typing import Any

from lab.cloud.acls import make_acl
from lab.cloud.api import (
    Answer,
    Cloud,
    Request,
    begin,
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
    zone_reference,
)
from lab.cloud.security import default_security_group
from lab.cloud.store import Resource, shown


def network(text: Any, target: str) -> IPv4Network:
    """A network of a body."""
    try:
        return IPv4Network(str(text))
    except ValueError:
        refuse(400, "invalid_value", f"{text!r} is not a CIDR block", target)


def check_zone(cloud: Cloud, zone: Any, target: str = "zone") -> str:
    """A zone of a body."""
    name = str((zone or {}).get("name"))
    if cloud.store.find("zones", name) is None:
        refuse(400, "bad_reference", f"zone {name} does not exist", target)
    return name


@route("POST", "/v1/vpcs")
def create_vpc(cloud: Cloud, request: Request) -> Answer:
    """Make a VPC with its default ACL, security group and routing table."""
    body = request.body or {}
    quota(cloud, "vpcs")
    identity = cloud.store.new_id("r014")
    name = name_of(cloud, "vpcs", "", body, f"vpc-{identity[-6:]}")
    vpc: Resource = {
        "id": identity,
        "name": name,
        "crn": cloud.crn("vpc", identity),
        "href": cloud.href(f"/vpcs/{identity}"),
        "resource_type": "vpc",
        "created_at": now(),
        "classic_access": bool(body.get("classic_access", False)),
        "cse_source_ips": [
            {"ip": {"address": f"10.16.{n}.5"}, "zone": zone_reference(cloud, zone["name"])}
            for n, zone in enumerate(cloud.store.all("zones"), start=1)
        ],
        "health_reasons": [],
        "health_state": "ok",
        "public_address_ranges": [],
        "resource_group": group_reference(cloud, body),
        "dns": {
            "enable_hub": False,
            "resolution_binding_count": 0,
            "resolver": {
                "type": "system",
                "configuration": "default",
                "servers": [{"address": "161.26.0.10"}, {"address": "161.26.0.11"}],
            },
        },
    }
    begin(cloud, "vpcs", vpc, "status", "pending", "available")
    cloud.store.add("vpcs", vpc)
    acl = make_acl(cloud, vpc, {"name": f"{name}-default-acl"}, default=True)
    group = default_security_group(cloud, vpc)
    table = _routing_table(cloud, vpc)
    vpc["default_network_acl"] = plain_reference(acl)
    vpc["default_security_group"] = plain_reference(group)
    vpc["default_routing_table"] = reference(table)
    if body.get("address_prefix_management", "auto") == "auto":
        for number, zone in enumerate(cloud.store.all("zones")):
            _prefix(cloud, vpc, {
                "name": f"default-{zone['name']}",
                "cidr": f"10.{240 + number}.0.0/18",
                "zone": {"name": zone["name"]},
                "is_default": True,
            })  # fmt: skip
    return Answer(201, shown(vpc))


def plain_reference(resource: Resource) -> dict[str, Any]:
    """A resource without a type, as ACLs and groups are referred to."""
    return {key: resource[key] for key in ("id", "name", "crn", "href")}


def _routing_table(cloud: Cloud, vpc: Resource) -> Resource:
    identity = cloud.store.new_id("r014")
    return cloud.store.add(
        "routing_tables",
        {
            "_parent": vpc["id"],
            "_scope": vpc["id"],
            "id": identity,
            "name": f"{vpc['name']}-default",
            "crn": cloud.crn("vpc-routing-table", identity),
            "href": cloud.href(f"/vpcs/{vpc['id']}/routing_tables/{identity}"),
            "resource_type": "routing_table",
            "resource_group": vpc["resource_group"],
            "created_at": now(),
            "accept_routes_from": [],
            "advertise_routes_to": [],
            "is_default": True,
            "lifecycle_state": "stable",
            "route_direct_link_ingress": False,
            "route_internet_ingress": False,
            "route_transit_gateway_ingress": False,
            "route_vpc_zone_ingress": False,
            "routes": [],
            "subnets": [],
        },
    )


@route("GET", "/v1/vpcs")
def list_vpcs(cloud: Cloud, request: Request) -> Answer:
    """List VPCs."""
    return page(cloud, request, "vpcs", cloud.store.all("vpcs"))


@route("GET", "/v1/vpcs/{id}")
def get_vpc(cloud: Cloud, request: Request) -> Answer:
    """Read a VPC."""
    return read(cloud, "vpcs", request.params["id"])


@route("PATCH", "/v1/vpcs/{id}")
def patch_vpc(cloud: Cloud, request: Request) -> Answer:
    """Rename a VPC."""
    return patch(cloud, "vpcs", request, need(cloud, "vpcs", request.params["id"]), ())


@route("DELETE", "/v1/vpcs/{id}")
def delete_vpc(cloud: Cloud, request: Request) -> Answer:
    """Delete a VPC that nothing is in."""
    vpc = need(cloud, "vpcs", request.params["id"])
    for kind in ("subnets", "public_gateways", "cluster_networks", "virtual_network_interfaces"):
        if any(r["vpc"]["id"] == vpc["id"] for r in cloud.store.all(kind)):
            noun = kind.replace("_", " ")
            refuse(409, "vpc_in_use", f"the VPC {vpc['name']} still has {noun}")
    for kind in ("network_acls", "security_groups"):
        own = [r for r in cloud.store.all(kind) if r["vpc"]["id"] == vpc["id"]]
        foreign = [r for r in own if not r.get("_default")]
        if foreign:
            names = ", ".join(r["name"] for r in foreign)
            refuse(409, "vpc_in_use", f"the VPC {vpc['name']} still has {names}")
    for kind in ("network_acls", "security_groups"):
        for resource in cloud.store.all(kind):
            if resource["vpc"]["id"] == vpc["id"]:
                cloud.store.remove(kind, resource)
    for kind in ("routing_tables", "address_prefixes"):
        for resource in cloud.store.children(kind, vpc["id"]):
            cloud.store.remove(kind, resource)
    cloud.store.remove("vpcs", vpc)
    return Answer(204)


@route("GET", "/v1/vpcs/{vpc}/default_network_acl")
def default_acl(cloud: Cloud, request: Request) -> Answer:
    """Read the default ACL."""
    vpc = need(cloud, "vpcs", request.params["vpc"])
    return Answer(200, shown(need(cloud, "network_acls", vpc["default_network_acl"]["id"])))


@route("GET", "/v1/vpcs/{vpc}/default_security_group")
def get_default_group(cloud: Cloud, request: Request) -> Answer:
    """Read the default security group."""
    vpc = need(cloud, "vpcs", request.params["vpc"])
    return Answer(200, shown(need(cloud, "security_groups", vpc["default_security_group"]["id"])))


@route("GET", "/v1/vpcs/{vpc}/routing_tables")
def list_tables(cloud: Cloud, request: Request) -> Answer:
    """List routing tables."""
    vpc = need(cloud, "vpcs", request.params["vpc"])
    tables = cloud.store.children("routing_tables", vpc["id"])
    return page(cloud, request, "routing_tables", tables)


@route("GET", "/v1/vpcs/{vpc}/routing_tables/{id}")
def get_table(cloud: Cloud, request: Request) -> Answer:
    """Read a routing table."""
    return read(cloud, "routing_tables", request.params["id"])


@route("PATCH", "/v1/vpcs/{vpc}/routing_tables/{id}")
def patch_table(cloud: Cloud, request: Request) -> Answer:
    """Rename a routing table."""
    table = need(cloud, "routing_tables", request.params["id"])
    return patch(cloud, "routing_tables", request, table, ())


# --- address prefixes


def _prefix(cloud: Cloud, vpc: Resource, body: dict[str, Any]) -> Resource:
    cidr = network(required(body, "cidr"), "cidr")
    zone = check_zone(cloud, required(body, "zone"))
    for other in cloud.store.children("address_prefixes", vpc["id"]):
        if IPv4Network(other["cidr"]).overlaps(cidr):
            message = f"address prefix {cidr} overlaps {other['name']} {other['cidr']}"
            refuse(409, "address_prefix_conflict", message, "cidr")
    identity = cloud.store.new_id("r014")
    return cloud.store.add(
        "address_prefixes",
        {
            "_parent": vpc["id"],
            "_scope": vpc["id"],
            "id": identity,
            "name": name_of(cloud, "address_prefixes", vpc["id"], body, f"p-{identity[-6:]}"),
            "href": cloud.href(f"/vpcs/{vpc['id']}/address_prefixes/{identity}"),
            "cidr": str(cidr),
            "zone": zone_reference(cloud, zone),
            "created_at": now(),
            "is_default": bool(body.get("is_default", False)),
            "has_subnets": False,
        },
    )


@route("POST", "/v1/vpcs/{vpc}/address_prefixes")
def create_prefix(cloud: Cloud, request: Request) -> Answer:
    """Make an address prefix."""
    vpc = need(cloud, "vpcs", request.params["vpc"])
    return Answer(201, shown(_prefix(cloud, vpc, request.body or {})))


@route("GET", "/v1/vpcs/{vpc}/address_prefixes")
def list_prefixes(cloud: Cloud, request: Request) -> Answer:
    """List address prefixes."""
    vpc = need(cloud, "vpcs", request.params["vpc"])
    prefixes = cloud.store.children("address_prefixes", vpc["id"])
    return page(cloud, request, "address_prefixes", prefixes)


@route("GET", "/v1/vpcs/{vpc}/address_prefixes/{id}")
def get_prefix(cloud: Cloud, request: Request) -> Answer:
    """Read an address prefix."""
    return read(cloud, "address_prefixes", request.params["id"])


@route("PATCH", "/v1/vpcs/{vpc}/address_prefixes/{id}")
def patch_prefix(cloud: Cloud, request: Request) -> Answer:
    """Rename an address prefix, or make it the default one."""
    prefix = need(cloud, "address_prefixes", request.params["id"])
    return patch(cloud, "address_prefixes", request, prefix, ("is_default",))


@route("DELETE", "/v1/vpcs/{vpc}/address_prefixes/{id}")
def delete_prefix(cloud: Cloud, request: Request) -> Answer:
    """Delete an address prefix without subnets."""
    prefix = need(cloud, "address_prefixes", request.params["id"])
    if prefix["has_subnets"]:
        refuse(409, "address_prefix_in_use", f"{prefix['name']} has subnets")
    cloud.store.remove("address_prefixes", prefix)
    return Answer(204)
