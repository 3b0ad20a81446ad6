"""The whole cluster: composes the components, and exports the one output."""

import pulumi
import pulumi_ibm as ibm

from components.access import Access, AccessArgs, Bastion, BastionArgs
from components.base import Common
from components.fabric import Fabric, FabricArgs
from components.hosts import Host, Rack, RackArgs, Surroundings
from components.images import Images, ImagesArgs
from components.network import ClusterNetwork, ClusterNetworkArgs, Network, NetworkArgs
from components.outputs import cluster_output
from vela.plan import Plan
from vela.plan.names import MANAGEMENT, rack_name


def declare(plan: Plan) -> None:
    """Declare every cloud resource of a plan, and export ``cluster``."""
    environment = plan.environment
    cloud = environment.cloud
    provider = ibm.Provider(
        "ibm",
        region=cloud.region,
        # the engine writes the provider's version at the first run and the bridge's at the
        # second: without this, a preview after the first up would not be empty
        opts=pulumi.ResourceOptions(ignore_changes=["version"]),
    )
    opts = pulumi.ResourceOptions(providers=[provider])
    group = ibm.get_resource_group_output(
        name=cloud.resource_group, opts=pulumi.InvokeOutputOptions(provider=provider)
    )
    common = Common(resource_group=group.id, zone=cloud.zone, tags=plan.tags, protect=cloud.protect)
    management = str(cloud.network.subnets[MANAGEMENT])
    ssh_from = [str(network) for network in cloud.access.allow_ssh_from]
    network = Network(
        "network",
        NetworkArgs(
            common=common,
            vpc_name=plan.vpc_name,
            cidr=str(cloud.network.cidr),
            subnets=plan.subnets,
            management_cidr=management,
            public_gateway=cloud.network.public_gateway,
            outward=plan.outward,
            allow_ssh_from=ssh_from,
        ),
        opts,
    )
    access = Access(
        "access",
        AccessArgs(
            common=common,
            vpc_id=network.vpc.id,
            cloud_name=plan.name,
            management_cidr=management,
            other_cidrs=[str(s.cidr) for s in plan.subnets if s.name != MANAGEMENT],
            ssh_keys=cloud.access.ssh_keys,
            allow_ssh_from=ssh_from,
            behind_bastion=cloud.access.bastion is not None,
            outward=plan.outward,
        ),
        opts,
    )
    images = Images("images", ImagesArgs(common=common, images=plan.images), opts)
    bastion = _bastion(plan, common, network, access, images, opts)
    hosts = _hosts(plan, common, network, access, images, opts)
    fabric = (
        Fabric(
            "fabric",
            FabricArgs(
                switches=plan.switches,
                cables=plan.cables,
                subnet_id=network.subnets[MANAGEMENT].id,
            ),
            opts,
        )
        if plan.switches
        else None
    )
    pulumi.export("cluster", cluster_output(plan, network, images, hosts, fabric, bastion))


def _bastion(
    plan: Plan,
    common: Common,
    network: Network,
    access: Access,
    images: Images,
    opts: pulumi.ResourceOptions,
) -> Bastion | None:
    said = plan.environment.cloud.access.bastion
    if said is None or access.bastion is None:
        return None
    return Bastion(
        "bastion",
        BastionArgs(
            common=common,
            vpc_id=network.vpc.id,
            cloud_name=f"{plan.name}-bastion",
            subnet_id=network.subnets[MANAGEMENT].id,
            address=str(plan.bastion_address),
            group_id=access.bastion.id,
            key_ids=[key.id for key in access.keys.values()],
            image_id=images.ids[said.image],
            profile=said.profile,
        ),
        opts,
    )


def _hosts(
    plan: Plan,
    common: Common,
    network: Network,
    access: Access,
    images: Images,
    opts: pulumi.ResourceOptions,
) -> dict[str, Host]:
    roce = (
        ClusterNetwork(
            "roce",
            ClusterNetworkArgs(common=common, vpc_id=network.vpc.id, plan=plan.cluster_network),
            opts,
        )
        if plan.cluster_network
        else None
    )
    around = Surroundings(
        common=common,
        vpc_id=network.vpc.id,
        subnet_ids={name: subnet.id for name, subnet in network.subnets.items()},
        group_ids=[access.hosts.id, *plan.environment.cloud.access.security_groups],
        key_ids=[key.id for key in access.keys.values()],
        image_ids=images.ids,
        cluster_network_id=roce.network_id if roce else None,
        cluster_subnet_ids=roce.subnet_ids if roce else (),
    )
    hosts: dict[str, Host] = {}
    for number, members in plan.racks.items():
        rack = Rack(
            rack_name(number),
            RackArgs(
                hosts=members,
                around=around,
                placement_name=plan.placement_groups.get(number),
            ),
            opts,
        )
        hosts.update(rack.hosts)
    return hosts
