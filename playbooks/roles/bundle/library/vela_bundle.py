#!/usr/bin/python
"""Ansible module: puts the files of a bundle on a node, or under a directory."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vela_bundle
short_description: Puts the files of a bundle on a node
description:
  - Compares every file of a bundle with the node and writes those that differ, each whole or
    not at all.
  - Files that an earlier bundle wrote and this one does not name are removed.
  - Everything is checked before anything is written.
options:
  bundle:
    description:
      - The bundle. C(files) is a list of dictionaries with C(path), C(mode), C(owner),
        C(group), C(content), C(sha256), C(change) and C(restart).
      - With C(root), the files go under that directory, and owners are left alone.
    type: dict
    required: true
author:
  - vela
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
  description: What differs, or differed, one entry each.
  type: list
  elements: dict
  returned: always
restart:
  description: Units to restart, in order.
  type: list
  elements: str
  returned: always
real:
  description: Whether the bundle is for the node itself, not for a directory.
  type: bool
  returned: always
"""

import errno
import hashlib
import json
import os
import re
import stat
import tempfile

from ansible.module_utils.basic import AnsibleModule

MANIFEST = "/var/lib/vela/bundle.json"
BOOT_LOADER = "/etc/default/grub.d/"
UNITS = "/etc/systemd/system/"
TEMPORARY = ".vela-bundle."
LONGEST_DIFF = 20000


class BundleError(Exception):
    """The bundle cannot be put there; nothing more is written."""


def checked(bundle):
    """Refuse a bundle that could leave half a change behind."""
    paths = set()
    for entry in bundle["files"]:
        path = entry["path"]
        if not path.startswith("/") or os.path.normpath(path) != path:
            raise BundleError(f"{path!r} is not a normalised absolute path")
        if path in paths:
            raise BundleError(f"{path} is named twice")
        if hashlib.sha256(entry["content"].encode()).hexdigest() != entry["sha256"]:
            raise BundleError(f"the content of {path} does not have its checksum")
        if not re.fullmatch(r"0[0-7]{3}", entry["mode"]):
            raise BundleError(f"{path} has mode {entry['mode']!r}")
        paths.add(path)
    for path in paths:
        parent = os.path.dirname(path)
        while parent != "/":
            if parent in paths:
                raise BundleError(f"{parent} is named as a file and as a folder of {path}")
            parent = os.path.dirname(parent)
    return bundle["files"]


class Tree:
    """The node's files, below a root."""

    def __init__(self, root, check):
        self.root = root or "/"
        self.real = not root
        self.check = check

    def at(self, path):
        """Real path of a file; its folders are resolved, and must stay below the root."""
        joined = os.path.join(self.root, path.lstrip("/"))
        folder = os.path.realpath(os.path.dirname(joined))
        if not self.real and not (folder + "/").startswith(os.path.realpath(self.root) + "/"):
            raise BundleError(f"{path} leads out of {self.root}")
        return os.path.join(folder, os.path.basename(joined))

    def read(self, path):
        """Content, mode and owner of a file; None where there is no regular file."""
        target = self.at(path)
        try:
            found = os.lstat(target)
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            raise BundleError(f"a folder of {path} is a file") from None
        if stat.S_ISDIR(found.st_mode):
            raise BundleError(f"{path} is a directory")
        if not stat.S_ISREG(found.st_mode):
            kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "no regular file"
            return {"content": None, "kind": kind, "mode": None, "owner": None}
        with open(target, "rb") as file:
            content = file.read()
        return {
            "content": content,
            "kind": "a file",
            "mode": f"0{stat.S_IMODE(found.st_mode):03o}",
            "owner": owner_of(found) if self.real else None,
        }

    def write(self, entry):
        """Write a file whole or not at all, with mode and owner."""
        target = self.at(entry["path"])
        folder = os.path.dirname(target)
        os.makedirs(folder, mode=0o755, exist_ok=True)
        for name in os.listdir(folder):
            if name.startswith(TEMPORARY):
                os.unlink(os.path.join(folder, name))
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=TEMPORARY)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(entry["content"].encode())
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, int(entry["mode"], 8))
            if self.real:
                uid, gid = ids_of(entry["owner"], entry["group"])
                os.chown(temporary, uid, gid)
            os.replace(temporary, target)
        except BaseException:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise
        sync_folder(folder)

    def remove(self, path):
        """Remove a file that is no longer wanted."""
        target = self.at(path)
        if os.path.lexists(target):
            os.unlink(target)
            sync_folder(os.path.dirname(target))


