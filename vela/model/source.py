"""YAML with positions: text to plain data, and from a path in the data back to its place.

The text is read as a stream of events, so depth and expansion are limited before anything
is built. Plain scalars follow YAML 1.2's core schema: ``no`` and ``1:20`` are strings.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import yaml

from vela.model.diagnostic import Diagnostic, InvalidInput, Position

MAX_BYTES = 1_000_000
MAX_DEPTH = 32
MAX_NODES = 200_000

Path = tuple[str | int, ...]
"""Keys and indices from the document's root, such as ``("cloud", "network", "cidr")``."""

_CORE_SCHEMA: tuple[tuple[re.Pattern[str], Callable[[str], object]], ...] = (
    (re.compile(r"~|null|Null|NULL|"), lambda _: None),
    (re.compile(r"true|True|TRUE"), lambda _: True),
    (re.compile(r"false|False|FALSE"), lambda _: False),
    (re.compile(r"[-+]?[0-9]{1,40}"), int),
    (re.compile(r"0o[0-7]{1,40}|0x[0-9a-fA-F]{1,40}"), lambda text: int(text, 0)),
    (re.compile(r"[-+]?(\.[0-9]{1,40}|[0-9]{1,40}(\.[0-9]{0,40})?)([eE][-+]?[0-9]{1,3})?"), float),
)
_CORE_TAGS = {"tag:yaml.org,2002:str", "!"}

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True)
class Node:
    """A node of the document: a scalar, a mapping or a sequence, and where it begins."""

    position: Position
    scalar: object = None
    entries: dict[str, tuple[Position, "Node"]] | None = None
    items: list["Node"] | None = None
    size: int = 1

    def data(self) -> object:
        """Return plain data: dict, tuple, str, int, float, bool or None."""
        if self.entries is not None:
            return {key: node.data() for key, (_, node) in self.entries.items()}
        if self.items is not None:
            return tuple(node.data() for node in self.items)
        return self.scalar


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file: its data, and where each part of it stands."""

    file: str
    lines: Sequence[str]
    root: Node
    faults: Sequence[Diagnostic] = ()

    def position(self, path: Path, *, of_key: bool = False) -> Position:
        """Place of the value at a path, or of its key.

        A path that leaves the document gives the deepest part that exists, at its key.
        """
        node, place = self.root, self.root.position
        for depth, step in enumerate(path):
            if node.entries is not None and step in node.entries:
                key_place, node = node.entries[str(step)]
            elif node.items is not None and isinstance(step, int) and step < len(node.items):
                node = node.items[step]
                key_place = node.position
            else:
                return place
            last = depth == len(path) - 1
            place = node.position if last and not of_key else key_place
        return place

    def diagnostic(
        self, path: Path, rule: str, message: str, hint: str = "", *, of_key: bool = False
    ) -> Diagnostic:
        """Make an error at a path of this document."""
        return self.at(self.position(path, of_key=of_key), rule, message, hint)

    def at(self, position: Position, rule: str, message: str, hint: str = "") -> Diagnostic:
        """Make an error at a position of this document."""
        return Diagnostic(
            self.file, position, _line(self.lines, position.line), rule, message, hint
        )


def parse(raw: bytes, file: str) -> Document:
    """Parse one YAML document.

    Faults that leave the rest readable (a duplicate key, a key that is no string) are kept in
    ``Document.faults``, to be shown with what the model finds.

    Args:
        raw: Content of the file; UTF-8, with or without a byte order mark, LF or CRLF.
        file: Name for messages.

    Raises:
        InvalidInput: It is not UTF-8, not one YAML document, or beyond the limits above.
    """
    check_size(len(raw), file)
    text = _decode(raw, file)
    lines = text.splitlines()
    control = _CONTROL.search(text)
    if control:
        place = _place_of(text, control.start())
        message = f"character U+{ord(control.group()):04X} is not allowed in YAML"
        hint = "remove the control character"
        raise InvalidInput(
            [Diagnostic(file, place, _line(lines, place.line), "VELA-YAML-001", message, hint)]
        )
    return _Composer(file, lines).compose(text)


def check_size(size: int, file: str) -> None:
    """Refuse a file that is too large to be what it should be.

    Raises:
        InvalidInput: It has more than ``MAX_BYTES`` bytes.
    """
    if size > MAX_BYTES:
        message = f"the file has {size:,} bytes, the limit is {MAX_BYTES:,}"
        hint = "an environment of 200 racks needs some 100 lines; is this the right file?"
        raise InvalidInput([Diagnostic(file, None, "", "VELA-YAML-002", message, hint)])


def _place_of(text: str, offset: int) -> Position:
    before = text[:offset]
    return Position(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


def _decode(raw: bytes, file: str) -> str:
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8-sig", "replace")
        place = _place_of(before, len(before))
        shown = raw.decode("utf-8-sig", "replace").splitlines()
        byte = raw[error.start]
        raise InvalidInput(
            [
                Diagnostic(
                    file,
                    place,
                    _line(shown, place.line),
                    "VELA-YAML-001",
                    f"byte 0x{byte:02x} is not UTF-8",
                    "save the file as UTF-8",
                )
            ]
        ) from None


def _line(lines: Sequence[str], number: int) -> str:
    return lines[number - 1] if 0 < number <= len(lines) else ""


@dataclass(slots=True)
class _Frame:
    """A collection that is being read."""

    node: Node
    anchor: str | None
    key: tuple[str, Position] | None = None
    skip: bool = False
    merges: list[Node] = field(default_factory=list)


class _Composer:
    """Builds the tree from the parser's events, without recursion."""

    def __init__(self, file: str, lines: Sequence[str]) -> None:
        self.document = Document(file, lines, Node(Position(1, 1)))
        self.faults: list[Diagnostic] = []
        self.anchors: dict[str, Node] = {}
        self.frames: list[_Frame] = []
        self.root: Node | None = None

    def compose(self, text: str) -> Document:
        loader = _LOADER(text)
        documents = 0
        try:
            while loader.check_event():
                event = loader.get_event()
                if isinstance(event, yaml.DocumentStartEvent):
                    documents += 1
                    if documents > 1:
                        self._stop(
                            _place(event),
                            "VELA-YAML-004",
                            "a second document begins here",
                            "one file describes one thing; remove the line with ---",
                        )
                else:
                    self._take(event)
        except yaml.MarkedYAMLError as error:
            self._syntax(error)
        except yaml.reader.ReaderError as error:
            place = _place_of(text, error.position if isinstance(error.position, int) else 0)
            self._stop(place, "VELA-YAML-001", "a character is not allowed in YAML", "remove it")
        finally:
            loader.dispose()
        if self.root is None:
            self._stop(
                Position(1, 1),
                "VELA-YAML-005",
                "the file is empty",
                "start from one of the files in environments/",
            )
        return Document(self.document.file, self.document.lines, self.root, tuple(self.faults))

    def _stop(self, place: Position, rule: str, message: str, hint: str = "") -> NoReturn:
        raise InvalidInput([*self.faults, self.document.at(place, rule, message, hint)])

    def _syntax(self, error: yaml.MarkedYAMLError) -> NoReturn:
        mark = error.problem_mark or error.context_mark
        place = Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)
        text = _line(self.document.lines, place.line)
        hint = "check indentation, quotes and brackets here and on the line above"
        if "\t" in text[: max(place.column, len(text) - len(text.lstrip()))]:
            hint = "YAML does not allow tabs for indentation; use spaces"
        self._stop(place, "VELA-YAML-003", error.problem or error.context or "not YAML", hint)

    def _take(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._open(event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._close()

    def _alias(self, event: yaml.AliasEvent) -> None:
        node = self.anchors.get(event.anchor or "")
        if node is None:
            self._stop(
                _place(event),
                "VELA-YAML-006",
                f"alias *{event.anchor} names no anchor that is complete before it",
                f"write &{event.anchor} at the value that it shall repeat",
            )
        self._add(node, _place(event))

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        if len(self.frames) >= MAX_DEPTH:
            self._stop(_place(event), "VELA-YAML-007", f"nested more than {MAX_DEPTH} deep")
        self._tag(event)
        node = Node(_place(event))
        if isinstance(event, yaml.MappingStartEvent):
            node.entries = {}
        else:
            node.items = []
        self.frames.append(_Frame(node, event.anchor))

    def _close(self) -> None:
        frame = self.frames.pop()
        for merged in frame.merges:
            for key, entry in _entries(merged).items():
                _entries(frame.node).setdefault(key, entry)
        if frame.anchor:
            self.anchors[frame.anchor] = frame.node
        self._add(frame.node, frame.node.position)

    def _tag(self, event: yaml.NodeEvent) -> None:
        tag = getattr(event, "tag", None)
        if tag and tag not in _CORE_TAGS and not tag.startswith("tag:yaml.org,2002:"):
            self.faults.append(
                self.document.at(
                    _place(event), "VELA-YAML-008", f"tag {tag} is not known here", "remove the tag"
                )
            )

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        self._tag(event)
        place = _place(event)
        plain = event.implicit[0]
        frame = self.frames[-1] if self.frames else None
        if frame and frame.node.entries is not None and frame.key is None:
            self._key(frame, event.value, place, plain=plain)
            if event.anchor:
                self.anchors[event.anchor] = Node(place, event.value)
            return
        node = Node(place, resolve(event.value) if plain else event.value)
        if event.anchor:
            self.anchors[event.anchor] = node
        self._add(node, place)

    def _key(self, frame: _Frame, text: str, place: Position, *, plain: bool) -> None:
        if plain and not isinstance(resolve(text), str):
            self.faults.append(
                self.document.at(
                    place,
                    "VELA-YAML-009",
                    f"key {text or 'null'} is not a string",
                    f'put it in quotes: "{text}"',
                )
            )
            frame.skip = True
        known = _entries(frame.node).get(text)
        if known is not None:
            self.faults.append(
                self.document.at(
                    place,
                    "VELA-YAML-010",
                    f"key {text} is given twice",
                    f"the first one is on line {known[0].line}",
                )
            )
            frame.skip = True
        frame.key = (text, place)

    def _add(self, node: Node, place: Position) -> None:
        """Hang a complete node under the collection that is open."""
        if not self.frames:
            self.root = node
            return
        frame = self.frames[-1]
        parent = frame.node
        if parent.items is not None:
            parent.items.append(node)
        elif frame.key is None:
            self._stop(
                place, "VELA-YAML-009", "a key must be a string", "write the key as plain text"
            )
        else:
            key, key_place = frame.key
            if key == "<<":
                self._merge(frame, node, place)
            elif not frame.skip:
                _entries(parent)[key] = (key_place, node)
            frame.key, frame.skip = None, False
        parent.size += node.size
        if parent.size > MAX_NODES:
            self._stop(
                place, "VELA-YAML-011", f"aliases expand this to more than {MAX_NODES:,} values"
            )

    def _merge(self, frame: _Frame, node: Node, place: Position) -> None:
        sources = node.items if node.items is not None else [node]
        for source in sources:
            if source.entries is None:
                self.faults.append(
                    self.document.at(
                        place,
                        "VELA-YAML-012",
                        "<< takes a mapping or a list of mappings",
                        "write <<: *name with an anchor on a mapping",
                    )
                )
            else:
                frame.merges.append(source)


def _entries(node: Node) -> dict[str, tuple[Position, Node]]:
    if node.entries is None:
        msg = "not a mapping"
        raise TypeError(msg)
    return node.entries


def _place(event: yaml.Event) -> Position:
    mark = event.start_mark
    return Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)


def resolve(text: str) -> object:
    """Value of a plain scalar under YAML 1.2's core schema."""
    return next((make(text) for form, make in _CORE_SCHEMA if form.fullmatch(text)), text)
