"""Subnets, and what is attached to them."""

from ipaddress import IPv4Network
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
from lab.cloud.network import check_zone, network, plain_reference
from lab.cloud.store import Resource, shown

KEPT_BY_IBM = 5
"""Addresses of a subnet that IBM keeps: the first four and the last."""


@route("POST", "/v1/subnets")
def create_subnet(cloud: Cloud, request: Request) -> Answer:
    """Make a subnet inside an address prefix of its zone."""
    body = request.body or {}
    vpc = given(cloud, "vpcs", required(body, "vpc"), "vpc.id")
    siblings = [s for s in cloud.store.all("subnets") if s["vpc"]["id"] == vpc["id"]]
    taken = [IPv4Network(s["ipv4_cidr_block"]) for s in siblings]
    prefixes = cloud.store.children("address_prefixes", vpc["id"])
    if body.get("ipv4_cidr_block"):
        cidr = network(body["ipv4_cidr_block"], "ipv4_cidr_block")
        zone = check_zone(cloud, body.get("zone") or {"name": _zone_of(prefixes, cidr)})
    else:
        zone = check_zone(cloud, required(body, "zone"))
        cidr = _free(prefixes, taken, zone, int(required(body, "total_ipv4_address_count")))
    prefix = next(
        (
            p
            for p in prefixes
            if p["zone"]["name"] == zone and cidr.subnet_of(IPv4Network(p["cidr"]))
        ),
        None,
    )
    if prefix is None:
        message = f"{cidr} is in no address prefix of {vpc['name']} in {zone}"
        refuse(400, "subnet_cidr_invalid", message, "ipv4_cidr_block")
    if cidr.prefixlen > 29:
        refuse(400, "subnet_cidr_invalid", f"{cidr} is smaller than a /29", "ipv4_cidr_block")
    for sibling in siblings:
        if IPv4Network(sibling["ipv4_cidr_block"]).overlaps(cidr):
            message = f"{cidr} overlaps subnet {sibling['name']} {sibling['ipv4_cidr_block']}"
            refuse(409, "subnet_cidr_conflict", message, "ipv4_cidr_block")
    identity = cloud.store.new_id("0757")
    acl = (
        given(cloud, "network_acls", body["network_acl"], "network_acl.id")
        if body.get("network_acl")
        else need(cloud, "network_acls", vpc["default_network_acl"]["id"])
    )
    subnet: Resource = {
        "_scope": vpc["id"],
        "_prefix": prefix["id"],
        "id": identity,
        "name": name_of(cloud, "subnets", vpc["id"], body, f"subnet-{identity[-6:]}"),
        "crn": cloud.crn("subnet", identity, zone),
        "href": cloud.href(f"/subnets/{identity}"),
        "resource_type": "subnet",
        "created_at": now(),
        "ip_version": "ipv4",
        "ipv4_cidr_block": str(cidr),
        "total_ipv4_address_count": cidr.num_addresses,
        "available_ipv4_address_count": cidr.num_addresses - KEPT_BY_IBM,
        "network_acl": plain_reference(acl),
        "routing_table": vpc["default_routing_table"],
        "resource_group": group_reference(cloud, body),
        "vpc": reference(vpc),
        "zone": zone_reference(cloud, zone),
    }
    if body.get("public_gateway"):
        gateway = given(cloud, "public_gateways", body["public_gateway"], "public_gateway.id")
        subnet["public_gateway"] = reference(gateway)
    begin(cloud, "subnets", subnet, "status", "pending", "available")
    cloud.store.add("subnets", subnet)
    acl["subnets"].append(reference(subnet))
    prefix["has_subnets"] = True
    return Answer(201, shown(subnet))


def _zone_of(prefixes: list[Resource], cidr: IPv4Network) -> str:
    for prefix in prefixes:
        if cidr.subnet_of(IPv4Network(prefix["cidr"])):
            return str(prefix["zone"]["name"])
    return ""


def _free(prefixes: list[Resource], taken: list[IPv4Network], zone: str, count: int) -> IPv4Network:
    length = 32 - max(3, (count - 1).bit_length())
    for prefix in prefixes:
        whole = IPv4Network(prefix["cidr"])
        if prefix["zone"]["name"] == zone and whole.prefixlen <= length:
            for candidate in whole.subnets(new_prefix=length):
                if not any(candidate.overlaps(other) for other in taken):
                    return candidate
    refuse(400, "subnet_cidr_invalid", f"no address prefix of {zone} has {count} addresses free")


@route("GET", "/v1/subnets")
def list_subnets(cloud: Cloud, request: Request) -> Answer:
    """List subnets."""
    subnets = cloud.store.all("subnets")
    if "vpc.id" in request.query:
        subnets = [s for s in subnets if s["vpc"]["id"] == request.query["vpc.id"]]
    return page(cloud, request, "subnets", subnets)


