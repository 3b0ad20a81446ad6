"""What bare-metal and virtual servers share: interfaces, keys, images, actions."""

from collections.abc import Mapping
from typing import Any

from lab.cloud.api import (
    Answer,
    ApiError,
    Cloud,
    Request,
    begin,
    given,
    need,
    now,
    page,
    reference,
    refuse,
    required,
)
from lab.cloud.interfaces import delete_made_interface, make_interface
from lab.cloud.store import Resource, each

MAX_ATTACHMENTS = 8


def attach(
    cloud: Cloud,
    kind: str,
    server: Resource,
    bodies: list[Mapping[str, Any]],
    type_name: str,
) -> None:
    """Attach interfaces to a new server, the first as its primary one.

    Args:
        cloud: The cloud.
        kind: ``bare_metal_servers`` or ``instances``; part of addresses.
        server: The server, not stored yet.
        bodies: Attachments of the request.
        type_name: Resource type of an attachment.
    """
    if len(bodies) > MAX_ATTACHMENTS:
        message = f"{len(bodies)} PCI attachments are more than {MAX_ATTACHMENTS}"
        refuse(400, "over_quota", message, "network_attachments")
    made: list[Resource] = []
    try:
        interfaces = _interfaces(cloud, server, bodies, made)
    except ApiError:
        for interface in made:
            delete_made_interface(cloud, interface)
        raise
    references = []
    for number, (body, interface) in enumerate(zip(bodies, interfaces, strict=True)):
        identity = cloud.store.new_id("0757")
        href = cloud.href(f"/{kind}/{server['id']}/network_attachments/{identity}")
        attachment: Resource = {
            "_parent": server["id"],
            "id": identity,
            "name": body.get("name") or f"attachment-{number}",
            "href": href,
            "resource_type": type_name,
            "created_at": now(),
            "lifecycle_state": "stable",
            "port_speed": 100_000 if kind == "bare_metal_servers" else 4_000,
            "type": "primary" if number == 0 else "secondary",
            "primary_ip": interface["primary_ip"],
            "subnet": interface["subnet"],
            "virtual_network_interface": reference(interface),
        }
        if kind == "bare_metal_servers":
            attachment |= {"interface_type": "pci", "allowed_vlans": []}
        cloud.store.add(f"{kind}_attachments", attachment)
        interface["target"] = {
            key: attachment[key] for key in ("id", "name", "href", "resource_type")
        }
        references.append(reference(attachment, "primary_ip", "subnet",
                                    "virtual_network_interface"))  # fmt: skip
    server["network_attachments"] = references
    server["primary_network_attachment"] = references[0]
    # the older view of the same cards, which clients still read
    cards = [
        {
            "id": reference_["id"],
            "name": reference_["name"],
            "href": cloud.href(f"/{kind}/{server['id']}/network_interfaces/{reference_['id']}"),
            "resource_type": "network_interface",
            "primary_ip": reference_["primary_ip"],
            "subnet": reference_["subnet"],
        }
        for reference_ in references
    ]
    server["network_interfaces"] = cards
    server["primary_network_interface"] = cards[0]


def _interfaces(
    cloud: Cloud, server: Resource, bodies: list[Mapping[str, Any]], made: list[Resource]
) -> list[Resource]:
    """Interfaces of a new server, existing ones or made here; those are put into ``made``."""
    interfaces: list[Resource] = []
    for body in bodies:
        wanted = required(body, "virtual_network_interface")
        if wanted.get("id") or wanted.get("crn") or wanted.get("href"):
            interface = given(
                cloud,
                "virtual_network_interfaces",
                wanted,
                "network_attachments.virtual_network_interface.id",
            )
        else:
            interface = make_interface(cloud, {"auto_delete": True, **wanted})
            made.append(interface)
        if interface.get("target"):
            message = f"{interface['name']} is attached to {interface['target']['name']}"
            refuse(409, "virtual_network_interface_in_use", message)
        if interface["zone"]["name"] != server["zone"]["name"]:
            refuse(400, "bad_reference", f"{interface['name']} is in another zone")
        if interface["id"] in {other["id"] for other in interfaces}:
            refuse(400, "bad_reference", f"{interface['name']} is named twice")
        interfaces.append(interface)
    return interfaces


