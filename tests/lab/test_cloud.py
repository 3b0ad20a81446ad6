"""The simulated cloud against IBM's own client and models: resources, states, memory."""

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ibm_vpc.vpc_v1 as models
import pytest
import requests
from ibm_cloud_sdk_core import ApiException
from ibm_vpc import VpcV1

from lab.cloud.server import Simulator
from tests.conftest import ROOT
from tests.lab.conftest import KEY, ZONE, Account, client

Made = dict[str, Any]
Call = Callable[[VpcV1, Made], Any]

SECONDS = 20


@dataclass
class Region(Account):
    def http(self, method: str, path: str, **more: Any) -> requests.Response:
        return requests.request(method, self.url + path, timeout=SECONDS, **more)


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Region]:
    server = Simulator(0, folder / "state.json", folder / "requests.log")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield Region(server, client(server.url))
    finally:
        server.shutdown()
        thread.join()
        server.close()


def until(what: Callable[[], bool]) -> None:
    limit = time.monotonic() + SECONDS
    while not what():
        assert time.monotonic() < limit, "it did not happen in time"
        time.sleep(0.02)


# fmt: off
def network(c: VpcV1) -> Made:
    vpc = c.create_vpc(address_prefix_management="manual", name="net").get_result()
    within = {"id": vpc["id"]}
    prefix = c.create_vpc_address_prefix(vpc["id"], "10.1.0.0/16", ZONE, name="p").get_result()
    gateway = c.create_public_gateway(within, ZONE, name="gw").get_result()
    acl = c.create_network_acl({"name": "acl", "vpc": within, "rules": [
        {"name": "in", "action": "allow", "direction": "inbound", "protocol": "tcp",
         "source": "0.0.0.0/0", "destination": "10.1.0.0/16", "destination_port_min": 22,
         "destination_port_max": 22},
        {"name": "no", "action": "deny", "direction": "inbound", "protocol": "any",
         "source": "0.0.0.0/0", "destination": "0.0.0.0/0"}]}).get_result()
    subnet = c.create_subnet({"name": "a", "vpc": within, "zone": ZONE, "network_acl": acl,
                              "public_gateway": {"id": gateway["id"]},
                              "ipv4_cidr_block": "10.1.0.0/24"}).get_result()
    groups = [c.create_security_group(within, name=f"sg{n}").get_result() for n in range(6)]
    rule = c.create_security_group_rule(groups[0]["id"], {
        "direction": "inbound", "protocol": "tcp", "port_min": 22, "port_max": 22,
        "remote": {"cidr_block": "192.0.2.0/24"}}).get_result()
    vnis = [c.create_virtual_network_interface(
        name=f"n{n}", subnet={"id": subnet["id"]}, security_groups=[{"id": groups[0]["id"]}],
    ).get_result() for n in range(3)]
    return {"vpc": vpc, "prefix": prefix, "gateway": gateway, "acl": acl, "subnet": subnet,
            "group": groups[0], "groups": groups, "rule": rule, "vni": vnis[0], "vnis": vnis}


