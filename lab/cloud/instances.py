"""Virtual servers."""

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
    quota,
    read,
    reference,
    refuse,
    required,
    route,
    zone_reference,
)
from lab.cloud.clusternet import claim
from lab.cloud.compute import INSTANCE_PROFILES
from lab.cloud.network import check_zone
from lab.cloud.servers import attach, card, cards, detach, image, keys, note
from lab.cloud.servers import start as start_server
from lab.cloud.servers import stop as stop_server
from lab.cloud.store import Resource, shown

KIND = "instances"


@route("POST", "/v1/instances")
def create(cloud: Cloud, request: Request) -> Answer:
    """Order a virtual server."""
    body = request.body or {}
    quota(cloud, KIND)
    profile = str(required(body, "profile").get("name"))
    if profile not in INSTANCE_PROFILES:
        refuse(400, "bad_reference", f"profile {profile} does not exist", "profile.name")
    zone = check_zone(cloud, required(body, "zone"), "zone.name")
    system = image(cloud, required(body, "image"))
    _, cpus, memory, bandwidth, gpus, gpu, clusters = INSTANCE_PROFILES[profile]
    identity = cloud.store.new_id("0757")
    name = name_of(cloud, KIND, "", body, f"vsi-{identity[-6:]}")
    server: Resource = {
        "_scope": "",
        "_keys": keys(cloud, body),
        "id": identity,
        "name": name,
        "crn": cloud.crn("instance", identity, zone),
        "href": cloud.href(f"/instances/{identity}"),
        "resource_type": "instance",
        "created_at": now(),
        "availability": {"class": "standard"},
        "availability_policy": {"host_failure": "restart", "preemption": "stop"},
        "bandwidth": bandwidth,
        "confidential_compute_mode": "disabled",
        "disks": [],
        "enable_secure_boot": False,
        "health_reasons": [],
        "health_state": "ok",
        "image": reference(system),
        "lifecycle_reasons": [],
        "lifecycle_state": "stable",
        "memory": memory,
        "metadata_service": {"enabled": False, "protocol": "http", "response_hop_limit": 1},
        "numa_count": 2 if gpus else 1,
        "profile": {
            "name": profile,
            "href": cloud.href(f"/instance/profiles/{profile}"),
            "resource_type": "instance_profile",
        },
        "reservation_affinity": {"policy": "automatic", "pool": []},
        "resource_group": group_reference(cloud, body),
        "software_attachments": [],
        "startable": True,
        "status_reasons": [],
        "threads_per_core": 2,
        "total_network_bandwidth": bandwidth,
        "total_volume_bandwidth": 1000,
        "vcpu": {
            "architecture": "amd64",
            "count": cpus,
            "manufacturer": "intel",
            "percentage": 100,
            "burst": {"limit": 100},
        },
        "volume_bandwidth_qos_mode": "weighted",
        "zone": zone_reference(cloud, zone),
    }
    server["boot_volume_attachment"] = _boot_volume(cloud, server)
    server["volume_attachments"] = [server["boot_volume_attachment"]]
    if gpus:
        server["gpu"] = {"count": gpus, "manufacturer": "nvidia", "memory": 80, "model": gpu}
    if body.get("placement_target"):
        group = given(cloud, "placement_groups", body["placement_target"], "placement_target.id")
        server["placement_target"] = reference(group)
    bodies = [
        required(body, "primary_network_attachment"),
        *(body.get("network_attachments") or []),
    ]
    attach(cloud, KIND, server, bodies, "instance_network_attachment")
    subnet = need(cloud, "subnets", server["primary_network_attachment"]["subnet"]["id"])
    server["vpc"] = subnet["vpc"]
    try:
        _join_cluster(cloud, server, body.get("cluster_network_attachments") or [], clusters)
    except Exception:
        detach(cloud, KIND, server)
        raise
    begin(cloud, KIND, server, "status", "pending", "running")
    cloud.store.add(KIND, server)
    note(cloud, server, "created")
    return Answer(201, shown(server))


