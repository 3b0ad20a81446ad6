"""What a node remembers of its bundle: which files are managed, and what is due because of them."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from ansible.module_utils.vela_tree import Batch, Tree

MANIFEST = "/var/lib/vela/bundle.json"
LONGEST = 1 << 24

Record = dict[str, Any]


class Manifest:
    """Managed files by path.

    A record has ``sha256`` (None where the file was removed), ``change``, ``restart`` and, where
    it applies, ``due`` (something must read the file again) and ``boot`` (the start of the node
    during which the file changed, when it counts from the next start on). The same bundle on the
    same node gives the same text.

    Attributes:
        files: The records.
        found: Text on the node; None where there is none to trust.
        state: ``whole``, ``missing`` or ``damaged``.
    """

    def __init__(self, files: dict[str, Record], found: str | None, state: str) -> None:
        """Take the records."""
        self.files = files
        self.found = found
        self.state = state

    @classmethod
    def load(cls, tree: Tree) -> Manifest:
        """Read it from a node."""
        there = tree.read(MANIFEST, LONGEST)
        if there is None:
            return cls({}, None, "missing")
        try:
            found = there.content.decode()
            files = {
                str(path): {"sha256": None, "change": "live", "restart": [], **record}
                for path, record in json.loads(found)["files"].items()
            }
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls({}, None, "damaged")
        return cls(files, found, "whole")

    @staticmethod
    def settle(tree: Tree) -> bool:
        """Note that nothing is due any more; gives whether anything was.

        Raises:
            TreeError: It cannot be written, or another run is at work.
        """
        with tree.locked(os.path.dirname(MANIFEST)), Batch(tree) as batch:
            known = Manifest.load(tree)
            settled = {
                path: {key: value for key, value in record.items() if key != "due"}
                for path, record in known.files.items()
                if record["sha256"] or record.get("boot")
            }
            if settled == known.files:
                return False
            batch.add([Manifest(settled, None, "whole").entry()])
            batch.place()
            return True

    def after(
        self,
        entries: dict[str, Record],
        due: set[str],
        rebooting: set[str],
        boot: str | None,
    ) -> Manifest:
        """The manifest once a bundle is in place.

        Args:
            entries: The bundle's files by path.
            due: Paths that something must read again.
            rebooting: Changed paths that count from the next start on.
            boot: This start of the node; None where it has none.
        """
        files: dict[str, Record] = {}
        for path in sorted({*entries, *self.files}):
            marks: Record = {"due": True} if path in due else {}
            if boot and (path in rebooting or self.files.get(path, {}).get("boot") == boot):
                marks["boot"] = boot
            if path in entries:
                kept = {key: entries[path][key] for key in ("sha256", "change", "restart")}
                files[path] = {**kept, **marks}
            elif marks:
                kept = {key: self.files[path][key] for key in ("change", "restart")}
                files[path] = {"sha256": None, **kept, **marks}
        return Manifest(files, None, "whole")

    def holding(self, before: Manifest, obsolete: list[str]) -> Manifest:
        """The same, as long as obsolete files are still there."""
        held = {
            path: {**before.files[path], **self.files.get(path, {})}
            | {"sha256": before.files[path]["sha256"]}
            for path in obsolete
        }
        return Manifest({**self.files, **held}, None, "whole")

    def waiting(self, boot: str | None) -> set[str]:
        """Paths that changed since the node started, and count from the next start on."""
        return {path for path, record in self.files.items() if boot and record.get("boot") == boot}

    def edited(self, tree: Tree, path: str) -> bool:
        """Whether a managed file was changed by somebody else."""
        found = tree.read(path, LONGEST)
        return (
            found is not None
            and hashlib.sha256(found.content).hexdigest() != self.files[path]["sha256"]
        )

    def text(self) -> str:
        """Its text."""
        return json.dumps({"schema": 1, "files": self.files}, indent=1, sort_keys=True) + "\n"

    def entry(self) -> Record:
        """Itself as a file to write; for its owner alone, since checksums tell of contents."""
        return {
            "path": MANIFEST,
            "mode": "0600",
            "owner": "root",
            "group": "root",
            "content": self.text(),
        }


def boot_id() -> str | None:
    """What the kernel calls this start of the node; None where it does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None
