"""Time of the Pulumi program under mocks, against registering as many empty resources."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import pulumi  # noqa: E402

from components.cluster import declare  # noqa: E402
from tests.harness import Graph, Record, run_program  # noqa: E402
from vela.model.environment import Environment  # noqa: E402
from vela.model.load import Loaded, load  # noqa: E402
from vela.plan import Plan, build  # noqa: E402

ROUNDS = 3


class Empty(pulumi.ComponentResource):
    """A component without anything."""

    def __init__(self, name: str) -> None:
        """Register it."""
        super().__init__("bench:Empty", name)
        self.register_outputs({})


class Bare(pulumi.CustomResource):
    """A resource without anything."""

    def __init__(self, name: str, parent: pulumi.Resource) -> None:
        """Register it."""
        super().__init__("ibm:index/bare:Bare", name, {}, pulumi.ResourceOptions(parent=parent))


def plan_of(loaded: Loaded, racks: int) -> Plan:
    """The environment's plan with another number of racks."""
    hosts = loaded.environment.hosts.model_copy(update={"racks": racks, "overrides": {}})
    environment: Environment = loaded.environment.model_copy(update={"hosts": hosts})
    return build(environment, loaded.hardware)


def timed(program: Callable[[], None]) -> tuple[float, Graph]:
    """Median time of a program, and its graph."""
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        graph = run_program(program)
        times.append(time.perf_counter() - begun)
    return median(times), graph


def bare(components: int, resources: int) -> Callable[[], None]:
    """A program of as many empty components and resources."""

    def program() -> None:
        parents = [Empty(f"c{number}") for number in range(components)]
        for number in range(resources):
            Bare(f"r{number}", parents[number % components])

    return program


class Plain(pulumi.CustomResource):
    """A resource with inputs that are known."""

    def __init__(self, record: Record, parent: pulumi.Resource) -> None:
        """Register it."""
        options = pulumi.ResourceOptions(parent=parent)
        super().__init__(record.type, record.name, record.inputs, options)


def plain(graph: Graph) -> Callable[[], None]:
    """A program of the same resources and inputs, as constants."""

    def program() -> None:
        parents = [Empty(record.name) for record in graph.components]
        for number, record in enumerate(graph.resources):
            Plain(record, parents[number % len(parents)])

    return program


def main() -> None:
    """Print the figures."""
    loaded = load(ROOT, "vela")
    half, _ = timed(lambda: declare(plan_of(loaded, 24)))
    whole, graph = timed(lambda: declare(plan_of(loaded, 48)))
    baseline, _ = timed(bare(len(graph.components), len(graph.resources)))
    print(f"{len(graph.components)} components, {len(graph.resources)} resources")
    constants, _ = timed(plain(graph))
    print(f"registering them empty     {baseline:6.2f} s")
    print(f"with the same constants    {constants:6.2f} s")
    print(f"the program of vela        {whole:6.2f} s  ratio {whole / baseline:4.2f}  goal 1.5")
    print(f"  against the constants             ratio {whole / constants:4.2f}")
    print(f"half the racks             {half:6.2f} s  doubling {whole / half:4.2f}  goal 2.2")


if __name__ == "__main__":
    main()
