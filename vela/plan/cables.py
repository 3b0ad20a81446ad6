"""Cables, and the ports and addresses at both of their ends: one record for each."""

from collections.abc import Iterator

from vela.model.fabric import Fabric
from vela.model.hardware import Hardware, SwitchType
from vela.plan import addresses as at
from vela.plan.names import leaf_name, spine_name
from vela.plan.types import Cable, End, HostPlan, Port, SwitchPlan


def cables(
    fabric: Fabric,
    hardware: Hardware,
    hosts: tuple[HostPlan, ...],
    switches: tuple[SwitchPlan, ...],
) -> Iterator[Cable]:
    """Every cable: hosts to leafs host by host, then leafs to spines."""
    for host in hosts:
        yield from _host_cables(fabric, hardware, host)
    for leaf in switches:
        if leaf.role == "leaf":
            yield from _uplinks(fabric, hardware, leaf)


def _host_cables(fabric: Fabric, hardware: Hardware, host: HostPlan) -> Iterator[Cable]:
    """NIC port p of a host goes to leaf p modulo the leafs: a card's ports to different ones."""
    nics = hardware.server.nics
    if nics is None:
        return
    leaf_type = hardware.switches[fabric.switch.leaf]
    per_leaf = host_ports_per_leaf(fabric, hardware)
    for number in range(1, nics.count * nics.ports + 1):
        leaf = (number - 1) % fabric.leafs_per_rack + 1
        place = (number - 1) // fabric.leafs_per_rack + 1
        near, far = at.host_link(fabric.addresses.hosts, host.rack, host.slot, number)
        yield Cable(
            kind="host",
            speed=fabric.speed,
            a=End(host.name, nic_port(nics.ports, number), near),
            b=End(
                leaf_name(host.rack, leaf),
                port(leaf_type, (host.slot - 1) * per_leaf + place).name,
                far,
            ),
        )


def _uplinks(fabric: Fabric, hardware: Hardware, leaf: SwitchPlan) -> Iterator[Cable]:
    """Leafs count uplinks from their last port down; a spine's ports go by leaf and cable.

    So another spine moves no cable of the others, and another host none at all.
    """
    leaf_type = hardware.switches[fabric.switch.leaf]
    spine_type = hardware.switches[fabric.switch.spine]
    rack = leaf.rack or 0
    last = leaf_type.ports.count
    uplinks = fabric.uplinks_per_spine
    leaf_place = (rack - 1) * fabric.leafs_per_rack + leaf.index - 1
    for spine in range(1, fabric.spines + 1):
        for cable in range(1, uplinks + 1):
            number = last - (spine - 1) * uplinks - cable + 1
            near, far = at.uplink(fabric.addresses.uplinks, rack, leaf.index, spine, cable)
            yield Cable(
                kind="uplink",
                speed=fabric.speed,
                a=End(leaf.name, port(leaf_type, number).name, near),
                b=End(
                    spine_name(spine),
                    port(spine_type, leaf_place * uplinks + cable).name,
                    far,
                ),
            )


def host_ports_per_leaf(fabric: Fabric, hardware: Hardware) -> int:
    """Ports that one host takes on one leaf, the most where they do not divide evenly."""
    nics = hardware.server.nics
    return -(-nics.count * nics.ports // fabric.leafs_per_rack) if nics else 0


def nic_port(ports: int, number: int) -> str:
    """Name of a host's fabric port, ``number`` from 1: card and port, both from 0."""
    return f"nic{(number - 1) // ports}p{(number - 1) % ports}"


def port(kind: SwitchType, number: int) -> Port:
    """Front port ``number`` of a switch model."""
    lane = (number - 1) * kind.ports.lanes_per_port
    return Port(number, kind.ports.name.replace("{lane}", str(lane)))
