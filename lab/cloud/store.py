"""State of the simulated cloud: resources by kind and id, kept in a file."""

import json
import os
import tempfile
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Resource = dict[str, Any]
"""A resource as the API shows it, and keys beginning with ``_`` that it does not show."""

SECONDS_BETWEEN_SAVES = 0.2


class Store:
    """Resources in memory, written to a file soon after each change.

    A killed process loses at most the changes of the last fifth of a second.
    """

    def __init__(self, path: Path | None) -> None:
        """Read the state, where there is one."""
        self.lock = threading.RLock()
        self._path = path
        self._kinds: dict[str, dict[str, Resource]] = {}
        self._names: dict[tuple[str, str, str], str] = {}
        self._children: dict[tuple[str, str], dict[str, Resource]] = {}
        self._added: list[tuple[str, Resource]] = []
        self._changed = threading.Event()
        self._closed = threading.Event()
        if path and path.exists():
            for kind, resources in json.loads(path.read_text(encoding="utf-8")).items():
                for resource in resources:
                    self._index(kind, resource)
        self._writer = threading.Thread(target=self._write_changes, daemon=True)
        self._writer.start()

    def new_id(self, prefix: str) -> str:
        """An id that was never used; zonal ones begin with the zone's number."""
        return f"{prefix}-{uuid.uuid4()}"

    def add(self, kind: str, resource: Resource) -> Resource:
        """Take a resource; ``_scope`` is where its name is unique, ``_parent`` whose it is."""
        self._added.append((kind, resource))
        self._index(kind, resource)
        self._changed.set()
        return resource

    def keep(self) -> None:
        """End a request that was done: what it added stays."""
        self._added.clear()

    def undo(self) -> None:
        """End a request that was refused: what it added goes."""
        for kind, resource in reversed(self._added):
            if self.find(kind, resource["id"]) is resource:
                self.remove(kind, resource)
        self._added.clear()

    def _index(self, kind: str, resource: Resource) -> None:
        self._kinds.setdefault(kind, {})[resource["id"]] = resource
        if "name" in resource:
            self._names[kind, resource.get("_scope", ""), resource["name"]] = resource["id"]
        if "_parent" in resource:
            siblings = self._children.setdefault((kind, resource["_parent"]), {})
            siblings[resource["id"]] = resource

    def find(self, kind: str, identity: str) -> Resource | None:
        """A resource by id."""
        return self._kinds.get(kind, {}).get(identity)

    def named(self, kind: str, scope: str, name: str) -> Resource | None:
        """A resource by name."""
        identity = self._names.get((kind, scope, name))
        return None if identity is None else self.find(kind, identity)

    def all(self, kind: str) -> list[Resource]:
        """Resources of a kind, oldest first."""
        return list(self._kinds.get(kind, {}).values())

    def children(self, kind: str, parent: str) -> list[Resource]:
        """Resources of a kind below a parent, oldest first."""
        return list(self._children.get((kind, parent), {}).values())

    def rename(self, kind: str, resource: Resource, name: str) -> None:
        """Give a resource another name."""
        scope = resource.get("_scope", "")
        self._names.pop((kind, scope, resource.get("name", "")), None)
        resource["name"] = name
        self._names[kind, scope, name] = resource["id"]
        self._changed.set()

    def remove(self, kind: str, resource: Resource) -> None:
        """Forget a resource."""
        self._kinds.get(kind, {}).pop(resource["id"], None)
        self._names.pop((kind, resource.get("_scope", ""), resource.get("name", "")), None)
        if "_parent" in resource:
            self._children.get((kind, resource["_parent"]), {}).pop(resource["id"], None)
        self._changed.set()

    def touch(self) -> None:
        """Note that a resource was changed in place."""
        self._changed.set()

    def counts(self) -> dict[str, int]:
        """How many resources there are of each kind."""
        with self.lock:
            return {kind: len(found) for kind, found in sorted(self._kinds.items()) if found}

    def clear(self) -> None:
        """Forget everything."""
        with self.lock:
            self._kinds.clear()
            self._names.clear()
            self._children.clear()
            self._changed.set()

    def close(self) -> None:
        """Write what is not written yet."""
        self._closed.set()
        self._changed.set()
        self._writer.join()

    def _write_changes(self) -> None:
        while True:
            self._changed.wait()
            closed = self._closed.wait(SECONDS_BETWEEN_SAVES)
            self._changed.clear()
            self._save()
            if closed:
                return

    def _save(self) -> None:
        if self._path is None:
            return
        with self.lock:
            text = json.dumps({kind: list(found.values()) for kind, found in self._kinds.items()})
        handle, temporary = tempfile.mkstemp(dir=self._path.parent, prefix=".state.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(self._path)


def shown(value: Any) -> Any:
    """A resource as the API shows it."""
    if isinstance(value, dict):
        return {key: shown(part) for key, part in value.items() if not key.startswith("_")}
    if isinstance(value, list):
        return [shown(part) for part in value]
    return value


def each(value: Any) -> Iterator[Any]:
    """Items of a list that may be missing."""
    yield from value or []
