"""Who may reach what: SSH keys, security groups, and an optional bastion."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_ibm as ibm

from components.base import Common, Component
from vela.plan import Outward


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessArgs:
    """Inputs of :class:`Access`.

    Attributes:
        common: Group, zone, tags, protection.
        vpc_id: The VPC.
        cloud_name: First part of names at IBM.
        management_cidr: Network that the playbooks reach nodes in.
        other_cidrs: The other subnets of hosts, such as storage.
        ssh_keys: Public keys by name.
        allow_ssh_from: Networks whose SSH may enter.
        behind_bastion: Whether hosts take SSH from the bastion alone.
        outward: Connections that hosts and bastion may open.
    """

    common: Common
    vpc_id: pulumi.Input[str]
    cloud_name: str
    management_cidr: str
    other_cidrs: Sequence[str]
    ssh_keys: Mapping[str, str]
    allow_ssh_from: Sequence[str]
    behind_bastion: bool
    outward: Sequence[Outward]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a security group; ``remote`` is a network, or the role of a group of ours."""

    direction: str
    protocol: str
    ports: tuple[int, int] | None
    remote: str

    @property
    def slug(self) -> str:
        """Logical name from every part: the provider refuses to update the protocol."""
        ports = "" if self.ports is None else "-" + "-".join(str(p) for p in self.ports)
        remote = self.remote.replace("/", "-").replace(".", "-")
        return f"{self.direction}-{self.protocol}{ports}-{remote}"


class Access(Component):
    """SSH keys and security groups."""

    keys: Mapping[str, ibm.IsSshKey]
    hosts: ibm.IsSecurityGroup
    bastion: ibm.IsSecurityGroup | None

    def __init__(
        self, name: str, args: AccessArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Declare them."""
        super().__init__("access:Access", name, opts)
        common = args.common
        self.keys = {
            key: ibm.IsSshKey(
                f"{name}-key-{key}",
                name=f"{args.cloud_name}-{key}",
                public_key=material,
                type="ed25519" if material.startswith("ssh-ed25519") else "rsa",
                resource_group=common.resource_group,
                tags=common.tags,
                opts=self.child(),
            )
            for key, material in args.ssh_keys.items()
        }
        rules = {"hosts": host_rules(args)}
        if args.behind_bastion:
            rules["bastion"] = bastion_rules(args)
        groups = {role: self._group(name, role, args) for role in rules}
        for role, said in rules.items():
            self._rules(f"{name}-{role}", groups[role], said, groups)
        self.hosts = groups["hosts"]
        self.bastion = groups.get("bastion")
        self.register_outputs(
            {
                "keys": {key: k.id for key, k in self.keys.items()},
                "groups": {role: group.id for role, group in groups.items()},
            }
        )

    def _group(self, name: str, role: str, args: AccessArgs) -> ibm.IsSecurityGroup:
        return ibm.IsSecurityGroup(
            f"{name}-{role}",
            name=f"{args.cloud_name}-{role}",
            vpc=args.vpc_id,
            resource_group=args.common.resource_group,
            tags=args.common.tags,
            opts=self.child(),
        )

    def _rules(
        self,
        name: str,
        group: ibm.IsSecurityGroup,
        rules: Sequence[Rule],
        groups: Mapping[str, ibm.IsSecurityGroup],
    ) -> None:
        for rule in rules:
            ibm.IsSecurityGroupRule(
                f"{name}-{rule.slug}",
                group=group.id,
                direction=rule.direction,
                protocol=rule.protocol,
                port_min=rule.ports[0] if rule.ports else None,
                port_max=rule.ports[1] if rule.ports else None,
                remote=groups[rule.remote].id if rule.remote in groups else rule.remote,
                opts=self.child(),
            )


def _outward(args: AccessArgs) -> list[Rule]:
    return [
        Rule("outbound", out.protocol, (out.port, out.port), str(out.remote))
        for out in args.outward
    ]


def host_rules(args: AccessArgs) -> list[Rule]:
    """Rules of every host interface.

    SSH for the playbooks, from the bastion, or from the allow list where there is none. Hosts
    trust each other, since jobs open ports of their choice between them (NCCL's bootstrap,
    parallel file systems). Servers of the storage networks are no members, and are only called.
    """
    entries = ["bastion"] if args.behind_bastion else args.allow_ssh_from
    return [
        *(Rule("inbound", "tcp", (22, 22), source) for source in entries),
        Rule("inbound", "icmp_tcp_udp", None, "hosts"),
        Rule("outbound", "icmp_tcp_udp", None, "hosts"),
        *(Rule("outbound", "icmp_tcp_udp", None, cidr) for cidr in args.other_cidrs),
        *_outward(args),
    ]


def bastion_rules(args: AccessArgs) -> list[Rule]:
    """SSH in from the allow list, SSH on to hosts and switches, and updates.

    Switches have an address in the management network and no interface that could be a member.
    """
    return [
        *(Rule("inbound", "tcp", (22, 22), source) for source in args.allow_ssh_from),
        Rule("outbound", "tcp", (22, 22), args.management_cidr),
        *_outward(args),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class BastionArgs:
    """Inputs of :class:`Bastion`.

    Attributes:
        common: Group, zone, tags, protection.
        vpc_id: The VPC.
        cloud_name: Its name at IBM.
        subnet_id: Management subnet.
        address: Its address there.
        group_id: Its security group.
        key_ids: SSH keys.
        image_id: Image.
        profile: Profile of the virtual server.
    """

    common: Common
    vpc_id: pulumi.Input[str]
    cloud_name: str
    subnet_id: pulumi.Input[str]
    address: str
    group_id: pulumi.Input[str]
    key_ids: Sequence[pulumi.Input[str]]
    image_id: pulumi.Input[str]
    profile: str


class Bastion(Component):
    """A small virtual server with a floating IP: the only way in by SSH."""

    address: pulumi.Output[str]

    def __init__(
        self, name: str, args: BastionArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Declare it."""
        super().__init__("access:Bastion", name, opts)
        common = args.common
        interface = ibm.IsVirtualNetworkInterface(
            f"{name}-interface",
            name=args.cloud_name,
            subnet=args.subnet_id,
            security_groups=[args.group_id],
            # auto_delete is left to its default, true: the provider never reads it back
            primary_ip=ibm.IsVirtualNetworkInterfacePrimaryIpArgs(
                address=args.address, name=args.cloud_name
            ),
            auto_delete=False,
            allow_ip_spoofing=False,
            enable_infrastructure_nat=True,
            resource_group=common.resource_group,
            tags=common.tags,
            opts=self.child(),
        )
        ibm.IsInstance(
            f"{name}-server",
            name=args.cloud_name,
            profile=args.profile,
            image=args.image_id,
            zone=common.zone,
            vpc=args.vpc_id,
            keys=args.key_ids,
            primary_network_attachment=ibm.IsInstancePrimaryNetworkAttachmentArgs(
                name="primary",
                virtual_network_interface=(
                    ibm.IsInstancePrimaryNetworkAttachmentVirtualNetworkInterfaceArgs(
                        id=interface.id
                    )
                ),
            ),
            resource_group=common.resource_group,
            tags=common.tags,
            # keys and user data are read at first boot alone; a new image means a new bastion
            opts=self.child(ignore_changes=["keys", "userData"]),
        )
        floating = ibm.IsFloatingIp(
            f"{name}-address",
            name=args.cloud_name,
            target=interface.id,
            resource_group=common.resource_group,
            tags=common.tags,
            opts=self.child(),
        )
        self.address = floating.address
        self.register_outputs({"address": self.address})
