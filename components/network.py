"""The VPC, its address prefix, ACL, gateway and subnets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_ibm as ibm

from components.base import Common, Component
from vela.plan import SubnetPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkArgs:
    """Inputs of :class:`Network`.

    Attributes:
        common: Group, zone, tags, protection.
        vpc_name: Name of the VPC at IBM.
        cidr: Address prefix.
        subnets: Subnets.
        public_gateway: Whether subnets reach the internet.
        allow_ssh_from: Networks whose SSH may enter.
    """

    common: Common
    vpc_name: str
    cidr: str
    subnets: Sequence[SubnetPlan]
    public_gateway: bool
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
            rules=acl_rules(args.cidr, args.allow_ssh_from, args.public_gateway),
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


def acl_rules(
    cidr: str, allow_ssh_from: Sequence[str], outward: bool
) -> list[ibm.IsNetworkAclRuleArgs]:
    """Rules of the subnets' ACL, which keeps no state: answers need rules of their own.

    Everything inside the VPC passes (security groups are finer); SSH enters from the allow
    list; with a gateway, connections that began inside may be answered. The rest is refused.
    """

    def rule(
        name: str, direction: str, source: str, destination: str, action: str = "allow"
    ) -> ibm.IsNetworkAclRuleArgs:
        return ibm.IsNetworkAclRuleArgs(
            name=name,
            action=action,
            direction=direction,
            source=source,
            destination=destination,
        )

    def tcp(
        name: str, direction: str, source: str, destination: str, ports: Mapping[str, int]
    ) -> ibm.IsNetworkAclRuleArgs:
        return ibm.IsNetworkAclRuleArgs(
            name=name,
            action="allow",
            direction=direction,
            source=source,
            destination=destination,
            tcp=ibm.IsNetworkAclRuleTcpArgs(**ports),
        )

    anywhere = "0.0.0.0/0"
    answers = {"port_min": 1024, "port_max": 65535}
    ssh = {"port_min": 22, "port_max": 22}
    ssh_back = {"source_port_min": 22, "source_port_max": 22}
    rules = [
        rule("inside-in", "inbound", cidr, cidr),
        rule("inside-out", "outbound", cidr, cidr),
        # DNS, time and IBM's package mirrors (ibm-cloud-docs/vpc, service endpoints)
        *(
            part
            for index, services in enumerate(IBM_SERVICES, start=1)
            for part in (
                rule(f"services-{index}-in", "inbound", services, cidr),
                rule(f"services-{index}-out", "outbound", cidr, services),
            )
        ),
    ]
    for index, source in enumerate(allow_ssh_from, start=1):
        rules.append(tcp(f"ssh-{index}-in", "inbound", source, cidr, ssh))
        rules.append(tcp(f"ssh-{index}-out", "outbound", cidr, source, ssh_back))
    if outward:
        rules.append(tcp("answers-in", "inbound", anywhere, cidr, answers))
        rules.append(
            tcp("https-out", "outbound", cidr, anywhere, {"port_min": 443, "port_max": 443})
        )
    rules.append(rule("rest-in", "inbound", anywhere, anywhere, "deny"))
    rules.append(rule("rest-out", "outbound", anywhere, anywhere, "deny"))
    return rules


IBM_SERVICES = ("161.26.0.0/16", "166.8.0.0/14")
"""IaaS and service endpoints of IBM Cloud, reached inside its own network."""
