"""The simulated cloud when asked for what cannot be, when it is broken, and its other services."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
from ibm_cloud_sdk_core import ApiException

from tests.lab.conftest import KEY, ZONE, client
from tests.lab.test_cloud import Call, Made, Region, everything, network, running, until


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Region, Made]]:
    with running(tmp_path_factory.mktemp("full")) as region:
        yield region, everything(region.vpc)


@pytest.fixture
def region(tmp_path: Path) -> Iterator[Region]:
    with running(tmp_path) as started:
        yield started


# fmt: off
def metal(m: Made, **changes: object) -> Made:
    return {"name": "other", "profile": {"name": "bx2-metal-96x384"}, "zone": ZONE,
            "initialization": {"image": {"id": m["image"]["id"]}, "keys": [{"id": m["key"]["id"]}]},
            "primary_network_attachment": card(m)} | changes


def card(m: Made) -> Made:
    return {"virtual_network_interface": {"subnet": {"id": m["subnet"]["id"]}}}


def subnet(m: Made, cidr: str, zone: str = "us-east-3") -> Made:
    return {"vpc": {"id": m["vpc"]["id"]}, "zone": {"name": zone}, "ipv4_cidr_block": cidr}


def at(m: Made, address: str) -> Made:
    return {"subnet": {"id": m["subnet"]["id"]}, "primary_ip": {"address": address}}


def instance(m: Made, **changes: object) -> Made:
    return {"name": "other", "profile": {"name": "gx3d-160x1792x8h100"}, "zone": ZONE,
            "image": {"id": m["image"]["id"]}, "primary_network_attachment": card(m)} | changes


ERRORS: dict[str, tuple[int, str, Call]] = {
    "name of a vpc": (409, "validation_unique_failed", lambda c, m: c.create_vpc(name="net")),
    "name of a server": (409, "validation_unique_failed", lambda c, m:
        c.create_bare_metal_server(metal(m, name="metal"))),
    "name of a subnet": (409, "validation_unique_failed", lambda c, m: c.create_subnet(
        subnet(m, "10.1.9.0/24") | {"name": "a"})),
    "rename": (409, "validation_unique_failed", lambda c, m: c.update_security_group(
        m["groups"][1]["id"], {"name": "sg2"})),
    "malformed name": (400, "invalid_value", lambda c, m: c.create_vpc(name="Net_1")),
    "address in use": (409, "reserved_ip_in_use", lambda c, m:
        c.create_virtual_network_interface(**at(m, m["vni"]["primary_ip"]["address"]))),
    "address kept by IBM": (400, "invalid_value", lambda c, m:
        c.create_virtual_network_interface(**at(m, "10.1.0.3"))),
    "last address": (400, "invalid_value", lambda c, m:
        c.create_virtual_network_interface(**at(m, "10.1.0.255"))),
    "address outside": (400, "invalid_value", lambda c, m:
        c.create_virtual_network_interface(**at(m, "10.1.1.9"))),
    "bound address": (409, "reserved_ip_in_use", lambda c, m: c.delete_subnet_reserved_ip(
        m["subnet"]["id"], m["vni"]["primary_ip"]["id"])),
    "vpc with subnets": (409, "vpc_in_use", lambda c, m: c.delete_vpc(m["vpc"]["id"])),
    "subnet with addresses": (409, "subnet_in_use", lambda c, m: c.delete_subnet(
        m["subnet"]["id"])),
    "prefix with subnets": (409, "address_prefix_in_use", lambda c, m:
        c.delete_vpc_address_prefix(m["vpc"]["id"], m["prefix"]["id"])),
    "group with targets": (409, "security_group_in_use", lambda c, m: c.delete_security_group(
        m["group"]["id"])),
    "default group": (409, "security_group_default", lambda c, m: c.delete_security_group(
        m["vpc"]["default_security_group"]["id"])),
    "acl with subnets": (409, "network_acl_in_use", lambda c, m: c.delete_network_acl(
        m["acl"]["id"])),
    "gateway of a subnet": (409, "public_gateway_in_use", lambda c, m: c.delete_public_gateway(
        m["gateway"]["id"])),
    "second gateway": (409, "public_gateway_exists", lambda c, m: c.create_public_gateway(
        {"id": m["vpc"]["id"]}, ZONE)),
    "attached interface": (409, "virtual_network_interface_in_use", lambda c, m:
        c.delete_virtual_network_interfaces(m["vni"]["id"])),
    "running server": (409, "server_not_stopped", lambda c, m: c.delete_bare_metal_server(
        m["metal"]["id"])),
    "placement with servers": (409, "placement_group_in_use", lambda c, m:
        c.delete_placement_group(m["spread"]["id"])),
    "network with subnets": (409, "cluster_network_in_use", lambda c, m:
        c.delete_cluster_network(m["cluster"]["id"], if_match="*")),
    "rail with ports": (409, "subnet_in_use", lambda c, m: c.delete_cluster_network_subnet(
        m["cluster"]["id"], m["rail"]["id"], if_match="*")),
    "fingerprint": (409, "key_fingerprint_conflict", lambda c, m: c.create_key(
        KEY, name="again")),
    "no key": (400, "invalid_value", lambda c, m: c.create_key("ssh-rsa", name="bad")),
    "cidr": (400, "invalid_value", lambda c, m: c.create_subnet(subnet(m, "10.1.9.0/33"))),
    "cidr with host bits": (400, "invalid_value", lambda c, m: c.create_vpc_address_prefix(
        m["vpc"]["id"], "10.9.0.1/16", ZONE)),
    "outside the prefix": (400, "subnet_cidr_invalid", lambda c, m: c.create_subnet(
        subnet(m, "10.2.0.0/24"))),
    "prefix of another zone": (400, "subnet_cidr_invalid", lambda c, m: c.create_subnet(
        subnet(m, "10.1.9.0/24", "us-east-1"))),
    "overlapping prefix": (409, "address_prefix_conflict", lambda c, m:
        c.create_vpc_address_prefix(m["vpc"]["id"], "10.1.128.0/17", ZONE)),
    "overlapping subnet": (409, "subnet_cidr_conflict", lambda c, m: c.create_subnet(
        subnet(m, "10.1.0.128/25"))),
    "overlapping rail": (409, "subnet_cidr_conflict", lambda c, m: c.create_cluster_network_subnet(
        m["cluster"]["id"], {"ipv4_cidr_block": "10.2.32.0/20"})),
    "unknown profile": (400, "bad_reference", lambda c, m: c.create_bare_metal_server(
        metal(m, profile={"name": "none"}))),
    "unknown instance profile": (400, "bad_reference", lambda c, m: c.create_instance(
        instance(m, profile={"name": "none"}))),
    "unknown zone": (400, "bad_reference", lambda c, m: c.create_bare_metal_server(
        metal(m, zone={"name": "us-east-9"}))),
    "unknown image": (400, "bad_reference", lambda c, m: c.create_bare_metal_server(
        metal(m, initialization={"image": {"id": "none"}, "keys": [{"id": m["key"]["id"]}]}))),
    "unknown system": (400, "bad_reference", lambda c, m: c.create_image(
        {"file": {"href": "cos://r/b/o.qcow2"}, "operating_system": {"name": "none"}})),
    "unknown key": (400, "bad_reference", lambda c, m: c.create_bare_metal_server(
        metal(m, initialization={"image": {"id": m["image"]["id"]}, "keys": [{"id": "none"}]}))),
    "zone without the profile": (400, "bad_reference", lambda c, m: c.create_cluster_network(
        {"name": "hopper-1"}, {"id": m["vpc"]["id"]}, {"name": "us-east-1"})),
    "nine attachments": (400, "over_quota", lambda c, m: c.create_bare_metal_server(
        metal(m, network_attachments=[card(m) | {"interface_type": "pci"}] * 8))),
    "six groups": (400, "over_quota", lambda c, m: c.create_virtual_network_interface(
        subnet={"id": m["subnet"]["id"]}, security_groups=[{"id": g["id"]} for g in m["groups"]])),
    "same rule": (409, "rule_exists", lambda c, m: c.create_security_group_rule(
        m["group"]["id"], {"direction": "inbound", "protocol": "tcp", "port_min": 22,
                           "port_max": 22, "remote": {"cidr_block": "192.0.2.0/24"}})),
    "stock image": (403, "forbidden", lambda c, m: c.delete_image(
        c.list_images(visibility="public").get_result()["images"][0]["id"])),
    **{f"no such {what}": (404, "not_found", call) for what, call in dict[str, Call]({
        "vpc": lambda c, m: c.get_vpc("r014-none"),
        "subnet": lambda c, m: c.delete_subnet("none"),
        "interface": lambda c, m: c.get_virtual_network_interface("none"),
        "server": lambda c, m: c.start_bare_metal_server("none"),
        "profile": lambda c, m: c.get_bare_metal_server_profile("none"),
        "network": lambda c, m: c.get_cluster_network("none"),
        "path": lambda c, m: c.list_vpn_gateways(),
    }).items()},
}
# fmt: on


def refused(call: Call, region: Region, made: Made) -> tuple[int, str]:
    with pytest.raises(ApiException) as caught:
        call(region.vpc, made)
    body = caught.value.http_response.json()
    assert body["trace"] == "simulated"
    return caught.value.status_code, body["errors"][0]["code"]


@pytest.mark.parametrize(("status", "code", "call"), ERRORS.values(), ids=list(ERRORS))
def test_what_is_refused_changes_nothing(
    full: tuple[Region, Made], status: int, code: str, call: Call
) -> None:
    region, made = full
    before = region.admin("GET", "state")["counts"]
    free = region.vpc.get_subnet(made["subnet"]["id"]).get_result()
    assert refused(call, region, made) == (status, code)
    assert region.admin("GET", "state")["counts"] == before
    assert region.vpc.get_subnet(made["subnet"]["id"]).get_result() == free


def test_limits_themselves_are_allowed(region: Region) -> None:
    made = everything(region.vpc)
    vni = region.vpc.create_virtual_network_interface(
        subnet={"id": made["subnet"]["id"]},
        security_groups=[{"id": group["id"]} for group in made["groups"][:5]],
    ).get_result()
    assert [g["name"] for g in vni["security_groups"]] == ["sg0", "sg1", "sg2", "sg3", "sg4"]
    others = [card(made) | {"interface_type": "pci"}] * 7
    server = region.vpc.create_bare_metal_server(metal(made, network_attachments=others))
    assert len(server.get_result()["network_attachments"]) == 8


@pytest.mark.parametrize("kind", ["bare_metal_servers", "keys", "vpcs", "instances"])
def test_quotas(region: Region, kind: str) -> None:
    made = everything(region.vpc)
    region.admin("PUT", "quotas", {kind: 1})
    calls: dict[str, Call] = {
        "bare_metal_servers": lambda c, m: c.create_bare_metal_server(metal(m)),
        "keys": lambda c, m: c.create_key("ssh-ed25519 AAAA", name="more"),
        "vpcs": lambda c, m: c.create_vpc(name="more"),
        "instances": lambda c, m: c.create_instance(instance(m)),
    }
    assert refused(calls[kind], region, made) == (400, "over_quota")
    region.admin("PUT", "quotas", {kind: 2})
    assert calls[kind](region.vpc, made).get_status_code() == 201


@pytest.mark.parametrize("kind", ["cluster", "rail", "port"])
def test_entity_tags(full: tuple[Region, Made], kind: str) -> None:
    region, made = full
    path = f"/v1/cluster_networks/{made['cluster']['id']}"
    if kind != "cluster":
        path += f"/{'subnets' if kind == 'rail' else 'interfaces'}/{made[kind]['id']}"
    tag = region.http("GET", path).headers["Etag"]
    assert region.http("GET", path).headers["Etag"] == tag

    def change(name: str, method: str = "PATCH", **headers: str) -> tuple[int, str, str]:
        answer = region.http(method, path, json={"name": name}, headers=headers)
        errors = answer.json().get("errors", [{"code": ""}])
        return answer.status_code, errors[0]["code"], region.http("GET", path).json()["name"]

    name = made[kind]["name"]
    for method in ("PATCH", "DELETE"):
        assert change("bad", method) == (400, "missing_field", name)
        wrong = {"If-Match": 'W/"0000"'}
        assert change("bad", method, **wrong) == (412, "precondition_failed", name)
    assert change("new", **{"If-Match": tag}) == (200, "", "new")
    # the tag is of a state that is no more
    assert change("newer", **{"If-Match": tag}) == (412, "precondition_failed", "new")
    assert change(name, **{"If-Match": "*"}) == (200, "", name)


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 100])
def test_paging(region: Region, limit: int) -> None:
    names = [f"spread-{n}" for n in range(5)]
    for name in names:
        region.vpc.create_placement_group("host_spread", name=name)
    seen: list[list[str]] = []
    query = f"limit={limit}"
    while query:
        result = region.http("GET", f"/v1/placement_groups?{query}").json()
        assert (result["limit"], result["total_count"]) == (limit, 5)
        seen.append([group["name"] for group in result["placement_groups"]])
        query = result.get("next", {"href": "?"})["href"].split("?")[1]
    assert seen == [names[at : at + limit] for at in range(0, 5, limit)]


def names(region: Region) -> list[str]:
    return [vpc["name"] for vpc in region.vpc.list_vpcs().get_result()["vpcs"]]


def fault(region: Region, kind: str, **more: Any) -> None:
    region.admin("POST", "faults", {"kind": kind, "method": "POST", "path": "/vpcs$"} | more)


@pytest.mark.parametrize(("status", "wait"), [(500, None), (503, "1"), (429, "1"), (401, None)])
def test_fault_status(region: Region, status: int, wait: str | None) -> None:
    fault(region, "status", status=status, count=2)
    for _ in range(2):
        answer = region.http("POST", "/v1/vpcs", json={"name": "a"})
        assert (answer.status_code, answer.headers.get("Retry-After")) == (status, wait)
        assert answer.json()["errors"][0]["code"] == "simulated_fault"
    # what does not match was never hit, and it is over
    assert names(region) == []
    assert region.http("POST", "/v1/vpcs", json={"name": "a"}).status_code == 201


def test_fault_garbage(region: Region) -> None:
    fault(region, "garbage")
    answer = region.http("POST", "/v1/vpcs", json={"name": "a"})
    assert (answer.status_code, answer.text[:6]) == (200, "<html>")
    assert names(region) == []


@pytest.mark.parametrize(("kind", "left"), [("drop", []), ("lose", ["a"])])
def test_fault_without_an_answer(region: Region, kind: str, left: list[str]) -> None:
    fault(region, kind)
    with pytest.raises(requests.ConnectionError):
        region.http("POST", "/v1/vpcs", json={"name": "a"})
    assert names(region) == left
    # so a second try meets what the lost one made
    again = region.http("POST", "/v1/vpcs", json={"name": "a"}).status_code
    assert again == (409 if left else 201)
    assert names(region) == ["a"]


def test_fault_stall(region: Region) -> None:
    fault(region, "stall", seconds=0.4)
    begun = time.monotonic()
    assert region.http("POST", "/v1/vpcs", json={"name": "a"}).status_code == 201
    assert time.monotonic() - begun >= 0.4
    fault(region, "stall", seconds=0.4)
    with pytest.raises(requests.Timeout):
        requests.post(f"{region.url}/v1/vpcs", json={"name": "b"}, timeout=0.1)
    # a caller that gave up does not undo it
    until(lambda: names(region) == ["a", "b"])


def test_faults_are_shown_cleared_and_checked(region: Region) -> None:
    fault(region, "drop", count=9)
    waiting = region.admin("GET", "state")["faults"]
    assert [(f["kind"], f["count"], f["path"]) for f in waiting] == [("drop", 9, "/vpcs$")]
    region.admin("DELETE", "faults")
    assert region.admin("GET", "state")["faults"] == []
    for wrong in ({"kind": "magic"}, {"kind": "drop", "colour": "red"}, {}):
        assert region.http("POST", "/_lab/faults", json=wrong).status_code == 400


def test_sixteen_threads_get_addresses_of_their_own(region: Region) -> None:
    made = network(region.vpc)
    together = threading.Barrier(16)

    def create(number: int) -> list[str]:
        service = client(region.url)
        together.wait(20)
        return [
            str(service.create_virtual_network_interface(
                name=f"t{number}-{part}", subnet={"id": made["subnet"]["id"]}
            ).get_result()["primary_ip"]["address"])
            for part in range(6)
        ]  # fmt: skip

    with ThreadPoolExecutor(16) as pool:
        addresses = [address for part in pool.map(create, range(16)) for address in part]
    # the first free ones behind the three that were there, each once
    assert sorted(addresses, key=lambda a: int(a.split(".")[3])) == [
        f"10.1.0.{n}" for n in range(7, 7 + 96)
    ]
    subnet = region.vpc.get_subnet(made["subnet"]["id"]).get_result()
    assert subnet["available_ipv4_address_count"] == 256 - 5 - 3 - 96


def test_iam_token(region: Region) -> None:
    form = {"grant_type": "urn:ibm:params:oauth:grant-type:apikey", "apikey": "any"}
    said = region.http("POST", "/identity/token", data=form).json()
    assert (said["token_type"], said["expires_in"]) == ("Bearer", 3600)
    assert said["access_token"].count(".") == 2
    assert 3500 < said["expiration"] - time.time() <= 3600
    refusal = region.http("POST", "/identity/token", data=form | {"apikey": ""})
    assert (refusal.status_code, refusal.json()["errors"][0]["code"]) == (400, "BXNIM0415E")


def test_resource_groups(region: Region) -> None:
    def listed(query: str = "") -> list[str]:
        found = region.http("GET", f"/v2/resource_groups{query}").json()["resources"]
        return [group["name"] for group in found]

    made = region.http("POST", "/v2/resource_groups", json={"name": "lab"})
    assert made.status_code == 201
    identity = made.json()["id"]
    assert (listed(), listed("?name=lab")) == (["Default", "lab"], ["lab"])
    assert listed("?default=true") == ["Default"]
    assert region.http("POST", "/v2/resource_groups", json={"name": "lab"}).status_code == 409
    vpc = region.vpc.create_vpc(name="a", resource_group={"id": identity}).get_result()
    assert vpc["resource_group"]["name"] == "lab"
    call: Call = lambda c, m: c.create_vpc(name="b", resource_group={"id": "none"})  # noqa: E731
    assert refused(call, region, {}) == (400, "bad_reference")
    assert region.http("DELETE", f"/v2/resource_groups/{identity}").status_code == 204
    assert region.http("GET", f"/v2/resource_groups/{identity}").status_code == 404


def test_tags(region: Region) -> None:
    crns = [region.vpc.create_vpc(name=name).get_result()["crn"] for name in ("a", "b")]

    def change(act: str, crn: str, *tags: str) -> None:
        body = {"resources": [{"resource_id": crn}], "tag_names": tags}
        answer = region.http("POST", f"/v3/tags/{act}?tag_type=user", json=body)
        assert answer.json()["results"] == [{"resource_id": crn, "is_error": False}]

    def search(crn: str) -> list[str]:
        body = {"query": f'crn:"{crn}"', "fields": ["tags"]}
        (item,) = region.http("POST", "/v3/resources/search", json=body).json()["items"]
        assert (item["crn"], item["access_tags"], item["service_tags"]) == (crn, [], [])
        return list(item["tags"])

    def listed(query: str = "") -> list[str]:
        return [i["name"] for i in region.http("GET", f"/v3/tags{query}").json()["items"]]

    change("attach", crns[0], "owner:lab", "env:test")
    change("attach", crns[0], "env:test")
    change("attach", crns[1], "env:other")
    assert [search(crn) for crn in crns] == [["env:test", "owner:lab"], ["env:other"]]
    assert listed() == ["env:other", "env:test", "owner:lab"]
    assert listed(f"?attached_to={crns[1]}") == ["env:other"]
    assert region.http("DELETE", "/v3/tags/env:other").status_code == 400
    change("detach", crns[1], "env:other")
    assert search(crns[1]) == []
    assert region.http("DELETE", "/v3/tags/env:other").status_code == 200
