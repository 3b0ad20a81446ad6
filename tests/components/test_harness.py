"""The harness sees what Pulumi's own mocks let pass: each fault once, made on purpose."""

from importlib.metadata import version
from typing import Any

import pulumi
import pulumi_ibm as ibm
import pytest

from tests.components.conftest import API_KEY
from tests.harness import faults, run_program


class Part(pulumi.ComponentResource):
    def __init__(self, name: str, *, finished: bool = True) -> None:
        provider = ibm.Provider("ibm", region="us-east")
        options = pulumi.ResourceOptions(providers=[provider])
        super().__init__("vela:test:Part", name, {}, options)
        if finished:
            self.register_outputs({})


def child(parent: pulumi.Resource, logical: str = "part-vpc", **inputs: Any) -> ibm.IsVpc:
    return ibm.IsVpc(logical, **inputs, opts=pulumi.ResourceOptions(parent=parent))


def good() -> None:
    child(Part("part"), name="a", tags=[pulumi.Output.secret(API_KEY)])


def twice() -> None:
    part = Part("part")
    child(part)
    child(part)


def orphan() -> None:
    provider = ibm.Provider("ibm", region="us-east")
    ibm.IsVpc("alone", opts=pulumi.ResourceOptions(provider=provider))


def stray() -> None:
    part = Part("part")
    child(child(part), "grandchild")


def unfinished() -> None:
    Part("part", finished=False)


def output_in_text() -> None:
    part = Part("part")
    child(part, "part-other", name=f"{child(part).crn}-x")


def open_secret() -> None:
    child(Part("part"), tags=[API_KEY])


def open_export() -> None:
    Part("part")
    pulumi.export("key", {"nested": [API_KEY]})


def default_provider() -> None:
    part = pulumi.ComponentResource("vela:test:Part", "part")
    part.register_outputs({})
    child(part)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (good, []),
        (twice, ["registered twice: part-vpc"]),
        (orphan, ["no component of ours is its parent: alone"]),
        (stray, ["no component of ours is its parent: grandchild"]),
        (unfinished, ["no outputs registered: part"]),
        (output_in_text, ["an output in a text: part-other"]),
        (open_secret, ["a secret in the open: part-vpc"]),
        (open_export, ["a secret in the open: vela-test"]),
        (default_provider, ["made by the default provider: part-vpc"]),
    ],
)
def test_faults(program: Any, expected: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if program is output_in_text:
        # with it, the program below would not even get so far
        monkeypatch.delenv("PULUMI_ERROR_OUTPUT_STRING")
    assert faults(run_program(program), API_KEY) == expected


def test_an_output_in_a_text_ends_the_program() -> None:
    with pytest.raises(Exception, match="Calling __str__ on an Output"):
        run_program(output_in_text)


def test_a_resource_inside_apply_is_missing_from_the_preview() -> None:
    def program() -> None:
        part = Part("part")
        child(part).crn.apply(lambda crn: child(part, f"part-{crn.removeprefix('crn:')}"))

    up, preview = run_program(program), run_program(program, preview=True)
    assert {r.name for r in up.resources} == {"part-vpc", "part-part-vpc"}
    assert {r.name for r in preview.resources} == {"part-vpc"}


def test_one_run_leaves_nothing_to_the_next() -> None:
    def configured() -> None:
        pulumi.runtime.set_config("vela:left", "behind")
        pulumi.export("stack", pulumi.get_stack())

    def reader() -> None:
        pulumi.export("stack", pulumi.get_stack())
        pulumi.export("left", pulumi.Config("vela").get("left") or "nothing")

    assert run_program(configured, stack="one").exports == {"stack": "one"}
    second = run_program(reader, stack="two")
    assert second.exports == {"stack": "two", "left": "nothing"}
    assert [r.name for r in second.records.values()] == ["vela-two"]


def test_an_error_of_the_program_reaches_the_test() -> None:
    def program() -> None:
        raise ValueError("from the program")

    with pytest.raises(ValueError, match="from the program"):
        run_program(program)


def test_the_harness_stands_on_the_version_that_it_was_written_for() -> None:
    assert version("pulumi") == "3.272.0"
