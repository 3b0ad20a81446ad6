"""The main job on the real engine: up, second up, drift of every kind, repair, destroy."""

import subprocess
import time

import pytest
import requests

from tests.engine.conftest import Folder

pytestmark = pytest.mark.engine

NODES = 8


def test_up_makes_everything_and_a_second_look_finds_nothing(project: Folder) -> None:
    said = project.json("up", "local")
    assert said["clean"] is True
    assert said["findings"] == []
    assert said["nodes"]["states"] == dict.fromkeys(said["nodes"]["states"], "changed")
    assert len(said["nodes"]["states"]) == NODES
    assert {change["op"] for change in said["cloud"]["changes"]} == {"create"}
    counts = project.lab("GET", "state")["counts"]
    assert counts["bare_metal_servers"] == 2
    assert counts["virtual_network_interfaces"] == 4
    # two interfaces a host, and a management address for each of six switches
    assert counts["reserved_ips"] == 10
    hosts = (project.root / ".vela/local/r01-h01/etc/hosts").read_text()
    assert "10.240.0.65 r01-h01\n" in hosts
    mac = project.cloud.list_virtual_network_interfaces().get_result()
    macs = {v["name"]: v["mac_address"] for v in mac["virtual_network_interfaces"]}
    network = (
        project.root / ".vela/local/r02-h01/etc/systemd/network/10-vela-storage.network"
    ).read_text()
    assert f"MACAddress={macs['local-r02-h01-storage']}\n" in network


def test_a_second_up_changes_nothing(project: Folder) -> None:
    said = project.json("up", "local")
    assert said["cloud"]["changes"] == []
    assert set(said["nodes"]["states"].values()) == {"ok"}
    # one bundle call a node
    assert said["nodes"]["module_calls"] == NODES


def test_nothing_has_drifted(project: Folder) -> None:
    said = project.json("drift", "local")
    assert said["findings"] == []
    assert project.run("drift", "local").stdout.startswith("no drift")