def everything(c: VpcV1) -> Made:
    made = network(c)
    key = c.create_key(KEY, name="ops").get_result()
    image = c.create_image({"name": "img", "file": {"href": "cos://r/b/o.qcow2"},
                            "operating_system": {"name": "debian-12-amd64"}}).get_result()
    c.get_image(image["id"])
    cards = [{"name": f"e{n}", "virtual_network_interface": {"id": vni["id"]}}
             for n, vni in enumerate(made["vnis"])]
    metal = c.create_bare_metal_server({
        "name": "metal", "profile": {"name": "bx2-metal-96x384"}, "zone": ZONE,
        "initialization": {"image": {"id": image["id"]}, "keys": [{"id": key["id"]}]},
        "primary_network_attachment": cards[0],
        "network_attachments": [{**cards[1], "interface_type": "pci"}]}).get_result()
    cluster = c.create_cluster_network(
        {"name": "hopper-1"}, {"id": made["vpc"]["id"]}, ZONE, name="roce",
        subnet_prefixes=[{"cidr": "10.0.0.0/9"}]).get_result()
    rail = c.create_cluster_network_subnet(
        cluster["id"], {"name": "rail", "ipv4_cidr_block": "10.2.0.0/18"}).get_result()
    ports = [c.create_cluster_network_interface(
        cluster["id"], name=f"port{n}", subnet={"id": rail["id"]}).get_result() for n in range(9)]
    spread = c.create_placement_group("host_spread", name="spread").get_result()
    instance = c.create_instance({
        "name": "vsi", "profile": {"name": "gx3d-160x1792x8h100"}, "zone": ZONE,
        "image": {"id": image["id"]}, "keys": [{"id": key["id"]}],
        "primary_network_attachment": cards[2], "placement_target": {"id": spread["id"]},
        "cluster_network_attachments": [
            {"cluster_network_interface": {"id": port["id"]}} for port in ports[:8]],
    }).get_result()
    fip = c.create_floating_ip(
        {"name": "fip", "target": {"id": made["vnis"][2]["id"]}}).get_result()
    return made | {"key": key, "image": image, "metal": metal, "cluster": cluster, "rail": rail,
                   "port": ports[8], "spread": spread, "instance": instance, "fip": fip}


