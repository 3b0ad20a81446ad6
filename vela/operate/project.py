"""Where things lie in a project folder, and safe reading and writing of our own files."""

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vela.operate.errors import Failure


@dataclass(frozen=True, slots=True)
class Project:
    """A project folder: the one with ``Pulumi.yaml`` and ``environments/``."""

    root: Path

    @property
    def state(self) -> Path:
        """Everything of ours on this machine; may be deleted when nothing is up."""
        return self.root / ".vela"

    def run(self, name: str) -> Path:
        """Our own files of one environment."""
        return self.state / "run" / name

    def outputs(self, name: str) -> Path:
        """Saved stack outputs (contract 1)."""
        return self.run(name) / "outputs.json"

    def bundles(self, name: str) -> Path:
        """Folder of the bundle files (contract 2)."""
        return self.run(name) / "bundles"

    def inventory(self, name: str) -> Path:
        """Ansible's inventory."""
        return self.run(name) / "inventory.json"

    def node_root(self, name: str, node: str) -> Path:
        """Directory that stands for a node."""
        return self.state / name / node

    @property
    def simulator(self) -> Path:
        """Folder of the simulated cloud, shared by the environments that use it."""
        return self.state / "cloud"


def find(start: Path) -> Project:
    """The project that a folder belongs to.

    Raises:
        Failure: There is none from here upwards.
    """
    for folder in (start, *start.parents):
        if (folder / "Pulumi.yaml").is_file() and (folder / "environments").is_dir():
            return Project(folder)
    message = f"no Pulumi.yaml with environments/ beside it in {start} or above"
    raise Failure(message, "run this in the project folder, or name it with --project")


def private(folder: Path) -> Path:
    """Make a folder that only its owner can enter."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder


def write(path: Path, text: str) -> None:
    """Write a private file whole or not at all."""
    private(path.parent)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: object) -> None:
    """Write a private JSON file whole or not at all."""
    write(path, json.dumps(value, indent=2) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file of ours; None where there is none.

    Raises:
        Failure: It is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        message = f"{path} is not readable: {error}"
        raise Failure(message, "delete it; the next run makes it again") from None