def _boot_volume(cloud: Cloud, server: Resource) -> dict[str, Any]:
    attachment, volume = cloud.store.new_id("0757"), cloud.store.new_id("r014")
    name = f"{server['name']}-boot"
    made: Resource = {
        "_parent": server["id"],
        "id": volume,
        "name": name,
        "crn": cloud.crn("volume", volume),
        "href": cloud.href(f"/volumes/{volume}"),
        "resource_type": "volume",
        "created_at": now(),
        "active": True,
        "adjustable_capacity_states": ["attached"],
        "adjustable_iops_states": ["attached"],
        "attachment_state": "attached",
        "bandwidth": 393,
        "busy": False,
        "capacity": 100,
        "encryption": "provider_managed",
        "health_reasons": [],
        "health_state": "ok",
        "iops": 3000,
        "profile": {
            "name": "general-purpose",
            "href": cloud.href("/volume/profiles/general-purpose"),
        },
        "resource_group": server["resource_group"],
        "software_attachments": [],
        "source_image": server["image"],
        "status": "available",
        "status_reasons": [],
        "storage_generation": 1,
        "user_tags": [],
        "volume_attachments": [],
        "zone": server["zone"],
    }
    cloud.store.add("volumes", made)
    return {
        "id": attachment,
        "name": name,
        "href": cloud.href(f"/instances/{server['id']}/volume_attachments/{attachment}"),
        "device": {"id": f"{attachment}-x"},
        "volume": reference(made),
    }


def _join_cluster(
    cloud: Cloud, server: Resource, bodies: list[Mapping[str, Any]], allowed: tuple[int, ...]
) -> None:
    """Attach a server to a cluster network: 8, 16 or 32 interfaces, or none."""
    server["cluster_network_attachments"] = []
    if not bodies:
        return
    if len(bodies) not in allowed:
        known = ", ".join(map(str, allowed)) or "no"
        message = f"profile {server['profile']['name']} takes {known} cluster attachments"
        refuse(400, "invalid_value", message, "cluster_network_attachments")
    attachments = []
    for number, body in enumerate(bodies):
        interface, network = claim(cloud, required(body, "cluster_network_interface"))
        identity = cloud.store.new_id("0757")
        base = f"/instances/{server['id']}/cluster_network_attachments/{identity}"
        attachment: Resource = {
            "_parent": server["id"],
            "_interface": interface["id"],
            "id": identity,
            "name": body.get("name") or f"cluster-{number}",
            "href": cloud.href(base),
            "resource_type": "instance_cluster_network_attachment",
            "cluster_network_interface": reference(interface, "primary_ip", "subnet"),
            "lifecycle_reasons": [],
            "lifecycle_state": "stable",
        }
        interface["target"] = reference(attachment)
        server["cluster_network"] = reference(network)
        attachments.append(attachment)
    for attachment, following in zip_longest(attachments, attachments[1:]):
        if following:
            attachment["before"] = reference(following)
        cloud.store.add("instance_cluster_attachments", attachment)
        server["cluster_network_attachments"].append(reference(attachment))


@route("GET", "/v1/instances")
def list_servers(cloud: Cloud, request: Request) -> Answer:
    """List virtual servers."""
    return page(cloud, request, KIND, cloud.store.all(KIND))


@route("GET", "/v1/instances/{server}")
def get(cloud: Cloud, request: Request) -> Answer:
    """Read a virtual server."""
    return read(cloud, KIND, request.params["server"])


@route("PATCH", "/v1/instances/{server}")
def change(cloud: Cloud, request: Request) -> Answer:
    """Rename a virtual server."""
    server = need(cloud, KIND, request.params["server"])
    return patch(cloud, KIND, request, server, ("total_volume_bandwidth",))


@route("DELETE", "/v1/instances/{server}")
def delete(cloud: Cloud, request: Request) -> Answer:
    """Delete a virtual server with its boot volume."""
    server = need(cloud, KIND, request.params["server"])
    detach(cloud, KIND, server)
    for attachment in cloud.store.children("instance_cluster_attachments", server["id"]):
        interface = cloud.store.find("cluster_interfaces", attachment["_interface"])
        if interface:
            interface.pop("target", None)
        cloud.store.remove("instance_cluster_attachments", attachment)
    for volume in cloud.store.children("volumes", server["id"]):
        cloud.store.remove("volumes", volume)
    cloud.store.remove(KIND, server)
    return Answer(204)