def sync_folder(folder):
    """Make a rename or removal last."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def owner_of(found):
    """Owner and group of a file, by name where there is one."""
    import grp
    import pwd

    try:
        user = pwd.getpwuid(found.st_uid).pw_name
    except KeyError:
        user = str(found.st_uid)
    try:
        group = grp.getgrgid(found.st_gid).gr_name
    except KeyError:
        group = str(found.st_gid)
    return f"{user}:{group}"


def ids_of(owner, group):
    """Numbers of an owner and a group."""
    import grp
    import pwd

    try:
        return pwd.getpwnam(owner).pw_uid, grp.getgrnam(group).gr_gid
    except KeyError as error:
        raise BundleError(f"there is no such owner or group: {error}") from None


def compare(tree, entry):
    """Differences of one file, as (item, expected, found)."""
    found = tree.read(entry["path"])
    if found is None:
        return [("missing", "present", None)]
    differences = []
    if found["content"] is None:
        return [("content", "a file", found["kind"])]
    if found["content"] != entry["content"].encode():
        have = hashlib.sha256(found["content"]).hexdigest()
        differences.append(("content", "sha256 " + entry["sha256"][:12], "sha256 " + have[:12]))
    if found["mode"] != entry["mode"]:
        differences.append(("mode", entry["mode"], found["mode"]))
    wanted = f"{entry['owner']}:{entry['group']}"
    if tree.real and found["owner"] != wanted:
        differences.append(("owner", wanted, found["owner"]))
    return differences


def text_of(content):
    """Text of a file for a diff, cut where it is long."""
    text = content.decode("utf-8", "replace")
    return text if len(text) <= LONGEST_DIFF else text[:LONGEST_DIFF] + "\n… cut …\n"


def diff_of(tree, entry, differences):
    """Before and after of one file."""
    found = tree.read(entry["path"])
    before = text_of(found["content"]) if found and found["content"] is not None else ""
    headers = [f"{item} {have or 'not there'}" for item, _wanted, have in differences]
    return {
        "before": before,
        "after": text_of(entry["content"].encode()),
        "before_header": entry["path"] + " (" + ", ".join(headers) + ")",
        "after_header": entry["path"] + f" (mode {entry['mode']})",
    }


def manifest_of(entries):
    """What this bundle manages, the same text for the same bundle."""
    managed = {e["path"]: {"sha256": e["sha256"], "change": e["change"]} for e in entries}
    return json.dumps({"schema": 1, "files": managed}, indent=1, sort_keys=True) + "\n"


def managed_before(tree):
    """Paths that an earlier bundle wrote, with the cost of their change."""
    found = tree.read(MANIFEST)
    if found is None or found["content"] is None:
        return {}
    try:
        files = json.loads(found["content"])["files"]
        return {path: said["change"] for path, said in files.items()}
    except (ValueError, KeyError, TypeError):
        # a damaged manifest is written anew; what it named can no longer be known
        return {}


def change_of(path, item, expected, found, cost, restart):
    """One entry of the result."""
    return {
        "path": path,
        "item": item,
        "expected": expected,
        "found": found,
        "change": cost,
        "restart": restart,
    }


def run(tree, bundle):
    """Compare, and write unless in check mode."""
    entries = checked(bundle)
    changes, diffs, pending = [], [], []
    for entry in entries:
        differences = compare(tree, entry)
        if differences:
            pending.append(entry)
            diffs.append(diff_of(tree, entry, differences))
            for item, expected, found in differences:
                changes.append(
                    change_of(
                        entry["path"], item, expected, found, entry["change"], entry["restart"]
                    )
                )
    wanted = {entry["path"] for entry in entries}
    obsolete = {
        path: cost
        for path, cost in managed_before(tree).items()
        if path not in wanted and tree.read(path) is not None
    }
    for path, cost in sorted(obsolete.items()):
        changes.append(change_of(path, "obsolete", None, "present", cost, []))
        diffs.append(
            {
                "before": "present\n",
                "after": "",
                "before_header": path,
                "after_header": path + " (removed)",
            }
        )
    if not tree.check:
        for entry in pending:
            tree.write(entry)
        for path in obsolete:
            tree.remove(path)
        manifest = {
            "path": MANIFEST,
            "mode": "0644",
            "owner": "root",
            "group": "root",
            "content": manifest_of(entries),
        }
        found = tree.read(MANIFEST)
        if found is None or found["content"] != manifest["content"].encode():
            tree.write(manifest)
    return changes, diffs


def result_of(tree, bundle, changes, diffs):
    """What Ansible and the role are told."""
    restart = []
    for change in changes:
        restart += [unit for unit in change["restart"] if unit not in restart]
    paths = [change["path"] for change in changes]
    return {
        "changed": bool(changes),
        "changes": changes,
        "diff": diffs,
        "restart": restart,
        "real": tree.real,
        "packages": bundle.get("packages", []),
        "reload_units": any(path.startswith(UNITS) for path in paths),
        "boot_loader": any(path.startswith(BOOT_LOADER) for path in paths),
    }


def main():
    """Run as Ansible calls it."""
    module = AnsibleModule(
        argument_spec={"bundle": {"type": "dict", "required": True}}, supports_check_mode=True
    )
    bundle = module.params["bundle"]
    tree = Tree(bundle.get("root"), module.check_mode)
    try:
        changes, diffs = run(tree, bundle)
    except BundleError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        reason = errno.errorcode.get(error.errno or 0, "")
        module.fail_json(msg=f"{error.filename or tree.root}: {error.strerror} ({reason})")
    module.exit_json(**result_of(tree, bundle, changes, diffs))


if __name__ == "__main__":
    main()
