"""The GPU hosts: bare metal that we virtualise, or virtual servers that IBM does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_ibm as ibm

from components.base import Common, Component
from vela.plan import Attachment, HostPlan, InterfacePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the hosts of a cluster have in common.

    Attributes:
        common: Group, zone, tags, protection.
        vpc_id: The VPC.
        subnet_ids: Subnets by name.
        group_ids: Security groups of every interface.
        key_ids: SSH keys.
        image_ids: Images by name.
        cluster_network_id: IBM's RoCE network, for virtual servers.
        cluster_subnet_ids: Its subnets, attachment by attachment.
    """

    common: Common
    vpc_id: pulumi.Input[str]
    subnet_ids: Mapping[str, pulumi.Input[str]]
    group_ids: Sequence[pulumi.Input[str]]
    key_ids: Sequence[pulumi.Input[str]]
    image_ids: Mapping[str, pulumi.Input[str]]
    cluster_network_id: pulumi.Input[str] | None
    cluster_subnet_ids: Sequence[pulumi.Input[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostArgs:
    """Inputs of :class:`Host`.

    Attributes:
        host: Its plan.
        around: What it shares with the other hosts.
        placement_group_id: Group of the rack, for virtual servers.
    """

    host: HostPlan
    around: Surroundings
    placement_group_id: pulumi.Input[str] | None


class Host(Component):
    """One host with a network interface of its own for each NIC."""

    server_id: pulumi.Output[str]
    interfaces: Mapping[str, ibm.IsVirtualNetworkInterface]

    def __init__(
        self, name: str, args: HostArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Declare it."""
        super().__init__("hosts:Host", name, opts)
        self.interfaces = {
            interface.name: self._interface(name, interface, args)
            for interface in args.host.interfaces
        }
        if args.host.kind == "bare_metal":
            self.server_id = self._bare_metal(name, args)
        else:
            self.server_id = self._virtual_server(name, args)
        self.register_outputs(
            {
                "server": self.server_id,
                "interfaces": {key: vni.id for key, vni in self.interfaces.items()},
            }
        )

    def _interface(
        self, name: str, interface: InterfacePlan, args: HostArgs
    ) -> ibm.IsVirtualNetworkInterface:
        return ibm.IsVirtualNetworkInterface(
            f"{name}-{interface.name}",
            name=interface.cloud_name,
            subnet=args.around.subnet_ids[interface.subnet],
            # auto_delete is left to its default, true: the provider never reads it back
            primary_ip=ibm.IsVirtualNetworkInterfacePrimaryIpArgs(
                address=str(interface.address), name=interface.cloud_name
            ),
            security_groups=args.around.group_ids,
            auto_delete=False,
            allow_ip_spoofing=False,
            enable_infrastructure_nat=True,
            resource_group=args.around.common.resource_group,
            tags=args.around.common.tags,
            opts=self.child(protect=args.around.common.protect),
        )

    def _bare_metal(self, name: str, args: HostArgs) -> pulumi.Output[str]:
        primary, *others = args.host.interfaces
        common = args.around.common
        return ibm.IsBareMetalServer(
            f"{name}-server",
            name=args.host.cloud_name,
            profile=args.host.profile,
            image=args.around.image_ids[args.host.image],
            keys=args.around.key_ids,
            zone=common.zone,
            vpc=args.around.vpc_id,
            primary_network_attachment=ibm.IsBareMetalServerPrimaryNetworkAttachmentArgs(
                name=primary.name,
                virtual_network_interface=(
                    ibm.IsBareMetalServerPrimaryNetworkAttachmentVirtualNetworkInterfaceArgs(
                        id=self.interfaces[primary.name].id
                    )
                ),
            ),
            network_attachments=[
                ibm.IsBareMetalServerNetworkAttachmentArgs(
                    name=other.name,
                    virtual_network_interfaces=[
                        ibm.IsBareMetalServerNetworkAttachmentVirtualNetworkInterfaceArgs(
                            id=self.interfaces[other.name].id
                        )
                    ],
                )
                for other in others
            ],
            resource_group=common.resource_group,
            tags=common.tags,
            timeouts=ibm.IsBareMetalServerTimeoutsArgs(create="60m", update="60m", delete="60m"),
            # the provider answers a change of any of these by stopping the host and writing
            # its disks anew; user data is never read back either
            opts=self.child(protect=common.protect, ignore_changes=["image", "keys", "userData"]),
        ).id

    def _virtual_server(self, name: str, args: HostArgs) -> pulumi.Output[str]:
        primary, *others = args.host.interfaces
        common = args.around.common
        return ibm.IsInstance(
            f"{name}-server",
            name=args.host.cloud_name,
            profile=args.host.profile,
            image=args.around.image_ids[args.host.image],
            keys=args.around.key_ids,
            zone=common.zone,
            vpc=args.around.vpc_id,
            placement_group=args.placement_group_id,
            primary_network_attachment=ibm.IsInstancePrimaryNetworkAttachmentArgs(
                name=primary.name,
                virtual_network_interface=(
                    ibm.IsInstancePrimaryNetworkAttachmentVirtualNetworkInterfaceArgs(
                        id=self.interfaces[primary.name].id
                    )
                ),
            ),
            network_attachments=[
                ibm.IsInstanceNetworkAttachmentArgs(
                    name=other.name,
                    virtual_network_interface=(
                        ibm.IsInstanceNetworkAttachmentVirtualNetworkInterfaceArgs(
                            id=self.interfaces[other.name].id
                        )
                    ),
                )
                for other in others
            ],
            cluster_network_attachments=[
                ibm.IsInstanceClusterNetworkAttachmentArgs(
                    name=attachment.name,
                    cluster_network_interface=(
                        ibm.IsInstanceClusterNetworkAttachmentClusterNetworkInterfaceArgs(
                            id=self._cluster_interface(name, attachment, args)
                        )
                    ),
                )
                for attachment in args.host.attachments
            ],
            resource_group=common.resource_group,
            tags=common.tags,
            # IBM says that a server with eight GPUs takes some 20 minutes to start
            timeouts=ibm.IsInstanceTimeoutsArgs(create="60m", update="60m", delete="60m"),
            # a new image or user data would replace the server; keys are read at first boot
            opts=self.child(protect=common.protect, ignore_changes=["image", "keys", "userData"]),
        ).id

    def _cluster_interface(
        self, name: str, attachment: Attachment, args: HostArgs
    ) -> pulumi.Output[str]:
        return ibm.IsClusterNetworkInterface(
            f"{name}-{attachment.name}",
            name=attachment.cloud_name,
            cluster_network_id=args.around.cluster_network_id,
            subnet=ibm.IsClusterNetworkInterfaceSubnetArgs(
                id=args.around.cluster_subnet_ids[attachment.subnet - 1]
            ),
            primary_ip=ibm.IsClusterNetworkInterfacePrimaryIpArgs(
                # auto_delete as above
                address=str(attachment.address),
                name=attachment.cloud_name,
            ),
            opts=self.child(protect=args.around.common.protect),
        ).cluster_network_interface_id


@dataclass(frozen=True, slots=True, kw_only=True)
class RackArgs:
    """Inputs of :class:`Rack`.

    Attributes:
        hosts: Plans of its hosts.
        around: What they share with the hosts of other racks.
        placement_name: Name at IBM of its placement group, for virtual servers.
    """

    hosts: Sequence[HostPlan]
    around: Surroundings
    placement_name: str | None


class Rack(Component):
    """A rack: the hosts that fail together."""

    hosts: Mapping[str, Host]

    def __init__(
        self, name: str, args: RackArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Declare its hosts; virtual servers of a rack are spread over IBM's hosts."""
        super().__init__("hosts:Rack", name, opts)
        common = args.around.common
        placement_id = (
            ibm.IsPlacementGroup(
                f"{name}-placement",
                name=args.placement_name,
                strategy="host_spread",
                resource_group=common.resource_group,
                tags=common.tags,
                opts=self.child(),
            ).id
            if args.placement_name
            else None
        )
        self.hosts = {
            host.name: Host(
                host.name,
                HostArgs(host=host, around=args.around, placement_group_id=placement_id),
                self.child(),
            )
            for host in args.hosts
        }
        self.register_outputs({"hosts": {key: host.server_id for key, host in self.hosts.items()}})
