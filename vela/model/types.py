"""Values that people write as text: networks, amounts of memory, speeds, names, keys.

Each type takes the text, checks it, and says in its error what would be right. Errors carry
their hint in the context key ``hint``.
"""

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, NoReturn

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic_core import PydanticCustomError

from vela.model.change import Change


@dataclass(frozen=True, slots=True)
class Says:
    """What a field means and what it costs to change it; every field of the model has one."""

    change: Change
    text: str
    example: str = ""


class Record(BaseModel):
    """Base of everything that is read from a file: strict, frozen, no unknown keys."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


def refuse(message: str, hint: str = "") -> NoReturn:
    """Raise the error of a value that is not acceptable."""
    raise PydanticCustomError("vela", "{message}", {"message": message, "hint": hint})


def _text(value: object, what: str, example: str) -> str:
    if not isinstance(value, str):
        refuse(f"expected {what}, found {describe(value)}", f"write it like {example}")
    return value


def describe(value: object) -> str:
    """Name a value of a YAML document for an error message."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case dict():
            return "a mapping"
        case tuple() | list():
            return "a list"
        case str():
            return repr(value if len(value) <= 60 else value[:57] + "…")
        case _:
            return f"the number {value}"


def _network(value: object) -> IPv4Network:
    if isinstance(value, IPv4Network):
        return value
    text = _text(value, "a network", "10.240.0.0/20")
    if "/" not in text:
        refuse(f"{text!r} has no prefix length", f"write {text}/32 for one address, or the network")
    try:
        return IPv4Network(text)
    except ValueError:
        pass
    try:
        network = IPv4Network(text, strict=False)
    except ValueError:
        refuse(f"{text!r} is not an IPv4 network", "write it like 10.240.0.0/20")
    refuse(f"{text} has bits set behind its prefix", f"the network is {network}")


def _address(value: object) -> IPv4Address:
    if isinstance(value, IPv4Address):
        return value
    text = _text(value, "an address", "192.0.2.1")
    try:
        return IPv4Address(text)
    except ValueError:
        refuse(f"{text!r} is not an IPv4 address", "write it like 192.0.2.1")


_DECIMAL = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BINARY = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_UNITS = _DECIMAL | _BINARY


def _amount(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        refuse(f"{value} has no unit", f"write {value} GiB or {value} kB")
    text = _text(value, "an amount", "1280 GiB")
    match = re.fullmatch(r"([0-9]{1,12})(\.[0-9]{1,6})? ?([A-Za-z]{1,4})", text)
    if not match:
        refuse(f"{text!r} is not an amount", "write a number and a unit, like 1280 GiB or 150 kB")
    number, fraction, unit = match.groups()
    if unit not in _UNITS:
        near = next((u for u in _UNITS if u.lower() == unit.lower()), None)
        units = ", ".join(_UNITS)
        refuse(f"unit {unit!r} is not known", f"write {near}" if near else f"one of {units}")
    decimals = (fraction or ".")[1:]
    scaled = int(number + decimals) * _UNITS[unit]
    divisor: int = 10 ** len(decimals)
    if scaled % divisor:
        refuse(f"{text!r} is not a whole number of bytes", "use a smaller unit")
    return scaled // divisor


_SPEEDS = {"10G": 10, "25G": 25, "40G": 40, "50G": 50, "100G": 100, "200G": 200, "400G": 400,
           "800G": 800}  # fmt: skip


def _speed(value: object) -> int:
    if value not in _SPEEDS:
        refuse(f"expected a port speed, found {describe(value)}", "one of " + ", ".join(_SPEEDS))
    return _SPEEDS[str(value)]


def _name(pattern: str, longest: int, what: str, example: str) -> Callable[[object], str]:
    compiled = re.compile(pattern)

    def check(value: object) -> str:
        text = _text(value, what, example)
        if len(text) > longest:
            refuse(f"{what} has {len(text)} characters, the limit is {longest}")
        if not compiled.fullmatch(text):
            foreign = next((c for c in text if not c.isascii()), None)
            why = f": {foreign!r} is not allowed" if foreign else ""
            refuse(f"{text!r} is not {what}{why}", f"write it like {example}")
        return text

    return check


def _ssh_key(value: object) -> str:
    text = _text(value, "an SSH public key", '"ssh-ed25519 AAAA… ops"').strip()
    parts = text.split()
    if len(parts) < 2 or parts[0] not in {"ssh-ed25519", "ssh-rsa"}:
        refuse("not an SSH public key that IBM Cloud takes", "ssh-ed25519 or ssh-rsa, one line")
    try:
        blob = base64.b64decode(parts[1], validate=True)
    except (binascii.Error, ValueError):
        blob = b""
    if blob[4 : 4 + len(parts[0])] != parts[0].encode():
        refuse(f"the {parts[0]} key is damaged", "copy the whole line of the .pub file")
    return text


Network = Annotated[IPv4Network, BeforeValidator(_network)]
Address = Annotated[IPv4Address, BeforeValidator(_address)]
Bytes = Annotated[int, BeforeValidator(_amount)]
"""Bytes, written with a unit: ``1280 GiB``, ``150 kB``."""
Gbps = Annotated[int, BeforeValidator(_speed)]
"""Gigabits a second, written like ``100G``."""
Name = Annotated[
    str, BeforeValidator(_name(r"[a-z]([-a-z0-9]*[a-z0-9])?", 20, "a name", "vela-east"))
]
"""Part of IBM Cloud names: lower-case letters, digits, hyphens; 20 characters, since a host's
interface is called ENVIRONMENT-r01-h01-SUBNET and IBM allows 63."""
ImageName = Annotated[
    str,
    BeforeValidator(_name(r"[a-z]([-.a-z0-9]*[a-z0-9])?", 40, "an image's name", "ubuntu-24.04")),
]
TypeName = Annotated[
    str,
    BeforeValidator(
        _name(r"[a-z0-9][-.a-z0-9]*", 60, "the name of a file in hardware/", "hgx-a100-80g")
    ),
]
SshKey = Annotated[str, BeforeValidator(_ssh_key)]
Sha256 = Annotated[
    str, BeforeValidator(_name(r"[0-9a-f]{64}", 64, "a SHA-256 checksum", "64 hexadecimal digits"))
]
