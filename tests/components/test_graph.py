"""What the program registers for every shipped environment."""

import re
import runpy
from collections import Counter
from collections.abc import Callable
from importlib.metadata import version

import pulumi
import pytest

from tests.components.conftest import plan_of
from tests.conftest import ROOT
from tests.harness import STACK, Graph, run_program, text_of
from vela.model.load import environments
from vela.outputs import ClusterOutputs

ENVIRONMENTS = environments(ROOT)
PROTECTED = {"IsVpc", "IsVpcAddressPrefix", "IsSubnet", "IsImage", "IsVirtualNetworkInterface",
             "IsBareMetalServer", "IsInstance", "IsClusterNetwork", "IsClusterNetworkSubnet",
             "IsClusterNetworkInterface"}  # fmt: skip
Make = Callable[..., Graph]


def test_the_harness_stands_on_the_version_that_it_was_written_for() -> None:
    assert version("pulumi") == "3.272.0"


def test_shipped_environments() -> None:
    assert ENVIRONMENTS == ["hopper", "local", "mi300x", "vela"]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_graph(name: str, graph_of: Make) -> None:
    graph, plan = graph_of(name), plan_of(name)
    assert graph.duplicates == []
    components = {record.urn for record in graph.components}
    for record in graph.records.values():
        if record.type == STACK or record.type.startswith("pulumi:providers:"):
            continue
        if record.custom:
            assert record.parent in components, record.name
            assert "::ibm::" in record.provider, record.name
        else:
            assert record.outputs is not None, record.name
        assert record.aliases == 0
        assert "Calling __str__" not in text_of(record.inputs)
        assert "PRIVATE KEY" not in text_of(record.inputs)
    protect = plan.environment.cloud.protect
    bastion = {r.urn for r in graph.resources if r.name.startswith("bastion-")}
    for record in graph.resources:
        kind = record.type.rsplit(":", 1)[-1]
        expected = protect and kind in PROTECTED and record.urn not in bastion
        assert record.protect is expected, record.name


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_preview_and_up_register_the_same(name: str, graph_of: Make) -> None:
    up = {(r.type, r.name) for r in graph_of(name).records.values()}
    preview = {(r.type, r.name) for r in graph_of(name, preview=True).records.values()}
    assert preview == up


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_export_is_the_contract(name: str, graph_of: Make) -> None:
    graph, plan = graph_of(name), plan_of(name)
    assert set(graph.exports) == {"cluster"}
    outputs = ClusterOutputs.model_validate(graph.exports["cluster"])
    assert outputs.environment == name
    assert {key: host.management_address for key, host in outputs.hosts.items()} == {
        host.name: str(host.management_address) for host in plan.hosts
    }
    assert {key: (s.asn, s.loopback) for key, s in outputs.switches.items()} == {
        s.name: (s.asn, str(s.loopback)) for s in plan.switches
    }
    assert len(outputs.cables) == len(plan.cables)
    assert (outputs.bastion_address is None) is (plan.bastion_address is None)


