"""Hardware records: one server or switch model each, figures with their source."""

from typing import Annotated, Literal

from pydantic import Field

from vela.model.change import Change
from vela.model.types import Bytes, Gbps, Record, Says, TypeName


class _Figure(Says):
    """A figure of the hardware: it changes with the machine alone."""

    def __init__(self, text: str) -> None:
        super().__init__(Change.REPROVISION, text)


Count = Annotated[int, Field(ge=1, le=4096)]


class Cpu(Record):
    """Processors of a server."""

    vendor: Annotated[Literal["intel", "amd"], _Figure("Maker; decides IOMMU parameters.")]
    sockets: Annotated[Count, _Figure("Sockets.")]
    cores_per_socket: Annotated[Count, _Figure("Cores of a socket.")]
    threads_per_core: Annotated[Count, _Figure("Threads of a core.")]

    @property
    def threads(self) -> int:
        """Hardware threads of the server."""
        return self.sockets * self.cores_per_socket * self.threads_per_core


class Gpus(Record):
    """GPUs of a server."""

    model: Annotated[str, _Figure("Model.")]
    count: Annotated[Count, _Figure("GPUs in the server.")]


class Nics(Record):
    """Network cards on the RoCE fabric; those of the cloud network are not counted."""

    model: Annotated[str, _Figure("Model.")]
    count: Annotated[Count, _Figure("Cards in the server.")]
    ports: Annotated[Count, _Figure("Ports of a card.")]
    speed: Annotated[Gbps, _Figure("Speed of a port.")]


class ServerType(Record):
    """A server model, or a virtual server profile of IBM Cloud."""

    schema_version: Annotated[Literal[1], _Figure("Version of this format."), Field(alias="schema")]
    title: Annotated[str, _Figure("What it is, for people.")]
    kind: Annotated[
        Literal["bare_metal", "virtual_server"],
        _Figure("`virtual_server`: IBM runs hypervisor and fabric."),
    ]
    profile: Annotated[str, _Figure("Profile of IBM Cloud that is ordered.")]
    cpu: Annotated[Cpu, _Figure("Processors.")]
    memory: Annotated[Bytes, _Figure("Memory.")]
    gpus: Annotated[Gpus | None, _Figure("GPUs.")] = None
    nics: Annotated[Nics | None, _Figure("Cards on the RoCE fabric that we cable.")] = None
    sources: Annotated[
        dict[str, str], _Figure("Source of each figure by its key, or `assumed` and why.")
    ]


class SwitchPorts(Record):
    """Front ports, numbered from 1 as on the box."""

    count: Annotated[Count, _Figure("Ports.")]
    speed: Annotated[Gbps, _Figure("Speed of a port.")]
    name: Annotated[
        str,
        _Figure("Name in the operating system; `{lane}` is replaced."),
        Field(pattern=r"^[A-Za-z/_-]*\{lane\}[A-Za-z/_-]*$"),
    ]
    lanes_per_port: Annotated[Count, _Figure("Step of `{lane}` from port to port.")]


class SwitchType(Record):
    """A switch model."""

    schema_version: Annotated[Literal[1], _Figure("Version of this format."), Field(alias="schema")]
    title: Annotated[str, _Figure("What it is, for people.")]
    os: Annotated[
        tuple[Literal["sonic", "cumulus", "eos"], ...], _Figure("Operating systems it runs.")
    ]
    hwsku: Annotated[str, _Figure("SONiC's name of the hardware (HWSKU).")]
    ports: Annotated[SwitchPorts, _Figure("Front ports.")]
    sources: Annotated[
        dict[str, str], _Figure("Source of each figure by its key, or `assumed` and why.")
    ]


class Hardware(Record):
    """The hardware records that an environment names, by file name."""

    server: Annotated[ServerType, _Figure("The hosts' type.")]
    switches: Annotated[dict[TypeName, SwitchType], _Figure("The switches' types.")]
