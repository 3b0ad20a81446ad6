"""The whole cluster: composes the components, and exports the one output."""

import pulumi
import pulumi_ibm as ibm

from components.access import Access, AccessArgs, Bastion, BastionArgs
from components.base import Common, Component
from components.fabric import Fabric, FabricArgs
from components.hosts import Host, HostArgs, Rack, RackArgs
from components.images import Images, ImagesArgs
from components.network import Network, NetworkArgs
from components.outputs import cluster_output
from vela.plan import ClusterNetworkPlan, Plan
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
    ssh_from = [str(network) for network in cloud.access.allow_ssh_from]
    network = Network(
        "network",
        NetworkArgs(
            common=common,
            vpc_name=plan.vpc_name,
            cidr=str(cloud.network.cidr),
            subnets=plan.subnets,
            public_gateway=cloud.network.public_gateway,
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
            cidr=str(cloud.network.cidr),
            management_cidr=str(cloud.network.subnets[MANAGEMENT]),
            ssh_keys=cloud.access.ssh_keys,
            allow_ssh_from=ssh_from,
            behind_bastion=cloud.access.bastion is not None,
            outward=cloud.network.public_gateway,
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
        ClusterNetwork("roce", common, network.vpc.id, plan.cluster_network, opts)
        if plan.cluster_network
        else None
    )
    template = HostArgs(
        common=common,
        host=plan.hosts[0],
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
                template=template,
                placement_name=f"{plan.name}-{rack_name(number)}",
            ),
            opts,
        )
        hosts.update(rack.hosts)
    return hosts


class ClusterNetwork(Component):
    """IBM's RoCE network and its subnets."""

    network_id: pulumi.Output[str]
    subnet_ids: list[pulumi.Output[str]]

    def __init__(
        self,
        name: str,
        common: Common,
        vpc_id: pulumi.Input[str],
        plan: ClusterNetworkPlan,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare them."""
        super().__init__("network:ClusterNetwork", name, opts)
        self.network_id = ibm.IsClusterNetwork(
            f"{name}-network",
            name=plan.cloud_name,
            profile=plan.profile,
            vpc=ibm.IsClusterNetworkVpcArgs(id=vpc_id),
            zone=common.zone,
            subnet_prefixes=ibm.IsClusterNetworkSubnetPrefixesArgs(cidr=str(plan.cidr)),
            resource_group=common.resource_group,
            opts=self.child(protect=common.protect),
        ).id
        self.subnet_ids = [
            ibm.IsClusterNetworkSubnet(
                f"{name}-{subnet.name}",
                name=subnet.cloud_name,
                cluster_network_id=self.network_id,
                ipv4_cidr_block=str(subnet.cidr),
                opts=self.child(protect=common.protect),
            ).cluster_network_subnet_id
            for subnet in plan.subnets
        ]
        self.register_outputs({"network": self.network_id, "subnets": self.subnet_ids})
