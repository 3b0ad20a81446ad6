"""What the operating system of a KVM host needs before guests can be defined.

Values and their sources: Linux kernel-parameters.txt; NVIDIA AI Enterprise "Optimizing VM
configuration for AI inference"; IBM/HCIR vela_asplos2025/vmsetup.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from vela.model.environment import Environment
from vela.model.hardware import Hardware

GIB = 2**30

_PACKAGES = {
    "debian": ("qemu-system-x86", "qemu-utils", "libvirt-daemon-system", "libvirt-clients"),
    "redhat": ("qemu-kvm", "qemu-img", "libvirt-daemon-kvm", "libvirt-client"),
}
_REDHAT = ("red-", "rhel-", "rocky-", "centos-", "alma")

SYSCTL: Mapping[str, str] = MappingProxyType(
    {
        # guests' memory is bound to its node, so moving pages costs and gains nothing
        "kernel.numa_balancing": "0",
        # what is not a huge page is the host's own small part: keep it in memory
        "vm.swappiness": "1",
        "vm.zone_reclaim_mode": "0",
    }
)


@dataclass(frozen=True, slots=True)
class HostSystem:
    """Operating system of a host that runs guests.

    Attributes:
        kernel_arguments: Kernel command line, one argument each, in order.
        modules: Kernel modules to load at boot.
        sysctl: Kernel settings by name.
        packages: Packages by distribution family.
    """

    kernel_arguments: tuple[str, ...]
    modules: tuple[str, ...]
    sysctl: Mapping[str, str]
    packages: tuple[str, ...]


def host_system(environment: Environment, hardware: Hardware) -> HostSystem | None:
    """System of the hosts, or None where IBM runs the hypervisor."""
    if hardware.server.kind != "bare_metal":
        return None
    intel = hardware.server.cpu.vendor == "intel"
    guests = environment.guests
    pages = -(-guests.memory // GIB) * guests.per_host if guests else 0
    huge = ["default_hugepagesz=1G", "hugepagesz=1G", f"hugepages={pages}"] if pages else []
    return HostSystem(
        kernel_arguments=(
            # AMD's IOMMU is on by itself, and amd_iommu=on is an option the kernel rejects
            *(["intel_iommu=on"] if intel else []),
            "iommu=pt",
            *huge,
            # room for the VFs' BARs where the firmware left none
            "pci=realloc",
            # the guests own the GPUs
            "modprobe.blacklist=nouveau,nvidia,nvidia_drm",
        ),
        modules=("kvm_intel" if intel else "kvm_amd", "vfio", "vfio_pci"),
        sysctl=SYSCTL,
        packages=_PACKAGES[_family(environment)],
    )


def _family(environment: Environment) -> str:
    system = environment.images[environment.hosts.image].operating_system or ""
    return "redhat" if system.startswith(_REDHAT) else "debian"
