#!/usr/bin/python
"""Ansible module: puts the files of a bundle on a node, or under a directory."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vela_bundle
short_description: Puts the files of a bundle on a node
description:
  - Compares every file of a bundle with the node and replaces those that differ, each whole or
    not at all. All new files are made before the first takes its place.
  - Files that an earlier bundle brought and this one does not name are removed.
  - Restarts nothing itself. It says what is due, until it is told that it was done.
options:
  bundle:
    description:
      - The bundle. With O(bundle.root), the files go under that directory, and owners, packages
        and what is due afterwards are left alone.
    type: dict
  settled:
    description: Note that packages, units and the boot loader have followed the files.
    type: bool
    default: false
author: vela
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
"""

EXAMPLES = r"""
- name: Put the bundle on the node
  vela_bundle:
    bundle: "{{ lookup('ansible.builtin.file', vela_bundle_file) | from_json }}"
"""

RETURN = r"""
changes:
  description:
    - What differs, or differed. RV(changes[].item) is V(content), V(mode), V(owner), V(missing),
      V(obsolete), V(restart) (a file that nothing has read since it changed) or V(package).
  type: list
  elements: dict
  returned: always
restart:
  description: Units to restart, in order.
  type: list
  elements: str
  returned: always
reboot:
  description: Files that count from the next start of the node on, and changed since the last.
  type: list
  elements: str
  returned: always
due:
  description: Whether packages, units or the boot loader have to follow; never under a root.
  type: bool
  returned: always
real:
  description: Whether the bundle is for the node itself, not for a directory.
  type: bool
  returned: always
"""

import hashlib
import os
import re
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.vela_diff import differences, diffs
from ansible.module_utils.vela_manifest import MANIFEST, Manifest, boot_id
from ansible.module_utils.vela_tree import Batch, Tree, TreeError

BOOT_LOADER = "/etc/default/grub.d/"
UNITS = "/etc/systemd/system/"
REBOOT = "host-reboot"
LONGEST_READ = 1 << 20

FILE = {
    "path": {"type": "str", "required": True},
    "mode": {"type": "str", "required": True},
    "owner": {"type": "str", "required": True},
    "group": {"type": "str", "required": True},
    "content": {"type": "str", "required": True},
    "sha256": {"type": "str", "required": True},
    "change": {"type": "str", "required": True},
    "restart": {"type": "list", "elements": "str", "required": True},
}
BUNDLE = {
    "schema": {"type": "int", "required": True, "choices": [1]},
    "node": {"type": "str", "required": True},
    "kind": {"type": "str", "required": True},
    "root": {"type": "str"},
    "packages": {"type": "list", "elements": "str", "required": True},
    "files": {"type": "list", "elements": "dict", "required": True, "options": FILE},
}

Entry = dict[str, Any]


class _Module(AnsibleModule):  # type: ignore[misc]
    """A module that does not write its arguments to the node's log: they are whole files."""

    def _log_invocation(self) -> None:
        pass


def refuse(entries: list[Entry]) -> None:
    """Find what is wrong with a bundle before anything is written."""
    reasons: dict[str, str] = {}
    paths: set[str] = set()
    for entry in entries:
        reason = "is named twice" if entry["path"] in paths else fault(entry)
        if reason:
            reasons[entry["path"]] = reason
        paths.add(entry["path"])
    for path in paths - set(reasons):
        parent = os.path.dirname(path)
        while parent != "/":
            if parent in paths:
                reasons[parent] = f"is named as a file, and as a folder of {path}"
            parent = os.path.dirname(parent)
    if reasons:
        raise TreeError(reasons)


