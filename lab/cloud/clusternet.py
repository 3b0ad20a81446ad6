"""Cluster networks: profiles, networks, subnets, reserved addresses, interfaces."""

import hashlib
import json
from collections.abc import Mapping
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
from lab.cloud.interfaces import mac
from lab.cloud.network import check_zone, network
from lab.cloud.store import Resource, shown

PROFILES = {"hopper-1": ("us-east-3",)}
BASE = "/v1/cluster_networks"


def etag(resource: Resource) -> str:
    """The entity tag of a resource: it changes with what is shown."""
    text = json.dumps(shown(resource), sort_keys=True)
    return 'W/"' + hashlib.sha256(text.encode()).hexdigest()[:16] + '"'


def _tagged(answer: Answer, resource: Resource) -> Answer:
    return Answer(answer.status, answer.body, {"Etag": etag(resource)})


def _match(request: Request, resource: Resource) -> None:
    wanted = request.headers.get("if-match")
    if wanted is None:
        refuse(400, "missing_field", "If-Match is required", "If-Match")
    if wanted not in {"*", etag(resource)}:
        refuse(412, "precondition_failed", f"{resource['name']} was changed in between")


@route("GET", "/v1/cluster_network/profiles")
def list_profiles(cloud: Cloud, _: Request) -> Answer:
    """List cluster network profiles."""
    profiles = [_profile(cloud, name) for name in PROFILES]
    first = {"href": cloud.href("/cluster_network/profiles")}
    return Answer(200, {"first": first, "limit": 50, "total_count": 1, "profiles": profiles})


@route("GET", "/v1/cluster_network/profiles/{name}")
def get_profile(cloud: Cloud, request: Request) -> Answer:
    """Read a cluster network profile."""
    if request.params["name"] not in PROFILES:
        refuse(404, "not_found", f"profile {request.params['name']} does not exist")
    return Answer(200, _profile(cloud, request.params["name"]))


def _profile(cloud: Cloud, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "family": "vela",
        "href": cloud.href(f"/cluster_network/profiles/{name}"),
        "resource_type": "cluster_network_profile",
        "supported_instance_profiles": [
            {
                "name": server,
                "href": cloud.href(f"/instance/profiles/{server}"),
                "resource_type": "instance_profile",
            }
            for server in ("gx3d-160x1792x8h100", "gx3d-160x1792x8h200")
        ],
        "zones": [zone_reference(cloud, zone) for zone in PROFILES[name]],
    }


@route("POST", BASE)
def create(cloud: Cloud, request: Request) -> Answer:
    """Make a cluster network, in a zone that has its profile."""
    body = request.body or {}
    vpc = given(cloud, "vpcs", required(body, "vpc"), "vpc.id")
    zone = check_zone(cloud, required(body, "zone"), "zone.name")
    profile = str(required(body, "profile").get("name"))
    if zone not in PROFILES.get(profile, ()):
        message = f"profile {profile} is not in zone {zone}"
        refuse(400, "bad_reference", message, "profile.name")
    prefixes = body.get("subnet_prefixes") or [{"cidr": "10.0.0.0/9"}]
    cidr = network(prefixes[0].get("cidr"), "subnet_prefixes.cidr")
    identity = cloud.store.new_id("0767")
    made: Resource = {
        "_scope": "",
        "id": identity,
        "name": name_of(cloud, "cluster_networks", "", body, f"cn-{identity[-6:]}"),
        "crn": cloud.crn("cluster-network", identity, zone),
        "href": cloud.href(f"/cluster_networks/{identity}"),
        "resource_type": "cluster_network",
        "created_at": now(),
        "lifecycle_reasons": [],
        "profile": {
            "name": profile,
            "href": cloud.href(f"/cluster_network/profiles/{profile}"),
            "resource_type": "cluster_network_profile",
        },
        "resource_group": group_reference(cloud, body),
        "subnet_prefixes": [{"allocation_policy": "auto", "cidr": str(cidr)}],
        "vpc": reference(vpc),
        "zone": zone_reference(cloud, zone),
    }
    begin(cloud, "cluster_networks", made, "lifecycle_state", "pending", "stable")
    cloud.store.add("cluster_networks", made)
    return _tagged(Answer(201, shown(made)), made)


@route("GET", BASE)
def list_networks(cloud: Cloud, request: Request) -> Answer:
    """List cluster networks."""
    return page(cloud, request, "cluster_networks", cloud.store.all("cluster_networks"))


@route("GET", BASE + "/{id}")
def get(cloud: Cloud, request: Request) -> Answer:
    """Read a cluster network."""
    answer = read(cloud, "cluster_networks", request.params["id"])
    return _tagged(answer, need(cloud, "cluster_networks", request.params["id"]))


