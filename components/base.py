"""What every component shares."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """Values that most resources take.

    Attributes:
        resource_group: Id of the resource group.
        zone: Zone.
        tags: User tags.
        protect: Refuse deletes and replacements of what would be missed.
    """

    resource_group: pulumi.Input[str]
    zone: str
    tags: Sequence[str]
    protect: bool


class Component(pulumi.ComponentResource):
    """A component whose children hang under it and are named after it."""

    def __init__(self, token: str, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        """Register the component under the type ``vela:TOKEN``."""
        super().__init__(f"vela:{token}", name, {}, opts)

    def child(self, **options: Any) -> pulumi.ResourceOptions:
        """Options of a child; never ours merged in, since that would misplace it.

        Names at IBM are unique, so a replacement can only come after what it replaces is gone.
        """
        return pulumi.ResourceOptions(parent=self, delete_before_replace=True, **options)
