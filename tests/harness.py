"""Runs the Pulumi program once against a recording monitor, and gives the graph as plain data.

Uses what Pulumi 3.272.0 keeps private (``settings.ROOT``, ``run_in_stack``, ``_sync_await``); a
test holds the version.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
from google.protobuf.json_format import MessageToDict
from pulumi.runtime import mocks, settings
from pulumi.runtime.stack import run_in_stack
from pulumi.runtime.sync_await import _sync_await

STACK = "pulumi:pulumi:Stack"
SECRET = "4dabf18193072939515e22adb298388d"
"""Key that marks the envelope of a secret value."""


@dataclass
class Record:
    """A registered resource."""

    urn: str
    type: str
    name: str
    parent: str
    custom: bool
    inputs: dict[str, Any]
    protect: bool
    delete_before_replace: bool
    ignore_changes: tuple[str, ...]
    dependencies: tuple[str, ...]
    aliases: int
    provider: str
    outputs: dict[str, Any] | None = None


@dataclass
class Graph:
    """Everything that a program registered."""

    records: dict[str, Record] = field(default_factory=dict)
    duplicates: list[str] = field(default_factory=list)

    @property
    def resources(self) -> list[Record]:
        """Cloud resources."""
        return [r for r in self.records.values() if r.type.startswith("ibm:index/")]

    @property
    def components(self) -> list[Record]:
        """Our components."""
        return [r for r in self.records.values() if r.type.startswith("vela:")]

    @property
    def exports(self) -> dict[str, Any]:
        """What the stack exports."""
        return next(r for r in self.records.values() if r.type == STACK).outputs or {}

    def named(self, name: str) -> Record:
        """The one cloud resource of a logical name."""
        (found,) = [r for r in self.resources if r.name == name]
        return found

    def of(self, kind: str) -> list[Record]:
        """Cloud resources of a type, such as ``IsVpc``."""
        return [r for r in self.resources if r.type.endswith(f":{kind}")]


class Monitor(mocks.MockMonitor):
    """Records what the program registers."""

    def __init__(self, answers: pulumi.runtime.Mocks, graph: Graph) -> None:
        super().__init__(answers)
        self.graph = graph

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the monitor's name
        response = super().RegisterResource(request)  # type: ignore[no-untyped-call]
        known = self.graph.records
        if response.urn in known and request.type != STACK:
            self.graph.duplicates.append(response.urn)
        known[response.urn] = Record(
            urn=response.urn,
            type=request.type,
            name=request.name,
            parent=request.parent,
            custom=request.custom,
            inputs=MessageToDict(request.object),
            protect=request.protect,
            delete_before_replace=request.deleteBeforeReplace,
            ignore_changes=tuple(request.ignoreChanges),
            dependencies=tuple(request.dependencies),
            aliases=len(request.aliases),
            provider=request.provider,
        )
        return response

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802 - likewise
        self.graph.records[request.urn].outputs = MessageToDict(request.outputs)
        return super().RegisterResourceOutputs(request)  # type: ignore[no-untyped-call]


class Answers(pulumi.runtime.Mocks):
    """Answers as IBM Cloud would, made from names."""

    def __init__(self, *, computed: bool) -> None:
        self.computed = computed

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        state = dict(args.inputs)
        if self.computed:
            state |= {
                "crn": f"crn:{args.name}",
                "macAddress": "02:00:00:00:00:01",
                "address": state.get("address", "203.0.113.1"),
                "clusterNetworkInterfaceId": f"id-{args.name}",
                "clusterNetworkSubnetId": f"id-{args.name}",
                "name": state.get("name", args.name),
            }
        return f"id-{args.name}", state

    def call(
        self, args: pulumi.runtime.MockCallArgs
    ) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        if args.token != "ibm:index/getResourceGroup:getResourceGroup":
            raise AssertionError(args.token)
        return {**args.args, "id": "group-1"}, []


def run_program(
    program: Callable[[], None], *, stack: str = "test", preview: bool = False
) -> Graph:
    """Run a program, and give its graph."""
    settings.ROOT.set(None)
    settings.SETTINGS.outputs = set()
    pulumi.runtime.set_all_config({}, [])
    graph = Graph()
    answers = Answers(computed=not preview)
    pulumi.runtime.set_mocks(
        answers, project="vela", stack=stack, preview=preview, monitor=Monitor(answers, graph)
    )
    settings.ROOT.set(None)
    _sync_await(run_in_stack(program))
    return graph


def faults(graph: Graph, secret: str) -> list[str]:
    """What is wrong with a graph, whatever its program was about.

    Args:
        graph: The graph.
        secret: A text that may stand in envelopes of secrets alone.
    """
    found = [f"registered twice: {urn.rsplit('::', 1)[-1]}" for urn in graph.duplicates]
    components = {record.urn for record in graph.components}
    for record in graph.records.values():
        text = text_of({"inputs": record.inputs, "outputs": record.outputs})
        if "Calling __str__" in text:
            found.append(f"an output in a text: {record.name}")
        if secret in text:
            found.append(f"a secret in the open: {record.name}")
        if record.type == STACK or record.type.startswith("pulumi:providers:"):
            continue
        if record.parent not in components and (record.custom or not _under_stack(record)):
            found.append(f"no component of ours is its parent: {record.name}")
        if not record.custom and record.outputs is None:
            found.append(f"no outputs registered: {record.name}")
        if record.custom and "pulumi:providers:ibm::ibm::" not in record.provider:
            found.append(f"made by the default provider: {record.name}")
    return found


def _under_stack(record: Record) -> bool:
    return f"::{STACK}::" in record.parent


def text_of(value: Any) -> str:
    """A value as text, to search it; what lies in envelopes of secrets is left out."""
    return json.dumps(_without_secrets(value), sort_keys=True)


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        if SECRET in value:
            return None
        return {key: _without_secrets(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_secrets(part) for part in value]
    return value
