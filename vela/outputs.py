"""Contract 1: what the Pulumi program exports as ``cluster``.

The program and its readers share these types. They carry no secrets, so that configure and
drift work from the saved file alone, without the Pulumi command line and its passphrase.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class _Output(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class VpcOutput(_Output):
    """The VPC: its id and cloud resource name (CRN)."""

    id: str
    crn: str
    name: str


class SubnetOutput(_Output):
    """One subnet; ``cidr`` is a network in CIDR notation."""

    id: str
    cidr: str


class InterfaceOutput(_Output):
    """One cloud network interface of a host.

    Attributes:
        id: Id of the virtual network interface.
        address: IPv4 address.
        mac: MAC address, six octets with colons.
    """

    id: str
    address: str
    mac: str


class HostOutput(_Output):
    """One host; ``interfaces`` by subnet name, ``rack`` counted from 1."""

    id: str
    kind: Literal["bare_metal", "virtual_server"]
    rack: int
    management_address: str
    interfaces: dict[str, InterfaceOutput]


class SwitchOutput(_Output):
    """One leaf or spine; ``rack`` is None for a spine."""

    role: Literal["leaf", "spine"]
    rack: int | None
    management_address: str
    asn: int
    loopback: str


class CableEndOutput(_Output):
    """One end of a cable."""

    node: str
    port: str


class CableOutput(_Output):
    """One cable between two ports."""

    a: CableEndOutput
    b: CableEndOutput


class ClusterOutputs(_Output):
    """Everything that the cloud decided and the playbooks need."""

    schema_version: Literal[1] = Field(alias="schema")
    environment: str
    vpc: VpcOutput
    subnets: dict[str, SubnetOutput]
    images: dict[str, str]
    hosts: dict[str, HostOutput]
    switches: dict[str, SwitchOutput]
    cables: list[CableOutput]
    bastion_address: str | None
