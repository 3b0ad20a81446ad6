"""Rules about hosts and guests."""

import difflib
from collections.abc import Iterator

from vela.plan import names
from vela.rules import catalogue
from vela.rules.base import Case, Fault, rule

GIB = 2**30


def host_reserve(memory: int) -> int:
    """Bytes that the host keeps for itself: 4 %, at least 1 GiB.

    NVIDIA's guide for HGX guests leaves a quarter; Vela's published profile gives the guest
    1280 of 1536 GiB. Below 4 % the kernel's own tables no longer fit.
    """
    return max(GIB, memory // 25)


@rule("VELA-HOST-001", "Overrides name hosts and racks that exist")
def overrides(case: Case) -> Iterator[Fault]:
    """Keys are like r07-h02 or r07."""
    hosts = case.environment.hosts
    known = {names.rack_name(rack) for rack in range(1, hosts.racks + 1)}
    known |= {names.host_name(h.rack, h.slot) for h in names.host_states(case.environment)}
    for key in hosts.overrides:
        if key not in known:
            near = difflib.get_close_matches(key, sorted(known), 1)
            last = names.host_name(hosts.racks, hosts.per_rack)
            hint = f"did you mean {near[0]}?" if near else f"hosts are r01-h01 to {last}"
            path = ("hosts", "overrides", key)
            yield Fault(path, f"there is no host or rack {key}", hint, of_key=True)


@rule("VELA-HOST-002", "At least one host is there")
def someone(case: Case) -> Iterator[Fault]:
    """An environment without hosts configures nothing."""
    if all(host.state == "absent" for host in names.host_states(case.environment)):
        yield Fault(("hosts", "overrides"), "every host is absent", "leave one", of_key=True)


@rule("VELA-HOST-003", "Virtual servers have a cluster network, no fabric and no guests")
def virtual_servers(case: Case) -> Iterator[Fault]:
    """IBM runs hypervisor and fabric of its virtual servers."""
    environment = case.environment
    if case.hardware.server.kind != "virtual_server":
        return
    runs = f"{environment.hosts.type} is a virtual server, of which IBM runs"
    if environment.guests:
        hint = "remove guests, or choose a bare-metal type"
        yield Fault(("guests",), f"{runs} the hypervisor", hint, of_key=True)
    if environment.fabric:
        hint = "remove fabric, or choose a bare-metal type"
        yield Fault(("fabric",), f"{runs} the fabric", hint, of_key=True)
    joins = case.hardware.server.profile in catalogue.CLUSTER_SERVERS
    if environment.cloud.cluster_network and not joins:
        known = ", ".join(sorted(catalogue.CLUSTER_SERVERS))
        yield Fault(
            ("cloud", "cluster_network"),
            f"{case.hardware.server.profile} cannot join a cluster network",
            f"these can: {known}",
            of_key=True,
        )
    if joins and not environment.cloud.cluster_network:
        hint = "add cloud.cluster_network: {profile: hopper-1}"
        yield Fault(("hosts", "type"), "these servers need a cluster network for RoCE", hint)


@rule("VELA-HOST-004", "Bare metal is not on a cluster network")
def bare_metal(case: Case) -> Iterator[Fault]:
    """Cluster networks take virtual servers alone."""
    if case.hardware.server.kind == "bare_metal" and case.environment.cloud.cluster_network:
        yield Fault(
            ("cloud", "cluster_network"),
            "bare-metal servers cannot join a cluster network",
            "remove it, or choose a virtual server type such as gx3d-160x1792x8h100",
            of_key=True,
        )


@rule("VELA-HOST-005", "The guests' CPUs fit the host")
def guest_cpus(case: Case) -> Iterator[Fault]:
    """Virtual CPUs are pinned one to one, and the host keeps one."""
    guests = case.environment.guests
    if guests is None or case.hardware.server.kind == "virtual_server":
        return
    threads = case.hardware.server.cpu.threads
    asked = guests.vcpus * guests.per_host
    if asked >= threads:
        most = (threads - 1) // guests.per_host
        yield Fault(
            ("guests", "vcpus"),
            f"{guests.per_host} x {guests.vcpus} virtual CPUs leave none of the host's {threads}",
            f"at most {most} for each guest" if most else "fewer guests on a host",
        )


@rule("VELA-HOST-006", "The guests' memory fits the host")
def guest_memory(case: Case) -> Iterator[Fault]:
    """Guest memory is made of huge pages that the host cannot take back."""
    guests = case.environment.guests
    if guests is None or case.hardware.server.kind == "virtual_server":
        return
    memory = case.hardware.server.memory
    reserve = host_reserve(memory)
    each = -(-guests.memory // GIB)
    usable = memory - reserve
    if each * GIB * guests.per_host > usable:
        most = usable // guests.per_host // GIB
        yield Fault(
            ("guests", "memory"),
            f"{guests.per_host} x {each} GiB do not fit the host's "
            f"{memory // GIB} GiB with {-(-reserve // GIB)} GiB kept for the host",
            f"at most {most} GiB for each guest" if most else "fewer guests on a host",
        )
