"""Who may reach what, by value: security groups and the ACL, which keeps no state."""

from collections.abc import Callable

import pytest

from tests.components.conftest import plan_of
from tests.conftest import ROOT
from tests.harness import Graph
from vela.model.environment import Environment
from vela.model.load import environments
from vela.plan.outward import outward

Make = Callable[..., Graph]
Rule = tuple[object, ...]
SERVICES = ("161.26.0.0/16", "166.8.0.0/14")
OUTWARD = {
    ("outbound", protocol, port, port, network)
    for network in SERVICES
    for protocol, port in (("udp", 53), ("tcp", 53), ("udp", 123), ("tcp", 80), ("tcp", 443))
} | {("outbound", "tcp", 443, 443, "0.0.0.0/0")}
AMONG_HOSTS = {
    ("inbound", "icmp_tcp_udp", 0, 0, "id-access-hosts"),
    ("outbound", "icmp_tcp_udp", 0, 0, "id-access-hosts"),
}


def rules(graph: Graph, group: str) -> set[Rule]:
    return {
        (
            r.inputs["direction"],
            r.inputs["protocol"],
            int(r.inputs.get("portMin", 0)),
            int(r.inputs.get("portMax", 0)),
            r.inputs["remote"],
        )
        for r in graph.of("IsSecurityGroupRule")
        if r.inputs["group"] == f"id-access-{group}"
    }


def test_hosts_without_a_bastion(graph_of: Make) -> None:
    assert rules(graph_of("local"), "hosts") == OUTWARD | AMONG_HOSTS | {
        ("inbound", "tcp", 22, 22, "192.0.2.0/24"),
        ("outbound", "icmp_tcp_udp", 0, 0, "10.240.1.0/24"),
    }


def test_hosts_behind_a_bastion_take_ssh_from_it_alone(graph_of: Make) -> None:
    graph = graph_of("mi300x")
    assert rules(graph, "hosts") == OUTWARD | AMONG_HOSTS | {
        ("inbound", "tcp", 22, 22, "id-access-bastion"),
        ("outbound", "icmp_tcp_udp", 0, 0, "10.241.1.0/24"),
    }
    assert rules(graph, "bastion") == OUTWARD | {
        ("inbound", "tcp", 22, 22, "192.0.2.0/24"),
        ("outbound", "tcp", 22, 22, "10.241.0.0/24"),
    }


def test_hosts_without_storage_call_no_other_network(graph_of: Make) -> None:
    assert rules(graph_of("hopper"), "hosts") == OUTWARD | AMONG_HOSTS | {
        ("inbound", "tcp", 22, 22, "id-access-bastion"),
    }


@pytest.mark.parametrize("name", environments(ROOT))
def test_who_is_in_which_group(name: str, graph_of: Make) -> None:
    for interface in graph_of(name).of("IsVirtualNetworkInterface"):
        own = "bastion" if interface.name.startswith("bastion-") else "hosts"
        assert interface.inputs["securityGroups"] == [f"id-access-{own}"], interface.name


def test_another_protocol_or_port_is_another_resource(graph_of: Make) -> None:
    """IBM's provider refuses to update the protocol of a rule."""
    names = {r.name for r in graph_of("local").of("IsSecurityGroupRule")}
    assert {
        "access-hosts-inbound-tcp-22-22-192-0-2-0-24",
        "access-hosts-inbound-icmp_tcp_udp-hosts",
        "access-hosts-outbound-udp-53-53-161-26-0-0-16",
        "access-hosts-outbound-tcp-53-53-161-26-0-0-16",
    } <= names
    assert len(names) == 1 + 2 + 1 + 11


@pytest.mark.parametrize("name", environments(ROOT))
def test_nothing_lets_the_internet_in(name: str, graph_of: Make) -> None:
    for record in graph_of(name).of("IsSecurityGroupRule"):
        if record.inputs["direction"] == "inbound":
            assert record.inputs["remote"] != "0.0.0.0/0", record.name


def acl(graph: Graph) -> list[Rule]:
    (record,) = graph.of("IsNetworkAcl")
    return [
        (
            rule["action"],
            rule["direction"],
            rule["source"],
            rule["destination"],
            *(
                (kind, tuple(sorted((k, int(v)) for k, v in rule[kind].items())))
                for kind in ("tcp", "udp")
                if kind in rule
            ),
        )
        for rule in record.inputs["rules"]
    ]


def ports(kind: str, port: int) -> Rule:
    return kind, (("portMax", port), ("portMin", port))


def back(kind: str, port: int) -> Rule:
    return kind, (
        ("portMax", 65535), ("portMin", 1024), ("sourcePortMax", port), ("sourcePortMin", port),
    )  # fmt: skip


def test_the_acl_answers_what_it_lets_through(graph_of: Make) -> None:
    inside, management = "10.241.0.0/16", "10.241.0.0/24"
    outside = [
        (kind, port, network)
        for network in SERVICES
        for kind, port in (("udp", 53), ("udp", 123), ("tcp", 53), ("tcp", 80), ("tcp", 443))
    ] + [("tcp", 443, "0.0.0.0/0")]
    said = acl(graph_of("mi300x"))
    assert set(said[:-2]) == {
        ("allow", "inbound", inside, inside),
        ("allow", "outbound", inside, inside),
        ("allow", "inbound", "192.0.2.0/24", management, ports("tcp", 22)),
        ("allow", "outbound", management, "192.0.2.0/24", back("tcp", 22)),
        *(("allow", "outbound", inside, to, ports(kind, port)) for kind, port, to in outside),
        *(("allow", "inbound", to, inside, back(kind, port)) for kind, port, to in outside),
    }
    # after these nothing would be reached
    assert said[-2:] == [
        ("deny", "inbound", "0.0.0.0/0", "0.0.0.0/0"),
        ("deny", "outbound", "0.0.0.0/0", "0.0.0.0/0"),
    ]
    (record,) = graph_of("mi300x").of("IsNetworkAcl")
    names = [rule["name"] for rule in record.inputs["rules"]]
    assert len(set(names)) == len(names)


def described(**network: object) -> Environment:
    said = plan_of("local").environment
    cloud = said.cloud.model_copy(
        update={
            "network": type(said.cloud.network).model_validate(
                said.cloud.network.model_dump() | network
            )
        }
    )
    return said.model_copy(update={"cloud": cloud})


def beyond_ibm(environment: Environment) -> list[tuple[str, int, str]]:
    return [
        (out.protocol, out.port, str(out.remote))
        for out in outward(environment)
        if str(out.remote) not in SERVICES
    ]


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        ({}, [("tcp", 443, "0.0.0.0/0")]),
        ({"public_gateway": False}, []),
        (
            {"public_gateway": False, "dns": ("192.0.2.53", "161.26.0.10")},
            [("udp", 53, "192.0.2.53/32"), ("tcp", 53, "192.0.2.53/32")],
        ),
        ({"public_gateway": False, "ntp": ("192.0.2.123",)}, [("udp", 123, "192.0.2.123/32")]),
        ({"public_gateway": False, "ntp": ("161.26.0.6",)}, []),
        (
            {"public_gateway": False, "ntp": ("ntp.example.net", "time.example.net")},
            [("udp", 123, "0.0.0.0/0")],
        ),
    ],
)
def test_the_environment_s_own_resolvers_and_clocks_are_reached(
    network: dict[str, object], expected: list[tuple[str, int, str]]
) -> None:
    assert beyond_ibm(described(**network)) == expected