@route("POST", "/v1/instances/{server}/actions")
def act(cloud: Cloud, request: Request) -> Answer:
    """Start, stop or reboot a virtual server."""
    server = need(cloud, KIND, request.params["server"])
    kind = str((request.body or {}).get("type"))
    if kind == "stop":
        stop_server(cloud, KIND, server)
    elif kind in {"start", "reboot"}:
        start_server(cloud, KIND, server)
    else:
        refuse(400, "invalid_value", f"action {kind} is not known", "type")
    identity = cloud.store.new_id("0757")
    body = {
        "id": identity,
        "type": kind,
        "status": "running",
        "force": False,
        "created_at": now(),
        "href": cloud.href(f"/instances/{server['id']}/actions/{identity}"),
    }
    return Answer(201, body)


@route("GET", "/v1/instances/{server}/initialization")
def get_setup(cloud: Cloud, request: Request) -> Answer:
    """Read what a virtual server was set up with."""
    return Answer(200, {"keys": need(cloud, KIND, request.params["server"])["_keys"]})


@route("GET", "/v1/instances/{server}/network_attachments")
def attachments(cloud: Cloud, request: Request) -> Answer:
    """List attachments."""
    server = need(cloud, KIND, request.params["server"])
    found = cloud.store.children(f"{KIND}_attachments", server["id"])
    return Answer(200, {"network_attachments": shown(found)})


@route("GET", "/v1/instances/{server}/network_attachments/{id}")
def get_attachment(cloud: Cloud, request: Request) -> Answer:
    """Read an attachment."""
    need(cloud, KIND, request.params["server"])
    return Answer(200, shown(need(cloud, f"{KIND}_attachments", request.params["id"])))


@route("GET", "/v1/instances/{server}/network_interfaces")
def interfaces(cloud: Cloud, request: Request) -> Answer:
    """List attachments in the older view."""
    return Answer(200, {"network_interfaces": cards(cloud, KIND, request)})


@route("GET", "/v1/instances/{server}/network_interfaces/{id}")
def get_interface(cloud: Cloud, request: Request) -> Answer:
    """Read an attachment in the older view."""
    return Answer(200, card(cloud, KIND, request.params["server"], request.params["id"]))


@route("GET", "/v1/instances/{server}/cluster_network_attachments")
def cluster_attachments(cloud: Cloud, request: Request) -> Answer:
    """List attachments to the cluster network."""
    server = need(cloud, KIND, request.params["server"])
    found = cloud.store.children("instance_cluster_attachments", server["id"])
    return page(cloud, request, "cluster_network_attachments", found)


@route("POST", "/v1/instances/{server}/cluster_network_attachments")
def add_cluster_attachment(cloud: Cloud, request: Request) -> Answer:
    """Answer with the attachment of that name; a new one needs a stopped server.

    IBM's provider 1.89.0 makes a server with its attachments, and then posts each again, by
    name alone.
    """
    server = need(cloud, KIND, request.params["server"])
    name = required(request.body, "name")
    for attachment in cloud.store.children("instance_cluster_attachments", server["id"]):
        if attachment["name"] == name:
            return Answer(201, shown(attachment))
    refuse(409, "server_not_stopped", f"{server['name']} must be stopped for this")


@route("GET", "/v1/instances/{server}/cluster_network_attachments/{id}")
def get_cluster_attachment(cloud: Cloud, request: Request) -> Answer:
    """Read an attachment to the cluster network."""
    return read(cloud, "instance_cluster_attachments", request.params["id"])


@route("GET", "/v1/instances/{server}/volume_attachments")
def volumes(cloud: Cloud, request: Request) -> Answer:
    """List volume attachments."""
    server = need(cloud, KIND, request.params["server"])
    return Answer(200, {"volume_attachments": [_volume_attachment(server)]})


@route("GET", "/v1/instances/{server}/volume_attachments/{id}")
def get_volume_attachment(cloud: Cloud, request: Request) -> Answer:
    """Read a volume attachment."""
    return Answer(200, _volume_attachment(need(cloud, KIND, request.params["server"])))


def _volume_attachment(server: Resource) -> dict[str, Any]:
    return {
        **server["boot_volume_attachment"],
        "bandwidth": 393,
        "created_at": server["created_at"],
        "delete_volume_on_instance_delete": True,
        "status": "attached",
        "type": "boot",
    }


@route("GET", "/v1/volumes/{id}")
def get_volume(cloud: Cloud, request: Request) -> Answer:
    """Read a volume."""
    return read(cloud, "volumes", request.params["id"])
