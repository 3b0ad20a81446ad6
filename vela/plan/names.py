"""Names of things, and which hosts are there."""

from collections.abc import Iterator
from dataclasses import dataclass

from vela.model.environment import Environment, HostOverride

MANAGEMENT = "management"
CHECKSUM_DIGITS = 8


def host_name(rack: int, slot: int) -> str:
    """Name of a host, such as ``r07-h02``."""
    return f"r{rack:02d}-h{slot:02d}"


def rack_name(rack: int) -> str:
    """Name of a rack, such as ``r07``."""
    return f"r{rack:02d}"


def leaf_name(rack: int, index: int) -> str:
    """Name of a leaf, such as ``r07-leaf1``."""
    return f"{rack_name(rack)}-leaf{index}"


def subnet_order(environment: Environment) -> list[str]:
    """Names of the subnets, management first: a host's first interface is its primary one."""
    rest = sorted(set(environment.cloud.network.subnets) - {MANAGEMENT})
    return [MANAGEMENT, *rest]


def override(environment: Environment, rack: int, slot: int) -> HostOverride:
    """What is said about a host: its own entry before its rack's."""
    overrides = environment.hosts.overrides
    own = overrides.get(host_name(rack, slot))
    return own or overrides.get(rack_name(rack)) or HostOverride()


@dataclass(frozen=True, slots=True)
class HostState:
    """A place for a host, and what is said about it."""

    rack: int
    slot: int
    state: str
    image: str


def host_states(environment: Environment) -> Iterator[HostState]:
    """Every place for a host, rack by rack, absent ones too."""
    for rack in range(1, environment.hosts.racks + 1):
        for slot in range(1, environment.hosts.per_rack + 1):
            said = override(environment, rack, slot)
            yield HostState(rack, slot, said.state, said.image or environment.hosts.image)


def cloud_images(environment: Environment) -> list[str]:
    """Names of the images that IBM Cloud must hold: those of hosts and bastion, sorted."""
    names = {host.image for host in host_states(environment) if host.state != "absent"}
    if environment.cloud.access.bastion:
        names.add(environment.cloud.access.bastion.image)
    return sorted(names)


def image_cloud_name(environment: Environment, name: str) -> str:
    """Name of an image at IBM, with the first digits of its checksum."""
    digits = (environment.images[name].sha256 or "")[:CHECKSUM_DIGITS]
    return f"{environment.name}-{name.replace('.', '-')}-{digits}"


def spine_name(index: int) -> str:
    """Name of a spine, such as ``spine01``."""
    return f"spine{index:02d}"
