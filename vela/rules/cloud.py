"""Rules about IBM Cloud that need no network: zones, profiles, quotas, limits."""

import difflib
from collections.abc import Iterator

from vela.plan import names
from vela.rules import catalogue
from vela.rules.base import Case, Fault, rule

OWN_SECURITY_GROUPS = 1
"""Groups of ours on each host interface."""


@rule("VELA-CLOUD-001", "The region exists")
def region(case: Case) -> Iterator[Fault]:
    """The region is one of IBM Cloud's."""
    name = case.environment.cloud.region
    if name not in catalogue.REGIONS:
        near = difflib.get_close_matches(name, catalogue.REGIONS, 1)
        hint = f"did you mean {near[0]}?" if near else "one of " + ", ".join(catalogue.REGIONS)
        yield Fault(("cloud", "region"), f"IBM Cloud has no region {name}", hint)


@rule("VELA-CLOUD-002", "The zone is one of the region's")
def zone(case: Case) -> Iterator[Fault]:
    """The zone belongs to the region."""
    cloud = case.environment.cloud
    if cloud.region in catalogue.REGIONS and cloud.zone not in catalogue.zones(cloud.region):
        known = ", ".join(catalogue.zones(cloud.region))
        message = f"region {cloud.region} has no zone {cloud.zone}"
        yield Fault(("cloud", "zone"), message, f"its zones are {known}")


@rule("VELA-CLOUD-003", "The hosts' profile exists and is sold in the region")
def profile(case: Case) -> Iterator[Fault]:
    """The hardware's profile can be ordered where the environment stands."""
    server = case.hardware.server
    path = ("hosts", "type")
    known = catalogue.BARE_METAL if server.kind == "bare_metal" else catalogue.GPU_SERVERS
    if server.profile not in known:
        near = difflib.get_close_matches(server.profile, known, 1)
        hint = f"did you mean {near[0]}?" if near else "see vela/rules/catalogue.py"
        kind = server.kind.replace("_", "-")
        yield Fault(path, f"IBM Cloud has no {kind} profile {server.profile}", hint)
        return
    regions = catalogue.BARE_METAL_REGIONS.get(server.profile)
    region_ = case.environment.cloud.region
    if regions and region_ not in regions:
        where = ", ".join(regions)
        yield Fault(path, f"{server.profile} is not sold in {region_}", f"it is sold in {where}")


@rule("VELA-CLOUD-004", "The hosts fit the account's quota")
def quota(case: Case) -> Iterator[Fault]:
    """Active hosts are within the quota."""
    hosts = [h for h in names.host_states(case.environment) if h.state != "absent"]
    kind = case.hardware.server.kind
    key = "bare_metal_servers" if kind == "bare_metal" else "virtual_servers"
    limit = getattr(case.environment.cloud.quotas, key)
    if len(hosts) > limit:
        yield Fault(
            ("cloud", "quotas", key),
            f"{len(hosts)} hosts are more than the account's {limit}",
            f"ask IBM for more and say so: quotas: {{{key}: {len(hosts)}}}",
        )


@rule("VELA-CLOUD-005", "A server has at most 8 PCI network attachments")
def attachments(case: Case) -> Iterator[Fault]:
    """Each subnet is one attachment of every host."""
    count = len(case.environment.cloud.network.subnets)
    if count > catalogue.MAX_ATTACHMENTS:
        yield Fault(
            ("cloud", "network", "subnets"),
            f"{count} subnets give each host {count} attachments, "
            f"IBM allows {catalogue.MAX_ATTACHMENTS}",
            "put what needs no interface of its own into one subnet",
            of_key=True,
        )


@rule("VELA-CLOUD-006", "The cluster network's profile exists in the zone")
def cluster_profile(case: Case) -> Iterator[Fault]:
    """Profile of the cluster network, and where it is sold."""
    cluster = case.environment.cloud.cluster_network
    if cluster is None:
        return
    path = ("cloud", "cluster_network", "profile")
    newer = catalogue.DEPRECATED_CLUSTER_PROFILES.get(cluster.profile)
    if newer:
        yield Fault(path, f"profile {cluster.profile} is deprecated", f"write {newer}")
        return
    sold = catalogue.CLUSTER_ZONES.get(cluster.profile)
    if sold is None:
        known = ", ".join(catalogue.CLUSTER_ZONES)
        message = f"IBM Cloud has no cluster network profile {cluster.profile}"
        yield Fault(path, message, f"there is {known}")
    elif case.environment.cloud.zone not in sold:
        message = f"{cluster.profile} is not in zone {case.environment.cloud.zone}"
        yield Fault(path, message, "it is in " + ", ".join(sold))


