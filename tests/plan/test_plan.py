from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from vela.model.environment import Environment
from vela.model.hardware import Hardware
from vela.model.load import load
from vela.plan import Cable, Plan, build
from vela.rules.base import Case, faults

ROOT = Path(__file__).resolve().parents[2]
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDfj5vIfFJdnQphXwd311Avi5HIR3zgw24DTgQY1eMBG"
MOST_CABLES = 1500

settings.register_profile(
    "plan", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
PLAN = settings.get_profile("plan")


@dataclass(frozen=True)
class Shape:
    """The figures of an environment; the room in networks and switches is as of ``room``."""

    name: str
    racks: int
    per_rack: int
    addresses_per_rack: int
    subnets: tuple[str, ...]
    bastion: bool
    overrides: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    spines: int
    leafs: int
    uplinks: int
    cards: int
    ports: int
    room: "Shape | None" = None

    @property
    def full(self) -> "Shape":
        return self.room or self

    def text(self) -> dict[str, Any]:
        full = self.full
        first = -(-32 // full.addresses_per_rack) * full.addresses_per_rack
        subnet = prefix(first + full.racks * full.addresses_per_rack)
        image: dict[str, Any] = {
            "href": "cos://us-east/images/host.qcow2",
            "sha256": "0123456789abcdef" * 4,
            "operating_system": "ubuntu-24-04-amd64",
        }
        return {
            "schema": 1,
            "name": self.name,
            "cloud": {
                "region": "us-east",
                "zone": "us-east-3",
                "network": {
                    "cidr": "10.0.0.0/9",
                    "subnets": {
                        name: f"10.{index}.0.0/{subnet}" for index, name in enumerate(self.subnets)
                    },
                    "addresses_per_rack": self.addresses_per_rack,
                },
                "access": {
                    "ssh_keys": {"ops": KEY},
                    "allow_ssh_from": ("192.0.2.0/24",),
                    **({"bastion": {"image": "other"}} if self.bastion else {}),
                },
                "quotas": {"bare_metal_servers": 10_000},
            },
            "hosts": {
                "type": "server",
                "racks": self.racks,
                "per_rack": self.per_rack,
                "image": "host",
                "overrides": {key: dict(said) for key, said in self.overrides},
            },
            "fabric": {
                "os": "sonic",
                "switch": {"leaf": "leaf", "spine": "spine"},
                "spines": self.spines,
                "leafs_per_rack": self.leafs,
                "uplinks_per_spine": self.uplinks,
                "speed": "100G",
                "addresses": {
                    "uplinks": f"10.192.0.0/{prefix(full.racks * 1024)}",
                    "loopbacks": f"10.196.0.0/{prefix((full.racks + 1) * 32)}",
                    "hosts": f"10.200.0.0/{prefix(full.racks * 2048)}",
                },
            },
            "images": {"host": image, "other": image},
        }

    def environment(self) -> Environment:
        return Environment.model_validate(self.text())

    def hardware(self) -> Hardware:
        full = self.full
        down = full.per_rack * -(-full.cards * full.ports // full.leafs)
        return Hardware.model_validate(
            {
                "server": {
                    "schema": 1,
                    "title": "server",
                    "kind": "bare_metal",
                    "profile": "bx2-metal-96x384",
                    "cpu": {
                        "vendor": "intel",
                        "sockets": 2,
                        "cores_per_socket": 24,
                        "threads_per_core": 2,
                    },
                    "memory": "384 GiB",
                    "nics": {
                        "model": "card",
                        "count": full.cards,
                        "ports": full.ports,
                        "speed": "100G",
                    },
                    "sources": {},
                },
                "switches": {
                    "leaf": switch(down + full.spines * full.uplinks),
                    "spine": switch(full.racks * full.leafs * full.uplinks),
                },
            }
        )

    def plan(self) -> Plan:
        return build(self.environment(), self.hardware())


def prefix(addresses: int) -> int:
    return 32 - (addresses - 1).bit_length()


def switch(ports: int) -> dict[str, Any]:
    return {
        "schema": 1,
        "title": "switch",
        "os": ("sonic",),
        "hwsku": "switch",
        "ports": {"count": ports, "speed": "100G", "name": "Ethernet{lane}", "lanes_per_port": 4},
        "sources": {},
    }


def rack(number: int) -> str:
    return f"r{number:02d}"


def host(rack_: int, slot: int) -> str:
    return f"r{rack_:02d}-h{slot:02d}"


NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,18}[a-z0-9])?", fullmatch=True)
SAID = st.fixed_dictionaries(
    {},
    optional={
        "state": st.sampled_from(["active", "maintenance", "absent"]),
        "image": st.sampled_from(["host", "other"]),
    },
).map(lambda said: tuple(said.items()))


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    addresses_per_rack = draw(st.sampled_from([16, 32, 64, 128]))
    leafs = draw(st.integers(1, 8))
    spines = draw(st.integers(1, 16))
    uplinks = draw(st.integers(1, 4))
    cards, ports = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    per_rack = draw(st.integers(1, min(48, addresses_per_rack - 2 - leafs)))
    cables = leafs * spines * uplinks + per_rack * cards * ports
    racks = draw(st.integers(1, max(1, min(200, MOST_CABLES // cables))))
    keys = st.one_of(
        st.builds(rack, st.integers(1, racks)),
        st.builds(host, st.integers(1, racks), st.integers(1, per_rack)),
    )
    return Shape(
        name=draw(NAMES),
        racks=racks,
        per_rack=per_rack,
        addresses_per_rack=addresses_per_rack,
        subnets=tuple(draw(st.permutations(["management", *draw(extra_subnets())]))),
        bastion=draw(st.booleans()),
        overrides=tuple(draw(st.dictionaries(keys, SAID, max_size=4)).items()),
        spines=spines,
        leafs=leafs,
        uplinks=uplinks,
        cards=cards,
        ports=ports,
    )


def extra_subnets() -> st.SearchStrategy[list[str]]:
    return st.lists(NAMES.filter(lambda name: name != "management"), max_size=7, unique=True)


@st.composite
def grown(draw: st.DrawFn) -> tuple[Shape, Shape]:
    """An environment, and the same with more racks, hosts in a rack or spines."""
    large = draw(shapes())
    racks = draw(st.integers(1, large.racks))
    per_rack = draw(st.integers(1, large.per_rack))
    there = {rack(r) for r in range(1, racks + 1)}
    there |= {host(r, s) for r in range(1, racks + 1) for s in range(1, per_rack + 1)}
    small = replace(
        large,
        racks=racks,
        per_rack=per_rack,
        spines=draw(st.integers(1, large.spines)),
        overrides=tuple((key, said) for key, said in large.overrides if key in there),
        room=large,
    )
    return small, large


def ends(plan: Plan) -> Iterator[tuple[str, str, IPv4Interface]]:
    for cable in plan.cables:
        for end in (cable.a, cable.b):
            yield end.node, end.port, end.address


def touches(cable: Cable, nodes: set[str]) -> bool:
    return cable.a.node in nodes or cable.b.node in nodes


def check_addresses(addresses: list[IPv4Address], network: IPv4Network) -> None:
    assert len(set(addresses)) == len(addresses)
    for address in addresses:
        assert address in network
        assert address not in {*(network[index] for index in range(4)), network[-1]}


@PLAN
@given(shape=shapes())
def test_environments_of_these_tests_pass_the_rules(shape: Shape) -> None:
    found = list(faults(Case(shape.environment(), shape.hardware())))
    assert [rule.number for rule, _ in found if rule.number != "VELA-HOST-002"] == []
    assert bool(found) == (not shape.plan().hosts)


@PLAN
@given(shape=shapes())
def test_addresses_are_unique_and_inside_their_subnet(shape: Shape) -> None:
    plan = shape.plan()
    assert [subnet.name for subnet in plan.subnets] == [
        "management",
        *sorted(set(shape.subnets) - {"management"}),
    ]
    for index, subnet in enumerate(plan.subnets):
        addresses = [host_.interfaces[index].address for host_ in plan.hosts]
        assert {host_.interfaces[index].subnet for host_ in plan.hosts} <= {subnet.name}
        if subnet.name == "management":
            assert [host_.management_address for host_ in plan.hosts] == addresses
            addresses += [switch_.management_address for switch_ in plan.switches]
            assert (plan.bastion_address is not None) == shape.bastion
            addresses += [plan.bastion_address] if plan.bastion_address else []
        check_addresses(addresses, subnet.cidr)


@PLAN
@given(shape=shapes())
def test_fabric_addresses_and_as_numbers_are_unique(shape: Shape) -> None:
    plan = shape.plan()
    fabric = plan.environment.fabric
    assert fabric
    loopbacks = [switch_.loopback for switch_ in plan.switches]
    assert len(set(loopbacks)) == len(loopbacks)
    assert all(loopback in fabric.addresses.loopbacks for loopback in loopbacks)
    leafs = [switch_.asn for switch_ in plan.switches if switch_.role == "leaf"]
    assert len(set(leafs)) == len(leafs)
    spines = [switch_.asn for switch_ in plan.switches if switch_.role == "spine"]
    assert spines == [4_200_000_000] * shape.spines
    assert 4_200_000_000 not in leafs
    links = [address for _, _, address in ends(plan)]
    assert len(set(links)) == len(links)
    for cable in plan.cables:
        within = fabric.addresses.hosts if cable.kind == "host" else fabric.addresses.uplinks
        assert cable.a.address.ip in within
        assert cable.b.address.ip in within


@PLAN
@given(shape=shapes())
def test_names_are_unique_and_short_enough(shape: Shape) -> None:
    plan = shape.plan()
    assert len(set(plan.nodes)) == len(plan.nodes)
    kinds = [
        [*(h.cloud_name for h in plan.hosts), *(s.cloud_name for s in plan.switches)],
        [interface.cloud_name for h in plan.hosts for interface in h.interfaces],
        [subnet.cloud_name for subnet in plan.subnets],
        [image.cloud_name for image in plan.images],
    ]
    for names in kinds:
        assert len(set(names)) == len(names)
        assert all(0 < len(name) <= 63 for name in names)
        assert all(name.startswith(f"{shape.name}-") for name in names)


@PLAN
@given(shape=shapes())
def test_each_port_is_used_once_and_exists(shape: Shape) -> None:
    plan = shape.plan()
    used = Counter((node, port) for node, port, _ in ends(plan))
    assert set(used.values()) <= {1}
    assert {node for node, _ in used} <= set(plan.nodes)
    kinds = {switch_.name: switch_.type for switch_ in plan.switches}
    for node, port in used:
        if node in kinds:
            count = plan.hardware.switches[kinds[node]].ports.count
            assert port in {f"Ethernet{4 * number}" for number in range(count)}


@PLAN
@given(shape=shapes())
def test_both_ends_of_a_cable_are_one_link(shape: Shape) -> None:
    for cable in shape.plan().cables:
        a, b = cable.a.address, cable.b.address
        assert a.network == b.network
        assert a.network.prefixlen == 31
        assert [a.ip, b.ip] == list(a.network)
        assert cable.speed == 100


@PLAN
@given(shape=shapes())
def test_ports_of_a_host_go_to_the_leafs_in_turn(shape: Shape) -> None:
    plan = shape.plan()
    there = {(c.a.node, c.a.port): c.b.node for c in plan.cables if c.kind == "host"}
    assert there == {
        (h.name, f"nic{index // shape.ports}p{index % shape.ports}"): (
            f"{rack(h.rack)}-leaf{index % shape.leafs + 1}"
        )
        for h in plan.hosts
        for index in range(shape.cards * shape.ports)
    }


@PLAN
@given(shape=shapes())
def test_every_leaf_has_its_uplinks_to_every_spine(shape: Shape) -> None:
    plan = shape.plan()
    leafs = [switch_.name for switch_ in plan.switches if switch_.role == "leaf"]
    spines = [f"spine{index:02d}" for index in range(1, shape.spines + 1)]
    pairs = Counter((c.a.node, c.b.node) for c in plan.cables if c.kind == "uplink")
    assert pairs == {(leaf, spine): shape.uplinks for leaf in leafs for spine in spines}


@PLAN
@given(shape=shapes())
def test_every_host_has_the_leafs_of_its_rack(shape: Shape) -> None:
    plan = shape.plan()
    absent = {key for key, said in shape.overrides if dict(said).get("state") == "absent"}
    with_leafs = {switch_.rack for switch_ in plan.switches if switch_.role == "leaf"}
    expected = {r for r in range(1, shape.racks + 1) if rack(r) not in absent}
    assert with_leafs == expected | set(plan.racks)


@PLAN
@given(pair=grown())
def test_nothing_moves_when_the_cluster_grows(pair: tuple[Shape, Shape]) -> None:
    before, after = pair[0].plan(), pair[1].plan()
    assert set(before.hosts) <= set(after.hosts)
    assert set(before.cables) <= set(after.cables)
    # an active host may be the first of an absent rack, which then gets its leafs
    assert set(before.switches) <= set(after.switches)
    kept = set(before.nodes)
    assert [c for c in after.cables if {c.a.node, c.b.node} <= kept] == [
        c for c in before.cables if {c.a.node, c.b.node} <= kept
    ]


@PLAN
@given(shape=shapes(), data=st.data())
def test_nothing_moves_when_a_host_becomes_absent(shape: Shape, data: st.DataObject) -> None:
    absent = {key for key, said in shape.overrides if dict(said).get("state") == "absent"}
    before = shape.plan()
    assume(before.hosts)
    gone = data.draw(st.sampled_from(before.hosts))
    said = {**dict(shape.overrides), gone.name: (("state", "absent"),)}
    after = replace(shape, overrides=tuple(said.items())).plan()
    nodes = {gone.name}
    if rack(gone.rack) in absent and len(before.racks[gone.rack]) == 1:
        nodes |= {f"{rack(gone.rack)}-leaf{index + 1}" for index in range(shape.leafs)}
    assert_without(before, after, nodes)


@PLAN
@given(shape=shapes(), data=st.data())
def test_nothing_moves_when_a_rack_becomes_absent(shape: Shape, data: st.DataObject) -> None:
    number = data.draw(st.integers(1, shape.racks))
    own = {key for key, _ in shape.overrides if key.startswith(f"{rack(number)}-")}
    before = shape.plan()
    said = {**dict(shape.overrides), rack(number): (("state", "absent"),)}
    after = replace(shape, overrides=tuple(said.items())).plan()
    nodes = {h.name for h in before.hosts if h.rack == number and h.name not in own}
    if not after.racks.get(number):
        nodes |= {f"{rack(number)}-leaf{index + 1}" for index in range(shape.leafs)}
    assert_without(before, after, nodes)


def assert_without(before: Plan, after: Plan, nodes: set[str]) -> None:
    assert after.hosts == tuple(h for h in before.hosts if h.name not in nodes)
    assert after.switches == tuple(s for s in before.switches if s.name not in nodes)
    assert after.cables == tuple(c for c in before.cables if not touches(c, nodes))
    assert after.subnets == before.subnets
    assert after.bastion_address == before.bastion_address


@PLAN
@given(shape=shapes())
def test_two_builds_are_equal(shape: Shape) -> None:
    assert shape.plan() == shape.plan()


@PLAN
@given(
    racks=st.integers(1, 200),
    per_rack=st.integers(1, 48),
    attachments=st.sampled_from([8, 16, 32]),
)
def test_cluster_network_gives_each_server_an_address_in_each_subnet(
    racks: int, per_rack: int, attachments: int
) -> None:
    loaded = load(ROOT, "hopper")
    cloud, hosts = loaded.environment.cloud, loaded.environment.hosts
    assert cloud.cluster_network
    cluster = cloud.cluster_network.model_copy(update={"attachments": attachments})
    racks = min(racks, max(1, 400 // per_rack))
    overrides = {rack(number): {"state": "absent"} for number in range(2, racks)}
    environment = loaded.environment.model_copy(
        update={
            "cloud": cloud.model_copy(
                update={
                    "cluster_network": cluster,
                    "network": cloud.network.model_copy(
                        update={"subnets": {"management": IPv4Network("10.242.0.0/16")}}
                    ),
                }
            ),
            "hosts": type(hosts).model_validate(
                {
                    "type": hosts.type,
                    "image": hosts.image,
                    "racks": racks,
                    "per_rack": per_rack,
                    "overrides": overrides,
                }
            ),
        }
    )
    plan = build(environment, loaded.hardware)
    assert len(plan.hosts) == per_rack * min(racks, 2)
    assert plan.cluster_network
    subnets = plan.cluster_network.subnets
    assert [subnet.name for subnet in subnets] == [f"cluster{i + 1}" for i in range(attachments)]
    for index, subnet in enumerate(subnets):
        assert subnet.cidr.subnet_of(cluster.cidr)
        assert not any(subnet.cidr.overlaps(other.cidr) for other in subnets[:index])
        assert {h.attachments[index].subnet for h in plan.hosts} == {index + 1}
        check_addresses([h.attachments[index].address for h in plan.hosts], subnet.cidr)
    names = [attachment.cloud_name for h in plan.hosts for attachment in h.attachments]
    assert len(set(names)) == len(names) == len(plan.hosts) * attachments
    assert max(map(len, names)) <= 63


def shipped(name: str) -> Plan:
    loaded = load(ROOT, name)
    return build(loaded.environment, loaded.hardware)


def test_local_hosts_have_these_addresses() -> None:
    plan = shipped("local")
    assert [
        (h.name, h.cloud_name, [(i.name, i.cloud_name, str(i.address)) for i in h.interfaces])
        for h in plan.hosts
    ] == [
        (
            "r01-h01",
            "local-r01-h01",
            [
                ("management", "local-r01-h01-management", "10.240.0.65"),
                ("storage", "local-r01-h01-storage", "10.240.1.65"),
            ],
        ),
        (
            "r02-h01",
            "local-r02-h01",
            [
                ("management", "local-r02-h01-management", "10.240.0.129"),
                ("storage", "local-r02-h01-storage", "10.240.1.129"),
            ],
        ),
    ]
    assert plan.bastion_address is None
    assert plan.cluster_network is None
    assert [image.cloud_name for image in plan.images] == ["local-debian-12-kvm-4f5e2c1b"]
    assert plan.tags == ("vela", "vela-environment:local")


def test_local_switches_have_these_addresses_and_as_numbers() -> None:
    assert [
        (s.name, str(s.management_address), str(s.loopback), s.asn)
        for s in shipped("local").switches
    ] == [
        ("spine01", "10.240.0.9", "10.196.0.1", 4200000000),
        ("spine02", "10.240.0.10", "10.196.0.2", 4200000000),
        ("r01-leaf1", "10.240.0.126", "10.196.0.33", 4200001000),
        ("r01-leaf2", "10.240.0.125", "10.196.0.34", 4200001001),
        ("r02-leaf1", "10.240.0.190", "10.196.0.65", 4200001008),
        ("r02-leaf2", "10.240.0.189", "10.196.0.66", 4200001009),
    ]


def test_local_cables() -> None:
    assert [
        f"{c.a.node} {c.a.port} {c.a.address} - {c.b.node} {c.b.port} {c.b.address}"
        for c in shipped("local").cables
    ] == [
        "r01-h01 nic0p0 10.200.0.0/31 - r01-leaf1 Ethernet0 10.200.0.1/31",
        "r01-h01 nic1p0 10.200.0.2/31 - r01-leaf2 Ethernet0 10.200.0.3/31",
        "r02-h01 nic0p0 10.200.8.0/31 - r02-leaf1 Ethernet0 10.200.8.1/31",
        "r02-h01 nic1p0 10.200.8.2/31 - r02-leaf2 Ethernet0 10.200.8.3/31",
        "r01-leaf1 Ethernet124 10.192.0.0/31 - spine01 Ethernet0 10.192.0.1/31",
        "r01-leaf1 Ethernet120 10.192.0.8/31 - spine02 Ethernet0 10.192.0.9/31",
        "r01-leaf2 Ethernet124 10.192.0.128/31 - spine01 Ethernet4 10.192.0.129/31",
        "r01-leaf2 Ethernet120 10.192.0.136/31 - spine02 Ethernet4 10.192.0.137/31",
        "r02-leaf1 Ethernet124 10.192.4.0/31 - spine01 Ethernet8 10.192.4.1/31",
        "r02-leaf1 Ethernet120 10.192.4.8/31 - spine02 Ethernet8 10.192.4.9/31",
        "r02-leaf2 Ethernet124 10.192.4.128/31 - spine01 Ethernet12 10.192.4.129/31",
        "r02-leaf2 Ethernet120 10.192.4.136/31 - spine02 Ethernet12 10.192.4.137/31",
    ]


def test_local_host_system() -> None:
    system = shipped("local").system
    assert system
    assert system.kernel_arguments == (
        "iommu=pt",
        "default_hugepagesz=1G",
        "hugepagesz=1G",
        "hugepages=2",
        "pci=realloc",
        "modprobe.blacklist=nouveau,nvidia,nvidia_drm",
    )
    assert system.modules == ("kvm_amd", "vfio", "vfio_pci")
    assert system.packages[0] == "qemu-system-x86"


def test_each_guest_has_whole_huge_pages() -> None:
    loaded = load(ROOT, "vela")
    guests = loaded.environment.guests
    assert guests
    halves = guests.model_copy(update={"per_host": 4, "vcpus": 20, "memory": 3 * 2**29})
    environment = loaded.environment.model_copy(update={"guests": halves})
    system = build(environment, loaded.hardware).system
    assert system
    assert "hugepages=8" in system.kernel_arguments


def test_vela_has_its_published_size() -> None:
    plan = shipped("vela")
    assert len(plan.hosts) == 190
    assert len(plan.switches) == 100
    assert len(plan.cables) == 1528
    assert Counter(c.kind for c in plan.cables) == {"host": 760, "uplink": 768}
    assert [h.name for h in plan.racks[48]] == ["r48-h01", "r48-h02"]
    assert plan.system
    assert "hugepages=1280" in plan.system.kernel_arguments


@pytest.mark.parametrize(("name", "hosts"), [("hopper", 4), ("mi300x", 4)])
def test_ibm_runs_the_fabric_where_there_is_none(name: str, hosts: int) -> None:
    plan = shipped(name)
    assert len(plan.hosts) == hosts
    assert plan.switches == ()
    assert plan.cables == ()
    assert str(plan.bastion_address) == f"{plan.subnets[0].cidr.network_address + 5}"
    assert (plan.system is None) == (name == "hopper")
