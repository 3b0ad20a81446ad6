import json
from collections.abc import Callable
from ipaddress import ip_interface
from pathlib import PurePath

import pytest

from tests.components.conftest import plan_of
from tests.conftest import ROOT
from vela.outputs import ClusterOutputs, HostOutput, InterfaceOutput, VpcOutput
from vela.plan import Plan
from vela.render.bundle import Bundle, BundleFile
from vela.render.cluster import bundles, inventory
from vela.render.templates import Templates

TEMPLATES = Templates(ROOT / "templates")
Root = Callable[[str], str | None]


def outputs_of(plan: Plan, bastion: str | None = None) -> ClusterOutputs:
    hosts = {
        host.name: HostOutput(
            id=f"id-{host.name}",
            kind=host.kind,
            rack=host.rack,
            management_address=str(host.management_address),
            interfaces={
                i.name: InterfaceOutput(
                    id="x", address=str(i.address), mac=f"02:00:00:00:{host.rack:02x}:{n:02x}"
                )
                for n, i in enumerate(host.interfaces)
            },
        )
        for host in plan.hosts
    }
    return ClusterOutputs(
        schema=1, environment=plan.name, vpc=VpcOutput(id="v", crn="c", name="n"), subnets={},
        images={}, hosts=hosts, switches={}, cables=[], bastion_address=bastion,
    )  # fmt: skip


def files(bundle: Bundle) -> dict[str, str]:
    return {file.path: file.content for file in bundle.files}


def made(name: str) -> dict[str, Bundle]:
    plan = plan_of(name)
    return {b.node: b for b in bundles(plan, outputs_of(plan), TEMPLATES, lambda _: None)}


def test_a_host_of_local() -> None:
    found = files(made("local")["r02-h01"])
    assert set(found) == {
        "/etc/default/grub.d/60-vela.cfg", "/etc/hostname", "/etc/hosts",
        "/etc/modules-load.d/vela.conf", "/etc/sysctl.d/60-vela.conf",
        "/etc/systemd/network/10-vela-management.network",
        "/etc/systemd/network/10-vela-storage.network",
        "/etc/systemd/system/dev-hugepages1G.mount",
    }  # fmt: skip
    assert found["/etc/hostname"] == "r02-h01\n"
    lines = found["/etc/hosts"].splitlines()
    assert "127.0.1.1 r02-h01" in lines
    assert "10.240.0.65 r01-h01" in lines
    assert "10.240.0.189 r02-leaf2" in lines
    assert (
        'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX iommu=pt default_hugepagesz=1G hugepagesz=1G '
        'hugepages=2 pci=realloc modprobe.blacklist=nouveau,nvidia,nvidia_drm"\n'
    ) in found["/etc/default/grub.d/60-vela.cfg"]
    assert found["/etc/systemd/network/10-vela-management.network"].splitlines()[1:] == [
        "[Match]", "MACAddress=02:00:00:00:02:00", "", "[Network]", "Description=management",
        "Address=10.240.0.129/24", "Gateway=10.240.0.1", "DNS=161.26.0.10", "DNS=161.26.0.11",
        "NTP=time.adn.networklayer.com",
    ]  # fmt: skip
    storage = found["/etc/systemd/network/10-vela-storage.network"]
    assert "Gateway" not in storage
    assert "Address=10.240.1.129/24\n" in storage


def test_an_intel_host_has_its_iommu_on() -> None:
    text = files(made("vela")["r01-h01"])["/etc/default/grub.d/60-vela.cfg"]
    assert " intel_iommu=on iommu=pt " in text
    assert " hugepages=1280 " in text


def test_virtual_servers_get_nothing_of_a_hypervisor() -> None:
    bundle = made("hopper")["r01-h01"]
    assert bundle.packages == ()
    assert not [path for path in files(bundle) if "grub" in path or "hugepages" in path]


def test_a_switch() -> None:
    (text,) = files(made("local")["r02-leaf2"]).values()
    assert json.loads(text) == {
        "DEVICE_METADATA": {
            "localhost": {
                "hostname": "r02-leaf2", "hwsku": "DellEMC-S5232f-C32", "type": "ToRRouter",
                "bgp_asn": "4200001009",
            }
        },
        "LOOPBACK_INTERFACE": {"Loopback0": {}, "Loopback0|10.196.0.66/32": {}},
        "MGMT_INTERFACE": {"eth0|10.240.0.189/24": {"gwaddr": "10.240.0.1"}},
        "MGMT_PORT": {"eth0": {"alias": "eth0", "admin_status": "up"}},
    }  # fmt: skip


def test_two_renders_are_the_same_bytes() -> None:
    one, two = made("vela"), made("vela")
    assert [b.model_dump_json(by_alias=True) for b in one.values()] == [
        b.model_dump_json(by_alias=True) for b in two.values()
    ]


@pytest.mark.parametrize("name", ["local", "vela", "mi300x", "hopper"])
def test_every_node_has_a_bundle_with_paths_of_its_own(name: str) -> None:
    plan, found = plan_of(name), made(name)
    assert set(found) == set(plan.nodes)
    for bundle in found.values():
        paths = [file.path for file in bundle.files]
        assert paths == sorted(set(paths))
        for file in bundle.files:
            assert file.content.endswith("\n")
            assert "{{" not in file.content
            for line in file.content.splitlines():
                if line.startswith("Address="):
                    ip_interface(line.removeprefix("Address="))


def test_without_the_clouds_answers_network_files_are_left_out() -> None:
    plan = plan_of("local")
    found = bundles(plan, None, TEMPLATES, lambda _: None)
    assert not [f.path for b in found for f in b.files if f.path.endswith(".network")]


def test_inventory_of_directories_and_of_real_nodes_behind_a_bastion() -> None:
    plan = plan_of("mi300x")
    outputs = outputs_of(plan, "203.0.113.1")
    real = bundles(plan, outputs, TEMPLATES, lambda _: None)
    said = inventory(plan, outputs, real, PurePath("/b"), "py")["all"]["children"]
    assert said["switches"]["hosts"] == {}
    assert said["hosts"]["hosts"]["r01-h01"] == {
        "vela_bundle_file": "/b/r01-h01.json",
        "ansible_host": "10.241.0.65",
        "ansible_user": "root",
        "ansible_ssh_common_args": "-o ProxyJump=root@203.0.113.1",
    }
    trees = bundles(plan, outputs, TEMPLATES, lambda node: f"/t/{node}")
    said = inventory(plan, outputs, trees, PurePath("/b"), "py")["all"]["children"]
    assert said["hosts"]["hosts"]["r01-h01"] == {
        "vela_bundle_file": "/b/r01-h01.json",
        "ansible_connection": "local",
        "ansible_python_interpreter": "py",
    }


@pytest.mark.parametrize("path", ["etc/x", "/etc/../x", "/etc//x", "/etc/x/", "/./x"])
def test_paths_are_normalised_and_absolute(path: str) -> None:
    with pytest.raises(ValueError, match="normalised absolute path"):
        BundleFile(path=path, content="", change="live")