SINGLE = {
    # model, what to get, and whose ids that takes
    "vpc": ("VPC", "vpc", "vpc"),
    "prefix": ("AddressPrefix", "vpc_address_prefix", "vpc prefix"),
    "table": ("RoutingTable", "vpc_routing_table", "vpc vpc.default_routing_table"),
    "default acl": ("DefaultNetworkACL", "vpc_default_network_acl", "vpc"),
    "default group": ("DefaultSecurityGroup", "vpc_default_security_group", "vpc"),
    "subnet": ("Subnet", "subnet", "subnet"),
    "subnet's acl": ("NetworkACL", "subnet_network_acl", "subnet"),
    "ip": ("ReservedIP", "subnet_reserved_ip", "subnet vni.primary_ip"),
    "gateway": ("PublicGateway", "public_gateway", "gateway"),
    "subnet's gateway": ("PublicGateway", "subnet_public_gateway", "subnet"),
    "fip": ("FloatingIP", "floating_ip", "fip"),
    "acl": ("NetworkACL", "network_acl", "acl"),
    "acl rule": ("NetworkACLRuleNetworkACLRuleProtocolTCPUDP", "network_acl_rule",
        "acl acl.rules.0"),
    "group": ("SecurityGroup", "security_group", "group"),
    "rule": ("SecurityGroupRuleSecurityGroupRuleProtocolTCPUDP", "security_group_rule",
        "group rule"),
    "key": ("Key", "key", "key"),
    "image": ("Image", "image", "image"),
    "vni": ("VirtualNetworkInterface", "virtual_network_interface", "vni"),
    "metal": ("BareMetalServer", "bare_metal_server", "metal"),
    "setup": ("BareMetalServerInitialization", "bare_metal_server_initialization", "metal"),
    "disk": ("BareMetalServerDisk", "bare_metal_server_disk", "metal metal.disks.0"),
    "metal's card": ("BareMetalServerNetworkAttachmentByPCI",
        "bare_metal_server_network_attachment", "metal metal.network_attachments.1"),
    "metal's older card": ("BareMetalServerNetworkInterfaceByPCI",
        "bare_metal_server_network_interface", "metal metal.network_interfaces.1"),
    "instance": ("Instance", "instance", "instance"),
    "instance's setup": ("InstanceInitialization", "instance_initialization", "instance"),
    "instance's card": ("InstanceNetworkAttachment", "instance_network_attachment",
        "instance instance.network_attachments.0"),
    "instance's older card": ("NetworkInterface", "instance_network_interface",
        "instance instance.network_interfaces.0"),
    "cluster card": ("InstanceClusterNetworkAttachment", "instance_cluster_network_attachment",
        "instance instance.cluster_network_attachments.0"),
    "volume card": ("VolumeAttachment", "instance_volume_attachment",
        "instance instance.boot_volume_attachment"),
    "volume": ("Volume", "volume", "instance.boot_volume_attachment.volume"),
    "spread": ("PlacementGroup", "placement_group", "spread"),
    "cluster": ("ClusterNetwork", "cluster_network", "cluster"),
    "rail": ("ClusterNetworkSubnet", "cluster_network_subnet", "cluster rail"),
    "rail's ip": ("ClusterNetworkSubnetReservedIP", "cluster_network_subnet_reserved_ip",
        "cluster rail port.primary_ip"),
    "port": ("ClusterNetworkInterface", "cluster_network_interface", "cluster port"),
    "hopper-1": ("ClusterNetworkProfile", "cluster_network_profile", "=hopper-1"),
    "system": ("OperatingSystem", "operating_system", "=debian-12-amd64"),
    "metal profile": ("BareMetalServerProfile", "bare_metal_server_profile", "=bx2-metal-96x384"),
    "gpu profile": ("InstanceProfile", "instance_profile", "=gx3d-160x1792x8h100"),
    "small profile": ("InstanceProfile", "instance_profile", "=bx2-2x8"),
    "region": ("Region", "region", "=us-east"),
    "zone": ("Zone", "region_zone", "=us-east =us-east-3"),
}
LISTS = {
    # model, how many there are, what to list, and whose ids that takes
    "vpcs": ("VPC*", 1, "vpcs", ""),
    "address_prefixes": ("AddressPrefix*", 1, "vpc_address_prefixes", "vpc"),
    "routing_tables": ("RoutingTable*", 1, "vpc_routing_tables", "vpc"),
    "subnets": ("Subnet*", 1, "subnets", ""),
    "reserved_ips": ("ReservedIP*", 3, "subnet_reserved_ips", "subnet"),
    "public_gateways": ("PublicGateway*", 1, "public_gateways", ""),
    "floating_ips": ("FloatingIP*", 1, "floating_ips", ""),
    "floating_ips of one": ("FloatingIP*VirtualNetworkInterfaceContext", 1,
        "network_interface_floating_ips", "vnis.2"),
    "network_acls": ("NetworkACL*", 2, "network_acls", ""),
    "rules": ("NetworkACLRule*", 2, "network_acl_rules", "acl"),
    "rules of sg": ("SecurityGroupRule*", 1, "security_group_rules", "group"),
    "security_groups": ("SecurityGroup*", 7, "security_groups", ""),
    "targets": ("SecurityGroupTarget*", 3, "security_group_targets", "group"),
    "keys": ("Key*", 1, "keys", ""),
    "images": ("Image*", 3, "images", ""),
    "virtual_network_interfaces": ("VirtualNetworkInterface*", 3, "virtual_network_interfaces", ""),
    "ips": ("ReservedIP*VirtualNetworkInterfaceContext", 1, "virtual_network_interface_ips", "vni"),
    "bare_metal_servers": ("BareMetalServer*", 1, "bare_metal_servers", ""),
    "disks": ("BareMetalServerDisk*", 1, "bare_metal_server_disks", "metal"),
    "network_attachments": ("BareMetalServerNetworkAttachment*", 2,
        "bare_metal_server_network_attachments", "metal"),
    "network_interfaces": ("BareMetalServerNetworkInterface*", 2,
        "bare_metal_server_network_interfaces", "metal"),
    "network_interfaces of vsi": ("NetworkInterfaceUnpaginated*", 1, "instance_network_interfaces",
        "instance"),
    "profiles": ("BareMetalServerProfile*", 4, "bare_metal_server_profiles", ""),
    "profiles of vsi": ("InstanceProfile*", 3, "instance_profiles", ""),
    "profiles of net": ("ClusterNetworkProfile*", 1, "cluster_network_profiles", ""),
    "instances": ("Instance*", 1, "instances", ""),
    "network_attachments of vsi": ("InstanceNetworkAttachment*", 1, "instance_network_attachments",
        "instance"),
    "cluster_network_attachments": ("InstanceClusterNetworkAttachment*", 8,
        "instance_cluster_network_attachments", "instance"),
    "volume_attachments": ("VolumeAttachment*", 1, "instance_volume_attachments", "instance"),
    "placement_groups": ("PlacementGroup*", 1, "placement_groups", ""),
    "cluster_networks": ("ClusterNetwork*", 1, "cluster_networks", ""),
    "subnets of net": ("ClusterNetworkSubnet*", 1, "cluster_network_subnets", "cluster"),
    "reserved_ips of net": ("ClusterNetworkSubnetReservedIP*", 9,
        "cluster_network_subnet_reserved_ips", "cluster rail"),
    "interfaces": ("ClusterNetworkInterface*", 9, "cluster_network_interfaces", "cluster"),
    "operating_systems": ("OperatingSystem*", 4, "operating_systems", ""),
    "regions": ("Region*", 1, "regions", ""),
    "zones": ("Zone*", 3, "region_zones", "=us-east"),
}
# fmt: on
ROWS = [(kind, name, 0, f"get_{what}", ids) for kind, (name, what, ids) in SINGLE.items()] + [
    (kind, name.replace("*", "Collection"), count, f"list_{what}", ids)
    for kind, (name, count, what, ids) in LISTS.items()
]