@route("PATCH", BASE + "/{id}")
def change(cloud: Cloud, request: Request) -> Answer:
    """Rename a cluster network."""
    made = need(cloud, "cluster_networks", request.params["id"])
    _match(request, made)
    return _tagged(patch(cloud, "cluster_networks", request, made, ()), made)


@route("DELETE", BASE + "/{id}")
def delete(cloud: Cloud, request: Request) -> Answer:
    """Delete a cluster network without subnets."""
    made = need(cloud, "cluster_networks", request.params["id"])
    _match(request, made)
    if cloud.store.children("cluster_subnets", made["id"]):
        refuse(409, "cluster_network_in_use", f"{made['name']} still has subnets")
    cloud.store.remove("cluster_networks", made)
    return Answer(202, shown({**made, "lifecycle_state": "deleting"}))


# --- subnets


@route("POST", BASE + "/{network}/subnets")
def create_subnet(cloud: Cloud, request: Request) -> Answer:
    """Make a subnet of a cluster network."""
    parent = need(cloud, "cluster_networks", request.params["network"])
    body = request.body or {}
    whole = IPv4Network(parent["subnet_prefixes"][0]["cidr"])
    cidr = network(required(body, "ipv4_cidr_block"), "ipv4_cidr_block")
    if not cidr.subnet_of(whole):
        refuse(400, "subnet_cidr_invalid", f"{cidr} is not inside {whole}", "ipv4_cidr_block")
    for other in cloud.store.children("cluster_subnets", parent["id"]):
        if IPv4Network(other["ipv4_cidr_block"]).overlaps(cidr):
            message = f"{cidr} overlaps {other['name']} {other['ipv4_cidr_block']}"
            refuse(409, "subnet_cidr_conflict", message, "ipv4_cidr_block")
    identity = cloud.store.new_id("0767")
    subnet: Resource = {
        "_parent": parent["id"],
        "_scope": parent["id"],
        "id": identity,
        "name": name_of(cloud, "cluster_subnets", parent["id"], body, f"cs-{identity[-6:]}"),
        "href": cloud.href(f"/cluster_networks/{parent['id']}/subnets/{identity}"),
        "resource_type": "cluster_network_subnet",
        "created_at": now(),
        "available_ipv4_address_count": cidr.num_addresses - 5,
        "ip_version": "ipv4",
        "ipv4_cidr_block": str(cidr),
        "lifecycle_reasons": [],
        "total_ipv4_address_count": cidr.num_addresses,
    }
    begin(cloud, "cluster_subnets", subnet, "lifecycle_state", "pending", "stable")
    cloud.store.add("cluster_subnets", subnet)
    return _tagged(Answer(201, shown(subnet)), subnet)


@route("GET", BASE + "/{network}/subnets")
def list_subnets(cloud: Cloud, request: Request) -> Answer:
    """List subnets."""
    parent = need(cloud, "cluster_networks", request.params["network"])
    found = cloud.store.children("cluster_subnets", parent["id"])
    return page(cloud, request, "subnets", found)


@route("GET", BASE + "/{network}/subnets/{id}")
def get_subnet(cloud: Cloud, request: Request) -> Answer:
    """Read a subnet."""
    answer = read(cloud, "cluster_subnets", request.params["id"])
    return _tagged(answer, need(cloud, "cluster_subnets", request.params["id"]))


@route("PATCH", BASE + "/{network}/subnets/{id}")
def change_subnet(cloud: Cloud, request: Request) -> Answer:
    """Rename a subnet."""
    subnet = need(cloud, "cluster_subnets", request.params["id"])
    _match(request, subnet)
    return _tagged(patch(cloud, "cluster_subnets", request, subnet, ()), subnet)


@route("DELETE", BASE + "/{network}/subnets/{id}")
def delete_subnet(cloud: Cloud, request: Request) -> Answer:
    """Delete a subnet without interfaces."""
    subnet = need(cloud, "cluster_subnets", request.params["id"])
    _match(request, subnet)
    if cloud.store.children("cluster_ips", subnet["id"]):
        refuse(409, "subnet_in_use", f"{subnet['name']} still has interfaces")
    cloud.store.remove("cluster_subnets", subnet)
    return Answer(202, shown({**subnet, "lifecycle_state": "deleting"}))


@route("GET", BASE + "/{network}/subnets/{subnet}/reserved_ips")
def list_ips(cloud: Cloud, request: Request) -> Answer:
    """List reserved addresses."""
    subnet = need(cloud, "cluster_subnets", request.params["subnet"])
    return page(cloud, request, "reserved_ips", cloud.store.children("cluster_ips", subnet["id"]))


@route("GET", BASE + "/{network}/subnets/{subnet}/reserved_ips/{id}")
def get_ip(cloud: Cloud, request: Request) -> Answer:
    """Read a reserved address."""
    reserved = need(cloud, "cluster_ips", request.params["id"])
    return _tagged(Answer(200, shown(reserved)), reserved)


