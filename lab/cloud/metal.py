"""Bare-metal servers."""

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
from lab.cloud.compute import BARE_METAL_PROFILES
from lab.cloud.network import check_zone
from lab.cloud.servers import attach, card, cards, detach, image, keys, list_attachments, note
from lab.cloud.servers import start as start_server
from lab.cloud.servers import stop as stop_server
from lab.cloud.store import Resource, shown

KIND = "bare_metal_servers"


@route("POST", "/v1/bare_metal_servers")
def create(cloud: Cloud, request: Request) -> Answer:
    """Order a bare-metal server."""
    body = request.body or {}
    quota(cloud, KIND)
    profile = str(required(body, "profile").get("name"))
    if profile not in BARE_METAL_PROFILES:
        refuse(400, "bad_reference", f"profile {profile} does not exist", "profile.name")
    zone = check_zone(cloud, required(body, "zone"), "zone.name")
    setup = required(body, "initialization")
    system = image(cloud, required(setup, "image"))
    given_keys = keys(cloud, setup)
    if not given_keys:
        refuse(400, "missing_field", "a server needs an SSH key", "initialization.keys")
    family, cores, sockets, memory, bandwidth, disks = BARE_METAL_PROFILES[profile]
    del family
    identity = cloud.store.new_id("0757")
    server: Resource = {
        "_scope": "",
        "_image": reference(system),
        "_keys": given_keys,
        "_user_data": setup.get("user_data"),
        "id": identity,
        "name": name_of(cloud, KIND, "", body, f"bms-{identity[-6:]}"),
        "crn": cloud.crn("bare-metal-server", identity, zone),
        "href": cloud.href(f"/bare_metal_servers/{identity}"),
        "resource_type": "bare_metal_server",
        "created_at": now(),
        "bandwidth": body.get("bandwidth") or bandwidth,
        "cpu": {
            "architecture": "amd64",
            "core_count": cores,
            "socket_count": sockets,
            "threads_per_core": 2,
        },
        "enable_secure_boot": bool(body.get("enable_secure_boot", False)),
        "firmware": {"update": "none"},
        "health_reasons": [],
        "health_state": "ok",
        "lifecycle_reasons": [],
        "lifecycle_state": "stable",
        "memory": memory,
        "metadata_service": {"enabled": False, "protocol": "http"},
        "profile": {
            "name": profile,
            "href": cloud.href(f"/bare_metal_server/profiles/{profile}"),
            "resource_type": "bare_metal_server_profile",
        },
        "reservation_affinity": {"policy": "disabled", "pool": []},
        "resource_group": group_reference(cloud, body),
        "status_reasons": [],
        "trusted_platform_module": {
            "enabled": False,
            "mode": (body.get("trusted_platform_module") or {}).get("mode", "disabled"),
            "supported_modes": ["disabled", "tpm_2"],
        },
        "zone": zone_reference(cloud, zone),
    }
    if body.get("metadata_service"):
        server["metadata_service"] |= body["metadata_service"]
    others = body.get("network_attachments") or []
    bodies = [required(body, "primary_network_attachment"), *others]
    attach(cloud, KIND, server, bodies, "bare_metal_server_network_attachment")
    subnet = need(cloud, "subnets", server["primary_network_attachment"]["subnet"]["id"])
    server["vpc"] = subnet["vpc"]
    if body.get("vpc") and given(cloud, "vpcs", body["vpc"], "vpc.id")["id"] != subnet["vpc"]["id"]:
        detach(cloud, KIND, server)
        refuse(400, "bad_reference", "the interfaces are of another VPC", "vpc.id")
    server["disks"] = [_disk(cloud, server, 960, "m2")] + [
        _disk(cloud, server, 3200, f"nvme-{number}") for number in range(disks)
    ]
    server["boot_target"] = reference(server["disks"][0])
    begin(cloud, KIND, server, "status", "pending", "running")
    cloud.store.add(KIND, server)
    note(cloud, server, "created")
    return Answer(201, shown(server))


def _disk(cloud: Cloud, server: Resource, size: int, name: str) -> dict[str, Any]:
    identity = cloud.store.new_id("0757")
    return {
        "id": identity,
        "name": name,
        "href": cloud.href(f"/bare_metal_servers/{server['id']}/disks/{identity}"),
        "resource_type": "bare_metal_server_disk",
        "created_at": now(),
        "interface_type": "nvme",
        "size": size,
    }


@route("GET", "/v1/bare_metal_servers")
def list_servers(cloud: Cloud, request: Request) -> Answer:
    """List bare-metal servers."""
    return page(cloud, request, KIND, cloud.store.all(KIND))


@route("GET", "/v1/bare_metal_servers/{server}")
def get(cloud: Cloud, request: Request) -> Answer:
    """Read a bare-metal server."""
    return read(cloud, KIND, request.params["server"])


