"""Virtual network interfaces, reserved addresses of subnets, and floating IPs."""

import hashlib
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network
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
from lab.cloud.security import join, leave
from lab.cloud.store import Resource, each, shown


def mac(seed: str) -> str:
    """A locally administered MAC address that stays the same for a seed."""
    digest = hashlib.sha256(seed.encode()).digest()
    return ":".join(f"{byte:02x}" for byte in (2, *digest[:5]))


def reserve(
    cloud: Cloud, subnet: Resource, body: Mapping[str, Any], target: Resource | None
) -> Resource:
    """Reserve an address of a subnet, the one that is asked for or the next free one.

    Refuses an address outside the subnet, one of those that IBM keeps, and one that is taken.
    """
    cidr = IPv4Network(subnet["ipv4_cidr_block"])
    taken = {r["address"] for r in cloud.store.children("reserved_ips", subnet["id"])}
    address = body.get("address")
    if address is None:
        address = next((str(a) for a in list(cidr)[4:-1] if str(a) not in taken), None)
        if address is None:
            refuse(409, "subnet_full", f"subnet {subnet['name']} has no free address")
    _check_address(cidr, str(address))
    if address in taken:
        message = f"address {address} of subnet {subnet['name']} is in use"
        refuse(409, "reserved_ip_in_use", message, "address")
    identity = cloud.store.new_id("0757")
    reserved: Resource = {
        "_parent": subnet["id"],
        "_scope": subnet["id"],
        "id": identity,
        "name": name_of(cloud, "reserved_ips", subnet["id"], body, f"ip-{identity[-6:]}"),
        "href": cloud.href(f"/subnets/{subnet['id']}/reserved_ips/{identity}"),
        "resource_type": "subnet_reserved_ip",
        "created_at": now(),
        "address": str(address),
        "auto_delete": bool(body.get("auto_delete", target is not None)),
        "lifecycle_state": "stable",
        "owner": "user",
    }
    if target:
        reserved["target"] = reference(target)
    cloud.store.add("reserved_ips", reserved)
    subnet["available_ipv4_address_count"] -= 1
    return reserved


def _check_address(cidr: IPv4Network, text: str) -> None:
    try:
        address = IPv4Address(text)
    except ValueError:
        refuse(400, "invalid_value", f"{text!r} is not an address", "address")
    if address not in cidr:
        refuse(400, "invalid_value", f"{text} is not in {cidr}", "address")
    if int(address) - int(cidr[0]) < 4 or address == cidr[-1]:
        refuse(400, "invalid_value", f"{text} is kept by IBM", "address")


def release(cloud: Cloud, reserved: Resource) -> None:
    """Give an address back."""
    subnet = cloud.store.find("subnets", reserved["_parent"])
    if subnet:
        subnet["available_ipv4_address_count"] += 1
    cloud.store.remove("reserved_ips", reserved)


def ip_reference(reserved: Resource) -> dict[str, Any]:
    """A reserved address as others refer to it."""
    return reference(reserved, "address")


@route("POST", "/v1/subnets/{subnet}/reserved_ips")
def create_ip(cloud: Cloud, request: Request) -> Answer:
    """Reserve an address."""
    subnet = need(cloud, "subnets", request.params["subnet"])
    return Answer(201, shown(reserve(cloud, subnet, request.body or {}, None)))


@route("GET", "/v1/subnets/{subnet}/reserved_ips")
def list_ips(cloud: Cloud, request: Request) -> Answer:
    """List reserved addresses."""
    subnet = need(cloud, "subnets", request.params["subnet"])
    reserved = cloud.store.children("reserved_ips", subnet["id"])
    return page(cloud, request, "reserved_ips", reserved)


@route("GET", "/v1/subnets/{subnet}/reserved_ips/{id}")
def get_ip(cloud: Cloud, request: Request) -> Answer:
    """Read a reserved address."""
    return read(cloud, "reserved_ips", request.params["id"])


@route("PATCH", "/v1/subnets/{subnet}/reserved_ips/{id}")
def patch_ip(cloud: Cloud, request: Request) -> Answer:
    """Rename a reserved address."""
    reserved = need(cloud, "reserved_ips", request.params["id"])
    return patch(cloud, "reserved_ips", request, reserved, ("auto_delete",))


@route("DELETE", "/v1/subnets/{subnet}/reserved_ips/{id}")
def delete_ip(cloud: Cloud, request: Request) -> Answer:
    """Give back an address that nothing is bound to."""
    reserved = need(cloud, "reserved_ips", request.params["id"])
    if reserved.get("target"):
        message = f"{reserved['address']} is bound to {reserved['target']['name']}"
        refuse(409, "reserved_ip_in_use", message)
    release(cloud, reserved)
    return Answer(204)


# --- virtual network interfaces


