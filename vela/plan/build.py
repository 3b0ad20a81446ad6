"""From environment and hardware to the plan."""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network

from vela.model.environment import Environment, HostOverride
from vela.model.fabric import Fabric
from vela.model.hardware import Hardware, SwitchType
from vela.plan import addresses as at
from vela.plan.types import (
    Attachment,
    Cable,
    ClusterNetworkPlan,
    End,
    HostPlan,
    ImagePlan,
    InterfacePlan,
    Plan,
    Port,
    SubnetPlan,
    SwitchPlan,
)

MANAGEMENT = "management"
CHECKSUM_DIGITS = 8


def build(environment: Environment, hardware: Hardware) -> Plan:
    """Work out the plan of an environment that the rules have passed.

    The same input gives an equal plan; nothing is read but the arguments.
    """
    hosts = tuple(_hosts(environment, hardware))
    switches = tuple(_switches(environment))
    return Plan(
        environment=environment,
        hardware=hardware,
        vpc_name=environment.name,
        tags=tuple(
            dict.fromkeys(["vela", f"vela-environment:{environment.name}", *environment.cloud.tags])
        ),
        subnets=tuple(
            SubnetPlan(name, f"{environment.name}-{name}", environment.cloud.network.subnets[name])
            for name in subnet_order(environment)
        ),
        images=tuple(_images(environment)),
        hosts=hosts,
        switches=switches,
        cables=tuple(_cables(environment, hardware, hosts, switches)),
        cluster_network=_cluster_network(environment),
        bastion_address=(
            at.bastion_address(environment.cloud.network.subnets[MANAGEMENT])
            if environment.cloud.access.bastion
            else None
        ),
    )


def host_name(rack: int, slot: int) -> str:
    """Name of a host, such as ``r07-h02``."""
    return f"r{rack:02d}-h{slot:02d}"


def rack_name(rack: int) -> str:
    """Name of a rack, such as ``r07``."""
    return f"r{rack:02d}"


def subnet_order(environment: Environment) -> list[str]:
    """Names of the subnets, management first: a host's first interface is its primary one."""
    rest = sorted(set(environment.cloud.network.subnets) - {MANAGEMENT})
    return [MANAGEMENT, *rest]


def override(environment: Environment, rack: int, slot: int) -> HostOverride:
    """What is said about a host: its own entry before its rack's."""
    overrides = environment.hosts.overrides
    own = overrides.get(host_name(rack, slot))
    return own or overrides.get(rack_name(rack)) or HostOverride()


@dataclass(frozen=True, slots=True)
class HostState:
    """A place for a host, and what is said about it."""

    rack: int
    slot: int
    state: str
    image: str


def host_states(environment: Environment) -> Iterator[HostState]:
    """Every place for a host, rack by rack, absent ones too."""
    for rack in range(1, environment.hosts.racks + 1):
        for slot in range(1, environment.hosts.per_rack + 1):
            said = override(environment, rack, slot)
            yield HostState(rack, slot, said.state, said.image or environment.hosts.image)


def cloud_images(environment: Environment) -> list[str]:
    """Names of the images that IBM Cloud must hold: those of hosts and bastion, sorted."""
    names = {host.image for host in host_states(environment) if host.state != "absent"}
    if environment.cloud.access.bastion:
        names.add(environment.cloud.access.bastion.image)
    return sorted(names)


def image_cloud_name(environment: Environment, name: str) -> str:
    """Name of an image at IBM, with the first digits of its checksum."""
    digits = (environment.images[name].sha256 or "")[:CHECKSUM_DIGITS]
    return f"{environment.name}-{name.replace('.', '-')}-{digits}"


def _hosts(environment: Environment, hardware: Hardware) -> Iterator[HostPlan]:
    network = environment.cloud.network
    per_rack = network.addresses_per_rack
    subnets = subnet_order(environment)
    for host in host_states(environment):
        if host.state == "absent":
            continue
        name = host_name(host.rack, host.slot)
        cloud_name = f"{environment.name}-{name}"
        yield HostPlan(
            name=name,
            cloud_name=cloud_name,
            rack=host.rack,
            slot=host.slot,
            kind=hardware.server.kind,
            profile=hardware.server.profile,
            image=host.image,
            maintenance=host.state == "maintenance",
            interfaces=tuple(
                InterfacePlan(
                    name=subnet,
                    cloud_name=f"{cloud_name}-{subnet}",
                    subnet=subnet,
                    address=at.host_address(
                        network.subnets[subnet], per_rack, host.rack, host.slot
                    ),
                )
                for subnet in subnets
            ),
            attachments=tuple(_attachments(environment, cloud_name, host)),
        )


def _attachments(
    environment: Environment, cloud_name: str, host: HostState
) -> Iterator[Attachment]:
    cluster = environment.cloud.cluster_network
    if cluster is None:
        return
    for index in range(1, cluster.attachments + 1):
        subnet = at.cluster_subnet(cluster.cidr, index)
        yield Attachment(
            name=f"cluster{index}",
            cloud_name=f"{cloud_name}-cluster{index}",
            subnet=index,
            address=at.cluster_address(subnet, host.rack, host.slot),
        )


def _images(environment: Environment) -> Iterator[ImagePlan]:
    for name in cloud_images(environment):
        image = environment.images[name]
        yield ImagePlan(
            name=name,
            cloud_name=image_cloud_name(environment, name),
            href=image.href,
            operating_system=image.operating_system,
            id=image.id,
        )