def test_pulumi_typed_by_hand_agrees(project: Folder) -> None:
    lines = project.run("env", "local").stdout
    script = f"{lines}\npulumi preview --stack local --expect-no-changes --non-interactive"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=project.root,
        env=project.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    output = subprocess.run(
        ["bash", "-c", f"{lines}\npulumi stack output cluster --stack local --non-interactive"],
        cwd=project.root,
        env=project.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert '"management_address":"10.240.0.65"' in output


def test_every_seeded_fault_is_named_and_none_invented(project: Folder) -> None:
    cloud = project.cloud
    subnets = cloud.list_subnets().get_result()["subnets"]
    storage = next(s for s in subnets if s["name"] == "local-storage")
    cloud.update_subnet(storage["id"], {"name": "renamed"})
    groups = cloud.list_security_groups().get_result()["security_groups"]
    hosts = next(g for g in groups if g["name"] == "local-hosts")
    ssh = next(r for r in hosts["rules"] if r.get("port_min") == 22)
    cloud.update_security_group_rule(hosts["id"], ssh["id"], {"port_max": 2222})
    foreign = {"direction": "inbound", "protocol": "udp", "port_min": 9, "port_max": 9}
    cloud.create_security_group_rule(hosts["id"], foreign | {"name": "foreign"})
    servers = cloud.list_bare_metal_servers().get_result()["bare_metal_servers"]
    stopped = next(s for s in servers if s["name"] == "local-r02-h01")
    cloud.stop_bare_metal_server(stopped["id"], type="hard")
    cloud.get_bare_metal_server(stopped["id"])
    _tag(project, next(s for s in subnets if s["name"] == "local-management")["crn"])
    root = project.root / ".vela/local"
    edited = root / "r01-h01/etc/hosts"
    edited.write_text(edited.read_text() + "192.0.2.9 intruder\n")
    (root / "r02-h01/etc/sysctl.d/60-vela.conf").unlink()
    (root / "spine01/etc/sonic/vela/base.json").chmod(0o600)
    said = project.json("drift", "local", code=3)
    found = {(f["layer"], f["node"], f["item"], f["change"]) for f in said["findings"]}
    rule = "access-hosts-inbound-tcp-22-22-192-0-2-0-24"
    assert found == {
        ("cloud", "network-storage", "name", "live"),
        ("cloud", "network-management", "tags", "live"),
        ("cloud", rule, "security rule", "live"),
        ("cloud", "foreign", "security rule", "live"),
        ("cloud", "r02-h01-server", "status", "live"),
        ("host", "r01-h01", "/etc/hosts (content)", "live"),
        ("host", "r02-h01", "/etc/sysctl.d/60-vela.conf (missing)", "live"),
        ("switch", "spine01", "/etc/sonic/vela/base.json (mode)", "fabric-drain"),
    }
    port = next(f for f in said["findings"] if f["node"] == rule)
    assert port["expected"] == "inbound tcp 22 192.0.2.0/24"
    assert port["found"] == "inbound tcp 22-2222 192.0.2.0/24"


def _tag(project: Folder, crn: str) -> None:
    body = {"resources": [{"resource_id": crn}], "tag_names": ["intruder"]}
    url = f"{project.url}/v3/tags/attach?tag_type=user"
    requests.post(url, json=body, timeout=10).raise_for_status()


def test_up_repairs_what_may_be_repaired(project: Folder) -> None:
    said = project.json("up", "local", code=3)
    left = {(f["node"], f["item"]) for f in said["findings"]}
    # what nothing in the plan needs is named, never removed unasked; and nobody's server is
    # started unasked
    assert left == {("foreign", "security rule"), ("r02-h01-server", "status")}
    groups = project.cloud.list_security_groups().get_result()["security_groups"]
    hosts = next(g for g in groups if g["name"] == "local-hosts")
    assert [r["port_max"] for r in hosts["rules"] if r.get("port_min") == 22] == [22]
    edited = project.root / ".vela/local/r01-h01/etc/hosts"
    assert "intruder" not in edited.read_text()


def test_a_deleted_server_is_found_and_made_again(project: Folder) -> None:
    cloud = project.cloud
    servers = cloud.list_bare_metal_servers().get_result()["bare_metal_servers"]
    # it is stopped, since the test before
    gone = next(s for s in servers if s["name"] == "local-r02-h01")
    cloud.delete_bare_metal_server(gone["id"])
    groups = cloud.list_security_groups().get_result()["security_groups"]
    hosts = next(g for g in groups if g["name"] == "local-hosts")
    foreign = next(r for r in hosts["rules"] if r["name"] == "foreign")
    cloud.delete_security_group_rule(hosts["id"], foreign["id"])
    said = project.json("drift", "local", code=3)
    assert ("r02-h01-server", "IsBareMetalServer") in {
        (f["node"], f["item"]) for f in said["findings"]
    }
    again = project.json("up", "local")
    assert [c["name"] for c in again["cloud"]["changes"] if c["op"] == "create"] == [
        "r02-h01-server"
    ]
    assert project.lab("GET", "state")["counts"]["bare_metal_servers"] == 2


def test_a_second_run_says_who_holds_the_lock(project: Folder) -> None:
    first = project.begin("drift", "local")
    try:
        lock = project.root / ".vela/run/local/lock"
        for _ in range(100):
            if f'"pid": {first.pid}' in lock.read_text():
                break
            time.sleep(0.1)
        done = project.run("drift", "local")
    finally:
        first.wait(120)
    assert done.returncode == 1
    assert f"environment local is held by `vela drift local`, process {first.pid}" in done.stderr


def test_destroy_removes_all_of_it(project: Folder) -> None:
    done = project.run("destroy", "local", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (project.root / ".vela/local").exists()
    assert not (project.root / ".vela/run/local/outputs.json").exists()
    assert not (project.root / ".vela/cloud/server.json").exists()


def test_a_protected_environment_is_not_destroyed(project: Folder) -> None:
    done = project.run("destroy", "vela", "--yes")
    assert done.returncode == 1
    assert "vela is protected" in done.stderr
