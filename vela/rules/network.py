"""Rules about addresses: what fits where, and what must not overlap."""

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network
from itertools import combinations

from vela.model.source import Path
from vela.plan import addresses as at
from vela.plan.names import MANAGEMENT
from vela.rules.base import Case, Fault, rule

NET = ("cloud", "network")


@rule("VELA-NET-001", "There is a management subnet")
def management(case: Case) -> Iterator[Fault]:
    """The playbooks reach every node in it."""
    network = case.environment.cloud.network
    if MANAGEMENT not in network.subnets:
        free = next_free(network.cidr, list(network.subnets.values()), 20)
        hint = f"add {MANAGEMENT}: {free}" if free else f"name one of them {MANAGEMENT}"
        yield Fault((*NET, "subnets"), "there is no subnet called management", hint, of_key=True)


@rule("VELA-NET-002", "Subnets lie inside the VPC's network")
def inside(case: Case) -> Iterator[Fault]:
    """IBM Cloud refuses a subnet outside the address prefixes."""
    network = case.environment.cloud.network
    others = [s for s in network.subnets.values() if s.subnet_of(network.cidr)]
    for name, subnet in network.subnets.items():
        if not subnet.subnet_of(network.cidr):
            yield Fault(
                (*NET, "subnets", name),
                f"subnet {name} {subnet} is not inside {network.cidr}",
                _free_hint(network.cidr, others, subnet.prefixlen),
            )


@rule("VELA-NET-003", "Subnets do not overlap")
def apart(case: Case) -> Iterator[Fault]:
    """Each pair is told once, at the later one of the file."""
    network = case.environment.cloud.network
    for (first, one), (second, two) in combinations(network.subnets.items(), 2):
        if one.overlaps(two):
            others = [cidr for name, cidr in network.subnets.items() if name != second]
            yield Fault(
                (*NET, "subnets", second),
                f"subnet {second} {two} overlaps {first} {one}",
                _free_hint(network.cidr, others, two.prefixlen),
            )


@rule("VELA-NET-004", "Each subnet has room for every rack")
def room(case: Case) -> Iterator[Fault]:
    """Racks have a part of fixed size in each subnet."""
    network = case.environment.cloud.network
    racks = case.environment.hosts.racks
    per_rack = network.addresses_per_rack
    for name, subnet in network.subnets.items():
        fit = at.racks_that_fit(subnet, per_rack)
        if racks > fit:
            needed = at.first_rack_offset(per_rack) + racks * per_rack
            prefix = 32 - (needed - 1).bit_length()
            others = [cidr for other, cidr in network.subnets.items() if other != name]
            yield Fault(
                (*NET, "subnets", name),
                f"subnet {name} {subnet} has room for {fit} racks of {per_rack} addresses, "
                f"{racks} are asked for",
                f"a /{prefix} is needed; {_free_hint(network.cidr, others, prefix)}",
            )


@rule("VELA-NET-005", "A rack's hosts and leafs fit its part of a subnet")
def rack_part(case: Case) -> Iterator[Fault]:
    """Hosts count from the start of the part, leafs from its end."""
    per_rack = case.environment.cloud.network.addresses_per_rack
    fabric = case.environment.fabric
    fit = at.hosts_that_fit(per_rack, fabric.leafs_per_rack if fabric else 0)
    hosts = case.environment.hosts.per_rack
    if hosts > fit:
        larger = next((n for n in (16, 32, 64, 128) if n - (per_rack - fit) >= hosts), 128)
        yield Fault(
            ("hosts", "per_rack"),
            f"{per_rack} addresses a rack have room for {fit} hosts",
            f"set cloud.network.addresses_per_rack: {larger}",
        )