def fault(entry: Entry) -> str | None:
    """What is wrong with one entry by itself."""
    path = entry["path"]
    # POSIX leaves two slashes at the beginning alone
    if not re.match("/[^/]", path) or os.path.normpath(path) != path or "\0" in path:
        return "is not a normalised absolute path"
    if path == MANIFEST:
        return "is the module's own file"
    if hashlib.sha256(entry["content"].encode()).hexdigest() != entry["sha256"]:
        return "does not have the checksum that the bundle says"
    if not re.fullmatch(r"0[0-7]{3}", entry["mode"]):
        return f"has the mode {entry['mode']!r}, which is not four octal digits"
    return None


class Run:
    """One comparison of a bundle with a node, and what follows from it.

    Attributes:
        changes: What differs.
        diffs: Before and after.
        touched: What is to be done, by path: the bundle's or the manifest's entry.
        packages: Missing ones.
    """

    def __init__(self, tree: Tree, entries: list[Entry]) -> None:
        """Compare nothing yet."""
        self.changes: list[Entry] = []
        self.diffs: list[Entry] = []
        self.touched: dict[str, Entry] = {}
        self.packages: list[str] = []
        self._tree = tree
        self._entries = {entry["path"]: entry for entry in entries}
        self._manifest = Manifest.load(tree)
        self._write: list[Entry] = []
        self._obsolete: list[str] = []

    def compare(self) -> None:
        """Look at every file.

        Raises:
            TreeError: Some cannot be looked at; each is named with its reason.
        """
        reasons: dict[str, str] = {}
        right = 0
        for path, entry in self._entries.items():
            try:
                found = self._tree.read(path, max(LONGEST_READ, 2 * len(entry["content"])))
            except TreeError as error:
                reasons.update(error.reasons)
                continue
            unlike = differences(entry, found, owned=self._tree.real)
            right += not unlike
            for item, expected, actual in unlike:
                self._differs(path, item, expected, actual, entry)
            if unlike:
                self._write.append(entry)
                self.diffs += diffs(entry, found, {item for item, _, _ in unlike})
        try:
            self._compare_manifest(used=right > 0)
        except TreeError as error:
            reasons.update(error.reasons)
        if reasons:
            raise TreeError(reasons)

    def _differs(
        self, path: str, item: str, expected: str | None, found: str | None, entry: Entry
    ) -> None:
        self.touched[path] = entry
        said = {"path": path, "item": item, "expected": expected, "found": found}
        self.changes.append({**said, "change": entry["change"], "restart": entry["restart"]})

    def _compare_manifest(self, *, used: bool) -> None:
        own: Entry = {"change": "live", "restart": []}
        if self._manifest.state == "damaged":
            self._differs(MANIFEST, "content", "the list of managed files", "something else", own)
        elif self._manifest.state == "missing" and used:
            # what an earlier bundle brought can no longer be told from foreign files
            self._differs(MANIFEST, "missing", "present", None, own)
        for path, known in sorted(self._manifest.files.items()):
            if path not in self._entries and known["sha256"] and self._tree.holds(path):
                self._obsolete.append(path)
                edited = self._manifest.edited(self._tree, path)
                said = "present, edited since" if edited else "present"
                self._differs(path, "obsolete", None, said, known)
                header = {"before_header": path, "after_header": f"{path} (removed)"}
                self.diffs.append({"before": f"{said}\n", "after": "", **header})
            elif self._tree.real and known.get("due") and path not in self.touched:
                entry = self._entries.get(path, known)
                self._differs(path, "restart", "read since it changed", "not yet", entry)

    def compare_packages(self, missing: list[str]) -> None:
        """Take the packages that the node lacks."""
        self.packages = missing
        for name in missing:
            self._differs(name, "package", "installed", None, {"change": "live", "restart": []})

    def apply(self) -> None:
        """Write what differs.

        Raises:
            TreeError: Something cannot be written; files that are already replaced stay so.
        """
        known, boot = self._manifest, boot_id() if self._tree.real else None
        after = known.after(self._entries, self._due(), self._rebooting(), boot)
        # names what is about to appear and to go, so that a killed run forgets nothing
        journal = after.holding(known, self._obsolete)
        with Batch(self._tree) as batch:
            batch.add([journal.entry()] if journal.text() != known.found else [])
            batch.add(self._write)
            batch.place()
        for path in self._obsolete:
            self._tree.remove(path)
        if self._obsolete:
            with Batch(self._tree) as batch:
                batch.add([after.entry()])
                batch.place()
        self._manifest = after

    def _due(self) -> set[str]:
        """Changed files that something must read again."""
        if not self._tree.real:
            return set()
        return {
            path
            for path, entry in self.touched.items()
            if entry["restart"] or path.startswith((UNITS, BOOT_LOADER))
        }

    def _rebooting(self) -> set[str]:
        return {path for path, entry in self.touched.items() if entry["change"] == REBOOT}

    def result(self) -> dict[str, Any]:
        """What Ansible and the role are told."""
        real, touched = self._tree.real, self.touched
        restart = list(dict.fromkeys(u for entry in touched.values() for u in entry["restart"]))
        units = any(path.startswith(UNITS) for path in touched)
        boot_loader = any(path.startswith(BOOT_LOADER) for path in touched)
        return {
            "changed": bool(self.changes),
            "changes": self.changes,
            "restart": restart,
            "reboot": sorted(self._manifest.waiting(boot_id())) if real else [],
            "real": real,
            "packages": self.packages,
            "reload_units": units,
            "boot_loader": boot_loader,
            "due": real and bool(restart or units or boot_loader or self.packages),
        }