def make_interface(cloud: Cloud, body: Mapping[str, Any]) -> Resource:
    """Make a virtual network interface with its address and security groups."""
    subnet = given(cloud, "subnets", required(body, "subnet"), "subnet.id")
    vpc = need(cloud, "vpcs", subnet["vpc"]["id"])
    identity = cloud.store.new_id("0757")
    name = name_of(cloud, "virtual_network_interfaces", "", body, f"vni-{identity[-6:]}")
    interface: Resource = {
        "_scope": "",
        "id": identity,
        "name": name,
        "crn": cloud.crn("virtual-network-interface", identity, subnet["zone"]["name"]),
        "href": cloud.href(f"/virtual_network_interfaces/{identity}"),
        "resource_type": "virtual_network_interface",
        "created_at": now(),
        "allow_ip_spoofing": bool(body.get("allow_ip_spoofing", False)),
        "auto_delete": bool(body.get("auto_delete", False)),
        "enable_infrastructure_nat": bool(body.get("enable_infrastructure_nat", True)),
        "mac_address": mac(identity),
        "protocol_state_filtering_mode": body.get("protocol_state_filtering_mode", "auto"),
        "resource_group": group_reference(cloud, body),
        "security_groups": [],
        "subnet": reference(subnet),
        "vpc": reference(vpc),
        "zone": zone_reference(cloud, subnet["zone"]["name"]),
        "ips": [],
    }
    groups = [
        given(cloud, "security_groups", group, "security_groups")
        for group in each(body.get("security_groups"))
    ] or [need(cloud, "security_groups", vpc["default_security_group"]["id"])]
    foreign = next((g for g in groups if g["vpc"]["id"] != vpc["id"]), None)
    if foreign:
        message = f"security group {foreign['name']} is of another VPC"
        refuse(400, "bad_reference", message, "security_groups")
    primary = body.get("primary_ip") or {}
    if primary.get("id"):
        reserved = need(cloud, "reserved_ips", primary["id"])
        if reserved.get("target"):
            message = f"{reserved['address']} is bound to {reserved['target']['name']}"
            refuse(409, "reserved_ip_in_use", message, "primary_ip.id")
        reserved["target"] = reference(interface)
    else:
        reserved = reserve(cloud, subnet, primary, interface)
    interface["primary_ip"] = ip_reference(reserved)
    interface["ips"] = [ip_reference(reserved)]
    for group in groups:
        try:
            join(cloud, group, interface)
        except Exception:
            _forget(cloud, interface)
            raise
    begin(cloud, "virtual_network_interfaces", interface, "lifecycle_state", "pending", "stable")
    return cloud.store.add("virtual_network_interfaces", interface)


def _forget(cloud: Cloud, interface: Resource) -> None:
    for group in list(interface["security_groups"]):
        found = cloud.store.find("security_groups", group["id"])
        if found:
            leave(cloud, found, interface)
    for ip in interface["ips"]:
        reserved = cloud.store.find("reserved_ips", ip["id"])
        if reserved and reserved["auto_delete"]:
            release(cloud, reserved)
        elif reserved:
            reserved.pop("target", None)


def delete_made_interface(cloud: Cloud, interface: Resource) -> None:
    """Delete an interface with all that hangs on it."""
    _forget(cloud, interface)
    for floating in cloud.store.all("floating_ips"):
        if (floating.get("target") or {}).get("id") == interface["id"]:
            floating.pop("target")
    cloud.store.remove("virtual_network_interfaces", interface)


@route("POST", "/v1/virtual_network_interfaces")
def create_interface(cloud: Cloud, request: Request) -> Answer:
    """Make a virtual network interface."""
    return Answer(201, shown(make_interface(cloud, request.body or {})))


@route("GET", "/v1/virtual_network_interfaces")
def list_interfaces(cloud: Cloud, request: Request) -> Answer:
    """List virtual network interfaces."""
    interfaces = cloud.store.all("virtual_network_interfaces")
    return page(cloud, request, "virtual_network_interfaces", interfaces)


@route("GET", "/v1/virtual_network_interfaces/{id}")
def get_interface(cloud: Cloud, request: Request) -> Answer:
    """Read a virtual network interface."""
    return read(cloud, "virtual_network_interfaces", request.params["id"])


@route("PATCH", "/v1/virtual_network_interfaces/{id}")
def patch_interface(cloud: Cloud, request: Request) -> Answer:
    """Change a virtual network interface."""
    interface = need(cloud, "virtual_network_interfaces", request.params["id"])
    keys = (
        "allow_ip_spoofing",
        "auto_delete",
        "enable_infrastructure_nat",
        "protocol_state_filtering_mode",
    )
    return patch(cloud, "virtual_network_interfaces", request, interface, keys)


@route("DELETE", "/v1/virtual_network_interfaces/{id}")
def delete_interface(cloud: Cloud, request: Request) -> Answer:
    """Delete an interface that no server uses; answers with its last state."""
    interface = need(cloud, "virtual_network_interfaces", request.params["id"])
    if interface.get("target"):
        message = f"{interface['name']} is attached to {interface['target']['name']}"
        refuse(409, "virtual_network_interface_in_use", message)
    delete_made_interface(cloud, interface)
    interface["lifecycle_state"] = "deleting"
    return Answer(202, shown(interface))


