"""Findings: the one form in which differences and faults of a cluster are reported."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from vela.model.change import Change


class Layer(StrEnum):
    """Part of the cluster that a finding is about."""

    CLOUD = "cloud"
    HOST = "host"
    GUEST = "guest"
    SWITCH = "switch"


class Kind(StrEnum):
    """Whether a finding is a difference, or something that kept us from looking."""

    DIFFERENCE = "difference"
    FAILURE = "failure"


class Finding(BaseModel):
    """One difference between the plan and what was found, or one failure to look.

    Attributes:
        layer: Part of the cluster.
        node: Host, guest or switch by its name in the plan; for the cloud, the resource's name.
        item: What differs: a path, a property, a unit.
        expected: Value of the plan as text; None where the item should not exist.
        found: Value found as text; None where the item is missing.
        change: What the repair costs.
        rule: Number of the rule that found it, such as ``VELA-DRIFT-002``.
        kind: Difference or failure.
        hint: What to type or look at next.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    layer: Layer
    node: str
    item: str
    expected: str | None
    found: str | None
    change: Change
    rule: str
    kind: Kind = Kind.DIFFERENCE
    hint: str = ""
