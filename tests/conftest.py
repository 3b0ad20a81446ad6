"""What every test stands on: the project's root, and no way out to the network."""

import logging
import os
import socket
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent

# pulumi's failed futures, logged while they are collected, crash Python 3.11's ast module
logging.getLogger("asyncio").setLevel(logging.CRITICAL)


@pytest.fixture(scope="session")
def root() -> Path:
    """The project folder."""
    return ROOT


@pytest.fixture(autouse=True)
def _closed_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that leaves this machine, and forget the caller's Pulumi."""
    for name in list(os.environ):
        if name.startswith(("PULUMI_", "IC_", "IBMCLOUD_")):
            monkeypatch.delenv(name)
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] not in {"127.0.0.1", "::1", "localhost"}:
            message = f"a test tried to reach {address}"
            raise AssertionError(message)
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
