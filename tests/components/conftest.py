from collections.abc import Callable
from functools import cache

import pytest

from components.cluster import declare
from tests.conftest import ROOT
from tests.harness import Graph, run_program
from vela.model.load import load
from vela.plan import Plan, build

API_KEY = "this-key-must-stay-out-of-every-input"


@cache
def plan_of(name: str) -> Plan:
    loaded = load(ROOT, name)
    return build(loaded.environment, loaded.hardware)


@cache
def _graph_of(name: str, preview: bool) -> Graph:
    plan = plan_of(name)
    return run_program(lambda: declare(plan), stack=name, preview=preview)


@pytest.fixture(autouse=True)
def _strict_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_ERROR_OUTPUT_STRING", "true")
    for name in ("IC_API_KEY", "IBMCLOUD_API_KEY"):
        monkeypatch.setenv(name, API_KEY)


@pytest.fixture
def graph_of() -> Callable[..., Graph]:
    """Gives a shipped environment's graph; it is shared by the tests, which only read it."""

    def run(name: str, *, preview: bool = False) -> Graph:
        return _graph_of(name, preview)

    return run
