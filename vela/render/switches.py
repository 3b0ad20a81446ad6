"""Files of a switch."""

import json
from collections.abc import Iterator
from typing import Any

from vela.model.change import Change
from vela.plan import Plan, SwitchPlan
from vela.plan.names import MANAGEMENT
from vela.render.bundle import BundleFile

BASE_FILE = "/etc/sonic/vela/base.json"
"""Beside config_db.json, not in its place: it holds part of the tables, for ``config load``."""

_TYPES = {"leaf": "ToRRouter", "spine": "SpineRouter"}


def base_config(plan: Plan, switch: SwitchPlan) -> dict[str, Any]:
    """Tables of CONFIG_DB for name, management address, AS number and loopback.

    Table and field names: sonic-net/sonic-buildimage, src/sonic-yang-models.
    """
    management = next(s.cidr for s in plan.subnets if s.name == MANAGEMENT)
    hardware = plan.hardware.switches[switch.type]
    address = f"{switch.management_address}/{management.prefixlen}"
    return {
        "DEVICE_METADATA": {
            "localhost": {
                "hostname": switch.name,
                "hwsku": hardware.hwsku,
                "type": _TYPES[switch.role],
                "bgp_asn": str(switch.asn),
            }
        },
        "LOOPBACK_INTERFACE": {"Loopback0": {}, f"Loopback0|{switch.loopback}/32": {}},
        "MGMT_INTERFACE": {f"eth0|{address}": {"gwaddr": str(management[1])}},
        "MGMT_PORT": {"eth0": {"alias": "eth0", "admin_status": "up"}},
    }


def switch_files(plan: Plan, switch: SwitchPlan) -> Iterator[BundleFile]:
    """Every file of one switch."""
    yield BundleFile(
        path=BASE_FILE,
        content=json.dumps(base_config(plan, switch), indent=2, sort_keys=True) + "\n",
        change=Change.FABRIC_DRAIN,
    )
