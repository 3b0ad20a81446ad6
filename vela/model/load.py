"""Reads an environment and the hardware records that it names; the core's only input."""

import difflib
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from vela.model.diagnostic import Diagnostic, InvalidInput, Position
from vela.model.environment import Environment
from vela.model.hardware import Hardware, ServerType, SwitchType
from vela.model.source import Document, Path, check_size, parse
from vela.model.types import Record, Says, describe

R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class Loaded:
    """An environment with its hardware, and the document for the places of later errors."""

    environment: Environment
    hardware: Hardware
    document: Document


def read(path: FilePath, shown: str) -> Document:
    """Read and parse a file.

    Raises:
        InvalidInput: It cannot be read or is not YAML.
    """
    try:
        check_size(path.stat().st_size, shown)
        raw = path.read_bytes()
    except OSError as error:
        raise InvalidInput(
            [Diagnostic(shown, None, "", "VELA-YAML-001", f"cannot read it: {error.strerror}")]
        ) from None
    return parse(raw, shown)


def validate(document: Document, kind: type[R]) -> R:
    """Turn a document into a record of the model.

    Raises:
        InvalidInput: With every error of the document.
    """
    data = document.root.data()
    if not isinstance(data, dict):
        where = document.at(
            document.root.position,
            "VELA-MODEL-003",
            f"expected a mapping, found {describe(data)}",
            "begin with `schema: 1`",
        )
        raise InvalidInput([*document.faults, where])
    try:
        record = kind.model_validate(data)
    except ValidationError as error:
        found = [_diagnostic(document, kind, detail) for detail in error.errors(include_url=False)]
        raise InvalidInput([*document.faults, *found]) from None
    if document.faults:
        raise InvalidInput(document.faults)
    return record


def load(root: FilePath, name: str) -> Loaded:
    """Load environment ``name`` of the project at ``root``.

    Raises:
        InvalidInput: With every error of the environment, else of its hardware records.
    """
    path = root / "environments" / f"{name}.yaml"
    if not path.is_file():
        raise InvalidInput([_no_environment(root, name)])
    document = read(path, f"environments/{name}.yaml")
    environment = validate(document, Environment)
    if environment.name != name:
        message = f"the environment is called {environment.name}, its file {name}.yaml"
        raise InvalidInput(
            [document.diagnostic(("name",), "VELA-MODEL-004", message, f"write name: {name}")]
        )
    return Loaded(environment, _hardware(root, environment, document), document)


def environments(root: FilePath) -> list[str]:
    """Names of the environments of a project, sorted."""
    return sorted(path.stem for path in (root / "environments").glob("*.yaml"))


def _no_environment(root: FilePath, name: str) -> Diagnostic:
    known = environments(root)
    near = difflib.get_close_matches(name, known, 1)
    if near:
        hint = f"did you mean {near[0]}?"
    elif known:
        hint = "there are " + ", ".join(known)
    else:
        hint = f"there is no environments/*.yaml under {root}; run this in the project folder"
    file = f"environments/{name}.yaml"
    return Diagnostic(file, None, "", "VELA-MODEL-005", "there is no such environment", hint)


def _hardware(root: FilePath, environment: Environment, document: Document) -> Hardware:
    faults: list[Diagnostic] = []

    def record(name: str, kind: type[R], path: Path) -> R | None:
        file = root / "hardware" / f"{name}.yaml"
        if not file.is_file():
            known = sorted(found.stem for found in (root / "hardware").glob("*.yaml"))
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else "there are " + ", ".join(known)
            message = f"there is no hardware/{name}.yaml"
            faults.append(document.diagnostic(path, "VELA-MODEL-005", message, hint))
            return None
        try:
            return validate(read(file, f"hardware/{name}.yaml"), kind)
        except InvalidInput as error:
            faults.extend(error.diagnostics)
            return None

    server = record(environment.hosts.type, ServerType, ("hosts", "type"))
    switches: dict[str, SwitchType] = {}
    if environment.fabric:
        for role in ("leaf", "spine"):
            name = getattr(environment.fabric.switch, role)
            if name not in switches:
                switch = record(name, SwitchType, ("fabric", "switch", role))
                if switch:
                    switches[name] = switch
    if faults or server is None:
        raise InvalidInput(faults)
    return Hardware(server=server, switches=switches)


