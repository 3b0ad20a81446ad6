"""What follows from an environment: names, addresses, cables. Pure functions, no I/O."""

from vela.plan.cluster import build
from vela.plan.system import HostSystem
from vela.plan.types import (
    Attachment,
    Cable,
    ClusterNetworkPlan,
    End,
    HostPlan,
    ImagePlan,
    InterfacePlan,
    Outward,
    Plan,
    Port,
    SubnetPlan,
    SwitchPlan,
)

__all__ = [
    "Attachment",
    "Cable",
    "ClusterNetworkPlan",
    "End",
    "HostPlan",
    "HostSystem",
    "ImagePlan",
    "InterfacePlan",
    "Outward",
    "Plan",
    "Port",
    "SubnetPlan",
    "SwitchPlan",
    "build",
]
