"""Whatever the environment: what the plan says is what is registered, no more and no less."""

from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from components.cluster import declare
from tests.components.conftest import API_KEY, plan_of
from tests.conftest import ROOT
from tests.harness import Graph, faults, run_program
from vela.model.environment import Environment
from vela.outputs import ClusterOutputs
from vela.plan import Plan, build
from vela.rules.base import Case
from vela.rules.base import faults as broken_rules

KEYS = [
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDfj5vIfFJdnQphXwd311Avi5HIR3zgw24DTgQY1eMBG one",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOWOrKRXRpnVTA7R3em6X5iKlIqybeScSJK+6iBbpZy4 two",
]
IMAGE = {
    "href": "cos://us-east/images/one.qcow2",
    "sha256": "0123456789abcdef" * 4,
    "operating_system": "ubuntu-24-04-amd64",
}
HELD = {"id": "r014-01234567-89ab-cdef-0123-456789abcdef"}


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Plans of small clusters, of bare metal with a fabric or of virtual servers."""
    virtual = draw(st.booleans())
    base = "hopper" if virtual else "local"
    said: dict[str, Any] = yaml.safe_load((ROOT / f"environments/{base}.yaml").read_text())
    racks, per_rack = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    hosts = [f"r{r:02d}-h{h:02d}" for r in range(1, racks + 1) for h in range(1, per_rack + 1)]
    absent = draw(st.sets(st.sampled_from(hosts), max_size=len(hosts) - 1))
    images = {"host": IMAGE, "other": draw(st.sampled_from([IMAGE, HELD]))}
    subnets = ["management", *(f"s{n}" for n in range(draw(st.integers(0, 3))))]
    said["hosts"] |= {"racks": racks, "per_rack": per_rack, "image": "host"}
    said["hosts"]["overrides"] = {host: {"state": "absent"} for host in absent} | {
        host: {"image": "other"}
        for host in draw(st.sets(st.sampled_from(hosts), max_size=2)) - absent
    }
    said["images"] = images
    said.pop("guests", None)
    cloud = said["cloud"]
    cloud["network"] = {
        "cidr": "10.240.0.0/16",
        "subnets": {name: f"10.240.{index}.0/24" for index, name in enumerate(subnets)},
        "addresses_per_rack": 32,
        "public_gateway": draw(st.booleans()),
    }
    sources = draw(st.integers(0, 2))
    cloud["access"] = {
        "ssh_keys": {f"k{n}": key for n, key in enumerate(KEYS[: draw(st.integers(1, 2))])},
        "allow_ssh_from": tuple(f"192.0.2.{128 * n}/25" for n in range(sources)),
        **({"bastion": {"image": "other"}} if draw(st.booleans()) else {}),
    }
    cloud["protect"] = draw(st.booleans())
    if virtual:
        cloud["cluster_network"] |= {"attachments": draw(st.sampled_from([8, 16]))}
    elif draw(st.booleans()):
        spines, leafs = draw(st.integers(1, 3)), draw(st.integers(1, 2))
        said["fabric"] |= {"spines": spines, "leafs_per_rack": leafs}
    else:
        del said["fabric"]
    environment, hardware = Environment.model_validate(said), plan_of(base).hardware
    assert [fault for _, fault in broken_rules(Case(environment, hardware))] == []
    return build(environment, hardware)


def planned(plan: Plan) -> dict[str, int]:
    """How many resources of each kind there must be."""
    access, gateway = plan.environment.cloud.access, plan.environment.cloud.network.public_gateway
    bastion, sources, subnets = bool(access.bastion), len(access.allow_ssh_from), len(plan.subnets)
    hosts, switches = len(plan.hosts), len(plan.switches)
    virtual = plan.cluster_network is not None
    attachments = len(plan.cluster_network.subnets) if plan.cluster_network else 0
    rules = (1 if bastion else sources) + 2 + (subnets - 1) + 10 + gateway
    rules += (sources + 1 + 10 + gateway) if bastion else 0
    counts = {
        "IsVpc": 1,
        "IsVpcAddressPrefix": 1,
        "IsNetworkAcl": 1,
        "IsPublicGateway": int(gateway),
        "IsSubnet": subnets,
        "IsSshKey": len(access.ssh_keys),
        "IsSecurityGroup": 1 + bastion,
        "IsSecurityGroupRule": rules,
        "IsImage": sum(image.href is not None for image in plan.images),
        "IsVirtualNetworkInterface": hosts * subnets + bastion,
        "IsBareMetalServer": 0 if virtual else hosts,
        "IsInstance": (hosts if virtual else 0) + bastion,
        "IsFloatingIp": int(bastion),
        "IsPlacementGroup": len(plan.racks) if virtual else 0,
        "IsClusterNetwork": int(virtual),
        "IsClusterNetworkSubnet": attachments,
        "IsClusterNetworkInterface": hosts * attachments,
        "IsSubnetReservedIp": switches,
    }
    return {kind: count for kind, count in counts.items() if count}


def registered(graph: Graph) -> dict[str, int]:
    counts: dict[str, int] = {}
    for record in graph.resources:
        kind = record.type.rsplit(":", 1)[-1]
        counts[kind] = counts.get(kind, 0) + 1
    return counts


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plan=plans())
def test_the_graph_is_the_plan(plan: Plan) -> None:
    graph = run_program(lambda: declare(plan))
    assert faults(graph, API_KEY) == []
    assert registered(graph) == planned(plan)

    preview = run_program(lambda: declare(plan), preview=True)
    assert {(r.type, r.name) for r in preview.resources} == {
        (r.type, r.name) for r in graph.resources
    }

    names = [(r.type, r.inputs["name"]) for r in graph.resources if "name" in r.inputs]
    assert len(set(names)) == len(names)
    assert max(len(name) for _, name in names) <= 63

    for host in plan.hosts:
        server = graph.named(f"{host.name}-server").inputs
        image = next(i for i in plan.images if i.name == host.image)
        assert server["image"] == (image.id or f"id-images-{host.image}")
        assert (server["name"], server["profile"]) == (host.cloud_name, host.profile)
    said = {
        (r.inputs["name"], r.inputs["primaryIp"]["address"])
        for r in graph.of("IsVirtualNetworkInterface") + graph.of("IsClusterNetworkInterface")
        if not r.name.startswith("bastion-")
    }
    assert said == {
        *((i.cloud_name, str(i.address)) for host in plan.hosts for i in host.interfaces),
        *((a.cloud_name, str(a.address)) for host in plan.hosts for a in host.attachments),
    }
    assert {(r.inputs["name"], r.inputs["address"]) for r in graph.of("IsSubnetReservedIp")} == {
        (switch.cloud_name, str(switch.management_address)) for switch in plan.switches
    }

    outputs = ClusterOutputs.model_validate(graph.exports["cluster"])
    assert set(outputs.hosts) | set(outputs.switches) == set(plan.nodes)
    assert set(outputs.images) == {image.name for image in plan.images}
    assert {(c.a.node, c.a.port, c.b.node, c.b.port) for c in outputs.cables} == {
        (c.a.node, c.a.port, c.b.node, c.b.port) for c in plan.cables
    }