# --- interfaces


def claim(cloud: Cloud, wanted: Mapping[str, Any]) -> tuple[Resource, Resource]:
    """An interface that is free, and its network."""
    interface = given(cloud, "cluster_interfaces", wanted, "cluster_network_interface.id")
    if interface.get("target"):
        message = f"{interface['name']} is attached to {interface['target']['name']}"
        refuse(409, "cluster_network_interface_in_use", message)
    return interface, need(cloud, "cluster_networks", interface["_parent"])


@route("POST", BASE + "/{network}/interfaces")
def create_interface(cloud: Cloud, request: Request) -> Answer:
    """Make an interface with an address of its subnet."""
    parent = need(cloud, "cluster_networks", request.params["network"])
    body = request.body or {}
    subnet = given(cloud, "cluster_subnets", required(body, "subnet"), "subnet.id")
    primary = body.get("primary_ip") or {}
    cidr = IPv4Network(subnet["ipv4_cidr_block"])
    taken = {r["address"] for r in cloud.store.children("cluster_ips", subnet["id"])}
    address = primary.get("address") or next(
        str(cidr[n]) for n in range(4, cidr.num_addresses - 1) if str(cidr[n]) not in taken
    )
    if address in taken:
        refuse(409, "reserved_ip_in_use", f"address {address} is in use", "primary_ip.address")
    identity, ip_identity = cloud.store.new_id("0767"), cloud.store.new_id("0767")
    name = name_of(cloud, "cluster_interfaces", parent["id"], body, f"ci-{identity[-6:]}")
    reserved: Resource = {
        "_parent": subnet["id"],
        "_scope": subnet["id"],
        "id": ip_identity,
        "name": primary.get("name") or f"{name}-ip",
        "href": f"{subnet['href']}/reserved_ips/{ip_identity}",
        "resource_type": "cluster_network_subnet_reserved_ip",
        "created_at": now(),
        "address": address,
        "auto_delete": bool(primary.get("auto_delete", True)),
        "lifecycle_reasons": [],
        "lifecycle_state": "stable",
        "owner": "user",
    }
    interface: Resource = {
        "_parent": parent["id"],
        "_scope": parent["id"],
        "_ip": ip_identity,
        "id": identity,
        "name": name,
        "href": cloud.href(f"/cluster_networks/{parent['id']}/interfaces/{identity}"),
        "resource_type": "cluster_network_interface",
        "created_at": now(),
        "allow_ip_spoofing": False,
        "auto_delete": bool(body.get("auto_delete", False)),
        "enable_infrastructure_nat": False,
        "lifecycle_reasons": [],
        "mac_address": mac(identity),
        "primary_ip": reference(reserved, "address"),
        "subnet": reference(subnet),
        "vpc": parent["vpc"],
        "zone": parent["zone"],
    }
    reserved["target"] = reference(interface)
    begin(cloud, "cluster_interfaces", interface, "lifecycle_state", "pending", "stable")
    cloud.store.add("cluster_ips", reserved)
    cloud.store.add("cluster_interfaces", interface)
    return _tagged(Answer(201, shown(interface)), interface)


@route("GET", BASE + "/{network}/interfaces")
def list_interfaces(cloud: Cloud, request: Request) -> Answer:
    """List interfaces."""
    parent = need(cloud, "cluster_networks", request.params["network"])
    found = cloud.store.children("cluster_interfaces", parent["id"])
    return page(cloud, request, "interfaces", found)


@route("GET", BASE + "/{network}/interfaces/{id}")
def get_interface(cloud: Cloud, request: Request) -> Answer:
    """Read an interface."""
    answer = read(cloud, "cluster_interfaces", request.params["id"])
    return _tagged(answer, need(cloud, "cluster_interfaces", request.params["id"]))


@route("PATCH", BASE + "/{network}/interfaces/{id}")
def change_interface(cloud: Cloud, request: Request) -> Answer:
    """Rename an interface."""
    interface = need(cloud, "cluster_interfaces", request.params["id"])
    _match(request, interface)
    answer = patch(cloud, "cluster_interfaces", request, interface, ("auto_delete",))
    return _tagged(answer, interface)


@route("DELETE", BASE + "/{network}/interfaces/{id}")
def delete_interface(cloud: Cloud, request: Request) -> Answer:
    """Delete an interface that no server uses."""
    interface = need(cloud, "cluster_interfaces", request.params["id"])
    _match(request, interface)
    if interface.get("target"):
        message = f"{interface['name']} is attached to {interface['target']['name']}"
        refuse(409, "cluster_network_interface_in_use", message)
    reserved = cloud.store.find("cluster_ips", interface["_ip"])
    if reserved:
        cloud.store.remove("cluster_ips", reserved)
    cloud.store.remove("cluster_interfaces", interface)
    return Answer(202, shown({**interface, "lifecycle_state": "deleting"}))
