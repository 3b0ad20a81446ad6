"""Regions, zones, profiles, operating systems, images and placement groups."""

from typing import Any

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
    read,
    refuse,
    required,
    route,
    zone_reference,
)
from lab.cloud.store import Resource, shown

REGION = "us-east"
ZONES = ("us-east-1", "us-east-2", "us-east-3")

BARE_METAL_PROFILES = {
    # name: family, architecture cores and sockets, memory GiB, bandwidth Mb/s, disks
    "bx2-metal-96x384": ("balanced", 48, 2, 384, 100_000, 0),
    "vx2d-metal-96x1536": ("memory", 48, 2, 1536, 100_000, 8),
    "bx3d-metal-64x256": ("balanced", 32, 2, 256, 200_000, 2),
    "gx3d-metal-224x2048x8mi300x-sn": ("gpu", 112, 2, 2048, 200_000, 8),
}
INSTANCE_PROFILES = {
    # name: family, virtual CPUs, memory GiB, bandwidth Mb/s, GPUs, GPU, cluster attachments
    "bx2-2x8": ("balanced", 2, 8, 4_000, 0, "", ()),
    "gx3d-160x1792x8h100": ("gpu", 160, 1792, 200_000, 8, "H100", (8, 16, 32)),
    "gx3d-160x1792x8h200": ("gpu", 160, 1792, 200_000, 8, "H200", (8, 16, 32)),
}
SYSTEMS = {
    # name: vendor, family, version
    "debian-12-amd64": ("Debian", "Debian GNU/Linux", "12.x Bookworm/Stable - Minimal Install"),
    "ubuntu-24-04-amd64": ("Canonical", "Ubuntu Linux", "24.04 LTS Noble Numbat Minimal Install"),
    "red-9-amd64": ("Red Hat", "Red Hat Enterprise Linux", "9.x - Minimal Install"),
    "rocky-linux-9-amd64": ("Rocky Linux", "Rocky Linux", "9.x - Minimal Install"),
}
STOCK_IMAGES = {
    "ibm-debian-12-0-minimal-amd64-1": "debian-12-amd64",
    "ibm-ubuntu-24-04-minimal-amd64-1": "ubuntu-24-04-amd64",
}


def seed(cloud: Cloud) -> None:
    """Give a new region its zones and stock images."""
    if cloud.store.all("zones"):
        return
    for number, name in enumerate(ZONES, start=1):
        cloud.store.add(
            "zones",
            {
                "id": name,
                "name": name,
                "href": cloud.href(f"/regions/{REGION}/zones/{name}"),
                "region": {"name": REGION, "href": cloud.href(f"/regions/{REGION}")},
                "status": "available",
                "data_center": f"simulated{number:02d}",
                "universal_name": f"{REGION}-simulated{number:02d}-a",
            },
        )
    for name, system in STOCK_IMAGES.items():
        image = _image(cloud, {"name": name}, system)
        image |= {"visibility": "public", "status": "available", "_states": None}
        image.pop("_states")
        cloud.store.add("images", image)


@route("GET", "/v1/regions")
def list_regions(cloud: Cloud, _: Request) -> Answer:
    """List the one region."""
    return Answer(200, {"regions": [_region(cloud)]})


@route("GET", "/v1/regions/{name}")
def get_region(cloud: Cloud, request: Request) -> Answer:
    """Read the region."""
    if request.params["name"] != REGION:
        refuse(404, "not_found", f"region {request.params['name']} is not simulated")
    return Answer(200, _region(cloud))


def _region(cloud: Cloud) -> dict[str, Any]:
    href = cloud.href(f"/regions/{REGION}")
    return {"name": REGION, "endpoint": cloud.url, "href": href, "status": "available"}


@route("GET", "/v1/regions/{region}/zones")
def list_zones(cloud: Cloud, _: Request) -> Answer:
    """List zones."""
    return Answer(200, {"zones": [shown(zone) for zone in _without_ids(cloud)]})


@route("GET", "/v1/regions/{region}/zones/{name}")
def get_zone(cloud: Cloud, request: Request) -> Answer:
    """Read a zone."""
    need(cloud, "zones", request.params["name"])
    return Answer(200, next(z for z in _without_ids(cloud) if z["name"] == request.params["name"]))


