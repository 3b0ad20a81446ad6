"""The fabric section of the environment file: leaf and spine switches."""

from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import Field

from vela.model.change import Change
from vela.model.types import Bytes, Gbps, Network, Record, Says, TypeName


class SwitchTypes(Record):
    """Switch models, files in hardware/."""

    leaf: Annotated[TypeName, Says(Change.REPROVISION, "Model of the leafs.")]
    spine: Annotated[TypeName, Says(Change.REPROVISION, "Model of the spines.")]


class Ecn(Record):
    """Marking thresholds of the lossless queue, in bytes of its depth."""

    min: Annotated[Bytes, Says(Change.FABRIC_DRAIN, "Depth at which marking begins.")] = 150_000
    max: Annotated[Bytes, Says(Change.FABRIC_DRAIN, "Depth from which all is marked.")] = 1_500_000


class Roce(Record):
    """The lossless class. Both ends of every cable are configured from these values."""

    priority: Annotated[
        int,
        Says(Change.FABRIC_DRAIN, "PFC priority, traffic class, priority group and queue."),
        Field(ge=0, le=7),
    ] = 3
    dscp: Annotated[int, Says(Change.FABRIC_DRAIN, "DSCP of RoCE data."), Field(ge=0, le=63)] = 26
    cnp_dscp: Annotated[
        int, Says(Change.FABRIC_DRAIN, "DSCP of congestion notifications."), Field(ge=0, le=63)
    ] = 48
    cnp_priority: Annotated[
        int,
        Says(Change.FABRIC_DRAIN, "Strict queue of congestion notifications."),
        Field(ge=0, le=7),
    ] = 6
    ecn: Annotated[Ecn, Says(Change.FABRIC_DRAIN, "Marking thresholds.")] = Ecn()


class FabricAddresses(Record):
    """Networks of the fabric, outside the VPC. Each rack has a fixed part of each."""

    uplinks: Annotated[
        Network, Says(Change.FABRIC_DRAIN, "/31 links between leafs and spines.")
    ] = IPv4Network("10.192.0.0/14")
    loopbacks: Annotated[
        Network, Says(Change.FABRIC_DRAIN, "Loopbacks of the switches, /32 each.")
    ] = IPv4Network("10.196.0.0/16")
    hosts: Annotated[Network, Says(Change.FABRIC_DRAIN, "/31 links between hosts and leafs.")] = (
        IPv4Network("10.200.0.0/13")
    )


class Asns(Record):
    """Four-byte private AS numbers (RFC 6996: 4200000000 to 4294967294)."""

    spines: Annotated[
        int,
        Says(Change.FABRIC_DRAIN, "AS of all spines: leafs can then never be transit."),
        Field(ge=4_200_000_000, le=4_294_967_294),
    ] = 4_200_000_000
    leafs: Annotated[
        int,
        Says(Change.FABRIC_DRAIN, "AS of the first leaf; each leaf has its own."),
        Field(ge=4_200_000_000, le=4_294_900_000),
    ] = 4_200_001_000


class Fabric(Record):
    """A two-level Clos of leaf and spine switches."""

    os: Annotated[
        Literal["sonic", "cumulus", "eos"], Says(Change.REPROVISION, "Network operating system.")
    ]
    switch: Annotated[SwitchTypes, Says(Change.REPROVISION, "Switch models.")]
    spines: Annotated[int, Says(Change.FABRIC_DRAIN, "Spines."), Field(ge=1, le=16)]
    leafs_per_rack: Annotated[
        int, Says(Change.FABRIC_DRAIN, "Leafs in each rack."), Field(ge=1, le=8)
    ] = 2
    uplinks_per_spine: Annotated[
        int, Says(Change.FABRIC_DRAIN, "Cables from each leaf to each spine."), Field(ge=1, le=4)
    ] = 1
    speed: Annotated[Gbps, Says(Change.FABRIC_DRAIN, "Speed of every port.", "100G")]
    mtu: Annotated[
        int, Says(Change.FABRIC_DRAIN, "MTU of every switch port, bytes."), Field(ge=1500, le=9216)
    ] = 9216
    roce: Annotated[Roce, Says(Change.FABRIC_DRAIN, "The lossless class.")] = Roce()
    addresses: Annotated[FabricAddresses, Says(Change.FABRIC_DRAIN, "Networks of the fabric.")] = (
        FabricAddresses()
    )
    asn: Annotated[Asns, Says(Change.FABRIC_DRAIN, "AS numbers.")] = Asns()