@route("PATCH", "/v1/bare_metal_servers/{server}")
def change(cloud: Cloud, request: Request) -> Answer:
    """Change a bare-metal server; secure boot and TPM only while it is stopped."""
    server = need(cloud, KIND, request.params["server"])
    body = request.body or {}
    powered = {"enable_secure_boot", "trusted_platform_module"} & set(body)
    if powered and server["status"] != "stopped":
        refuse(409, "server_not_stopped", f"{server['name']} must be stopped for this")
    if body.get("trusted_platform_module"):
        server["trusted_platform_module"]["mode"] = body["trusted_platform_module"]["mode"]
    return patch(cloud, KIND, request, server, ("bandwidth", "enable_secure_boot"))


@route("DELETE", "/v1/bare_metal_servers/{server}")
def delete(cloud: Cloud, request: Request) -> Answer:
    """Give a stopped server back."""
    server = need(cloud, KIND, request.params["server"])
    if server["status"] not in {"stopped", "failed"}:
        message = f"{server['name']} is {server['status']}, it must be stopped first"
        refuse(409, "server_not_stopped", message)
    detach(cloud, KIND, server)
    cloud.store.remove(KIND, server)
    return Answer(204)


@route("POST", "/v1/bare_metal_servers/{server}/stop")
def stop(cloud: Cloud, request: Request) -> Answer:
    """Stop a server."""
    stop_server(cloud, KIND, need(cloud, KIND, request.params["server"]))
    return Answer(204)


@route("POST", "/v1/bare_metal_servers/{server}/start")
def start(cloud: Cloud, request: Request) -> Answer:
    """Start a server."""
    start_server(cloud, KIND, need(cloud, KIND, request.params["server"]))
    return Answer(204)


@route("POST", "/v1/bare_metal_servers/{server}/restart")
def restart(cloud: Cloud, request: Request) -> Answer:
    """Restart a server."""
    start_server(cloud, KIND, need(cloud, KIND, request.params["server"]))
    return Answer(204)


def _setup(server: Resource) -> dict[str, Any]:
    return {"image": server["_image"], "keys": server["_keys"], "user_accounts": []}


@route("GET", "/v1/bare_metal_servers/{server}/initialization")
def get_setup(cloud: Cloud, request: Request) -> Answer:
    """Read what a server was set up with; user data is never shown."""
    return Answer(200, _setup(need(cloud, KIND, request.params["server"])))


@route("PUT", "/v1/bare_metal_servers/{server}/initialization")
def put_setup(cloud: Cloud, request: Request) -> Answer:
    """Write a stopped server's disks anew."""
    server = need(cloud, KIND, request.params["server"])
    body = request.body or {}
    if server["status"] != "stopped":
        refuse(409, "server_not_stopped", f"{server['name']} must be stopped for this")
    server["_image"] = reference(image(cloud, required(body, "image")))
    server["_keys"] = keys(cloud, body)
    begin(cloud, KIND, server, "status", "reinitializing", "stopped")
    note(cloud, server, "reinitialized")
    return Answer(200, _setup(server))


@route("GET", "/v1/bare_metal_servers/{server}/disks")
def list_disks(cloud: Cloud, request: Request) -> Answer:
    """List disks."""
    return Answer(200, {"disks": need(cloud, KIND, request.params["server"])["disks"]})


@route("GET", "/v1/bare_metal_servers/{server}/disks/{id}")
def get_disk(cloud: Cloud, request: Request) -> Answer:
    """Read a disk."""
    server = need(cloud, KIND, request.params["server"])
    for disk in server["disks"]:
        if disk["id"] == request.params["id"]:
            return Answer(200, disk)
    refuse(404, "not_found", f"disk {request.params['id']} was not found")


@route("GET", "/v1/bare_metal_servers/{server}/network_attachments")
def attachments(cloud: Cloud, request: Request) -> Answer:
    """List attachments."""
    return list_attachments(cloud, KIND, request)


@route("GET", "/v1/bare_metal_servers/{server}/network_attachments/{id}")
def get_attachment(cloud: Cloud, request: Request) -> Answer:
    """Read an attachment."""
    need(cloud, KIND, request.params["server"])
    return Answer(200, shown(need(cloud, f"{KIND}_attachments", request.params["id"])))


@route("PATCH", "/v1/bare_metal_servers/{server}/network_attachments/{id}")
def patch_attachment(cloud: Cloud, request: Request) -> Answer:
    """Rename an attachment."""
    attachment = need(cloud, f"{KIND}_attachments", request.params["id"])
    return patch(cloud, f"{KIND}_attachments", request, attachment, ("allowed_vlans",))


@route("GET", "/v1/bare_metal_servers/{server}/network_interfaces")
def interfaces(cloud: Cloud, request: Request) -> Answer:
    """List attachments in the older view."""
    return page(cloud, request, "network_interfaces", cards(cloud, KIND, request))


@route("GET", "/v1/bare_metal_servers/{server}/network_interfaces/{id}")
def get_interface(cloud: Cloud, request: Request) -> Answer:
    """Read an attachment in the older view."""
    return Answer(200, card(cloud, KIND, request.params["server"], request.params["id"]))
