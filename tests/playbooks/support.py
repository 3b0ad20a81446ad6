"""Bundles, nodes that are directories, and inventories for them."""

import ctypes
import json
import stat
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.playbooks import module_driver
from vela.model.change import Change
from vela.render.bundle import Bundle, BundleFile

ROOT = Path(__file__).resolve().parents[2]
PLAYBOOKS = ROOT / "playbooks"
MANIFEST = "/var/lib/vela/bundle.json"


def file(
    path: str,
    content: str = "text\n",
    *,
    mode: str = "0644",
    change: Change = Change.LIVE,
    restart: tuple[str, ...] = (),
) -> BundleFile:
    return BundleFile(path=path, content=content, mode=mode, change=change, restart=restart)


def bundle(root: Path | None, files: Iterable[BundleFile], node: str = "n1") -> Bundle:
    return Bundle(
        schema=1,
        node=node,
        kind="host",
        root=str(root) if root else None,
        files=tuple(sorted(files, key=lambda entry: entry.path)),
    )


def data(made: Bundle) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(made.model_dump_json(by_alias=True))
    return result


def call(
    made: Bundle | Mapping[str, Any],
    *,
    check: bool = False,
    diff: bool = False,
    code: int = 0,
    before: Any = None,
) -> dict[str, Any]:
    """Run the module in a process of its own; gives what it answers."""
    arguments = {
        "bundle": data(made) if isinstance(made, Bundle) else dict(made),
        "_ansible_check_mode": check,
        "_ansible_diff": diff,
    }
    done = subprocess.run(
        [sys.executable, module_driver.__file__],
        input=json.dumps(arguments),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=before,
    )
    assert done.returncode == code, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def without_override() -> None:
    """Give up, as root, the right to pass over permissions; for the process about to start."""
    drop_from_bounding_set, override, read_search = 24, 1, 2
    if sys.platform == "linux":
        for right in (override, read_search):
            ctypes.CDLL(None).prctl(drop_from_bounding_set, right, 0, 0, 0)


def items(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(change["path"], change["item"]) for change in result["changes"]]


def snapshot(root: Path) -> dict[str, tuple[int, str | bytes]]:
    """Everything below a folder: kind and mode, and content or target."""
    found: dict[str, tuple[int, str | bytes]] = {}
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        content: str | bytes = b""
        if stat.S_ISLNK(mode):
            content = str(path.readlink())
        elif stat.S_ISREG(mode):
            content = path.read_bytes()
        found[str(path.relative_to(root))] = (mode, content)
    return found


class Fleet:
    """Nodes that are directories, with their bundles and an inventory."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self._groups: dict[str, dict[str, dict[str, object]]] = {"hosts": {}, "switches": {}}

    def root(self, node: str) -> Path:
        return self.base / "nodes" / node

    @property
    def inventory(self) -> Path:
        return self.base / "inventory.json"

    def add(
        self, node: str, files: Iterable[BundleFile], group: str = "hosts", **variables: object
    ) -> None:
        """Add a node, or give it another bundle."""
        self.root(node).mkdir(parents=True, exist_ok=True)
        path = self.base / f"{node}.json"
        path.write_text(bundle(self.root(node), files, node).model_dump_json(by_alias=True))
        path.chmod(0o600)
        self._groups[group][node] = {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "vela_bundle_file": str(path),
            **variables,
        }
        groups = {name: {"hosts": nodes} for name, nodes in self._groups.items()}
        self.inventory.write_text(json.dumps({"all": {"children": groups}}))

    @property
    def names(self) -> list[str]:
        return [node for nodes in self._groups.values() for node in nodes]
