from collections.abc import Callable
from functools import cache

import pytest

from components.cluster import declare
from tests.conftest import ROOT
from tests.harness import Graph, run_program
from vela.model.load import load
from vela.plan import Plan, build


@cache
def plan_of(name: str) -> Plan:
    loaded = load(ROOT, name)
    return build(loaded.environment, loaded.hardware)


@pytest.fixture(autouse=True)
def _strict_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_ERROR_OUTPUT_STRING", "true")


@pytest.fixture
def graph_of() -> Callable[..., Graph]:
    def run(name: str, *, preview: bool = False) -> Graph:
        plan = plan_of(name)
        return run_program(lambda: declare(plan), stack=name, preview=preview)

    return run