def _without_ids(cloud: Cloud) -> list[dict[str, Any]]:
    return [{k: v for k, v in zone.items() if k != "id"} for zone in cloud.store.all("zones")]


# --- profiles


def _fixed(value: Any) -> dict[str, Any]:
    return {"type": "fixed", "value": value}


def bare_metal_profile(cloud: Cloud, name: str) -> dict[str, Any]:
    """A bare-metal profile as the API shows it."""
    family, cores, sockets, memory, bandwidth, disks = BARE_METAL_PROFILES[name]
    sizes = [(1, 960), *([(disks, 3200)] if disks else [])]
    return {
        "name": name,
        "family": family,
        "href": cloud.href(f"/bare_metal_server/profiles/{name}"),
        "resource_type": "bare_metal_server_profile",
        "bandwidth": _fixed(bandwidth),
        "console_types": {"type": "enum", "values": ["serial", "vnc"]},
        "cpu_architecture": {"type": "fixed", "value": "amd64", "default": "amd64"},
        "cpu_core_count": _fixed(cores),
        "cpu_socket_count": _fixed(sockets),
        "disks": [
            {
                "quantity": _fixed(count),
                "size": _fixed(size),
                "supported_interface_types": {
                    "type": "enum", "default": "nvme", "values": ["nvme"]
                },
            }
            for count, size in sizes
        ],
        "memory": _fixed(memory),
        "network_attachment_count": {"type": "range", "min": 1, "max": 8},
        "network_interface_count": {"type": "range", "min": 1, "max": 8},
        "os_architecture": {"type": "enum", "default": "amd64", "values": ["amd64"]},
        "reservation_terms": {"type": "enum", "values": ["one_year", "three_year"]},
        "supported_trusted_platform_module_modes": {
            "type": "enum", "default": "disabled", "values": ["disabled", "tpm_2"]
        },
        "virtual_network_interfaces_supported": _fixed(True),
        "zones": [zone_reference(cloud, zone) for zone in ZONES],
    }  # fmt: skip


@route("GET", "/v1/bare_metal_server/profiles")
def list_bare_metal_profiles(cloud: Cloud, request: Request) -> Answer:
    """List bare-metal profiles."""
    profiles = [{**bare_metal_profile(cloud, n), "id": n} for n in BARE_METAL_PROFILES]
    answer = page(cloud, request, "profiles", profiles)
    for profile in answer.body["profiles"]:
        profile.pop("id")
    return answer


@route("GET", "/v1/bare_metal_server/profiles/{name}")
def get_bare_metal_profile(cloud: Cloud, request: Request) -> Answer:
    """Read a bare-metal profile."""
    name = request.params["name"]
    if name not in BARE_METAL_PROFILES:
        refuse(404, "not_found", f"profile {name} is not simulated")
    return Answer(200, bare_metal_profile(cloud, name))


def instance_profile(cloud: Cloud, name: str) -> dict[str, Any]:
    """A virtual server profile as the API shows it."""
    family, cpus, memory, bandwidth, gpus, model, clusters = INSTANCE_PROFILES[name]
    hopper = {
        "name": "hopper-1",
        "href": cloud.href("/cluster_network/profiles/hopper-1"),
        "resource_type": "cluster_network_profile",
    }
    profile: dict[str, Any] = {
        "name": name,
        "family": family,
        "href": cloud.href(f"/instance/profiles/{name}"),
        "resource_type": "instance_profile",
        "status": "current",
        "availability_class": {"type": "fixed", "value": "standard"},
        "bandwidth": _fixed(bandwidth),
        "cluster_network_attachment_count": {"type": "enum", "values": list(clusters)},
        "confidential_compute_modes": {
            "type": "enum", "default": "disabled", "values": ["disabled"]
        },
        "disks": [],
        "memory": _fixed(memory),
        "network_attachment_count": {"type": "range", "min": 1, "max": 15},
        "network_bandwidth_mode": {"type": "fixed", "value": "pooled"},
        "network_interface_count": {"type": "range", "min": 1, "max": 15},
        "os_architecture": {"type": "enum", "default": "amd64", "values": ["amd64"]},
        "port_speed": _fixed(16000),
        "reservation_terms": {"type": "enum", "values": ["one_year", "three_year"]},
        "secure_boot_modes": {"type": "enum", "default": False, "values": [False]},
        "supported_cluster_network_profiles": [hopper] if clusters else [],
        "threads_per_core": {"type": "enum", "default": 2, "values": [2]},
        "total_volume_bandwidth": _fixed(1000),
        "vcpu_architecture": {"type": "fixed", "value": "amd64", "default": "amd64"},
        "vcpu_burst_limit": _fixed(100),
        "vcpu_count": _fixed(cpus),
        "vcpu_manufacturer": {"type": "fixed", "value": "intel", "default": "intel"},
        "vcpu_percentage": {"type": "enum", "default": 100, "values": [100]},
        "volume_bandwidth_qos_modes": {
            "type": "enum", "default": "weighted", "values": ["weighted"]
        },
        "zones": [zone_reference(cloud, zone) for zone in ZONES],
    }  # fmt: skip
    if gpus:
        profile |= {
            "gpu_count": _fixed(gpus),
            "gpu_manufacturer": {"type": "enum", "values": ["nvidia"]},
            "gpu_memory": _fixed(80),
            "gpu_model": {"type": "enum", "values": [model]},
        }
    return profile