@route("GET", "/v1/virtual_network_interfaces/{interface}/ips")
def list_interface_ips(cloud: Cloud, request: Request) -> Answer:
    """List the addresses of an interface."""
    interface = need(cloud, "virtual_network_interfaces", request.params["interface"])
    return page(cloud, request, "ips", interface["ips"])


@route("PUT", "/v1/virtual_network_interfaces/{interface}/ips/{id}")
def put_interface_ip(cloud: Cloud, request: Request) -> Answer:
    """Bind another reserved address to an interface."""
    interface = need(cloud, "virtual_network_interfaces", request.params["interface"])
    reserved = need(cloud, "reserved_ips", request.params["id"])
    if reserved.get("target", {}).get("id", interface["id"]) != interface["id"]:
        message = f"{reserved['address']} is bound to {reserved['target']['name']}"
        refuse(409, "reserved_ip_in_use", message)
    reserved["target"] = reference(interface)
    if all(ip["id"] != reserved["id"] for ip in interface["ips"]):
        interface["ips"].append(ip_reference(reserved))
    cloud.store.touch()
    return Answer(200, ip_reference(reserved))


@route("DELETE", "/v1/virtual_network_interfaces/{interface}/ips/{id}")
def delete_interface_ip(cloud: Cloud, request: Request) -> Answer:
    """Unbind a secondary address."""
    interface = need(cloud, "virtual_network_interfaces", request.params["interface"])
    reserved = need(cloud, "reserved_ips", request.params["id"])
    if interface["primary_ip"]["id"] == reserved["id"]:
        refuse(409, "reserved_ip_primary", f"{reserved['address']} is the primary address")
    interface["ips"] = [ip for ip in interface["ips"] if ip["id"] != reserved["id"]]
    reserved.pop("target", None)
    if reserved["auto_delete"]:
        release(cloud, reserved)
    return Answer(204)


@route("GET", "/v1/virtual_network_interfaces/{interface}/floating_ips")
def list_interface_floating(cloud: Cloud, request: Request) -> Answer:
    """List the floating IPs of an interface."""
    interface = need(cloud, "virtual_network_interfaces", request.params["interface"])
    found = [
        f
        for f in cloud.store.all("floating_ips")
        if (f.get("target") or {}).get("id") == interface["id"]
    ]
    return page(cloud, request, "floating_ips", found)


# --- floating IPs


@route("POST", "/v1/floating_ips")
def create_floating(cloud: Cloud, request: Request) -> Answer:
    """Make a floating IP, bound to an interface or free in a zone."""
    body = request.body or {}
    identity = cloud.store.new_id("r014")
    target: Resource | None = None
    if body.get("target"):
        target = given(cloud, "virtual_network_interfaces", body["target"], "target.id")
        for other in cloud.store.all("floating_ips"):
            if (other.get("target") or {}).get("id") == target["id"]:
                message = f"{target['name']} has floating IP {other['address']}"
                refuse(409, "floating_ip_in_use", message)
    zone = target["zone"]["name"] if target else str(required(body, "zone")["name"])
    used = {f["address"] for f in cloud.store.all("floating_ips")}
    address = next(a for n in range(1, 255) if (a := f"203.0.113.{n}") not in used)
    floating: Resource = {
        "id": identity,
        "name": name_of(cloud, "floating_ips", "", body, f"fip-{identity[-6:]}"),
        "crn": cloud.crn("floating-ip", identity, zone),
        "href": cloud.href(f"/floating_ips/{identity}"),
        "created_at": now(),
        "address": address,
        "resource_group": group_reference(cloud, body),
        "zone": zone_reference(cloud, zone),
    }
    if target:
        floating["target"] = _target(target)
    begin(cloud, "floating_ips", floating, "status", "pending", "available")
    return Answer(201, shown(cloud.store.add("floating_ips", floating)))


def _target(interface: Resource) -> dict[str, Any]:
    return reference(interface, "primary_ip", "subnet")


@route("GET", "/v1/floating_ips")
def list_floating(cloud: Cloud, request: Request) -> Answer:
    """List floating IPs."""
    return page(cloud, request, "floating_ips", cloud.store.all("floating_ips"))


@route("GET", "/v1/floating_ips/{id}")
def get_floating(cloud: Cloud, request: Request) -> Answer:
    """Read a floating IP."""
    return read(cloud, "floating_ips", request.params["id"])


@route("PATCH", "/v1/floating_ips/{id}")
def patch_floating(cloud: Cloud, request: Request) -> Answer:
    """Rename or move a floating IP."""
    floating = need(cloud, "floating_ips", request.params["id"])
    body = request.body or {}
    if body.get("target"):
        found = given(cloud, "virtual_network_interfaces", body["target"], "target.id")
        floating["target"] = _target(found)
    return patch(cloud, "floating_ips", request, floating, ())


@route("DELETE", "/v1/floating_ips/{id}")
def delete_floating(cloud: Cloud, request: Request) -> Answer:
    """Give back a floating IP."""
    cloud.store.remove("floating_ips", need(cloud, "floating_ips", request.params["id"]))
    return Answer(204)
