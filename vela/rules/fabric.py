"""Rules about the fabric's size and its lossless class."""

from collections.abc import Iterator

from vela.plan import addresses as at
from vela.plan.cables import host_ports_per_leaf
from vela.rules.base import Case, Fault, rule


@rule("VELA-FABRIC-001", "The switch models run the fabric's operating system")
def operating_system(case: Case) -> Iterator[Fault]:
    """Models say what they run."""
    fabric = case.environment.fabric
    if fabric is None:
        return
    for role in ("leaf", "spine"):
        name = getattr(fabric.switch, role)
        runs = case.hardware.switches[name].os
        if fabric.os not in runs:
            message = f"{name} does not run {fabric.os}"
            yield Fault(("fabric", "switch", role), message, "it runs " + ", ".join(runs))


@rule("VELA-FABRIC-002", "Ports are as fast as the fabric")
def speed(case: Case) -> Iterator[Fault]:
    """Of switches and of the hosts' cards."""
    fabric = case.environment.fabric
    if fabric is None:
        return
    for role in ("leaf", "spine"):
        name = getattr(fabric.switch, role)
        fastest = case.hardware.switches[name].ports.speed
        if fabric.speed > fastest:
            message = f"{name} has ports of {fastest}G, the fabric is {fabric.speed}G"
            yield Fault(("fabric", "speed"), message, f"speed: {fastest}G")
    nics = case.hardware.server.nics
    if nics and fabric.speed > nics.speed:
        message = f"the hosts' cards have ports of {nics.speed}G, the fabric is {fabric.speed}G"
        yield Fault(("fabric", "speed"), message, f"speed: {nics.speed}G")


@rule("VELA-FABRIC-003", "Leafs have ports for their hosts and spines")
def leaf_ports(case: Case) -> Iterator[Fault]:
    """Hosts count from the first port up, uplinks from the last port down."""
    fabric = case.environment.fabric
    if fabric is None:
        return
    ports = case.hardware.switches[fabric.switch.leaf].ports.count
    up = fabric.spines * fabric.uplinks_per_spine
    down = case.environment.hosts.per_rack * host_ports_per_leaf(fabric, case.hardware)
    if up + down > ports:
        yield Fault(
            ("fabric", "switch", "leaf"),
            f"a leaf needs {down} ports down and {up} up, {fabric.switch.leaf} has {ports}",
            "fewer hosts in a rack, fewer uplinks, or a larger leaf",
        )


@rule("VELA-FABRIC-004", "Spines have a port for every uplink")
def spine_ports(case: Case) -> Iterator[Fault]:
    """Every leaf has its cables to every spine."""
    fabric = case.environment.fabric
    if fabric is None:
        return
    ports = case.hardware.switches[fabric.switch.spine].ports.count
    needed = case.environment.hosts.racks * fabric.leafs_per_rack * fabric.uplinks_per_spine
    if needed > ports:
        racks = ports // (fabric.leafs_per_rack * fabric.uplinks_per_spine)
        yield Fault(
            ("fabric", "switch", "spine"),
            f"a spine needs {needed} ports, {fabric.switch.spine} has {ports}",
            f"enough for {racks} racks; take a larger spine or fewer uplinks",
        )


@rule("VELA-FABRIC-005", "RoCE data and congestion notifications are told apart")
def classes(case: Case) -> Iterator[Fault]:
    """Their DSCPs differ, and so do their priorities."""
    fabric = case.environment.fabric
    if fabric is None:
        return
    roce = fabric.roce
    path = ("fabric", "roce")
    if roce.dscp == roce.cnp_dscp:
        message = f"DSCP {roce.dscp} is used for RoCE data and for notifications"
        yield Fault((*path, "cnp_dscp"), message, "NVIDIA's guides use 26 and 48")
    if roce.priority == roce.cnp_priority:
        message = f"priority {roce.priority} is used for RoCE data and for notifications"
        yield Fault((*path, "cnp_priority"), message, "NVIDIA's guides use 3 and 6")


@rule("VELA-FABRIC-006", "Marking begins below the depth at which all is marked")
def ecn(case: Case) -> Iterator[Fault]:
    """The lower threshold is below the upper one."""
    fabric = case.environment.fabric
    if fabric and fabric.roce.ecn.min >= fabric.roce.ecn.max:
        low, high = fabric.roce.ecn.min, fabric.roce.ecn.max
        message = f"ECN min {low:,} B is not below max {high:,} B"
        yield Fault(("fabric", "roce", "ecn"), message, "150 kB and 1500 kB are usual at 100G")


@rule("VELA-FABRIC-007", "No leaf has the spines' AS number")
def asns(case: Case) -> Iterator[Fault]:
    """Leafs count up from the first one, with room for eight in a rack."""
    fabric = case.environment.fabric
    if fabric is None:
        return
    last = fabric.asn.leafs + case.environment.hosts.racks * at.MAX_LEAFS - 1
    if fabric.asn.leafs <= fabric.asn.spines <= last:
        message = f"AS {fabric.asn.spines} of the spines is among the leafs'"
        hint = f"the leafs take {fabric.asn.leafs} to {last}"
        yield Fault(("fabric", "asn", "spines"), message, hint)


@rule("VELA-FABRIC-008", "The hosts have cards that the fabric can cable")
def cards(case: Case) -> Iterator[Fault]:
    """A fabric without host ports serves nobody."""
    if case.environment.fabric is None:
        return
    nics = case.hardware.server.nics
    if nics is None:
        hint = "remove fabric, or choose a type with nics"
        message = f"{case.environment.hosts.type} has no card on a fabric of ours"
        yield Fault(("fabric",), message, hint, of_key=True)
    elif nics.count * nics.ports > at.MAX_HOST_PORTS:
        message = f"{nics.count * nics.ports} fabric ports a host are more than we address"
        yield Fault(("hosts", "type"), message, f"at most {at.MAX_HOST_PORTS}")