def _diagnostic(document: Document, kind: type[Record], detail: ErrorDetails) -> Diagnostic:
    path: Path = tuple(step for step in detail["loc"] if step != "[key]")
    dotted = ".".join(str(step) for step in path)
    context: Mapping[str, Any] = detail.get("ctx", {})
    owner = _owner(kind, path[:-1])
    match detail["type"]:
        case "missing":
            says = _says(owner, path[-1])
            hint = f"{path[-1]}: {says.text}" if says else ""
            if says and says.example:
                hint += f" For example: {says.example}"
            place = _parent(document, path)
            return document.at(place, "VELA-MODEL-001", f"{dotted} is missing", hint)
        case "extra_forbidden":
            known = _keys(owner)
            near = difflib.get_close_matches(str(path[-1]), known, 1)
            hint = f"did you mean {near[0]}?" if near else "known here: " + ", ".join(known)
            message = f"unknown key {path[-1]}"
            return document.diagnostic(path, "VELA-MODEL-002", message, hint, of_key=True)
        case "vela":
            message, hint = str(context["message"]), str(context["hint"])
            of_key = "[key]" in detail["loc"]
            message = f"{dotted}: {message}" if dotted else message
            return document.diagnostic(path, "VELA-MODEL-003", message, hint, of_key=of_key)
        case _:
            message, hint = _plain(detail, context)
            says = _says(owner, path[-1]) if path else None
            if not hint and says:
                hint = says.text
            return document.diagnostic(path, "VELA-MODEL-003", f"{dotted}: {message}", hint)


_KINDS = {
    "int_type": "a whole number",
    "string_type": "text",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "tuple_type": "a list",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def _plain(detail: ErrorDetails, context: Mapping[str, Any]) -> tuple[str, str]:
    """Message and hint for one of pydantic's own error types."""
    found = describe(detail["input"])
    kind = detail["type"]
    if kind in _KINDS:
        hint = ""
        if kind == "bool_type" and str(detail["input"]).lower() in {"yes", "no", "on", "off"}:
            hint = "YAML 1.2 knows only true and false"
        return f"expected {_KINDS[kind]}, found {found}", hint
    match kind:
        case "literal_error":
            return f"expected {context['expected']}, found {found}", ""
        case "greater_than_equal":
            return f"{detail['input']} is below {context['ge']}", f"at least {context['ge']}"
        case "less_than_equal":
            return f"{detail['input']} is above {context['le']}", f"at most {context['le']}"
        case "too_short":
            return "is empty", ""
        case _:
            return f"{detail['msg'][:1].lower()}{detail['msg'][1:]}, found {found}", ""


def _parent(document: Document, path: Path) -> Position:
    """Where a missing key belongs: at the key of its mapping, or at the first key of all."""
    if len(path) > 1:
        return document.position(path[:-1], of_key=True)
    return document.root.position


def _owner(kind: type[BaseModel], path: Iterable[str | int]) -> type[BaseModel] | None:
    """The record type that a path leads to."""
    current: Any = kind
    for step in path:
        if isinstance(current, type) and issubclass(current, BaseModel):
            field = _field(current, step)
            current = _inner(field.annotation) if field else None
        elif typing.get_origin(current) in {dict, tuple}:
            arguments = [a for a in typing.get_args(current) if a is not Ellipsis]
            current = _inner(arguments[-1])
        else:
            return None
    return current if isinstance(current, type) and issubclass(current, BaseModel) else None


def _inner(annotation: Any) -> Any:
    """Strip Optional and Annotated."""
    origin = typing.get_origin(annotation)
    if origin in {typing.Union, types.UnionType}:
        rest = [a for a in typing.get_args(annotation) if a is not type(None)]
        return _inner(rest[0])
    if origin is typing.Annotated:
        return _inner(typing.get_args(annotation)[0])
    return annotation


def _field(owner: type[BaseModel], key: str | int) -> Any:
    for name, field in owner.model_fields.items():
        if key in {field.alias, name}:
            return field
    return None


def _keys(owner: type[BaseModel] | None) -> list[str]:
    return [field.alias or name for name, field in owner.model_fields.items()] if owner else []


def _says(owner: type[BaseModel] | None, key: str | int) -> Says | None:
    field = _field(owner, key) if owner else None
    return next((m for m in field.metadata if isinstance(m, Says)), None) if field else None
