"""Faults on demand: the next requests that match are answered badly."""

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

KINDS = ("status", "garbage", "drop", "lose", "stall")


@dataclass(slots=True)
class Fault:
    """A fault that waits for its requests.

    Attributes:
        kind: ``status``: answer with ``status``, nothing is done; ``garbage``: answer with a
            body that is not JSON, nothing is done; ``drop``: close the connection, nothing is
            done; ``lose``: do it, then close the connection without an answer; ``stall``: wait
            for ``seconds``, then answer.
        method: Method, or empty for any.
        path: Regular expression found in the path.
        count: How many requests it still hits.
        status: Status of the answer.
        seconds: How long to stall.
    """

    kind: str
    method: str = ""
    path: str = ""
    count: int = 1
    status: int = 500
    seconds: float = 0.0

    def matches(self, method: str, path: str) -> bool:
        """Whether it hits a request."""
        return self.method in {"", method} and re.search(self.path, path) is not None


@dataclass(slots=True)
class Faults:
    """Faults that wait, in the order in which they were asked for."""

    waiting: list[Fault] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, body: Mapping[str, Any]) -> Fault:
        """Take a fault from a request's body.

        Raises:
            ValueError: It is not one that is known.
        """
        known = set(Fault.__dataclass_fields__)
        unknown = sorted(set(body) - known)
        if unknown or body.get("kind") not in KINDS:
            message = f"a fault has {', '.join(sorted(known))}; kind is one of {', '.join(KINDS)}"
            raise ValueError(message)
        fault = Fault(**body)
        re.compile(fault.path)
        with self.lock:
            self.waiting.append(fault)
        return fault

    def hit(self, method: str, path: str) -> Fault | None:
        """The fault of a request, counted down."""
        with self.lock:
            for fault in self.waiting:
                if fault.matches(method, path):
                    fault.count -= 1
                    if fault.count <= 0:
                        self.waiting.remove(fault)
                    return fault
        return None

    def clear(self) -> None:
        """Forget all faults."""
        with self.lock:
            self.waiting.clear()
