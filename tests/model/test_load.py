import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from tests.conftest import ROOT
from tools.reference import record_of
from vela.model.change import Change
from vela.model.diagnostic import InvalidInput
from vela.model.environment import Environment
from vela.model.hardware import ServerType, SwitchType
from vela.model.load import environments, load, read, validate
from vela.model.types import Says
from vela.rules import check

LOCAL = (ROOT / "environments" / "local.yaml").read_text()


def said(tmp_path: Path, text: str) -> str:
    """Errors of an environment called local, as they are shown."""
    shutil.copytree(ROOT / "hardware", tmp_path / "hardware", dirs_exist_ok=True)
    (tmp_path / "environments").mkdir(exist_ok=True)
    (tmp_path / "environments" / "local.yaml").write_text(text)
    with pytest.raises(InvalidInput) as caught:
        load(tmp_path, "local")
    return str(caught.value)


@pytest.mark.parametrize("name", environments(ROOT))
def test_shipped_environments_are_valid(name: str) -> None:
    check(load(ROOT, name))


def test_all_errors_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = LOCAL.replace("  racks: 2\n", "  raks: 2\n").replace("vcpus: 1", "vcpus: many")
    text = text.replace("cidr: 10.240.0.0/16", "cidr: 10.240.0.1/16")
    line = {n: i + 1 for i, n in enumerate(text.splitlines())}
    cidr = "    cidr: 10.240.0.1/16"
    number = line[cidr]
    assert said(tmp_path, text) == (
        f"environments/local.yaml:{number}:11: error VELA-MODEL-003: "
        "cloud.network.cidr: 10.240.0.1/16 has bits set behind its prefix\n"
        f"  {number} | {cidr}\n"
        f"  {' ' * len(str(number))} |           ^\n"
        "  hint: the network is 10.240.0.0/16\n"
        f"environments/local.yaml:{line['hosts:']}:1: error VELA-MODEL-001: "
        "hosts.racks is missing\n"
        f"  {line['hosts:']} | hosts:\n"
        "     | ^\n"
        "  hint: racks: Racks.\n"
        f"environments/local.yaml:{line['  raks: 2']}:3: error VELA-MODEL-002: unknown key raks\n"
        f"  {line['  raks: 2']} |   raks: 2\n"
        "     |   ^\n"
        "  hint: did you mean racks?\n"
        f"environments/local.yaml:{line['  vcpus: many']}:10: error VELA-MODEL-003: "
        "guests.vcpus: expected a whole number, found 'many'\n"
        f"  {line['  vcpus: many']} |   vcpus: many\n"
        "     |          ^\n"
        "  hint: Virtual CPUs of a guest."
    )


@pytest.mark.parametrize(
    ("before", "after", "message", "hint"),
    [
        ("schema: 1", "schema: 2", "schema: expected 1, found the number 2",
         "Version of this format: 1."),
        ("schema: 1", 'schema: "1"', "schema: expected 1, found '1'", "Version of this format: 1."),
        ("name: local", "name: Lokal", "name: 'Lokal' is not a name", "write it like vela-east"),
        ("name: local", "name: übel", "name: 'übel' is not a name: 'ü' is not allowed",
         "write it like vela-east"),
        ("memory: 2 GiB", "memory: 2", "guests.memory: 2 has no unit", "write 2 GiB or 2 kB"),
        ("memory: 2 GiB", "memory: 2 gib", "guests.memory: unit 'gib' is not known", "write GiB"),
        ("speed: 100G", "speed: 100", "fabric.speed: expected a port speed, found the number 100",
         "one of 10G, 25G, 40G, 50G, 100G, 200G, 400G, 800G"),
        ("spines: 2", "spines: 17", "fabric.spines: 17 is above 16", "at most 16"),
        ("spines: 2", "spines: true", "fabric.spines: expected a whole number, found true",
         "Spines."),
        ("hosts:\n", "hosts: null\nhosts_:\n", "hosts: expected a mapping, found nothing",
         "The GPU hosts."),
        ("type: lab-q35", "type: lab-q36", "there is no hardware/lab-q36.yaml",
         "did you mean lab-q35?"),
        ("name: local", "name: lokal", "the environment is called lokal, its file local.yaml",
         "write name: local"),
        ("lab: {", "lab: {cloud: real}\nlab: {", "key lab is given twice",
         "the first one is on line 36"),
    ],
)  # fmt: skip
def test_one_error(tmp_path: Path, before: str, after: str, message: str, hint: str) -> None:
    assert LOCAL.count(before) >= 1
    shown = said(tmp_path, LOCAL.replace(before, after, 1)).splitlines()
    heads = [line.split(": ", 2)[2] for line in shown if ": error VELA-" in line]
    assert message in heads, shown
    assert f"  hint: {hint}" in shown


def test_a_truncated_file_is_an_error_or_right(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "hardware", tmp_path / "hardware")
    (tmp_path / "environments").mkdir()
    path = tmp_path / "environments" / "local.yaml"
    for end in range(0, len(LOCAL), 7):
        path.write_text(LOCAL[:end])
        try:
            check(load(tmp_path, "local"))
        except InvalidInput as error:
            shown = str(error)
        else:
            shown = "error"
        assert "error" in shown


def test_an_environment_that_is_not_there() -> None:
    with pytest.raises(InvalidInput) as caught:
        load(ROOT, "locale")
    assert str(caught.value) == (
        "environments/locale.yaml: error VELA-MODEL-005: there is no such environment\n"
        "  hint: did you mean local?"
    )


def records(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield kind
    for field in kind.model_fields.values():
        inner, _ = record_of(field.annotation)
        if inner:
            yield from records(inner)


@pytest.mark.parametrize("root", [Environment, ServerType, SwitchType])
def test_every_field_names_its_change_class(root: type[BaseModel]) -> None:
    for kind in records(root):
        for name, field in kind.model_fields.items():
            found = [m for m in field.metadata if isinstance(m, Says)]
            assert len(found) == 1, f"{kind.__name__}.{name}"
            assert isinstance(found[0].change, Change)
            assert found[0].text.strip()


@pytest.mark.parametrize("path", sorted((ROOT / "hardware").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_figure_has_a_source(path: Path) -> None:
    document = read(path, path.name)
    data = document.root.data()
    assert isinstance(data, dict)
    switch = "ports" in data
    sources = (
        validate(document, SwitchType).sources if switch else validate(document, ServerType).sources
    )
    figures = set(data) - {"schema", "title", "kind", "os", "sources"}
    assert set(sources) == figures
    assert all(len(text) > 20 for text in sources.values())
