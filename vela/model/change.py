"""What a change to a value costs the cluster that runs."""

from enum import StrEnum


class Change(StrEnum):
    """Change classes, from the cheapest to the one that is refused.

    Every field of the model and every entry of a bundle names one, so that a plan can say
    before a change what it will interrupt.
    """

    LIVE = "live"
    GUEST_RESTART = "guest-restart"
    HOST_DRAIN = "host-drain"
    HOST_REBOOT = "host-reboot"
    FABRIC_DRAIN = "fabric-drain"
    REPROVISION = "reprovision"
    FORBIDDEN = "forbidden"
