"""Generates docs/model.md and docs/rules.md from the code.

``python -m tools.reference [--check]``
"""

import sys
import types
import typing
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from vela.model.environment import Environment
from vela.model.hardware import ServerType, SwitchType
from vela.model.types import Says
from vela.rules import RULES

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

FILE_RULES = {
    "VELA-YAML-001": "The file is readable UTF-8",
    "VELA-YAML-002": "The file has at most a million bytes",
    "VELA-YAML-003": "The file is YAML",
    "VELA-YAML-004": "The file holds one document",
    "VELA-YAML-005": "The file is not empty",
    "VELA-YAML-006": "An alias names an anchor that is complete before it",
    "VELA-YAML-007": "Nothing is nested more than 32 deep",
    "VELA-YAML-008": "There are no tags of applications",
    "VELA-YAML-009": "Keys are strings",
    "VELA-YAML-010": "A key is given once",
    "VELA-YAML-011": "Aliases expand to at most 200,000 values",
    "VELA-YAML-012": "`<<` takes mappings",
    "VELA-MODEL-001": "Every key that is needed is there",
    "VELA-MODEL-002": "Every key is known",
    "VELA-MODEL-003": "Every value has the form of its key",
    "VELA-MODEL-004": "The environment has the name of its file",
    "VELA-MODEL-005": "Environments and hardware records that are named exist",
}
FOUND_RULES = {
    "VELA-CLOUD-DRIFT-001": "A resource of the plan exists",
    "VELA-CLOUD-DRIFT-002": "A resource of the state is in the plan",
    "VELA-CLOUD-DRIFT-003": "A property that only a new resource can change is as planned",
    "VELA-CLOUD-DRIFT-004": "A property is as planned",
    "VELA-CLOUD-DRIFT-005": "Servers run",
    "VELA-CLOUD-DRIFT-006": "Security rules say what is planned, ports too",
    "VELA-CLOUD-DRIFT-007": "Our security groups have no rule but the planned ones",
    "VELA-FILE-001": "A file has its content",
    "VELA-FILE-002": "A file has its mode and owner",
    "VELA-FILE-003": "A file is there",
    "VELA-FILE-004": "No file of an earlier bundle is left",
    "VELA-NODE-001": "A node takes its bundle",
    "VELA-NODE-002": "A node is reachable",
    "VELA-NODE-003": "A node that was expected gives an answer",
}


def fields(kind: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, ...]]:
    """Rows of a record and of all below it: key, type, default, change class, meaning."""
    for name, field in kind.model_fields.items():
        key = prefix + (field.alias or name)
        says = next(found for found in field.metadata if isinstance(found, Says))
        inner, many = record_of(field.annotation)
        text = says.text + (f" Example: `{says.example}`" if says.example else "")
        yield f"`{key}`", _type(field.annotation), _default(field), f"`{says.change}`", text
        if inner:
            yield from fields(inner, key + ("." if not many else ".NAME."))


def record_of(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """The record that an annotation holds, and whether it holds many by name."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    for argument in typing.get_args(annotation):
        found, _ = record_of(argument)
        if found:
            return found, typing.get_origin(annotation) is dict
    return None, False


_NAMES = {
    "str": "text", "int": "number", "bool": "true or false", "IPv4Network": "network",
    "IPv4Address": "address",
}  # fmt: skip


def _type(annotation: Any) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin in {typing.Annotated, typing.Union, types.UnionType}:
        return _type(next(a for a in arguments if a is not type(None)))
    if origin is tuple:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return "by name"
    record = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return "section" if record else _NAMES.get(getattr(annotation, "__name__", ""), "text")


def _default(field: Any) -> str:
    if field.is_required():
        return "needed"
    value = field.default
    if value is None or value is PydanticUndefined:
        return "none"
    if isinstance(value, BaseModel):
        return "as below"
    if isinstance(value, tuple):
        return ", ".join(f"`{part}`" for part in value) or "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row).replace("\n", " ") + " |" for row in rows]
    return "\n".join(lines)


def model_page() -> str:
    """The page of every key."""
    head = ("key", "type", "default", "change", "meaning")
    return f"""# The model

Made by `make docs` from the code; edits are overwritten.

An environment is `environments/NAME.yaml`. Amounts have units (`1280 GiB`, `150 kB`), speeds are
written like `100G`. YAML 1.2: `yes` and `no` are text. *change* is what it costs a cluster that
runs to change the value: `live`, `guest-restart`, `host-drain`, `host-reboot`, `fabric-drain`,
`reprovision`, or `forbidden`.

{table(head, fields(Environment))}

## hardware/TYPE.yaml, a server

{table(head, fields(ServerType))}

## hardware/TYPE.yaml, a switch

{table(head, fields(SwitchType))}
"""


def rules_page() -> str:
    """The page of every number."""
    for module in ("cloud", "fabric", "hosts", "network"):
        import_module(f"vela.rules.{module}")
    own = {number: (rule.says, _doc(rule.check)) for number, rule in sorted(RULES.items())}
    head = ("number", "what is true of a good environment", "more")
    return f"""# Rules

Made by `make docs` from the code; edits are overwritten. A number never changes its meaning.

## In a file

{table(("number", "what is true of a good file"), iter(FILE_RULES.items()))}

## In an environment

{table(head, ((number, *said) for number, said in own.items()))}

## Found by `vela drift` and the playbooks

{table(("number", "what is true without drift"), iter(FOUND_RULES.items()))}
"""


def _doc(check: object) -> str:
    return " ".join((check.__doc__ or "").split())


def main() -> int:
    """Write the pages, or hold them against the code."""
    pages = {"model.md": model_page(), "rules.md": rules_page()}
    stale = [
        name
        for name, text in pages.items()
        if not (DOCS / name).is_file() or (DOCS / name).read_text(encoding="utf-8") != text
    ]
    if "--check" in sys.argv[1:]:
        for name in stale:
            print(f"docs/{name} is stale: run make docs", file=sys.stderr)  # noqa: T201
        return 1 if stale else 0
    for name in stale:
        (DOCS / name).write_text(pages[name], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