@rule("VELA-CLOUD-007", "Names at IBM have at most 63 characters")
def name_length(case: Case) -> Iterator[Fault]:
    """The longest names are those of a host's interfaces and of images."""
    environment = case.environment
    host = names.host_name(environment.hosts.racks, environment.hosts.per_rack)
    for subnet in environment.cloud.network.subnets:
        name = f"{environment.name}-{host}-{subnet}"
        if len(name) > catalogue.MAX_NAME:
            yield _too_long(("cloud", "network", "subnets", subnet), name, "the subnet")
    for image in environment.images:
        name = names.image_cloud_name(environment, image)
        if len(name) > catalogue.MAX_NAME:
            yield _too_long(("images", image), name, "the image")


def _too_long(path: tuple[str, ...], name: str, what: str) -> Fault:
    over = len(name) - catalogue.MAX_NAME
    message = f"{name} has {len(name)} characters, IBM allows {catalogue.MAX_NAME}"
    return Fault(path, message, f"make the name of {what} {over} shorter", of_key=True)


@rule("VELA-CLOUD-008", "A network interface has at most 5 security groups")
def security_groups(case: Case) -> Iterator[Fault]:
    """Our group and the extra ones together."""
    extra = case.environment.cloud.access.security_groups
    total = len(extra) + OWN_SECURITY_GROUPS
    if total > catalogue.MAX_SECURITY_GROUPS:
        yield Fault(
            ("cloud", "access", "security_groups"),
            f"with ours each interface has {total} groups, "
            f"IBM allows {catalogue.MAX_SECURITY_GROUPS}",
            f"name at most {catalogue.MAX_SECURITY_GROUPS - OWN_SECURITY_GROUPS}",
        )


@rule("VELA-CLOUD-009", "Each SSH key is named once")
def keys_differ(case: Case) -> Iterator[Fault]:
    """IBM Cloud refuses a second key with the same fingerprint."""
    seen: dict[str, str] = {}
    for name, key in case.environment.cloud.access.ssh_keys.items():
        material = key.split()[1]
        if material in seen:
            yield Fault(
                ("cloud", "access", "ssh_keys", name),
                f"key {name} is the same key as {seen[material]}",
                "IBM Cloud takes each key once; remove one of them",
            )
        seen.setdefault(material, name)


@rule("VELA-CLOUD-010", "SSH is not open to the whole internet")
def ssh_sources(case: Case) -> Iterator[Fault]:
    """No network of the allow list covers half of all addresses or more."""
    for index, network in enumerate(case.environment.cloud.access.allow_ssh_from):
        if network.prefixlen <= 1:
            yield Fault(
                ("cloud", "access", "allow_ssh_from", index),
                f"{network} lets the whole internet try to log in",
                "name the networks of your offices and jump hosts",
            )


@rule("VELA-CLOUD-011", "Every image that is used is described")
def images_exist(case: Case) -> Iterator[Fault]:
    """Hosts, guests and bastion name images of the environment."""
    environment = case.environment
    hosts = environment.hosts
    used: list[tuple[tuple[str, ...], str]] = [(("hosts", "image"), hosts.image)]
    used += [
        (("hosts", "overrides", key, "image"), override.image)
        for key, override in hosts.overrides.items()
        if override.image
    ]
    if environment.guests:
        used.append((("guests", "image"), environment.guests.image))
    bastion = environment.cloud.access.bastion
    if bastion:
        used.append((("cloud", "access", "bastion", "image"), bastion.image))
    for path, name in used:
        if name not in environment.images:
            near = difflib.get_close_matches(name, environment.images, 1)
            hint = f"did you mean {near[0]}?" if near else f"describe it under images: {name}"
            yield Fault(path, f"there is no image {name}", hint)


@rule("VELA-CLOUD-012", "IBM Cloud can import the images of its servers")
def images_importable(case: Case) -> Iterator[Fault]:
    """Images of hosts and bastion come from object storage as QCOW2 or VHD."""
    environment = case.environment
    for name in names.cloud_images(environment):
        image = environment.images.get(name)
        if image is None or image.href is None:
            continue
        path = ("images", name)
        if not image.href.startswith("cos://"):
            hint = "write cos://REGION/BUCKET/OBJECT.qcow2"
            yield Fault((*path, "href"), "IBM Cloud imports images from cos:// alone", hint)
        elif not image.href.endswith((".qcow2", ".vhd")):
            hint = "the object's name must end in .qcow2 or .vhd, in lower case"
            yield Fault((*path, "href"), f"{image.href} is neither QCOW2 nor VHD", hint)
        if image.operating_system is None:
            hint = "add operating_system: ubuntu-24-04-amd64, or what it is"
            yield Fault(path, f"image {name} needs operating_system", hint, of_key=True)


@rule("VELA-CLOUD-013", "Subnets, images and keys have names that do not clash at IBM")
def names_differ(case: Case) -> Iterator[Fault]:
    """Dots become hyphens in image names at IBM."""
    seen: dict[str, str] = {}
    for name in case.environment.images:
        slug = names.image_cloud_name(case.environment, name)
        if slug in seen:
            message = f"images {seen[slug]} and {name} have the same name at IBM, {slug}"
            yield Fault(("images", name), message, "rename one of them", of_key=True)
        seen.setdefault(slug, name)
