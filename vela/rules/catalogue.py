"""What IBM Cloud offers, as far as it can be known without asking it.

Sources, read August 2026: ibm-cloud-docs/vpc (bare_metal_server_profile.md,
vsi-profile-details-accelerated.md, vsi-profile-details-accelerated-gen4.md, cn-*.md,
quotas.md); regions and zones from cloud.ibm.com/docs "Creating a VPC in a different region".
"""

REGIONS = (
    "au-syd", "br-sao", "ca-mon", "ca-tor", "eu-de", "eu-es", "eu-gb", "in-che", "in-mum",
    "jp-osa", "jp-tok", "us-east", "us-south",
)  # fmt: skip
"""Multizone regions have zones 1 to 3; a single-zone one (in-che, in-mum) has zone 1."""

SINGLE_ZONE = {"in-che", "in-mum"}

BARE_METAL = frozenset(
    {
        "bx2-metal-96x384", "bx2d-metal-96x384", "cx2-metal-96x192", "cx2d-metal-96x192",
        "mx2-metal-96x768", "mx2d-metal-96x768", "vx2d-metal-96x1536",
        "bx3-metal-48x256", "bx3-metal-64x256", "bx3d-metal-48x256", "bx3d-metal-64x256",
        "bx3d-metal-192x1024", "cx3d-metal-48x128", "cx3d-metal-64x128",
        "gx3d-metal-224x2048x8mi300x-sn",
    }
)  # fmt: skip

BARE_METAL_REGIONS = {"gx3d-metal-224x2048x8mi300x-sn": ("us-east",)}
"""Profiles that are sold in these regions alone."""

GPU_SERVERS = frozenset(
    {
        "gx3-16x80x1l4", "gx3-32x160x2l4", "gx3-64x320x4l4", "gx3-24x120x1l40s",
        "gx3-48x240x-2l40s", "gx3d-24x120x1a100p", "gx3d-48x240x2a100p",
        "gx3d-160x1792x8h100", "gx3d-160x1792x8h200", "gx3d-160x1792x8gaudi3",
        "gx4d-232x3840x8b300",
    }
)  # fmt: skip

CLUSTER_SERVERS = frozenset({"gx3d-160x1792x8h100", "gx3d-160x1792x8h200"})
"""Profiles whose servers can join a cluster network."""

CLUSTER_ZONES = {"hopper-1": ("us-east-3", "eu-de-2", "in-che-1")}

DEPRECATED_CLUSTER_PROFILES = {"h100": "hopper-1"}

MAX_ATTACHMENTS = 8
"""PCI network attachments of a bare-metal server."""

MAX_SECURITY_GROUPS = 5
"""Security groups of a virtual network interface."""

MAX_NAME = 63
"""Characters of a VPC resource's name."""


def zones(region: str) -> tuple[str, ...]:
    """Zones of a region that is known."""
    count = 1 if region in SINGLE_ZONE else 3
    return tuple(f"{region}-{number}" for number in range(1, count + 1))
