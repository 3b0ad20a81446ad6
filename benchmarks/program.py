"""Time of the Pulumi program under mocks, against registering as many resources without it.

Processor time of this process, so that other work on the machine does not count; the cases take
turns, and the median of the rounds is printed.
"""

import gc
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import pulumi  # noqa: E402
import pulumi_ibm as ibm  # noqa: E402

from components.cluster import declare  # noqa: E402
from tests.harness import Graph, Record, run_program  # noqa: E402
from vela.model.environment import Environment  # noqa: E402
from vela.model.load import Loaded, load  # noqa: E402
from vela.plan import Plan, build  # noqa: E402

ROUNDS = 5
Program = Callable[[], None]


class Empty(pulumi.ComponentResource):
    """A component without anything."""

    def __init__(self, name: str, parent: pulumi.Resource | None = None) -> None:
        """Register it."""
        super().__init__("bench:Empty", name, {}, pulumi.ResourceOptions(parent=parent))
        self.register_outputs({})


class Plain(pulumi.CustomResource):
    """A resource with inputs that are known, and no outputs."""

    def __init__(self, record: Record, inputs: Mapping[str, object], parent: Empty) -> None:
        """Register it."""
        options = pulumi.ResourceOptions(parent=parent)
        super().__init__(record.type, record.name, dict(inputs), options)


def empty(record: Record, parent: Empty) -> None:
    """A resource without anything."""
    Plain(record, {}, parent)


def plain(record: Record, parent: Empty) -> None:
    """The same inputs as constants, without the generated classes."""
    Plain(record, record.inputs, parent)


def generated(record: Record, parent: Empty) -> None:
    """The same inputs as constants, through the generated classes: what the SDK costs."""
    kind = getattr(ibm, record.type.rsplit(":", 1)[-1])
    inputs = {re.sub("([A-Z])", r"_\1", key).lower(): said for key, said in record.inputs.items()}
    kind(record.name, **inputs, opts=pulumi.ResourceOptions(parent=parent))


def same_tree(graph: Graph, make: Callable[[Record, Empty], None]) -> Program:
    """A program of as many components and resources, in the same places."""

    def program() -> None:
        made: dict[str, Empty] = {}
        for record in graph.components:
            made[record.urn] = Empty(record.name, made.get(record.parent))
        for record in graph.resources:
            make(record, made[record.parent])

    return program


def plan_of(loaded: Loaded, racks: int) -> Plan:
    """The environment's plan with another number of racks."""
    hosts = loaded.environment.hosts.model_copy(update={"racks": racks, "overrides": {}})
    environment: Environment = loaded.environment.model_copy(update={"hosts": hosts})
    return build(environment, loaded.hardware)


def timed(program: Program) -> float:
    """Seconds of processor time that a program takes."""
    gc.collect()
    begun = time.process_time()
    run_program(program)
    return time.process_time() - begun


def main() -> None:
    """Print the figures."""
    loaded = load(ROOT, "vela")
    plans = {racks: plan_of(loaded, racks) for racks in (24, 48)}
    graph = run_program(lambda: declare(plans[48]))
    programs: dict[str, Program] = {
        "empty": same_tree(graph, empty),
        "plain": same_tree(graph, plain),
        "generated": same_tree(graph, generated),
        "half": lambda: declare(plans[24]),
        "vela": lambda: declare(plans[48]),
    }
    rounds = [{name: timed(program) for name, program in programs.items()} for _ in range(ROUNDS)]
    at = {name: median(one[name] for one in rounds) for name in programs}
    print(f"{len(graph.components)} components, {len(graph.resources)} resources, processor time")
    for name, says in (
        ("empty", "registering them empty"),
        ("plain", "the same inputs as constants, without the SDK's classes"),
        ("generated", "the same inputs as constants, through the SDK's classes"),
        ("vela", "the program of vela"),
    ):
        print(f"{says:58} {at[name]:6.2f} s {at[name] / at['empty']:6.2f} x empty")
    print(f"program / empty            {at['vela'] / at['empty']:5.2f}   goal 1.5")
    print(f"program / SDK's classes    {at['vela'] / at['generated']:5.2f}   what is ours to save")
    print(f"program / half the racks   {at['vela'] / at['half']:5.2f}   goal 2.2")


if __name__ == "__main__":
    main()
