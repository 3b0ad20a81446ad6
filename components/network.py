"""The VPC, its address prefix, ACL, gateway and subnets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import pulumi
import pulumi_ibm as ibm

from components.base import Common, Component
from vela.plan import ClusterNetworkPlan, Outward, SubnetPlan

ANYWHERE = "0.0.0.0/0"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkArgs:
    """Inputs of :class:`Network`.

    Attributes:
        common: Group, zone, tags, protection.
        vpc_name: Name of the VPC at IBM.
        cidr: Address prefix.
        subnets: Subnets.
        management_cidr: Network that SSH may enter.
        public_gateway: Whether subnets reach the internet.
        outward: Connections that nodes may open.
        allow_ssh_from: Networks that it may come from.
    """

    common: Common
    vpc_name: str
    cidr: str
    subnets: Sequence[SubnetPlan]
    management_cidr: str
    public_gateway: bool
    outward: Sequence[Outward]
    allow_ssh_from: Sequence[str]


class Network(Component):
    """VPC and subnets of one zone."""

    vpc: ibm.IsVpc
    subnets: Mapping[str, ibm.IsSubnet]

    def __init__(
        self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Declare them."""
        super().__init__("network:Network", name, opts)
        common = args.common
        self.vpc = ibm.IsVpc(
            f"{name}-vpc",
            name=args.vpc_name,
            address_prefix_management="manual",
            resource_group=common.resource_group,
            tags=common.tags,
            opts=self.child(protect=common.protect),
        )
        prefix = ibm.IsVpcAddressPrefix(
            f"{name}-prefix",
            name=f"{args.vpc_name}-prefix",
            vpc=self.vpc.id,
            zone=common.zone,
            cidr=args.cidr,
            opts=self.child(protect=common.protect),
        )
        acl = ibm.IsNetworkAcl(
            f"{name}-acl",
            name=f"{args.vpc_name}-acl",
            vpc=self.vpc.id,
            resource_group=common.resource_group,
            tags=common.tags,
            rules=acl_rules(args),
            opts=self.child(),
        )
        gateway = (
            ibm.IsPublicGateway(
                f"{name}-gateway",
                name=f"{args.vpc_name}-gateway",
                vpc=self.vpc.id,
                zone=common.zone,
                resource_group=common.resource_group,
                tags=common.tags,
                opts=self.child(),
            )
            if args.public_gateway
            else None
        )
        self.subnets = {
            subnet.name: ibm.IsSubnet(
                f"{name}-{subnet.name}",
                name=subnet.cloud_name,
                vpc=self.vpc.id,
                zone=common.zone,
                ipv4_cidr_block=str(subnet.cidr),
                network_acl=acl.id,
                public_gateway=gateway.id if gateway else None,
                resource_group=common.resource_group,
                tags=common.tags,
                # a literal CIDR gives no edge, and IBM refuses a subnet without its prefix
                opts=self.child(protect=common.protect, depends_on=[prefix]),
            )
            for subnet in args.subnets
        }
        self.register_outputs(
            {"vpc": self.vpc.id, "subnets": {key: s.id for key, s in self.subnets.items()}}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNetworkArgs:
    """Inputs of :class:`ClusterNetwork`."""

    common: Common
    vpc_id: pulumi.Input[str]
    plan: ClusterNetworkPlan


class ClusterNetwork(Component):
    """IBM's RoCE network and its subnets."""

    network_id: pulumi.Output[str]
    subnet_ids: Sequence[pulumi.Output[str]]

    def __init__(
        self, name: str, args: ClusterNetworkArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Declare them."""
        super().__init__("network:ClusterNetwork", name, opts)
        common, plan = args.common, args.plan
        self.network_id = ibm.IsClusterNetwork(
            f"{name}-network",
            name=plan.cloud_name,
            profile=plan.profile,
            vpc=ibm.IsClusterNetworkVpcArgs(id=args.vpc_id),
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


def acl_rules(args: NetworkArgs) -> list[ibm.IsNetworkAclRuleArgs]:
    """Rules of the subnets' ACL, which keeps no state: answers need rules of their own.

    Everything inside the VPC passes (security groups are finer); SSH enters the management
    network from the allow list; what nodes may open outward is answered. The rest is refused.
    """
    rules = [
        _acl_rule("inside-in", "inbound", args.cidr, args.cidr),
        _acl_rule("inside-out", "outbound", args.cidr, args.cidr),
    ]
    ssh, ssh_back = _ports(22)
    for index, source in enumerate(args.allow_ssh_from, start=1):
        rules += [
            _acl_rule(f"ssh-{index}-in", "inbound", source, args.management_cidr, "tcp", ssh),
            _acl_rule(
                f"ssh-{index}-out", "outbound", args.management_cidr, source, "tcp", ssh_back
            ),
        ]
    for index, out in enumerate(args.outward, start=1):
        there, back = _ports(out.port)
        remote = str(out.remote)
        name = f"{out.protocol}-{out.port}-{index}"
        rules += [
            _acl_rule(f"{name}-out", "outbound", args.cidr, remote, out.protocol, there),
            _acl_rule(f"{name}-in", "inbound", remote, args.cidr, out.protocol, back),
        ]
    return [
        *rules,
        _acl_rule("rest-in", "inbound", ANYWHERE, ANYWHERE, action="deny"),
        _acl_rule("rest-out", "outbound", ANYWHERE, ANYWHERE, action="deny"),
    ]


def _ports(port: int) -> tuple[dict[str, int], dict[str, int]]:
    """Port ranges of a connection and of its answers."""
    return (
        {"port_min": port, "port_max": port},
        # systems call from ports above those of services
        {"source_port_min": port, "source_port_max": port, "port_min": 1024, "port_max": 65535},
    )


def _acl_rule(
    name: str,
    direction: str,
    source: str,
    destination: str,
    protocol: Literal["tcp", "udp"] | None = None,
    ports: Mapping[str, int] = MappingProxyType({}),
    *,
    action: str = "allow",
) -> ibm.IsNetworkAclRuleArgs:
    return ibm.IsNetworkAclRuleArgs(
        name=name,
        action=action,
        direction=direction,
        source=source,
        destination=destination,
        tcp=ibm.IsNetworkAclRuleTcpArgs(**ports) if protocol == "tcp" else None,
        udp=ibm.IsNetworkAclRuleUdpArgs(**ports) if protocol == "udp" else None,
    )
