"""Contract 1: the exported object, in the shape of :class:`vela.outputs.ClusterOutputs`."""

from collections.abc import Mapping
from typing import Any

from components.access import Bastion
from components.fabric import Fabric, cable_output
from components.hosts import Host
from components.images import Images
from components.network import Network
from vela.plan import Plan


def cluster_output(
    plan: Plan,
    network: Network,
    images: Images,
    hosts: Mapping[str, Host],
    fabric: Fabric | None,
    bastion: Bastion | None,
) -> dict[str, Any]:
    """Everything that the cloud decided, and what the playbooks need beside it; no secrets."""
    return {
        "schema": 1,
        "environment": plan.name,
        "vpc": {"id": network.vpc.id, "crn": network.vpc.crn, "name": network.vpc.name},
        "subnets": {
            subnet.name: {"id": network.subnets[subnet.name].id, "cidr": str(subnet.cidr)}
            for subnet in plan.subnets
        },
        "images": dict(images.ids),
        "hosts": {
            host.name: {
                "id": hosts[host.name].server_id,
                "kind": host.kind,
                "rack": host.rack,
                "management_address": str(host.management_address),
                "interfaces": {
                    interface.name: {
                        "id": hosts[host.name].interfaces[interface.name].id,
                        "address": str(interface.address),
                        "mac": hosts[host.name].interfaces[interface.name].mac_address,
                    }
                    for interface in host.interfaces
                },
            }
            for host in plan.hosts
        },
        "switches": {
            switch.name: {
                "role": switch.role,
                "rack": switch.rack,
                "management_address": (
                    fabric.switches[switch.name].management_address if fabric else None
                ),
                "asn": switch.asn,
                "loopback": str(switch.loopback),
            }
            for switch in plan.switches
        },
        "cables": [cable_output(cable) for cable in plan.cables],
        "bastion_address": bastion.address if bastion else None,
    }