def detach(cloud: Cloud, kind: str, server: Resource) -> None:
    """Free the interfaces of a server that goes; those made with it go too."""
    for attachment in cloud.store.children(f"{kind}_attachments", server["id"]):
        identity = attachment["virtual_network_interface"]["id"]
        interface = cloud.store.find("virtual_network_interfaces", identity)
        if interface:
            interface.pop("target", None)
            if interface["auto_delete"]:
                delete_made_interface(cloud, interface)
        cloud.store.remove(f"{kind}_attachments", attachment)


def list_attachments(cloud: Cloud, kind: str, request: Request) -> Answer:
    """List the attachments of a server."""
    server = need(cloud, kind, request.params["server"])
    attachments = cloud.store.children(f"{kind}_attachments", server["id"])
    return page(cloud, request, "network_attachments", attachments)


def cards(cloud: Cloud, kind: str, request: Request) -> list[Resource]:
    """The attachments of a server in the older view."""
    server = need(cloud, kind, request.params["server"])
    found = cloud.store.children(f"{kind}_attachments", server["id"])
    return [card(cloud, kind, server["id"], attachment["id"]) for attachment in found]


def card(cloud: Cloud, kind: str, server_id: str, identity: str) -> Resource:
    """An attachment in the older view, as a network interface."""
    server = need(cloud, kind, server_id)
    attachment = need(cloud, f"{kind}_attachments", identity)
    vni = attachment["virtual_network_interface"]["id"]
    interface = need(cloud, "virtual_network_interfaces", vni)
    view: Resource = {
        "id": attachment["id"],
        "name": attachment["name"],
        "href": cloud.href(f"/{kind}/{server['id']}/network_interfaces/{attachment['id']}"),
        "resource_type": "network_interface",
        "created_at": attachment["created_at"],
        "allow_ip_spoofing": interface["allow_ip_spoofing"],
        "floating_ips": [],
        "port_speed": attachment["port_speed"],
        "primary_ip": interface["primary_ip"],
        "security_groups": interface["security_groups"],
        "status": "available",
        "subnet": interface["subnet"],
        "type": attachment["type"],
    }
    if kind == "bare_metal_servers":
        view |= {
            "enable_infrastructure_nat": interface["enable_infrastructure_nat"],
            "mac_address": interface["mac_address"],
            "interface_type": "pci",
            "allowed_vlans": [],
        }
    return view


def keys(cloud: Cloud, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """SSH keys that a server is given."""
    found = [given(cloud, "keys", key, "keys") for key in each(body.get("keys"))]
    return [{k: key[k] for k in ("id", "name", "crn", "href", "fingerprint")} for key in found]


def image(cloud: Cloud, wanted: Any) -> Resource:
    """The image of a server, which must be ready."""
    found = given(cloud, "images", wanted, "image.id")
    if found["status"] != "available":
        refuse(409, "image_not_available", f"image {found['name']} is {found['status']}")
    return found


def stop(cloud: Cloud, kind: str, server: Resource) -> None:
    """Begin to stop a server."""
    begin(cloud, kind, server, "status", "stopping", "stopped")
    note(cloud, server, "stopping")


def start(cloud: Cloud, kind: str, server: Resource) -> None:
    """Begin to start a server."""
    begin(cloud, kind, server, "status", "starting", "running")
    note(cloud, server, "starting")


def note(cloud: Cloud, server: Resource, event: str) -> None:
    """Keep what happened to a server, where ``/_lab/state`` shows it."""
    server.setdefault("_events", []).append({"at": now(), "event": event})
    server["_events"] = server["_events"][-20:]
    cloud.store.touch()
