"""The fabric: leafs and spines.

IBM Cloud has no switch. What it can hold of one is its management address; the rest, AS
number, loopback and cables, is what the playbooks configure, and stands here as outputs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_ibm as ibm

from components.base import Component
from vela.plan import Cable, SwitchPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchArgs:
    """Inputs of a switch: its plan, the management subnet, and the cables that end on it."""

    switch: SwitchPlan
    subnet_id: pulumi.Input[str]
    cables: Sequence[Cable]


class Switch(Component):
    """A switch: a reserved management address, and its part of the fabric."""

    management_address: pulumi.Output[str]

    def __init__(
        self,
        token: str,
        name: str,
        args: SwitchArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare it."""
        super().__init__(token, name, opts)
        switch = args.switch
        reserved = ibm.IsSubnetReservedIp(
            f"{name}-management",
            name=switch.cloud_name,
            subnet=args.subnet_id,
            address=str(switch.management_address),
            # it outlives whatever it is bound to
            auto_delete=False,
            opts=self.child(),
        )
        self.management_address = reserved.address
        self.register_outputs(
            {
                "management_address": self.management_address,
                "asn": switch.asn,
                "loopback": str(switch.loopback),
                "cables": [cable_output(cable) for cable in args.cables],
            }
        )


class Leaf(Switch):
    """A leaf, the switch that hosts of a rack are cabled to."""

    def __init__(
        self, name: str, args: SwitchArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Declare it."""
        super().__init__("fabric:Leaf", name, args, opts)


class Spine(Switch):
    """A spine, the switch that every leaf is cabled to."""

    def __init__(
        self, name: str, args: SwitchArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Declare it."""
        super().__init__("fabric:Spine", name, args, opts)


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricArgs:
    """Inputs of :class:`Fabric`."""

    switches: Sequence[SwitchPlan]
    cables: Sequence[Cable]
    subnet_id: pulumi.Input[str]


class Fabric(Component):
    """All leafs and spines."""

    switches: Mapping[str, Switch]

    def __init__(
        self, name: str, args: FabricArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Declare them."""
        super().__init__("fabric:Fabric", name, opts)
        ending: dict[str, list[Cable]] = {switch.name: [] for switch in args.switches}
        for cable in args.cables:
            for end in (cable.a, cable.b):
                if end.node in ending:
                    ending[end.node].append(cable)
        kinds = {"leaf": Leaf, "spine": Spine}
        self.switches = {
            switch.name: kinds[switch.role](
                switch.name,
                SwitchArgs(switch=switch, subnet_id=args.subnet_id, cables=ending[switch.name]),
                self.child(),
            )
            for switch in args.switches
        }
        self.register_outputs({"cables": len(args.cables)})


def cable_output(cable: Cable) -> dict[str, Any]:
    """A cable as it stands in the outputs."""
    return {
        "a": {"node": cable.a.node, "port": cable.a.port},
        "b": {"node": cable.b.node, "port": cable.b.port},
    }
