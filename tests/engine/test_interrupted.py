"""Runs that are killed, answers that are lost, clouds that fail: the next run finishes."""

import time

import pytest

from tests.engine.conftest import Folder

pytestmark = pytest.mark.engine


def names(project: Folder) -> list[str]:
    """Names of everything that the cloud holds of the environment."""
    cloud = project.cloud
    found = [
        *(r["name"] for r in cloud.list_vpcs().get_result()["vpcs"]),
        *(r["name"] for r in cloud.list_subnets().get_result()["subnets"]),
        *(r["name"] for r in cloud.list_keys().get_result()["keys"]),
        *(r["name"] for r in cloud.list_images(visibility="private").get_result()["images"]),
        *(
            r["name"]
            for r in cloud.list_virtual_network_interfaces().get_result()[
                "virtual_network_interfaces"
            ]
        ),
        *(r["name"] for r in cloud.list_bare_metal_servers().get_result()["bare_metal_servers"]),
    ]
    return sorted(found)


WHOLE = [
    "tiny",
    "tiny-debian-12-kvm-4f5e2c1b",
    "tiny-management",
    "tiny-ops",
    "tiny-r01-h01",
    "tiny-r01-h01-management",
]


def test_killed_while_the_vpc_is_made_then_its_answer_lost_then_finished(project: Folder) -> None:
    first = project.begin("up", "tiny")
    project.wait_for("POST", "/v1/vpcs")
    project.kill(first)
    # the next run loses the answer to the interface that it makes
    project.lab(
        "POST", "faults", {"kind": "lose", "method": "POST", "path": "virtual_network_interfaces$"}
    )
    second = project.run("up", "tiny")
    third = project.json("up", "tiny")
    assert third["clean"] in {True, None}
    assert names(project) == WHOLE
    said = project.json("drift", "tiny")
    assert said["findings"] == []
    assert second.returncode in {0, 1}


def test_killed_during_the_playbooks(project: Folder) -> None:
    path = project.root / ".vela/tiny/r01-h01/etc/hosts"
    path.write_text("damaged\n")
    run = project.begin("configure", "tiny")
    time.sleep(1.5)
    project.kill(run)
    assert path.read_text() == "damaged\n" or "r01-h01" in path.read_text()
    assert project.run("configure", "tiny").returncode == 0
    assert "10.243.0.65 r01-h01\n" in path.read_text()
    assert project.run("configure", "tiny", "--check").returncode == 0


def test_a_node_that_fails_does_not_stop_and_is_named(project: Folder) -> None:
    blocked = project.root / ".vela/tiny/r01-h01/etc/hosts"
    blocked.unlink()
    blocked.mkdir()
    said = project.json("configure", "tiny", code=1)
    assert [(f["node"], f["rule"], f["found"]) for f in said["findings"]] == [
        ("r01-h01", "VELA-NODE-001", "/etc/hosts is a directory")
    ]
    blocked.rmdir()
    assert project.run("configure", "tiny").returncode == 0


def test_a_cloud_that_refuses_is_said_and_the_next_run_completes(project: Folder) -> None:
    cloud = project.cloud
    server = cloud.list_bare_metal_servers().get_result()["bare_metal_servers"][0]
    cloud.stop_bare_metal_server(server["id"], type="hard")
    cloud.get_bare_metal_server(server["id"])
    cloud.delete_bare_metal_server(server["id"])
    project.lab("PUT", "quotas", {"bare_metal_servers": 0})
    done = project.run("up", "tiny")
    assert done.returncode == 1
    assert "the account holds its 0 bare metal servers" in done.stderr
    assert "severity" not in done.stderr
    assert "Traceback" not in done.stderr
    project.lab("PUT", "quotas", {"bare_metal_servers": 25})
    assert project.json("up", "tiny")["clean"] is True
    assert names(project) == WHOLE


def test_destroy_leaves_nothing(project: Folder) -> None:
    done = project.run("destroy", "tiny", "--yes")
    assert done.returncode == 0, done.stderr