@rule("VELA-NET-006", "The cluster network does not overlap the VPC")
def cluster_apart(case: Case) -> Iterator[Fault]:
    """A server in both could not tell where an address lies."""
    cluster = case.environment.cloud.cluster_network
    cidr = case.environment.cloud.network.cidr
    if cluster and cluster.cidr.overlaps(cidr):
        yield Fault(
            (*NET, "cidr"),
            f"the VPC's {cidr} overlaps the cluster network {cluster.cidr}",
            f"10.240.0.0/16 lies outside {cluster.cidr}"
            if not cluster.cidr.overlaps(IPv4Network("10.240.0.0/16"))
            else "choose another cluster_network.cidr",
        )


@rule("VELA-NET-007", "The fabric's networks overlap nothing")
def fabric_apart(case: Case) -> Iterator[Fault]:
    """Links, loopbacks, VPC and each other."""
    fabric = case.environment.fabric
    if fabric is None:
        return
    own = {
        "uplinks": fabric.addresses.uplinks,
        "loopbacks": fabric.addresses.loopbacks,
        "hosts": fabric.addresses.hosts,
    }
    vpc = case.environment.cloud.network.cidr
    for name, cidr in own.items():
        if cidr.overlaps(vpc):
            hint = "choose a network outside it"
            yield Fault(_fabric(name), f"fabric {name} {cidr} overlaps the VPC's {vpc}", hint)
    for (first, one), (second, two) in combinations(own.items(), 2):
        if one.overlaps(two):
            message = f"fabric {second} {two} overlaps {first} {one}"
            yield Fault(_fabric(second), message, "give each its own network")


@rule("VELA-NET-008", "The fabric's networks have room for every rack")
def fabric_room(case: Case) -> Iterator[Fault]:
    """Each rack has a part of fixed size in each of them."""
    fabric = case.environment.fabric
    if fabric is None:
        return
    racks = case.environment.hosts.racks
    needs = {
        "uplinks": racks * at.UPLINKS_PER_RACK * 2,
        "loopbacks": (racks + 1) * at.LOOPBACKS_PER_RACK,
        "hosts": racks * at.HOST_LINKS_PER_RACK * 2,
    }
    for name, needed in needs.items():
        cidr: IPv4Network = getattr(fabric.addresses, name)
        if cidr.num_addresses < needed:
            prefix = 32 - (needed - 1).bit_length()
            message = f"fabric {name} {cidr} has no room for {racks} racks"
            yield Fault(_fabric(name), message, f"a /{prefix} is needed")


@rule("VELA-NET-009", "The cluster network has room for its subnets")
def cluster_room(case: Case) -> Iterator[Fault]:
    """Each attachment has a subnet of its own."""
    cluster = case.environment.cloud.cluster_network
    if cluster is None:
        return
    prefix = at.CLUSTER_SUBNET_PREFIX - (cluster.attachments - 1).bit_length()
    if cluster.cidr.prefixlen > prefix:
        yield Fault(
            ("cloud", "cluster_network", "cidr"),
            f"{cluster.cidr} has no room for {cluster.attachments} subnets",
            f"a /{prefix} is needed",
        )


def _fabric(name: str) -> Path:
    return ("fabric", "addresses", name)


def _free_hint(inside_: IPv4Network, taken: Sequence[IPv4Network], prefix: int) -> str:
    free = next_free(inside_, taken, prefix)
    if free:
        return f"the next free /{prefix} is {free}"
    return f"{inside_} has no free /{prefix} left"


def next_free(
    inside_: IPv4Network, taken: Sequence[IPv4Network], prefix: int
) -> IPv4Network | None:
    """The lowest network of a size inside another that overlaps none of those taken."""
    if prefix < inside_.prefixlen:
        return None
    size = 2 ** (32 - prefix)
    start = int(inside_.network_address)
    end = start + inside_.num_addresses
    while start < end:
        candidate = IPv4Network((start, prefix))
        clash = next((t for t in taken if t.overlaps(candidate)), None)
        if clash is None:
            return candidate
        after = int(clash.network_address) + clash.num_addresses
        start = max(start + size, -(-after // size) * size)
    return None
