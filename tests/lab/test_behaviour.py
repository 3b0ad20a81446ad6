"""Errors, states, paging, entity tags, faults and memory of the simulated cloud."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from ibm_cloud_sdk_core import ApiException
from ibm_vpc import VpcV1

from lab.cloud import environment
from tests.conftest import ROOT
from tests.lab.conftest import KEY, ZONE, Account, client

Break = Callable[[VpcV1, dict[str, Any]], Any]


def metal(made: dict[str, Any], **changes: object) -> dict[str, object]:
    return {
        "name": "other", "profile": {"name": "bx2-metal-96x384"}, "zone": ZONE,
        "initialization": {"image": {"id": made["image"]["id"]},
                           "keys": [{"id": made["key"]["id"]}]},
        "primary_network_attachment": {"virtual_network_interface": {
            "subnet": {"id": made["subnet"]["id"]}}},
    } | changes  # fmt: skip


def subnet(made: dict[str, Any], cidr: str) -> dict[str, object]:
    return {"vpc": {"id": made["vpc"]["id"]}, "zone": ZONE, "ipv4_cidr_block": cidr}


def address(made: dict[str, Any], text: str) -> dict[str, Any]:
    return {"subnet": {"id": made["subnet"]["id"]}, "primary_ip": {"address": text}}


ERRORS: list[tuple[int, str, Break]] = [
    (404, "not_found", lambda c, m: c.get_vpc("r014-none")),
    (409, "validation_unique_failed", lambda c, m: c.create_vpc(name="net")),
    (400, "invalid_value", lambda c, m: c.create_vpc(name="Net_1")),
    (409, "vpc_in_use", lambda c, m: c.delete_vpc(m["vpc"]["id"])),
    (409, "address_prefix_in_use", lambda c, m: c.delete_vpc_address_prefix(
        m["vpc"]["id"], m["prefix"]["id"])),
    (409, "address_prefix_conflict", lambda c, m: c.create_vpc_address_prefix(
        m["vpc"]["id"], "10.1.128.0/17", ZONE)),
    (400, "invalid_value", lambda c, m: c.create_vpc_address_prefix(
        m["vpc"]["id"], "10.9.0.1/16", ZONE)),
    (400, "subnet_cidr_invalid", lambda c, m: c.create_subnet(subnet(m, "10.2.0.0/24"))),
    (409, "subnet_cidr_conflict", lambda c, m: c.create_subnet(subnet(m, "10.1.0.128/25"))),
    (400, "bad_reference", lambda c, m: c.create_subnet(
        subnet(m, "10.1.9.0/24") | {"zone": {"name": "us-east-9"}})),
    (409, "subnet_in_use", lambda c, m: c.delete_subnet(m["subnet"]["id"])),
    (409, "public_gateway_exists", lambda c, m: c.create_public_gateway(
        {"id": m["vpc"]["id"]}, ZONE)),
    (409, "public_gateway_in_use", lambda c, m: c.delete_public_gateway(m["gateway"]["id"])),
    (409, "security_group_in_use", lambda c, m: c.delete_security_group(m["group"]["id"])),
    (409, "rule_exists", lambda c, m: c.create_security_group_rule(
        m["group"]["id"], {"direction": "inbound", "protocol": "tcp", "port_min": 22,
                           "port_max": 22, "remote": {"cidr_block": "192.0.2.0/24"}})),
    (409, "key_fingerprint_conflict", lambda c, m: c.create_key(KEY, name="again")),
    (409, "reserved_ip_in_use", lambda c, m: c.create_virtual_network_interface(
        **address(m, m["interface"]["primary_ip"]["address"]))),
    (400, "invalid_value", lambda c, m: c.create_virtual_network_interface(
        **address(m, "10.1.0.3"))),
    (400, "invalid_value", lambda c, m: c.create_virtual_network_interface(
        **address(m, "10.1.1.9"))),
    (409, "virtual_network_interface_in_use", lambda c, m: c.delete_virtual_network_interfaces(
        m["interface"]["id"])),
    (400, "bad_reference", lambda c, m: c.create_bare_metal_server(
        metal(m, profile={"name": "none"}))),
    (400, "bad_reference", lambda c, m: c.create_bare_metal_server(
        metal(m, initialization={"image": {"id": "none"}, "keys": []}))),
    (409, "validation_unique_failed", lambda c, m: c.create_bare_metal_server(
        metal(m, name="metal"))),
    (400, "over_quota", lambda c, m: c.create_bare_metal_server(metal(
        m, network_attachments=[
            {"interface_type": "pci",
             "virtual_network_interface": {"subnet": {"id": m["subnet"]["id"]}}}] * 8))),
    (409, "server_not_stopped", lambda c, m: c.delete_bare_metal_server(m["metal"]["id"])),
    (409, "placement_group_in_use", lambda c, m: c.delete_placement_group(m["placement"]["id"])),
    (412, "precondition_failed", lambda c, m: c.delete_cluster_network(
        m["cluster"]["id"], if_match="W/another")),
    (409, "subnet_in_use", lambda c, m: c.delete_cluster_network_subnet(
        m["cluster"]["id"], m["rail"]["id"], if_match="*")),
]  # fmt: skip


def test_errors(account: Account) -> None:
    made = account.make()
    before = account.admin("GET", "state")["counts"]
    for status, code, call in ERRORS:
        with pytest.raises(ApiException) as caught:
            call(account.vpc, made)
        body = caught.value.http_response.json()
        assert (caught.value.status_code, body["errors"][0]["code"]) == (status, code)
        # bad input leaves nothing behind
        assert account.admin("GET", "state")["counts"] == before, code


def test_five_groups_and_no_more(account: Account) -> None:
    made = account.make()
    within = {"id": made["vpc"]["id"]}
    groups = [{"id": account.vpc.create_security_group(within).get_result()["id"]}
              for _ in range(6)]  # fmt: skip
    where = {"subnet": {"id": made["subnet"]["id"]}}
    account.vpc.create_virtual_network_interface(security_groups=groups[:5], **where)
    with pytest.raises(ApiException) as caught:
        account.vpc.create_virtual_network_interface(security_groups=groups, **where)
    assert caught.value.status_code == 400


def test_quota(account: Account) -> None:
    made = account.make()
    account.admin("PUT", "quotas", {"bare_metal_servers": 1})
    with pytest.raises(ApiException) as caught:
        account.vpc.create_bare_metal_server(metal(made))
    assert caught.value.http_response.json()["errors"][0]["code"] == "over_quota"


def test_states_advance_as_they_are_read(account: Account) -> None:
    account.admin("PUT", "polls", {"polls": 2})
    made = account.vpc.create_vpc(name="slow").get_result()
    seen = [made["status"]]
    seen += [account.vpc.get_vpc(made["id"]).get_result()["status"] for _ in range(3)]
    assert seen == ["pending", "pending", "available", "available"]


def test_a_server_can_be_told_to_fail(account: Account) -> None:
    made = account.make()
    account.admin("POST", "fail", {"kind": "bare_metal_servers"})
    server = account.vpc.create_bare_metal_server(metal(made)).get_result()
    assert account.vpc.get_bare_metal_server(server["id"]).get_result()["status"] == "failed"


def test_stop_start_and_delete(account: Account) -> None:
    made = account.make()
    identity = made["metal"]["id"]
    account.vpc.get_bare_metal_server(identity)
    account.vpc.stop_bare_metal_server(identity, "hard")
    status = account.vpc.get_bare_metal_server(identity).get_result()["status"]
    assert status == "stopped"
    account.vpc.start_bare_metal_server(identity)
    assert account.vpc.get_bare_metal_server(identity).get_result()["status"] == "running"
    account.vpc.stop_bare_metal_server(identity, "hard")
    account.vpc.get_bare_metal_server(identity)
    account.vpc.delete_bare_metal_server(identity)
    with pytest.raises(ApiException) as caught:
        account.vpc.get_bare_metal_server(identity)
    assert caught.value.status_code == 404
    # its interfaces stay, and are free again
    account.vpc.delete_virtual_network_interfaces(made["interface"]["id"])


def test_paging(account: Account) -> None:
    for number in range(5):
        account.vpc.create_security_group({"id": _vpc(account)}, name=f"g{number}")
    names: list[str] = []
    start = None
    pages = 0
    while True:
        result = account.vpc.list_security_groups(limit=2, start=start).get_result()
        names += [group["name"] for group in result["security_groups"]]
        pages += 1
        if "next" not in result:
            break
        start = result["next"]["href"].split("start=")[1]
    assert names == ["paged-default-sg", "g0", "g1", "g2", "g3", "g4"]
    assert pages == 3


def _vpc(account: Account) -> str:
    for vpc in account.vpc.list_vpcs().get_result()["vpcs"]:
        return str(vpc["id"])
    return str(account.vpc.create_vpc(name="paged").get_result()["id"])


def test_entity_tags(account: Account) -> None:
    made = account.make()
    answer = account.vpc.get_cluster_network(made["cluster"]["id"])
    tag = answer.get_headers()["Etag"]
    changed = account.vpc.update_cluster_network(
        made["cluster"]["id"], {"name": "renamed"}, if_match=tag
    )
    assert changed.get_headers()["Etag"] != tag
    with pytest.raises(ApiException) as caught:
        account.vpc.update_cluster_network(made["cluster"]["id"], {"name": "x"}, if_match=tag)
    assert caught.value.status_code == 412


def test_faults(account: Account) -> None:
    def fault(**said: object) -> None:
        account.admin("POST", "faults", {"method": "POST", "path": "/vpcs$"} | said)

    fault(kind="status", status=503)
    with pytest.raises(ApiException) as caught:
        account.vpc.create_vpc(name="a")
    assert caught.value.status_code == 503
    fault(kind="garbage")
    assert b"html" in requests.post(f"{account.url}/v1/vpcs", json={}, timeout=5).content
    assert account.vpc.list_vpcs().get_result()["vpcs"] == []
    fault(kind="drop")
    with pytest.raises(requests.ConnectionError):
        requests.post(f"{account.url}/v1/vpcs", json={"name": "dropped"}, timeout=5)
    assert account.vpc.list_vpcs().get_result()["vpcs"] == []
    fault(kind="lose")
    with pytest.raises(requests.ConnectionError):
        requests.post(f"{account.url}/v1/vpcs", json={"name": "lost"}, timeout=5)
    assert [v["name"] for v in account.vpc.list_vpcs().get_result()["vpcs"]] == ["lost"]
    fault(kind="stall", seconds=0.3)
    begun = time.monotonic()
    account.vpc.create_vpc(name="slow")
    assert time.monotonic() - begun >= 0.3
    assert account.admin("GET", "state")["faults"] == []
    with pytest.raises(requests.HTTPError):
        account.admin("POST", "faults", {"kind": "magic"})


def test_many_at_once_get_addresses_of_their_own(account: Account) -> None:
    made = account.make()
    errors: list[Exception] = []

    def create(number: int) -> None:
        service = client(account.url)
        try:
            for part in range(5):
                service.create_virtual_network_interface(
                    name=f"t{number}-{part}", subnet={"id": made["subnet"]["id"]}
                )
        except ApiException as error:
            errors.append(error)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    found = account.vpc.list_virtual_network_interfaces(limit=100).get_result()
    addresses = [v["primary_ip"]["address"] for v in found["virtual_network_interfaces"]]
    assert len(addresses) == len(set(addresses)) == 3 + 16 * 5
    left = account.vpc.get_subnet(made["subnet"]["id"]).get_result()
    assert left["available_ipv4_address_count"] == 256 - 5 - len(addresses)


def test_it_remembers_after_a_kill(tmp_path: Path) -> None:
    def command(word: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "lab.cloud", word, "--dir", str(tmp_path)],
            cwd=ROOT, capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    first = command("start")
    assert command("start")["pid"] == first["pid"]
    client(first["url"]).create_vpc(name="kept")
    time.sleep(1)
    os.kill(first["pid"], signal.SIGKILL)
    time.sleep(0.2)
    second = command("start")
    try:
        assert second["url"] == first["url"]
        vpcs = client(second["url"]).list_vpcs().get_result()["vpcs"]
        assert [vpc["name"] for vpc in vpcs] == ["kept"]
        assert (tmp_path / "state.json").stat().st_mode & 0o777 == 0o600
        assert "eyJ" not in (tmp_path / "requests.log").read_text()
        assert second["environment"] == environment(second["url"])
    finally:
        command("stop")
    assert command("status") == {}


def test_the_rest_of_the_account(account: Account) -> None:
    url = account.url
    form = {"grant_type": "urn:ibm:params:oauth:grant-type:apikey", "apikey": "any"}
    said = requests.post(f"{url}/identity/token", data=form, timeout=5).json()
    assert said["access_token"].count(".") == 2
    assert said["expiration"] > time.time()
    groups = requests.get(f"{url}/v2/resource_groups?name=Default", timeout=5).json()
    assert [group["name"] for group in groups["resources"]] == ["Default"]
    crn = account.vpc.create_vpc(name="tagged").get_result()["crn"]
    body = {"resources": [{"resource_id": crn}], "tag_names": ["b", "a"]}
    requests.post(f"{url}/v3/tags/attach?tag_type=user", json=body, timeout=5)
    query = {"query": f'crn:"{crn}"', "fields": ["tags"]}
    items = requests.post(f"{url}/v3/resources/search", json=query, timeout=5).json()["items"]
    assert items == [
        {"id": crn, "crn": crn, "tags": ["a", "b"], "access_tags": [], "service_tags": []}
    ]
