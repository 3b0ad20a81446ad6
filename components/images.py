"""Images of hosts and bastion."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_ibm as ibm

from components.base import Common, Component
from vela.plan import ImagePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagesArgs:
    """Inputs of :class:`Images`."""

    common: Common
    images: Sequence[ImagePlan]


class Images(Component):
    """Imported images; those that IBM holds already are passed on by id."""

    ids: Mapping[str, pulumi.Input[str]]

    def __init__(
        self, name: str, args: ImagesArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Declare them."""
        super().__init__("images:Images", name, opts)
        self.ids = {image.name: self._image(name, image, args.common) for image in args.images}
        self.register_outputs({"ids": self.ids})

    def _image(self, name: str, image: ImagePlan, common: Common) -> pulumi.Input[str]:
        if image.id is not None:
            return image.id
        return ibm.IsImage(
            f"{name}-{image.name}",
            name=image.cloud_name,
            href=image.href,
            operating_system=image.operating_system,
            resource_group=common.resource_group,
            tags=common.tags,
            # an import of some 10 GB takes longer than the provider's 10 minutes; all three
            # are given, since the bridge fails on a part of them
            timeouts=ibm.IsImageTimeoutsArgs(create="60m", update="60m", delete="60m"),
            opts=self.child(protect=common.protect),
        ).id
