"""All bundles of a cluster, and the inventory that leads the playbooks to them."""

from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any

from vela.outputs import ClusterOutputs
from vela.plan import Plan
from vela.render.bundle import Bundle
from vela.render.hosts import host_files
from vela.render.switches import switch_files
from vela.render.templates import Templates


def bundles(
    plan: Plan,
    outputs: ClusterOutputs | None,
    templates: Templates,
    root: Callable[[str], str | None],
) -> list[Bundle]:
    """One bundle for each node that the playbooks may touch.

    Hosts in maintenance get none.

    Args:
        plan: The plan.
        outputs: What the cloud decided; None leaves out the files that need it.
        templates: The text templates.
        root: Gives the directory that stands for a node, or None for a real one.
    """
    packages = plan.system.packages if plan.system else ()
    decided = outputs.hosts if outputs else {}
    hosts = [
        Bundle(
            schema=1,
            node=host.name,
            kind="host",
            root=root(host.name),
            packages=packages,
            files=tuple(
                sorted(
                    host_files(plan, host, decided.get(host.name), templates),
                    key=lambda file: file.path,
                )
            ),
        )
        for host in plan.hosts
        if not host.maintenance
    ]
    switches = [
        Bundle(
            schema=1,
            node=switch.name,
            kind="switch",
            root=root(switch.name),
            files=tuple(switch_files(plan, switch)),
        )
        for switch in plan.switches
    ]
    return [*hosts, *switches]


def inventory(
    plan: Plan,
    outputs: ClusterOutputs | None,
    made: Iterable[Bundle],
    folder: PurePath,
    interpreter: str,
) -> dict[str, Any]:
    """Ansible's inventory: groups ``hosts`` and ``switches``.

    Args:
        plan: The plan.
        outputs: What the cloud decided; the bastion's address is in it.
        made: The bundles.
        folder: Absolute folder of the bundle files, ``NODE.json`` each.
        interpreter: Python for nodes that are directories on this machine.
    """
    addresses = {
        **{host.name: host.management_address for host in plan.hosts},
        **{switch.name: switch.management_address for switch in plan.switches},
    }
    user = plan.environment.cloud.access.user
    groups: dict[str, dict[str, dict[str, object]]] = {"hosts": {}, "switches": {}}
    for bundle in made:
        variables: dict[str, object] = {"vela_bundle_file": str(folder / f"{bundle.node}.json")}
        if bundle.root:
            variables |= {
                "ansible_connection": "local",
                "ansible_python_interpreter": interpreter,
            }
        else:
            variables |= {"ansible_host": str(addresses[bundle.node]), "ansible_user": user}
            if outputs and outputs.bastion_address:
                jump = f"-o ProxyJump={user}@{outputs.bastion_address}"
                variables["ansible_ssh_common_args"] = jump
        groups["hosts" if bundle.kind == "host" else "switches"][bundle.node] = variables
    return {"all": {"children": {group: {"hosts": members} for group, members in groups.items()}}}