@route("GET", "/v1/subnets/{id}")
def get_subnet(cloud: Cloud, request: Request) -> Answer:
    """Read a subnet."""
    return read(cloud, "subnets", request.params["id"])


@route("PATCH", "/v1/subnets/{id}")
def patch_subnet(cloud: Cloud, request: Request) -> Answer:
    """Rename a subnet, or give it another ACL, gateway or routing table."""
    subnet = need(cloud, "subnets", request.params["id"])
    body = request.body or {}
    if body.get("network_acl"):
        acl = given(cloud, "network_acls", body["network_acl"], "network_acl.id")
        _attach_acl(cloud, subnet, acl)
    if "public_gateway" in body:
        _attach_gateway(cloud, subnet, body["public_gateway"])
    return patch(cloud, "subnets", request, subnet, ())


def _attach_acl(cloud: Cloud, subnet: Resource, acl: Resource) -> None:
    before = cloud.store.find("network_acls", subnet["network_acl"]["id"])
    if before:
        before["subnets"] = [s for s in before["subnets"] if s["id"] != subnet["id"]]
    acl["subnets"].append(reference(subnet))
    subnet["network_acl"] = plain_reference(acl)


def _attach_gateway(cloud: Cloud, subnet: Resource, body: Any) -> None:
    subnet.pop("public_gateway", None)
    if body:
        gateway = given(cloud, "public_gateways", body, "public_gateway.id")
        subnet["public_gateway"] = reference(gateway)
    cloud.store.touch()


@route("GET", "/v1/subnets/{id}/network_acl")
def get_subnet_acl(cloud: Cloud, request: Request) -> Answer:
    """Read a subnet's ACL."""
    subnet = need(cloud, "subnets", request.params["id"])
    return Answer(200, shown(need(cloud, "network_acls", subnet["network_acl"]["id"])))


@route("PUT", "/v1/subnets/{id}/network_acl")
def put_subnet_acl(cloud: Cloud, request: Request) -> Answer:
    """Give a subnet another ACL."""
    subnet = need(cloud, "subnets", request.params["id"])
    acl = given(cloud, "network_acls", request.body, "id")
    _attach_acl(cloud, subnet, acl)
    cloud.store.touch()
    return Answer(201, shown(acl))


@route("GET", "/v1/subnets/{id}/public_gateway")
def get_subnet_gateway(cloud: Cloud, request: Request) -> Answer:
    """Read a subnet's gateway."""
    subnet = need(cloud, "subnets", request.params["id"])
    if "public_gateway" not in subnet:
        refuse(404, "not_found", f"{subnet['name']} has no public gateway")
    return Answer(200, shown(need(cloud, "public_gateways", subnet["public_gateway"]["id"])))


@route("PUT", "/v1/subnets/{id}/public_gateway")
def put_subnet_gateway(cloud: Cloud, request: Request) -> Answer:
    """Attach a gateway to a subnet."""
    subnet = need(cloud, "subnets", request.params["id"])
    _attach_gateway(cloud, subnet, request.body)
    return Answer(201, shown(need(cloud, "public_gateways", subnet["public_gateway"]["id"])))


@route("DELETE", "/v1/subnets/{id}/public_gateway")
def delete_subnet_gateway(cloud: Cloud, request: Request) -> Answer:
    """Detach a subnet's gateway."""
    subnet = need(cloud, "subnets", request.params["id"])
    if "public_gateway" not in subnet:
        refuse(404, "not_found", f"{subnet['name']} has no public gateway")
    _attach_gateway(cloud, subnet, None)
    return Answer(204)


@route("DELETE", "/v1/subnets/{id}")
def delete_subnet(cloud: Cloud, request: Request) -> Answer:
    """Delete a subnet that nothing is in."""
    subnet = need(cloud, "subnets", request.params["id"])
    inside = cloud.store.children("reserved_ips", subnet["id"])
    if inside:
        names = ", ".join(r["name"] for r in inside[:3])
        refuse(409, "subnet_in_use", f"subnet {subnet['name']} still holds {names}")
    acl = cloud.store.find("network_acls", subnet["network_acl"]["id"])
    if acl:
        acl["subnets"] = [s for s in acl["subnets"] if s["id"] != subnet["id"]]
    cloud.store.remove("subnets", subnet)
    prefix = cloud.store.find("address_prefixes", subnet["_prefix"])
    if prefix:
        prefix["has_subnets"] = any(
            other["_prefix"] == prefix["id"] for other in cloud.store.all("subnets")
        )
    return Answer(204)