def _switches(environment: Environment) -> Iterator[SwitchPlan]:
    fabric = environment.fabric
    if fabric is None:
        return
    network = environment.cloud.network
    management = network.subnets[MANAGEMENT]
    for index in range(1, fabric.spines + 1):
        name = f"spine{index:02d}"
        yield SwitchPlan(
            name=name,
            cloud_name=f"{environment.name}-{name}",
            role="spine",
            rack=None,
            index=index,
            type=fabric.switch.spine,
            management_address=at.spine_address(management, index),
            loopback=at.spine_loopback(fabric.addresses.loopbacks, index),
            asn=fabric.asn.spines,
        )
    for rack in range(1, environment.hosts.racks + 1):
        if (said := environment.hosts.overrides.get(rack_name(rack))) and said.state == "absent":
            continue
        for index in range(1, fabric.leafs_per_rack + 1):
            name = leaf_name(rack, index)
            yield SwitchPlan(
                name=name,
                cloud_name=f"{environment.name}-{name}",
                role="leaf",
                rack=rack,
                index=index,
                type=fabric.switch.leaf,
                management_address=at.leaf_address(
                    management, network.addresses_per_rack, rack, index
                ),
                loopback=at.leaf_loopback(fabric.addresses.loopbacks, rack, index),
                asn=fabric.asn.leafs + (rack - 1) * at.MAX_LEAFS + index - 1,
            )


def leaf_name(rack: int, index: int) -> str:
    """Name of a leaf, such as ``r07-leaf1``."""
    return f"{rack_name(rack)}-leaf{index}"


def _cables(
    environment: Environment,
    hardware: Hardware,
    hosts: tuple[HostPlan, ...],
    switches: tuple[SwitchPlan, ...],
) -> Iterator[Cable]:
    fabric = environment.fabric
    if fabric is None:
        return
    for host in hosts:
        yield from _host_cables(fabric, hardware, host)
    for leaf in switches:
        if leaf.role == "leaf":
            yield from _uplinks(fabric, hardware, leaf)


def _host_cables(fabric: Fabric, hardware: Hardware, host: HostPlan) -> Iterator[Cable]:
    """NIC port p of a host goes to leaf p modulo the leafs: a card's ports to different ones."""
    nics = hardware.server.nics
    if nics is None:
        return
    leaf_type = hardware.switches[fabric.switch.leaf]
    per_leaf = host_ports_per_leaf(fabric, hardware)
    for number in range(1, nics.count * nics.ports + 1):
        leaf = (number - 1) % fabric.leafs_per_rack + 1
        place = (number - 1) // fabric.leafs_per_rack + 1
        near, far = at.host_link(fabric.addresses.hosts, host.rack, host.slot, number)
        yield Cable(
            kind="host",
            speed=fabric.speed,
            a=End(host.name, nic_port(nics.ports, number), near),
            b=End(
                leaf_name(host.rack, leaf),
                port(leaf_type, (host.slot - 1) * per_leaf + place).name,
                far,
            ),
        )


def _uplinks(fabric: Fabric, hardware: Hardware, leaf: SwitchPlan) -> Iterator[Cable]:
    """Leafs count uplinks from their last port down, so that another spine moves none; a
    spine's ports go by leaf, then by cable.
    """
    leaf_type = hardware.switches[fabric.switch.leaf]
    spine_type = hardware.switches[fabric.switch.spine]
    rack = leaf.rack or 0
    last = leaf_type.ports.count
    uplinks = fabric.uplinks_per_spine
    leaf_place = (rack - 1) * fabric.leafs_per_rack + leaf.index - 1
    for spine in range(1, fabric.spines + 1):
        for cable in range(1, uplinks + 1):
            near, far = at.uplink(fabric.addresses.uplinks, rack, leaf.index, spine, cable)
            yield Cable(
                kind="uplink",
                speed=fabric.speed,
                a=End(
                    leaf.name, port(leaf_type, last - (spine - 1) * uplinks - cable + 1).name, near
                ),
                b=End(
                    f"spine{spine:02d}",
                    port(spine_type, leaf_place * uplinks + cable).name,
                    far,
                ),
            )


def host_ports_per_leaf(fabric: Fabric, hardware: Hardware) -> int:
    """Ports that one host takes on one leaf, the most where they do not divide evenly."""
    nics = hardware.server.nics
    return -(-nics.count * nics.ports // fabric.leafs_per_rack) if nics else 0


def nic_port(ports: int, number: int) -> str:
    """Name of a host's fabric port, ``number`` from 1: card and port, both from 0."""
    return f"nic{(number - 1) // ports}p{(number - 1) % ports}"


def port(kind: SwitchType, number: int) -> Port:
    """Front port ``number`` of a switch model."""
    lane = (number - 1) * kind.ports.lanes_per_port
    return Port(number, kind.ports.name.replace("{lane}", str(lane)))


def _cluster_network(environment: Environment) -> ClusterNetworkPlan | None:
    cluster = environment.cloud.cluster_network
    if cluster is None:
        return None

    def subnet(index: int) -> SubnetPlan:
        cidr: IPv4Network = at.cluster_subnet(cluster.cidr, index)
        return SubnetPlan(f"cluster{index}", f"{environment.name}-cluster{index}", cidr)

    return ClusterNetworkPlan(
        cloud_name=f"{environment.name}-cluster",
        profile=cluster.profile,
        cidr=cluster.cidr,
        subnets=tuple(subnet(index) for index in range(1, cluster.attachments + 1)),
    )