# worked out by hand: the network's fixed part, then per host and per switch
COUNTS = {
    # vpc, prefix, acl, gateway, 2 subnets, key, group, 14 rules, image
    # 2 hosts of 1 server and 2 interfaces, 6 switches
    "local": 1 + 1 + 1 + 1 + 2 + 1 + 1 + 14 + 1 + 2 * 3 + 6,
    "vela": 1 + 1 + 1 + 1 + 2 + 1 + 1 + 14 + 1 + 190 * 3 + 100,
    # without a bastion's rule on the hosts, with 13 rules of its own, interface, server, address
    "mi300x": 1 + 1 + 1 + 1 + 2 + 1 + 1 + 13 + 1 + 13 + 2 + 3 + 4 * 3,
    # one subnet less; cluster network with 8 subnets, 2 placement groups, 8 interfaces a host
    "hopper": 1 + 1 + 1 + 1 + 1 + 1 + 1 + 13 + 1 + 13 + 2 + 3 + 4 * (2 + 8) + 1 + 8 + 2,
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_counts(name: str, graph_of: Make) -> None:
    graph = graph_of(name)
    assert len(graph.resources) == COUNTS[name], Counter(r.type for r in graph.resources)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_names_at_ibm(name: str, graph_of: Make) -> None:
    names = [(r.type, r.inputs["name"]) for r in graph_of(name).resources if "name" in r.inputs]
    assert len(set(names)) == len(names)
    for _, said in names:
        assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", said), said
        assert len(said) <= 63


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_hosts_depend_on_their_own(name: str, graph_of: Make) -> None:
    graph = graph_of(name)
    servers = [r for r in graph.of("IsBareMetalServer") + graph.of("IsInstance")
               if not r.name.startswith("bastion")]  # fmt: skip
    for server in servers:
        host = server.name.removesuffix("-server")
        on = {urn.rsplit("::", 1)[-1] for urn in server.dependencies}
        own = {entry for entry in on if re.match(r"r\d+-h\d+-", entry)}
        assert f"{host}-management" in own
        assert all(entry.startswith(f"{host}-") for entry in own), own
        assert any(entry.startswith("images-") for entry in on)
        assert server.ignore_changes == ("image", "keys", "userData")
        assert "networkInterfaces" not in server.inputs
        assert "interfaceType" not in text_of(server.inputs)
    for subnet in graph.of("IsSubnet"):
        assert "network-prefix" in {urn.rsplit("::", 1)[-1] for urn in subnet.dependencies}
    for interface in graph.of("IsVirtualNetworkInterface"):
        assert interface.inputs["autoDelete"] is False
        assert 1 <= len(interface.inputs["securityGroups"]) <= 5


def rules(graph: Graph, group: str) -> set[tuple[object, ...]]:
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


OUTWARD = {
    ("outbound", protocol, port, port, network)
    for network in ("161.26.0.0/16", "166.8.0.0/14")
    for protocol, port in (("udp", 53), ("tcp", 53), ("udp", 123), ("tcp", 80), ("tcp", 443))
} | {("outbound", "tcp", 443, 443, "0.0.0.0/0")}


def test_who_may_reach_the_hosts_without_a_bastion(graph_of: Make) -> None:
    assert rules(graph_of("local"), "hosts") == OUTWARD | {
        ("inbound", "tcp", 22, 22, "192.0.2.0/24"),
        ("inbound", "icmp_tcp_udp", 0, 0, "10.240.0.0/16"),
        ("outbound", "icmp_tcp_udp", 0, 0, "10.240.0.0/16"),
    }


def test_who_may_reach_the_hosts_behind_a_bastion(graph_of: Make) -> None:
    graph = graph_of("mi300x")
    assert rules(graph, "hosts") == OUTWARD | {
        ("inbound", "icmp_tcp_udp", 0, 0, "10.241.0.0/16"),
        ("outbound", "icmp_tcp_udp", 0, 0, "10.241.0.0/16"),
    }
    assert rules(graph, "bastion") == OUTWARD | {
        ("inbound", "tcp", 22, 22, "192.0.2.0/24"),
        ("outbound", "tcp", 22, 22, "10.241.0.0/24"),
    }


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_nothing_lets_the_internet_in(name: str, graph_of: Make) -> None:
    graph = graph_of(name)
    for record in graph.of("IsSecurityGroupRule"):
        if record.inputs["direction"] == "inbound":
            assert record.inputs["remote"] != "0.0.0.0/0", record.name
    (acl,) = graph.of("IsNetworkAcl")
    said = acl.inputs["rules"]
    assert [r["action"] for r in said[-2:]] == ["deny", "deny"]
    for rule in said:
        if rule["action"] == "allow" and rule["direction"] == "inbound":
            answer = rule.get("tcp", {}).get("portMin") == 1024
            assert rule["source"] != "0.0.0.0/0" or answer, rule["name"]


def test_virtual_servers_are_on_the_cluster_network(graph_of: Make) -> None:
    graph = graph_of("hopper")
    (network,) = graph.of("IsClusterNetwork")
    assert network.inputs["profile"] == "hopper-1"
    assert network.inputs["subnetPrefixes"] == {"cidr": "10.0.0.0/9"}
    server = graph.named("r02-h01-server")
    attachments = server.inputs["clusterNetworkAttachments"]
    assert [a["clusterNetworkInterface"]["id"] for a in attachments] == [
        f"id-r02-h01-cluster{n}" for n in range(1, 9)
    ]
    assert server.inputs["placementGroup"] == "id-r02-placement"
    interface = graph.named("r02-h01-cluster3")
    assert interface.inputs["primaryIp"]["address"] == "10.0.128.129"


def main() -> None:
    runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")


def test_the_program_itself() -> None:
    graph = run_program(main, stack="local")
    assert len(graph.resources) == COUNTS["local"]


def test_the_program_says_what_is_wrong_without_a_traceback() -> None:
    with pytest.raises(pulumi.RunError) as caught:
        run_program(main, stack="locla")
    assert str(caught.value) == (
        "the environment is not valid\n"
        "environments/locla.yaml: error VELA-MODEL-005: there is no such environment\n"
        "  hint: did you mean local?"
    )
