import random
import time

import pytest

from tests.conftest import ROOT
from vela.model.diagnostic import Diagnostic, InvalidInput, Position
from vela.model.source import MAX_BYTES, MAX_DEPTH, parse


def data(text: str) -> object:
    return parse(text.encode(), "x.yaml").root.data()


def fault(raw: bytes) -> Diagnostic:
    try:
        found = parse(raw, "x.yaml").faults
    except InvalidInput as error:
        found = error.diagnostics
    (only,) = found
    return only


def test_scalars_are_yaml_1_2() -> None:
    text = "[no, on, 1:20, 0o17, 0x1F, 1e3, ~, null, true, 010, 'true', 2026-12-01, +5, -.5]"
    assert data(text) == (
        "no", "on", "1:20", 15, 31, 1000.0, None, None, True, 10, "true", "2026-12-01", 5, -0.5,
    )  # fmt: skip


def test_a_number_of_4000_digits_is_text() -> None:
    assert data("a: " + "9" * 4000) == {"a": "9" * 4000}


def test_anchors_and_merge_keys() -> None:
    text = """
base: &base {a: 1, b: 2}
more: &more {b: 3, c: 4}
one: {<<: *base, b: 9}
late: {b: 9, <<: *base}
both: {<<: [*base, *more], d: 5}
"""
    found = data(text)
    assert isinstance(found, dict)
    assert found["one"] == {"b": 9, "a": 1}
    assert found["late"] == {"b": 9, "a": 1}
    # the first of a list wins, as YAML's merge key says
    assert found["both"] == {"d": 5, "a": 1, "b": 2, "c": 4}


def test_positions_pass_through_aliases() -> None:
    document = parse(b"base: &b {x: 1}\nuse: *b\n", "x.yaml")
    assert document.position(("use", "x")) == Position(1, 14)
    assert document.position(("use",), of_key=True) == Position(2, 1)
    assert document.position(("base", "nothing", "deeper")) == Position(1, 1)


def test_byte_order_mark_and_line_ends() -> None:
    document = parse("\ufeffa: 1\r\nb: x\r\n".encode(), "x.yaml")
    assert document.root.data() == {"a": 1, "b": "x"}
    assert document.position(("b",)) == Position(2, 4)
    assert document.lines[1] == "b: x"


def test_columns_count_characters() -> None:
    document = parse('ä: {𝄞: "x", b: 1}'.encode(), "x.yaml")
    assert document.position(("ä", "b")) == Position(1, 16)


@pytest.mark.parametrize(
    ("raw", "rule", "place", "message"),
    [
        (b"", "VELA-YAML-005", (1, 1), "the file is empty"),
        (b"# nothing\n", "VELA-YAML-005", (1, 1), "the file is empty"),
        (b"a: 1\n---\nb: 2\n", "VELA-YAML-004", (2, 1), "a second document begins here"),
        (b"a: \xff\n", "VELA-YAML-001", (1, 4), "byte 0xff is not UTF-8"),
        (b"a: x\x00y\n", "VELA-YAML-001", (1, 5), "character U+0000 is not allowed in YAML"),
        (b"a: 1\na: 2\n", "VELA-YAML-010", (2, 1), "key a is given twice"),
        (b"1: x\n", "VELA-YAML-009", (1, 1), "key 1 is not a string"),
        (b"a: !secret x\n", "VELA-YAML-008", (1, 4), "tag !secret is not known here"),
        (b"a: *b\n", "VELA-YAML-006", (1, 4),
         "alias *b names no anchor that is complete before it"),
        (b"a: &a [*a]\n", "VELA-YAML-006", (1, 8),
         "alias *a names no anchor that is complete before it"),
        (b"a: {<<: 1}\n", "VELA-YAML-012", (1, 9), "<< takes a mapping or a list of mappings"),
        (b"[1, 2]: x\n", "VELA-YAML-009", (1, 1), "a key must be a string"),
    ],
)  # fmt: skip
def test_faults(raw: bytes, rule: str, place: tuple[int, int], message: str) -> None:
    found = fault(raw)
    assert (found.rule, found.position, found.message) == (rule, Position(*place), message)


def test_a_tab_is_named() -> None:
    found = fault(b"a:\n\tb: 1\n")
    assert found.rule == "VELA-YAML-003"
    assert found.position == Position(2, 1)
    assert found.hint == "YAML does not allow tabs for indentation; use spaces"


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_deep_nesting_is_refused_at_once(opening: str) -> None:
    begun = time.monotonic()
    text = opening * 10_000 if opening != "- " else "- " * 10_000 + "x"
    found = fault(text.encode())
    assert found.message == f"nested more than {MAX_DEPTH} deep"
    assert time.monotonic() - begun < 1


def test_ten_megabytes_are_refused_at_once() -> None:
    begun = time.monotonic()
    found = fault(b"a: x\n" * 2_000_000)
    assert found.rule == "VELA-YAML-002"
    assert found.message == f"the file has 10,000,000 bytes, the limit is {MAX_BYTES:,}"
    assert time.monotonic() - begun < 1


def test_an_alias_bomb_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    begun = time.monotonic()
    found = fault("\n".join(lines).encode())
    assert found.rule == "VELA-YAML-011"
    assert time.monotonic() - begun < 1


def test_mutations_never_end_in_a_traceback() -> None:
    raw = (ROOT / "environments" / "vela.yaml").read_bytes()
    chance = random.Random(20261201)  # noqa: S311 - a fixed seed, for the same cases each time
    for _ in range(1500):
        broken = bytearray(raw)
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(broken))
            match chance.randrange(3):
                case 0:
                    broken[place] = chance.randrange(256)
                case 1:
                    del broken[place : place + chance.randrange(20)]
                case _:
                    broken[place:place] = chance.choice([b"\t", b"{", b"&a", b"*a", b": ", b"\n-"])
        try:
            parse(bytes(broken), "x.yaml").root.data()
        except InvalidInput as error:
            shown = str(error)
        else:
            shown = "error VELA-YAML-"
        assert "error VELA-YAML-" in shown


def test_a_long_line_is_cut_around_the_caret() -> None:
    shown = Diagnostic(
        "x.yaml", Position(1, 300), "a" * 299 + "X" + "b" * 300, "R-1", "no"
    ).render()
    _, line, caret = shown.splitlines()
    assert len(line) < 180
    assert line[caret.index("^")] == "X"
