"""What the bundle module remembers on a node itself, where units, boots and owners count."""

import getpass
import grp
import os
from pathlib import Path
from typing import Any

import pytest

from tests.playbooks import module_driver
from tests.playbooks.support import file, items
from vela.model.change import Change
from vela.render.bundle import BundleFile

UNIT = "/etc/systemd/system/vela.mount"
SYSCTL = "/etc/sysctl.d/60-vela.conf"
GRUB = "/etc/default/grub.d/60-vela.cfg"
MODULE = module_driver.load()


def own(entry: BundleFile, **values: str) -> dict[str, Any]:
    user, group = getpass.getuser(), grp.getgrgid(os.getgid()).gr_name
    return {**entry.model_dump(mode="json"), "owner": user, "group": group, **values}


FILES = [
    own(file(GRUB, "quiet\n", change=Change.HOST_REBOOT)),
    own(file("/etc/motd", "hello\n")),
    own(file(SYSCTL, "a = 1\n", restart=("systemd-sysctl.service",))),
    own(file(UNIT, "[Mount]\n")),
]


class Node:
    """A node below a directory, whose boots are counted here."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.boot = 1
        self.tree = MODULE.Tree(str(root), real=True)
        monkeypatch.setattr(MODULE, "boot_id", lambda: f"boot-{self.boot}")

        def manifest(made: Any) -> dict[str, Any]:
            user, group = getpass.getuser(), grp.getgrgid(os.getgid()).gr_name
            return {**entry(made), "owner": user, "group": group}

        # who runs the tests need not be root
        entry = MODULE.Manifest.entry
        monkeypatch.setattr(MODULE.Manifest, "entry", manifest)

    def run(self, files: list[dict[str, Any]], *, check: bool = False) -> dict[str, Any]:
        run = MODULE.Run(self.tree, files)
        run.compare()
        if not check:
            run.apply()
        result: dict[str, Any] = run.result()
        return result

    def settle(self) -> bool:
        return bool(MODULE.Manifest.settle(self.tree))


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


def test_first_run_names_all_that_has_to_follow(node: Node) -> None:
    said = node.run(FILES)
    assert said["restart"] == ["systemd-sysctl.service"]
    assert (said["real"], said["reload_units"], said["boot_loader"]) == (True, True, True)
    assert said["reboot"] == [GRUB]


def test_what_is_due_is_named_until_it_was_done(node: Node) -> None:
    node.run(FILES)
    for check in (True, False, True):
        said = node.run(FILES, check=check)
        assert items(said) == [(GRUB, "restart"), (SYSCTL, "restart"), (UNIT, "restart")]
        assert said["restart"] == ["systemd-sysctl.service"]
        assert (said["reload_units"], said["boot_loader"]) == (True, True)
    assert node.settle() is True
    said = node.run(FILES)
    assert (said["changed"], said["restart"], said["reload_units"]) == (False, [], False)
    assert node.settle() is False


def test_only_what_changed_is_due(node: Node, tmp_path: Path) -> None:
    node.run(FILES)
    node.settle()
    (tmp_path / SYSCTL[1:]).write_text("a = 2\n")
    said = node.run(FILES)
    assert items(said) == [(SYSCTL, "content")]
    assert said["restart"] == ["systemd-sysctl.service"]
    assert (said["reload_units"], said["boot_loader"]) == (False, False)


def test_removed_file_is_due_until_it_was_done(node: Node, tmp_path: Path) -> None:
    node.run(FILES)
    node.settle()
    fewer = [entry for entry in FILES if entry["path"] != SYSCTL]
    assert items(node.run(fewer)) == [(SYSCTL, "obsolete")]
    assert not (tmp_path / SYSCTL[1:]).exists()
    said = node.run(fewer)
    assert (items(said), said["restart"]) == ([(SYSCTL, "restart")], ["systemd-sysctl.service"])
    (tmp_path / SYSCTL[1:]).write_text("by hand\n")
    assert items(node.run(fewer)) == [(SYSCTL, "restart")]
    node.settle()
    assert node.run(fewer)["changed"] is False
    assert (tmp_path / SYSCTL[1:]).read_text() == "by hand\n"


def test_reboot_is_waited_for_until_the_node_has_started_again(node: Node) -> None:
    assert node.run(FILES, check=True)["reboot"] == []
    node.run(FILES)
    node.settle()
    for _ in range(2):
        said = node.run(FILES)
        assert (said["changed"], said["reboot"]) == (False, [GRUB])
    node.boot = 2
    assert node.run(FILES, check=True)["reboot"] == []
    node.run(FILES)
    node.boot = 1
    assert node.run(FILES)["reboot"] == []


def test_removed_file_of_the_boot_waits_as_well(node: Node) -> None:
    node.run(FILES)
    node.boot = 2
    node.settle()
    node.run(FILES[1:])
    node.settle()
    assert node.run(FILES[1:])["reboot"] == [GRUB]
    node.boot = 3
    assert node.run(FILES[1:])["reboot"] == []


def test_owner_counts(node: Node) -> None:
    node.run(FILES)
    wanted = [{**FILES[1], "group": "nobody-such"}]
    (change,) = [c for c in node.run(wanted, check=True)["changes"] if c["item"] == "owner"]
    user, group = getpass.getuser(), grp.getgrgid(os.getgid()).gr_name
    assert (change["expected"], change["found"]) == (f"{user}:nobody-such", f"{user}:{group}")


def test_owner_that_does_not_exist_is_named_before_anything_changes(
    node: Node, tmp_path: Path
) -> None:
    spoiled = {**FILES[-1], "owner": "nobody-such"}
    with pytest.raises(MODULE.TreeError) as caught:
        node.run([*FILES[:-1], spoiled])
    group = grp.getgrgid(os.getgid()).gr_name
    reason = f"needs a user and a group that do not exist here: nobody-such:{group}"
    assert caught.value.reasons == {UNIT: reason}
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


class Packages:
    """Stands in for Ansible's module object on a node with some packages."""

    def __init__(self, tool: str, output: str) -> None:
        self.tool = tool
        self.output = output
        self.command: list[str] = []

    def get_bin_path(self, name: str) -> str | None:
        return f"/usr/bin/{name}" if name == self.tool else None

    def run_command(self, command: list[str]) -> tuple[int, str, str]:
        self.command = command
        return 1, self.output, "no packages found"


def test_missing_packages_are_found_through_dpkg() -> None:
    asked = Packages("dpkg-query", "qemu installed\nlibvirt config-files\n")
    assert MODULE.missing_packages(asked, ["qemu", "libvirt", "numactl"]) == ["libvirt", "numactl"]
    assert asked.command[-3:] == ["qemu", "libvirt", "numactl"]


def test_missing_packages_are_found_through_rpm() -> None:
    asked = Packages("rpm", "qemu\npackage numactl is not installed\n")
    assert MODULE.missing_packages(asked, ["qemu", "numactl"]) == ["numactl"]


def test_node_without_a_package_tool_is_a_failure() -> None:
    with pytest.raises(MODULE.TreeError, match="there is neither dpkg nor rpm"):
        MODULE.missing_packages(Packages("", ""), ["qemu"])
