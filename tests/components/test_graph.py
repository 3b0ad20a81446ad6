"""What the program registers for every shipped environment."""

import re
import runpy
from collections import Counter
from collections.abc import Callable

import pulumi
import pytest

from tests.components.conftest import API_KEY, plan_of
from tests.conftest import ROOT
from tests.harness import Graph, Record, faults, run_program, text_of
from vela.model.load import environments
from vela.outputs import ClusterOutputs

ENVIRONMENTS = environments(ROOT)
PROTECTED = {"IsVpc", "IsVpcAddressPrefix", "IsSubnet", "IsImage", "IsVirtualNetworkInterface",
             "IsBareMetalServer", "IsInstance", "IsClusterNetwork", "IsClusterNetworkSubnet",
             "IsClusterNetworkInterface"}  # fmt: skip
WITHOUT_TAGS = {"IsVpcAddressPrefix", "IsSecurityGroupRule", "IsSubnetReservedIp",
                "IsClusterNetwork", "IsClusterNetworkSubnet",
                "IsClusterNetworkInterface"}  # fmt: skip
WITHOUT_GROUP = {"IsVpcAddressPrefix", "IsSecurityGroupRule", "IsSubnetReservedIp",
                 "IsClusterNetworkSubnet", "IsClusterNetworkInterface"}  # fmt: skip
IGNORED = {"bastion-server": ("keys", "userData")}
Make = Callable[..., Graph]


def kind_of(record: Record) -> str:
    return record.type.rsplit(":", 1)[-1]


def test_shipped_environments() -> None:
    assert ENVIRONMENTS == ["hopper", "local", "mi300x", "vela"]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_graph_has_no_fault(name: str, graph_of: Make) -> None:
    assert faults(graph_of(name), API_KEY) == []
    assert faults(graph_of(name, preview=True), API_KEY) == []


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_options_of_every_resource(name: str, graph_of: Make) -> None:
    graph, protect = graph_of(name), plan_of(name).environment.cloud.protect
    assert protect is (name != "local")
    bastion = {r.urn for r in graph.resources if r.name.startswith("bastion-")}
    for record in graph.resources:
        expected = protect and kind_of(record) in PROTECTED and record.urn not in bastion
        assert record.protect is expected, record.name
        assert record.delete_before_replace, record.name
        assert record.aliases == 0, record.name
        assert record.ignore_changes == IGNORED.get(record.name, ()) or re.fullmatch(
            r"r\d+-h\d+-server", record.name
        )


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_names_say_where_a_resource_belongs(name: str, graph_of: Make) -> None:
    graph = graph_of(name)
    names = {record.urn: record.name for record in graph.records.values()}
    for record in graph.resources:
        assert record.name.startswith(f"{names[record.parent]}-"), record.name


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_everything_that_takes_tags_and_a_group_has_them(name: str, graph_of: Make) -> None:
    tags = ["vela", f"vela-environment:{name}"]
    for record in graph_of(name).resources:
        kind = kind_of(record)
        assert record.inputs.get("tags") == (None if kind in WITHOUT_TAGS else tags), record.name
        expected = None if kind in WITHOUT_GROUP else "group-1"
        assert record.inputs.get("resourceGroup") == expected, record.name


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


# worked out by hand from the environment files
NETWORK = 1 + 1 + 1 + 1  # VPC, prefix, ACL, gateway
OUTWARD = 2 * 5 + 1  # five ports in each of IBM's two service networks, and HTTPS anywhere
HOST_RULES = 1 + 2 + OUTWARD  # SSH from one place, among hosts both ways
BASTION = 1 + (1 + 1 + OUTWARD) + 1 + 3  # group, its rules, image; interface, server, address
COUNTS = {
    # two subnets and a rule for storage; key, group, image; servers with two interfaces; switches
    "local": NETWORK + 2 + 1 + 1 + HOST_RULES + 1 + 1 + 2 * 3 + 2 * 2 + 2,
    "vela": NETWORK + 2 + 1 + 1 + HOST_RULES + 1 + 1 + 190 * 3 + 48 * 2 + 4,
    "mi300x": NETWORK + 2 + 1 + 1 + HOST_RULES + 1 + 1 + 4 * 3 + BASTION,
    # one subnet; a cluster network of eight, servers with 1 + 8 interfaces, a group for each rack
    "hopper": NETWORK + 1 + 1 + 1 + HOST_RULES + 1 + 4 * (1 + 1 + 8) + 1 + 8 + 2 + BASTION,
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
    graph, plan = graph_of(name), plan_of(name)
    for host in plan.hosts:
        server = graph.named(f"{host.name}-server")
        on = {urn.rsplit("::", 1)[-1] for urn in server.dependencies}
        own = [i.name for i in host.interfaces] + [a.name for a in host.attachments]
        placement = {f"r{host.rack:02d}-placement"} if host.kind == "virtual_server" else set()
        assert on == placement | {
            "network-vpc",
            "access-key-ops",
            f"images-{host.image}",
            *(f"{host.name}-{part}" for part in own),
        }
        assert server.ignore_changes == ("image", "keys", "userData")


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_interfaces_are_resources_of_their_own(name: str, graph_of: Make) -> None:
    graph, plan = graph_of(name), plan_of(name)
    for server in graph.of("IsBareMetalServer") + graph.of("IsInstance"):
        text = text_of(server.inputs)
        for inline in ("networkInterfaces", "primaryNetworkInterface", "interfaceType", "subnet"):
            assert f'"{inline}"' not in text, (server.name, inline)
    for host in plan.hosts:
        server = graph.named(f"{host.name}-server")
        first, *others = [f"id-{host.name}-{i.name}" for i in host.interfaces]
        primary = server.inputs["primaryNetworkAttachment"]
        assert primary["virtualNetworkInterface"] == {"id": first}
        key = "virtualNetworkInterface" + ("s" if host.kind == "bare_metal" else "")
        secondary = [a[key] for a in server.inputs["networkAttachments"]]
        assert secondary == [[{"id": o}] if key.endswith("s") else {"id": o} for o in others]
        for interface in host.interfaces:
            inputs = graph.named(f"{host.name}-{interface.name}").inputs
            assert inputs["subnet"] == f"id-network-{interface.subnet}"
            assert inputs["primaryIp"]["address"] == str(interface.address)
    for interface_ in graph.of("IsVirtualNetworkInterface"):
        assert interface_.inputs["autoDelete"] is False
        assert interface_.inputs["allowIpSpoofing"] is False
        assert interface_.inputs["enableInfrastructureNat"] is True
        assert 1 <= len(interface_.inputs["securityGroups"]) <= 5


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_subnet_waits_for_its_prefix(name: str, graph_of: Make) -> None:
    for subnet in graph_of(name).of("IsSubnet"):
        on = {urn.rsplit("::", 1)[-1] for urn in subnet.dependencies}
        assert {"network-prefix", "network-acl", "network-vpc"} <= on


def test_slow_resources_have_an_hour(graph_of: Make) -> None:
    hour = {"create": "60m", "update": "60m", "delete": "60m"}
    slow = [*graph_of("mi300x").resources, *graph_of("hopper").resources]
    for record in slow:
        if kind_of(record) in {"IsImage", "IsBareMetalServer"} or record.name.endswith(
            "h01-server"
        ):
            assert record.inputs["timeouts"] == hour, record.name


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
