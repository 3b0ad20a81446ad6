import io

import pytest
from rich.console import Console

from tests.components.conftest import plan_of
from vela.finding import Finding, Kind, Layer
from vela.model.change import Change
from vela.operate.flow import Outcome
from vela.operate.project import Project
from vela.operate.session import Cluster
from vela.operate.stack import Run, Step
from vela.report import data, plain, text


def cluster() -> Cluster:
    return Cluster(Project.__new__(Project), None, plan_of("local"))  # type: ignore[arg-type]


def shown(outcome: Outcome) -> str:
    out = io.StringIO()
    console = Console(file=out, highlight=False, soft_wrap=True, width=80)
    text.show(console, cluster(), outcome)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


FINDING = Finding(
    layer=Layer.SWITCH, node="spine01", item="base.json (mode)", expected="0644", found="0600",
    change=Change.FABRIC_DRAIN, rule="VELA-FILE-002",
)  # fmt: skip


@pytest.mark.parametrize(("value", "words"), [(0.84, "0.8 s"), (41.2, "41 s"), (200, "3 min 20 s")])
def test_times(value: float, words: str) -> None:
    assert text.seconds(value) == words


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [(1, "leaf", "1 leaf"), (2, "switch", "2 switches"), (1528, "cable", "1,528 cables")],
)
def test_counts(number: int, noun: str, words: str) -> None:
    assert text.count(number, noun) == words


def test_drift() -> None:
    said = shown(Outcome("drift", "local", seconds=11.2, findings=(FINDING,)))
    assert said == (
        "switch spine01  base.json (mode)  fabric-drain  VELA-FILE-002\n"
        "    expected: 0644\n"
        "    found:    0600\n"
        "\n"
        "1 difference (1 fabric-drain); to repair: vela up local  11 s"
    )


def test_no_drift() -> None:
    said = shown(Outcome("drift", "local", seconds=11.2))
    assert said == ("no drift  2 hosts in 2 racks, 4 leafs, 2 spines, 12 cables; looked in 11 s")


def test_plan_counts_by_type() -> None:
    steps = tuple(
        Step("create", f"urn::{name}", "ibm:index/isSubnet:IsSubnet") for name in ("b", "a")
    )
    said = shown(Outcome("plan", "local", cloud=Run(steps, (), 1.0)))
    assert "  +  make  2  IsSubnet  a … b" in said


def test_a_failed_node_is_named_with_what_it_said() -> None:
    failed = FINDING.model_copy(
        update={"kind": Kind.FAILURE, "item": "failed", "found": "disk full", "expected": None}
    )
    said = shown(Outcome("up", "local", findings=(failed,)))
    assert "local is up in part: 1 node failed" in said
    assert "    said:     disk full" in said
    assert "vela up local" in said


def test_json() -> None:
    made = data.outcome(Outcome("drift", "local", findings=(FINDING,)), 3)
    assert made["exit_code"] == 3
    assert made["findings"][0] == {
        "layer": "switch", "node": "spine01", "item": "base.json (mode)", "expected": "0644",
        "found": "0600", "change": "fabric-drain", "rule": "VELA-FILE-002",
        "kind": "difference", "hint": "",
    }  # fmt: skip


def test_show_names_every_default() -> None:
    said = "".join(plain.plan_text(plan_of("local")))
    assert "  r02-h01  10.240.0.129  10.240.1.129  debian-12-kvm\n" in said
    assert "  r02-leaf2  10.240.0.189  AS 4200001009  loopback 10.196.0.66" in said
    assert "      addresses_per_rack: 64\n" in said
    assert "    cnp_dscp: 48\n" in said