def missing_packages(module: Any, packages: list[str]) -> list[str]:
    """Packages that are not installed."""
    if module.get_bin_path("dpkg-query"):
        command = ["dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\n"]
        _, output, _ = module.run_command([*command, *packages])
        installed = {name.split()[0] for name in output.splitlines() if name.endswith(" installed")}
    elif module.get_bin_path("rpm"):
        _, output, _ = module.run_command(["rpm", "--query", "--qf", "%{NAME}\n", *packages])
        installed = set(output.splitlines())
    else:
        raise TreeError({"packages": "cannot be looked for: there is neither dpkg nor rpm"})
    return [name for name in packages if name not in installed]


def compared(tree: Tree, module: Any, bundle: Entry) -> Run:
    """Compare a bundle with a node."""
    run = Run(tree, bundle["files"])
    run.compare()
    if tree.real and bundle["packages"]:
        run.compare_packages(missing_packages(module, bundle["packages"]))
    return run


def put(module: Any, bundle: Entry) -> dict[str, Any]:
    """Compare, and write unless in check mode."""
    tree = Tree(bundle["root"] or "/", real=not bundle["root"])
    if not os.path.isdir(tree.root):
        raise TreeError({tree.root: "is not a directory"})
    refuse(bundle["files"])
    if module.check_mode:
        run = compared(tree, module, bundle)
    else:
        with tree.locked(os.path.dirname(MANIFEST)):
            known = Manifest.load(tree).files
            tree.sweep([MANIFEST, *known, *(entry["path"] for entry in bundle["files"])])
            run = compared(tree, module, bundle)
            run.apply()
    result = run.result()
    # a diff is made of whole files: it goes over the wire only when somebody wants to see it
    return {**result, "diff": run.diffs} if module._diff else result  # noqa: SLF001


def main() -> None:
    """Run as Ansible calls it."""
    module = _Module(
        argument_spec={
            "bundle": {"type": "dict", "options": BUNDLE},
            "settled": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
        required_if=[("settled", False, ("bundle",))],
    )
    try:
        if module.params["settled"]:
            result: dict[str, Any] = {"changed": Manifest.settle(Tree("/", real=True))}
        else:
            result = put(module, module.params["bundle"])
    except TreeError as error:
        module.fail_json(msg=str(error), reasons=error.reasons, invocation={})
    module.exit_json(**result, invocation={})


if __name__ == "__main__":
    main()
