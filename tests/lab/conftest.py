import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from ibm_cloud_sdk_core.authenticators import NoAuthAuthenticator
from ibm_vpc import VpcV1

from lab.cloud.server import Simulator

ZONE = {"name": "us-east-3"}
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIu1vdGE+Tg1z2dDgHzQ3p0Xcq6qKq3v3sYw5wq0Qb1x test"


@dataclass
class Account:
    """IBM's own client on a simulator, and one resource of each kind."""

    server: Simulator
    vpc: VpcV1

    @property
    def url(self) -> str:
        return self.server.url

    def admin(self, method: str, path: str, body: object = None) -> Any:
        answer = requests.request(method, f"{self.url}/_lab/{path}", json=body, timeout=10)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def make(self) -> dict[str, Any]:
        """One of each kind, by kind."""
        c = self.vpc
        vpc = c.create_vpc(address_prefix_management="manual", name="net").get_result()
        within = {"id": vpc["id"]}
        prefix = c.create_vpc_address_prefix(vpc["id"], "10.1.0.0/16", ZONE, name="p").get_result()
        gateway = c.create_public_gateway(within, ZONE, name="gw").get_result()
        subnet = c.create_subnet(
            {"name": "a", "vpc": within, "zone": ZONE, "ipv4_cidr_block": "10.1.0.0/24",
             "public_gateway": {"id": gateway["id"]}}
        ).get_result()  # fmt: skip
        group = c.create_security_group(within, name="sg").get_result()
        rule = {"direction": "inbound", "protocol": "tcp", "port_min": 22, "port_max": 22,
                "remote": {"cidr_block": "192.0.2.0/24"}}  # fmt: skip
        made_rule = c.create_security_group_rule(group["id"], rule).get_result()
        acl = c.create_network_acl({"name": "acl", "vpc": within}).get_result()
        key = c.create_key(KEY, name="ops").get_result()
        image = c.create_image(
            {"name": "img", "file": {"href": "cos://r/b/o.qcow2"},
             "operating_system": {"name": "debian-12-amd64"}}
        ).get_result()  # fmt: skip
        c.get_image(image["id"])
        interfaces = [
            c.create_virtual_network_interface(
                name=f"n{n}", subnet={"id": subnet["id"]}, security_groups=[{"id": group["id"]}]
            ).get_result()
            for n in range(3)
        ]
        attached = [
            {"name": f"e{n}", "virtual_network_interface": {"id": interfaces[n]["id"]}}
            for n in range(3)
        ]
        metal = c.create_bare_metal_server(
            {"name": "metal", "profile": {"name": "bx2-metal-96x384"}, "zone": ZONE,
             "initialization": {"image": {"id": image["id"]}, "keys": [{"id": key["id"]}]},
             "primary_network_attachment": attached[0],
             "network_attachments": [{**attached[1], "interface_type": "pci"}]}
        ).get_result()  # fmt: skip
        cluster = c.create_cluster_network(
            {"name": "hopper-1"}, within, ZONE, name="roce",
            subnet_prefixes=[{"cidr": "10.0.0.0/9"}]
        ).get_result()  # fmt: skip
        rail = c.create_cluster_network_subnet(
            cluster["id"], {"name": "rail", "ipv4_cidr_block": "10.2.0.0/18"}
        ).get_result()
        rails = [
            c.create_cluster_network_interface(
                cluster["id"], name=f"rail{n}", subnet={"id": rail["id"]}
            ).get_result()
            for n in range(8)
        ]
        placement = c.create_placement_group("host_spread", name="spread").get_result()
        instance = c.create_instance(
            {"name": "vsi", "profile": {"name": "gx3d-160x1792x8h100"}, "zone": ZONE,
             "image": {"id": image["id"]}, "keys": [{"id": key["id"]}],
             "primary_network_attachment": attached[2],
             "placement_target": {"id": placement["id"]},
             "cluster_network_attachments": [
                 {"cluster_network_interface": {"id": rail_["id"]}} for rail_ in rails
             ]}
        ).get_result()  # fmt: skip
        floating = c.create_floating_ip(
            {"name": "fip", "target": {"id": interfaces[2]["id"]}}
        ).get_result()
        return {
            "vpc": vpc, "prefix": prefix, "gateway": gateway, "subnet": subnet, "group": group,
            "rule": made_rule, "acl": acl, "key": key, "image": image,
            "interface": interfaces[0], "metal": metal, "cluster": cluster, "rail": rail,
            "rail_interface": rails[0], "placement": placement, "instance": instance,
            "floating": floating,
        }  # fmt: skip


def client(url: str) -> VpcV1:
    service = VpcV1(authenticator=NoAuthAuthenticator())
    service.set_service_url(f"{url}/v1")
    return service


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    server = Simulator(0, tmp_path / "state.json", tmp_path / "requests.log")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield Account(server, client(server.url))
    server.shutdown()
    thread.join()
    server.close()
