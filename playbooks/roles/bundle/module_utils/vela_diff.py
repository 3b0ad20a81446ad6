"""How a file differs from the one that a bundle names, in words and as a diff."""

from __future__ import annotations

import hashlib
from itertools import zip_longest
from typing import Any

from ansible.module_utils.vela_tree import Found

LONGEST_DIFF = 20_000
LONGEST_LINE = 120

Entry = dict[str, Any]


def differences(
    entry: Entry, found: Found | None, *, owned: bool
) -> list[tuple[str, str, str | None]]:
    """Differences of one file, each as item, expected and found.

    Args:
        entry: What the bundle says.
        found: What there is; None where there is nothing.
        owned: Whether the owner counts.
    """
    if found is None:
        return [("missing", "present", None)]
    if found.kind != "file":
        return [("content", "a file", found.kind)]
    result: list[tuple[str, str, str | None]] = []
    if found.content != entry["content"].encode():
        if is_private(entry):
            result.append(("content", "as planned, not shown", "other, not shown"))
        else:
            result.append(("content", *first_difference(entry["content"], text(found.content))))
    if found.mode != entry["mode"]:
        result.append(("mode", entry["mode"], found.mode))
    owner = f"{entry['owner']}:{entry['group']}"
    if owned and found.owner != owner:
        result.append(("owner", owner, found.owner))
    return result


def is_private(entry: Entry) -> bool:
    """Whether the content is for nobody's eyes: then neither reports nor diffs show it."""
    return not int(entry["mode"], 8) & 0o077


def text(content: bytes) -> str:
    """Content as text, whatever it is."""
    return content.decode("utf-8", "replace")


def first_difference(wanted: str, have: str) -> tuple[str, str]:
    """The first line that differs, as it should be and as it is."""
    pairs = zip_longest(wanted.splitlines(), have.splitlines())
    for number, (planned, actual) in enumerate(pairs, start=1):
        if planned != actual:
            return f"line {number}: {line(planned)}", f"line {number}: {line(actual)}"
    return "the same bytes", "other line ends or encoding"


def line(value: str | None) -> str:
    """A line for a report: short, and without what a terminal would obey."""
    if value is None:
        return "(end of file)"
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in value)
    return shown if len(shown) <= LONGEST_LINE else shown[: LONGEST_LINE - 1] + "…"


def diffs(entry: Entry, found: Found | None, items: set[str]) -> list[Entry]:
    """Before and after of one file: its text, then its mode and owner."""
    path, result = entry["path"], []
    if items & {"content", "missing"}:
        before, after = text(found.content) if found else "", entry["content"]
        if is_private(entry):
            before, after = "(not shown)\n", "(not shown, new)\n"
        header = path if found is None or found.kind == "file" else f"{path} ({found.kind})"
        result.append(
            {
                "before": cut(before),
                "after": cut(after),
                "before_header": header if found else f"{path} (missing)",
                "after_header": path,
            }
        )
    if found and items & {"mode", "owner"}:
        after_owner = f"{entry['owner']}:{entry['group']}" if "owner" in items else found.owner
        result.append(
            {
                "before": {"path": path, "mode": found.mode, "owner": found.owner},
                "after": {"path": path, "mode": entry["mode"], "owner": after_owner},
            }
        )
    return result


def cut(value: str) -> str:
    """Text short enough for a diff; what was cut still counts."""
    if len(value) <= LONGEST_DIFF:
        return value
    checksum = hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()
    return f"{value[:LONGEST_DIFF]}\n(cut here; sha256 of the whole: {checksum})\n"
