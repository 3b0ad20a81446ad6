"""From environment and hardware to the plan."""

from collections.abc import Iterator

from vela.model.environment import Environment
from vela.model.hardware import Hardware
from vela.plan import addresses as at
from vela.plan.cables import cables
from vela.plan.names import (
    MANAGEMENT,
    HostState,
    cloud_images,
    host_name,
    host_states,
    image_cloud_name,
    leaf_name,
    rack_name,
    spine_name,
    subnet_order,
)
from vela.plan.outward import outward
from vela.plan.system import host_system
from vela.plan.types import (
    Attachment,
    ClusterNetworkPlan,
    HostPlan,
    ImagePlan,
    InterfacePlan,
    Plan,
    SubnetPlan,
    SwitchPlan,
)


def build(environment: Environment, hardware: Hardware) -> Plan:
    """Work out the plan of an environment that the rules have passed.

    The same input gives an equal plan; nothing is read but the arguments.
    """
    hosts = tuple(_hosts(environment, hardware))
    switches = tuple(_switches(environment, {host.rack for host in hosts}))
    return Plan(
        environment=environment,
        hardware=hardware,
        vpc_name=environment.name,
        outward=outward(environment),
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
        cables=tuple(cables(environment.fabric, hardware, hosts, switches))
        if environment.fabric
        else (),
        cluster_network=_cluster_network(environment),
        placement_groups={
            host.rack: f"{environment.name}-{rack_name(host.rack)}"
            for host in hosts
            if host.kind == "virtual_server"
        },
        bastion_address=(
            at.bastion_address(environment.cloud.network.subnets[MANAGEMENT])
            if environment.cloud.access.bastion
            else None
        ),
        system=host_system(environment, hardware),
    )


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


def _switches(environment: Environment, occupied: set[int]) -> Iterator[SwitchPlan]:
    fabric = environment.fabric
    if fabric is None:
        return
    network = environment.cloud.network
    management = network.subnets[MANAGEMENT]
    for index in range(1, fabric.spines + 1):
        name = spine_name(index)
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
        said = environment.hosts.overrides.get(rack_name(rack))
        # a host's own entry may keep it in an absent rack, and it needs its leafs
        if said and said.state == "absent" and rack not in occupied:
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


def _cluster_network(environment: Environment) -> ClusterNetworkPlan | None:
    cluster = environment.cloud.cluster_network
    if cluster is None:
        return None

    def subnet(index: int) -> SubnetPlan:
        cidr = at.cluster_subnet(cluster.cidr, index)
        return SubnetPlan(f"cluster{index}", f"{environment.name}-cluster{index}", cidr)

    return ClusterNetworkPlan(
        cloud_name=f"{environment.name}-cluster",
        profile=cluster.profile,
        cidr=cluster.cidr,
        subnets=tuple(subnet(index) for index in range(1, cluster.attachments + 1)),
    )