def ask(c: VpcV1, made: Made, method: str, ids: str) -> Any:
    """Call a method with literals (``=us-east``) and ids of what was made (``metal.disks.0``)."""
    values = []
    for path in ids.split():
        found: Any = made
        for key in path.split("."):
            found = path[1:] if path[0] == "=" else found[int(key) if key.isdigit() else key]
        values.append(found if path[0] == "=" else found["id"])
    return getattr(c, method)(*values).get_result()


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Region, Made]]:
    with running(tmp_path_factory.mktemp("full")) as region:
        yield region, everything(region.vpc)


@pytest.fixture
def region(tmp_path: Path) -> Iterator[Region]:
    with running(tmp_path) as started:
        yield started


@pytest.mark.parametrize(
    ("kind", "name", "count", "method", "ids"), ROWS, ids=[f"{row[1]}-{row[0]}" for row in ROWS]
)
def test_ibms_model_takes_it(
    full: tuple[Region, Made], kind: str, name: str, count: int, method: str, ids: str
) -> None:
    region, made = full
    result = ask(region.vpc, made, method, ids)
    model = getattr(models, name).from_dict(result)
    # nothing is missing, and nothing is there that the model does not know
    assert set(model.to_dict()) == set(result)
    if count:
        key = kind.split(" of ", maxsplit=1)[0]
        assert len(result[key]) == count
        assert result.get("total_count", count) == count
    elif kind in made:
        assert (model.name, result["href"]) == (made[kind]["name"], made[kind]["href"])
        # what the creation answered is of the same kind
        assert getattr(models, name).from_dict(made[kind]).name == model.name


LAST = {
    "vpc": ("status", "available"),
    "subnet": ("status", "available"),
    "gateway": ("status", "available"),
    "vni": ("lifecycle_state", "stable"),
}


def test_states_advance_with_readings_and_not_with_lists(region: Region) -> None:
    assert region.admin("PUT", "polls", {"polls": 3}) == {"polls": 3}
    made = network(region.vpc)
    for kind, (key, last) in LAST.items():
        # a list counts as no reading
        region.vpc.list_vpcs()
        _, what, ids = SINGLE[kind]
        seen = [ask(region.vpc, made, f"get_{what}", ids)[key] for _ in range(4)]
        assert (kind, made[kind][key], seen) == (
            kind, "pending", ["pending", "pending", last, last]
        )  # fmt: skip
    region.admin("PUT", "polls", {"polls": 0})
    assert region.vpc.create_vpc(name="now").get_result()["status"] == "available"


