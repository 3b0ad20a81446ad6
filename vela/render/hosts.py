"""Files of a host."""

from collections.abc import Iterator
from ipaddress import IPv4Address

from vela.model.change import Change
from vela.outputs import HostOutput
from vela.plan import HostPlan, Plan
from vela.render.bundle import BundleFile
from vela.render.templates import Templates

KERNEL_ARGUMENTS_FILE = "/etc/default/grub.d/60-vela.cfg"


def addresses(plan: Plan) -> list[tuple[str, IPv4Address]]:
    """Name and management address of every node, for the hosts files."""
    return [
        *((host.name, host.management_address) for host in plan.hosts),
        *((switch.name, switch.management_address) for switch in plan.switches),
    ]


def host_files(
    plan: Plan, host: HostPlan, output: HostOutput | None, templates: Templates
) -> Iterator[BundleFile]:
    """Every file of one host.

    Args:
        plan: The plan.
        host: One of its hosts.
        output: What the cloud decided for it, or None: then the files that need its MAC
            addresses are left out.
        templates: The text templates.
    """
    yield BundleFile(path="/etc/hostname", content=f"{host.name}\n", change=Change.HOST_REBOOT)
    yield BundleFile(
        path="/etc/hosts",
        content=templates.render(
            "host/hosts.j2", environment=plan.name, host=host, addresses=addresses(plan)
        ),
        change=Change.LIVE,
    )
    if output:
        yield from _networks(plan, host, output, templates)
    if plan.system:
        yield from _system(plan, templates)


def _networks(
    plan: Plan, host: HostPlan, output: HostOutput, templates: Templates
) -> Iterator[BundleFile]:
    subnets = {subnet.name: subnet for subnet in plan.subnets}
    for interface in host.interfaces:
        subnet = subnets[interface.subnet]
        primary = interface is host.interfaces[0]
        yield BundleFile(
            path=f"/etc/systemd/network/10-vela-{interface.name}.network",
            content=templates.render(
                "host/network.j2",
                environment=plan.name,
                mac=output.interfaces[interface.name].mac,
                subnet=subnet,
                address=interface.address,
                gateway=subnet.cidr[1] if primary else None,
                dns=plan.environment.cloud.network.dns,
                ntp=plan.environment.cloud.network.ntp,
            ),
            # a wrong address here cuts the host off
            change=Change.HOST_DRAIN,
            restart=("systemd-networkd.service",),
        )


def _system(plan: Plan, templates: Templates) -> Iterator[BundleFile]:
    system = plan.system
    if system is None:
        return
    name = plan.name
    yield BundleFile(
        path="/etc/sysctl.d/60-vela.conf",
        content=templates.render("host/sysctl.j2", environment=name, sysctl=system.sysctl),
        change=Change.LIVE,
        restart=("systemd-sysctl.service",),
    )
    yield BundleFile(
        path="/etc/modules-load.d/vela.conf",
        content=templates.render("host/modules.j2", environment=name, modules=system.modules),
        change=Change.LIVE,
        restart=("systemd-modules-load.service",),
    )
    yield BundleFile(
        path=KERNEL_ARGUMENTS_FILE,
        content=templates.render(
            "host/grub.j2", environment=name, arguments=system.kernel_arguments
        ),
        change=Change.HOST_REBOOT,
    )
    if plan.environment.guests:
        yield BundleFile(
            path="/etc/systemd/system/dev-hugepages1G.mount",
            content=templates.render("host/hugepages.mount.j2", environment=name),
            change=Change.HOST_DRAIN,
        )