@route("GET", "/v1/instance/profiles")
def list_instance_profiles(cloud: Cloud, _: Request) -> Answer:
    """List virtual server profiles."""
    profiles = [instance_profile(cloud, name) for name in INSTANCE_PROFILES]
    first = {"href": cloud.href("/instance/profiles?limit=50")}
    body = {"first": first, "limit": 50, "total_count": len(profiles), "profiles": profiles}
    return Answer(200, body)


@route("GET", "/v1/instance/profiles/{name}")
def get_instance_profile(cloud: Cloud, request: Request) -> Answer:
    """Read a virtual server profile."""
    name = request.params["name"]
    if name not in INSTANCE_PROFILES:
        refuse(404, "not_found", f"profile {name} is not simulated")
    return Answer(200, instance_profile(cloud, name))


# --- operating systems and images


def _system(cloud: Cloud, name: str) -> dict[str, Any]:
    vendor, family, version = SYSTEMS[name]
    return {
        "name": name,
        "display_name": f"{family} {version} (amd64)",
        "vendor": vendor,
        "family": family,
        "version": version,
        "architecture": "amd64",
        "allow_user_image_creation": True,
        "dedicated_host_only": False,
        "user_data_format": "cloud_init",
        "href": cloud.href(f"/operating_systems/{name}"),
    }


@route("GET", "/v1/operating_systems")
def list_systems(cloud: Cloud, _: Request) -> Answer:
    """List operating systems."""
    systems = [_system(cloud, name) for name in SYSTEMS]
    first = {"href": cloud.href("/operating_systems?limit=50")}
    body = {"first": first, "limit": 50, "total_count": len(systems), "operating_systems": systems}
    return Answer(200, body)


@route("GET", "/v1/operating_systems/{name}")
def get_system(cloud: Cloud, request: Request) -> Answer:
    """Read an operating system."""
    if request.params["name"] not in SYSTEMS:
        refuse(404, "not_found", f"operating system {request.params['name']} was not found")
    return Answer(200, _system(cloud, request.params["name"]))


def _image(cloud: Cloud, body: dict[str, Any], system: str) -> Resource:
    identity = cloud.store.new_id("r014")
    image: Resource = {
        "id": identity,
        "name": name_of(cloud, "images", "", body, f"image-{identity[-6:]}"),
        "crn": cloud.crn("image", identity),
        "href": cloud.href(f"/images/{identity}"),
        "resource_type": "image",
        "created_at": now(),
        "encryption": "none",
        "file": {"size": 2, "checksums": {"sha256": "0" * 64}},
        "minimum_provisioned_size": 10,
        "operating_system": _system(cloud, system),
        "resource_group": group_reference(cloud, body),
        "status_reasons": [],
        "user_data_format": "cloud_init",
        "visibility": "private",
        "zones": [zone_reference(cloud, zone) for zone in ZONES],
        "remote": {},
        "catalog_offering": {"managed": False},
        "allowed_use": {
            "api_version": "2025-12-09", "bare_metal_server": "true", "instance": "true"
        },
    }  # fmt: skip
    begin(cloud, "images", image, "status", "pending", "available")
    return image