def test_a_server_runs_stops_fails_and_goes(region: Region) -> None:
    c, made = region.vpc, everything(region.vpc)
    identity = made["metal"]["id"]

    def status() -> str:
        return str(c.list_bare_metal_servers().get_result()["bare_metal_servers"][0]["status"])

    assert made["metal"]["status"] == "pending"
    seen = []
    for act in (
        lambda: None,
        lambda: c.stop_bare_metal_server(identity, "soft"),
        lambda: c.start_bare_metal_server(identity),
        lambda: c.stop_bare_metal_server(identity, "hard"),
    ):
        act()
        seen += [status(), c.get_bare_metal_server(identity).get_result()["status"]]
    assert seen == [
        "pending", "running", "stopping", "stopped", "starting", "running", "stopping", "stopped"
    ]  # fmt: skip
    assert c.delete_bare_metal_server(identity).get_status_code() == 204
    with pytest.raises(ApiException) as caught:
        c.get_bare_metal_server(identity)
    assert caught.value.status_code == 404
    # its interfaces are free, and can go
    assert "target" not in c.get_virtual_network_interface(made["vni"]["id"]).get_result()
    assert c.delete_virtual_network_interfaces(made["vni"]["id"]).get_status_code() == 202
    region.admin("POST", "fail", {"kind": "vpcs"})
    broken = c.create_vpc(name="broken").get_result()
    assert c.get_vpc(broken["id"]).get_result()["status"] == "failed"


def test_state_outlives_the_server(tmp_path: Path) -> None:
    with running(tmp_path) as region:
        everything(region.vpc)
        counts = region.admin("GET", "state")["counts"]
        servers = region.http("GET", "/v1/bare_metal_servers").json()["bare_metal_servers"]
    with running(tmp_path) as region:
        assert region.admin("GET", "state")["counts"] == counts
        again = region.http("GET", "/v1/bare_metal_servers").json()["bare_metal_servers"]
        assert again == servers
        # names are still taken, addresses too
        with pytest.raises(ApiException, match="not unique"):
            region.vpc.create_vpc(name="net")
        subnet = region.vpc.list_subnets().get_result()["subnets"][0]
        vni = region.vpc.create_virtual_network_interface(subnet={"id": subnet["id"]})
        assert vni.get_result()["primary_ip"]["address"] == "10.1.0.7"


@contextlib.contextmanager
def process(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    ready = folder / "server.json"
    started = subprocess.Popen(
        [sys.executable, "-m", "lab.cloud", "serve", "--dir", str(folder)], cwd=ROOT
    )

    def up() -> bool:
        assert started.poll() is None, "it ended"
        return ready.exists() and json.loads(ready.read_text())["pid"] == started.pid

    try:
        until(up)
        yield started, json.loads(ready.read_text())["url"]
    finally:
        started.kill()
        started.wait(SECONDS)


def test_state_outlives_kill_9(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    with process(tmp_path) as (server, url):
        vpc = client(url).create_vpc(name="kept").get_result()
        until(lambda: state.exists() and vpc["crn"] in state.read_text())
        server.kill()
        assert server.wait(SECONDS) == -9
    with process(tmp_path) as (server, again):
        assert again == url
        kept = client(url).get_vpc(vpc["id"]).get_result()
        assert (kept["name"], kept["crn"], kept["href"]) == ("kept", vpc["crn"], vpc["href"])
        second = subprocess.run(
            [sys.executable, "-m", "lab.cloud", "serve", "--dir", str(tmp_path)],
            cwd=ROOT, capture_output=True, check=False, timeout=SECONDS,
        )  # fmt: skip
        assert (second.returncode, b"holds" in second.stderr) == (1, True)
        server.terminate()
        assert server.wait(SECONDS) == 0
    assert not (tmp_path / "server.json").exists()
