"""Shapes of the plan: frozen records that templates, components and reports only place."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Literal

from vela.model.environment import Environment
from vela.model.hardware import Hardware
from vela.plan.system import HostSystem


@dataclass(frozen=True, slots=True)
class SubnetPlan:
    """A subnet of the VPC; ``cloud_name`` is its name at IBM."""

    name: str
    cloud_name: str
    cidr: IPv4Network


@dataclass(frozen=True, slots=True)
class ImagePlan:
    """An image that hosts or the bastion boot from.

    Attributes:
        name: Name in the environment.
        cloud_name: Name at IBM, with the first digits of the checksum: IBM never reads
            ``href`` again, so new content needs a new name.
        href: Where it lies, or None when ``id`` names one that IBM holds.
        operating_system: IBM's name of its system.
        id: Id of an existing image, or None.
    """

    name: str
    cloud_name: str
    href: str | None
    operating_system: str | None
    id: str | None


@dataclass(frozen=True, slots=True)
class InterfacePlan:
    """A cloud network interface of a host; the first of a host is its primary one."""

    name: str
    cloud_name: str
    subnet: str
    address: IPv4Address


@dataclass(frozen=True, slots=True)
class Attachment:
    """An attachment of a virtual server to a subnet of the cluster network."""

    name: str
    cloud_name: str
    subnet: int
    address: IPv4Address


@dataclass(frozen=True, slots=True)
class HostPlan:
    """A host; ``rack`` and ``slot`` count from 1, ``absent`` ones are not in the plan."""

    name: str
    cloud_name: str
    rack: int
    slot: int
    kind: Literal["bare_metal", "virtual_server"]
    profile: str
    image: str
    maintenance: bool
    interfaces: tuple[InterfacePlan, ...]
    attachments: tuple[Attachment, ...]

    @property
    def management_address(self) -> IPv4Address:
        """Address that the playbooks reach the host at."""
        return self.interfaces[0].address


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a switch: number on the box from 1, name in its operating system."""

    number: int
    name: str


@dataclass(frozen=True, slots=True)
class SwitchPlan:
    """A leaf or spine; ``rack`` is None for a spine, ``index`` counts from 1."""

    name: str
    cloud_name: str
    role: Literal["leaf", "spine"]
    rack: int | None
    index: int
    type: str
    management_address: IPv4Address
    loopback: IPv4Address
    asn: int


@dataclass(frozen=True, slots=True)
class End:
    """One end of a cable: node, its port, and its address with the link's prefix."""

    node: str
    port: str
    address: IPv4Interface


@dataclass(frozen=True, slots=True)
class Cable:
    """A cable, and the /31 link on it. ``a`` is the lower tier: host or leaf."""

    kind: Literal["host", "uplink"]
    speed: int
    a: End
    b: End


@dataclass(frozen=True, slots=True)
class ClusterNetworkPlan:
    """IBM's RoCE network: one subnet for each attachment of a server."""

    cloud_name: str
    profile: str
    cidr: IPv4Network
    subnets: tuple[SubnetPlan, ...]


@dataclass(frozen=True, slots=True)
class Outward:
    """A connection that nodes may open: to a port of any address in ``remote``."""

    protocol: Literal["tcp", "udp"]
    port: int
    remote: IPv4Network


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that follows from one environment and its hardware.

    ``placement_groups`` has a name at IBM for each rack of virtual servers, which IBM spreads
    over its hosts; bare metal has none.
    """

    environment: Environment
    hardware: Hardware
    vpc_name: str
    outward: tuple[Outward, ...]
    tags: tuple[str, ...]
    subnets: tuple[SubnetPlan, ...]
    images: tuple[ImagePlan, ...]
    hosts: tuple[HostPlan, ...]
    switches: tuple[SwitchPlan, ...]
    cables: tuple[Cable, ...]
    cluster_network: ClusterNetworkPlan | None
    placement_groups: Mapping[int, str]
    bastion_address: IPv4Address | None
    system: HostSystem | None

    @property
    def name(self) -> str:
        """Name of the environment."""
        return self.environment.name

    @property
    def racks(self) -> Mapping[int, tuple[HostPlan, ...]]:
        """Hosts by rack, racks in order, empty ones left out."""
        racks: dict[int, list[HostPlan]] = {}
        for host in self.hosts:
            racks.setdefault(host.rack, []).append(host)
        return {rack: tuple(hosts) for rack, hosts in racks.items()}

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of all hosts and switches."""
        return (*(host.name for host in self.hosts), *(switch.name for switch in self.switches))