@route("POST", "/v1/images")
def create_image(cloud: Cloud, request: Request) -> Answer:
    """Import an image from object storage; nothing is read there."""
    body = request.body or {}
    href = str((required(body, "file") or {}).get("href", ""))
    if not href.startswith("cos://"):
        refuse(400, "invalid_value", f"{href!r} is not an object cos://…", "file.href")
    if not href.endswith((".qcow2", ".vhd")):
        refuse(400, "invalid_value", f"{href} is neither QCOW2 nor VHD", "file.href")
    system = str(required(body, "operating_system").get("name"))
    if system not in SYSTEMS:
        message = f"operating system {system} does not exist"
        refuse(400, "bad_reference", message, "operating_system.name")
    return Answer(201, shown(cloud.store.add("images", _image(cloud, body, system))))


@route("GET", "/v1/images")
def list_images(cloud: Cloud, request: Request) -> Answer:
    """List images, private or public ones alone when asked."""
    images = cloud.store.all("images")
    if "visibility" in request.query:
        images = [i for i in images if i["visibility"] == request.query["visibility"]]
    return page(cloud, request, "images", images)


@route("GET", "/v1/images/{id}")
def get_image(cloud: Cloud, request: Request) -> Answer:
    """Read an image."""
    return read(cloud, "images", request.params["id"])


@route("PATCH", "/v1/images/{id}")
def patch_image(cloud: Cloud, request: Request) -> Answer:
    """Rename an image."""
    return patch(cloud, "images", request, need(cloud, "images", request.params["id"]), ())


@route("DELETE", "/v1/images/{id}")
def delete_image(cloud: Cloud, request: Request) -> Answer:
    """Delete a private image; servers keep their disks."""
    image = need(cloud, "images", request.params["id"])
    if image["visibility"] != "private":
        refuse(403, "forbidden", f"{image['name']} is a stock image")
    cloud.store.remove("images", image)
    return Answer(204)


# --- placement groups


@route("POST", "/v1/placement_groups")
def create_placement(cloud: Cloud, request: Request) -> Answer:
    """Make a placement group."""
    body = request.body or {}
    strategy = required(body, "strategy")
    if strategy not in {"host_spread", "power_spread"}:
        refuse(400, "invalid_value", f"strategy {strategy} is not known", "strategy")
    identity = cloud.store.new_id("r014")
    group: Resource = {
        "id": identity,
        "name": name_of(cloud, "placement_groups", "", body, f"pg-{identity[-6:]}"),
        "crn": cloud.crn("placement-group", identity),
        "href": cloud.href(f"/placement_groups/{identity}"),
        "resource_type": "placement_group",
        "created_at": now(),
        "resource_group": group_reference(cloud, body),
        "strategy": strategy,
    }
    begin(cloud, "placement_groups", group, "lifecycle_state", "pending", "stable")
    return Answer(201, shown(cloud.store.add("placement_groups", group)))


@route("GET", "/v1/placement_groups")
def list_placements(cloud: Cloud, request: Request) -> Answer:
    """List placement groups."""
    return page(cloud, request, "placement_groups", cloud.store.all("placement_groups"))


@route("GET", "/v1/placement_groups/{id}")
def get_placement(cloud: Cloud, request: Request) -> Answer:
    """Read a placement group."""
    return read(cloud, "placement_groups", request.params["id"])


@route("PATCH", "/v1/placement_groups/{id}")
def patch_placement(cloud: Cloud, request: Request) -> Answer:
    """Rename a placement group."""
    group = need(cloud, "placement_groups", request.params["id"])
    return patch(cloud, "placement_groups", request, group, ())


@route("DELETE", "/v1/placement_groups/{id}")
def delete_placement(cloud: Cloud, request: Request) -> Answer:
    """Delete a placement group without servers."""
    group = need(cloud, "placement_groups", request.params["id"])
    for server in cloud.store.all("instances"):
        if server.get("placement_target", {}).get("id") == group["id"]:
            refuse(409, "placement_group_in_use", f"{group['name']} holds {server['name']}")
    cloud.store.remove("placement_groups", group)
    return Answer(204)
