"""Files of a node, or of a directory in its place: looked at, and replaced whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import grp
import os
import pwd
import stat
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

TEMPORARY = ".vela-bundle."


class TreeError(Exception):
    """Something cannot be done.

    Attributes:
        reasons: By path, what is wrong with it, in words that go on from the path.
    """

    def __init__(self, reasons: dict[str, str]) -> None:
        """Take the reasons."""
        super().__init__("; ".join(f"{path} {reason}" for path, reason in sorted(reasons.items())))
        self.reasons = reasons


class Found(NamedTuple):
    """What is at a path.

    Attributes:
        kind: ``file``, or what there is in place of one.
        content: Bytes of a file, no more than were asked for.
        mode: Octal digits, at least four.
        owner: ``USER:GROUP``; a number where there is no name.
    """

    kind: str
    content: bytes = b""
    mode: str = ""
    owner: str = ""


def why(error: OSError) -> str:
    """The system's words for an error, with its name."""
    return f"{error.strerror} ({errno.errorcode.get(error.errno or 0, 'unknown')})"


class Tree:
    """Files below a root.

    Attributes:
        root: An absolute directory.
        real: Whether it is the node itself: then owners count.
    """

    def __init__(self, root: str, *, real: bool) -> None:
        """Take the root."""
        self.root = root
        self.real = real
        self._resolved = os.path.realpath(root)

    def at(self, path: str) -> str:
        """Where a path of the node is on this machine.

        Folders that are links are followed, the last part is not.

        Raises:
            TreeError: It would be outside the root.
        """
        joined = os.path.join(self.root, path.lstrip("/"))
        folder = os.path.realpath(os.path.dirname(joined))
        if os.path.commonpath([folder, self._resolved]) != self._resolved:
            raise TreeError({path: f"leads out of {self.root}, to {folder}"})
        return os.path.join(folder, os.path.basename(joined))

    def read(self, path: str, longest: int) -> Found | None:
        """Look at a path; None where there is nothing.

        Args:
            path: Path on the node.
            longest: Bytes to read at most.

        Raises:
            TreeError: A file cannot be there, or cannot be read.
        """
        target = self.at(path)
        try:
            found = os.lstat(target)
            if stat.S_ISDIR(found.st_mode):
                raise TreeError({path: "is a directory"})
            if stat.S_ISLNK(found.st_mode):
                return Found(f"a symbolic link to {os.readlink(target)}")
            if not stat.S_ISREG(found.st_mode):
                return Found("a device, socket or pipe")
            with open(os.open(target, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                content = file.read(longest)
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            raise TreeError({path: "has a file among its folders"}) from None
        except OSError as error:
            raise TreeError({path: f"cannot be read: {why(error)}"}) from None
        mode = f"0{stat.S_IMODE(found.st_mode):03o}"
        return Found("file", content, mode, _names(found.st_uid, found.st_gid))

    def holds(self, path: str) -> bool:
        """Whether there is anything but a directory at a path."""
        target = self.at(path)
        return os.path.lexists(target) and (os.path.islink(target) or not os.path.isdir(target))

    @contextlib.contextmanager
    def locked(self, folder: str) -> Iterator[None]:
        """Keep other runs away from this tree; a killed run keeps nobody away.

        Args:
            folder: Folder of the node whose lock it is; made where it is missing.

        Raises:
            TreeError: Another run is at work, or the folder cannot be made.
        """
        here = self.at(os.path.join(folder, "."))
        try:
            make_folders(os.path.dirname(here), [])
            handle = os.open(os.path.dirname(here), os.O_RDONLY)
        except OSError as error:
            raise TreeError({folder: f"cannot be made: {why(error)}"}) from None
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise TreeError({folder: "is held by another run on this node"}) from None
            yield
        finally:
            os.close(handle)

    def sweep(self, paths: Iterable[str]) -> None:
        """Remove what killed runs left beside paths.

        Raises:
            TreeError: It cannot be removed.
        """
        for folder in sorted({os.path.dirname(self.at(path)) for path in paths}):
            try:
                for name in os.listdir(folder):
                    if name.startswith(TEMPORARY):
                        os.unlink(os.path.join(folder, name))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise TreeError({folder: f"cannot be tidied: {why(error)}"}) from None

    def remove(self, path: str) -> None:
        """Remove a file.

        Raises:
            TreeError: It cannot be removed.
        """
        target = self.at(path)
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(target)
                _sync(os.path.dirname(target))
        except OSError as error:
            raise TreeError({path: f"cannot be removed: {why(error)}"}) from None


class Batch:
    """New files that wait beside their targets, and take their places one after the other.

    A full disk, a folder that cannot be written to or an owner that does not exist shows while
    they are made, before anything of the node has changed.
    """

    def __init__(self, tree: Tree) -> None:
        """Begin with none."""
        self._tree = tree
        self._waiting: list[tuple[str, str, str]] = []
        self._folders: list[str] = []

    def __enter__(self) -> Batch:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind that did not take its place."""
        for _path, temporary, _target in self._waiting:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        for folder in reversed(self._folders):
            with contextlib.suppress(OSError):
                os.rmdir(folder)

    def add(self, entries: Iterable[dict[str, Any]]) -> None:
        """Make files, with their mode and, on a node itself, their owner.

        Raises:
            TreeError: Some cannot be made; each is named with its reason.
        """
        reasons = {}
        for entry in entries:
            try:
                self._make(entry)
            except OSError as error:
                reasons[entry["path"]] = f"cannot be written: {why(error)}"
            except TreeError as error:
                reasons.update(error.reasons)
        if reasons:
            raise TreeError(reasons)

    def _make(self, entry: dict[str, Any]) -> None:
        owner = _numbers(entry) if self._tree.real else None
        target = self._tree.at(entry["path"])
        folder = os.path.dirname(target)
        make_folders(folder, self._folders)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=TEMPORARY)
        self._waiting.append((entry["path"], temporary, target))
        with os.fdopen(handle, "wb") as file:
            file.write(entry["content"].encode())
            file.flush()
            if owner:
                os.fchown(handle, *owner)
            os.fchmod(handle, int(entry["mode"], 8))
            os.fsync(handle)

    def place(self) -> None:
        """Put every file in its place, in the order in which they were added.

        Raises:
            TreeError: One could not take its place; those after it have not.
        """
        folders = {os.path.dirname(target) for _, _, target in self._waiting}
        while self._waiting:
            path, temporary, target = self._waiting[0]
            try:
                os.replace(temporary, target)
            except OSError as error:
                raise TreeError({path: f"cannot be replaced: {why(error)}"}) from None
            self._waiting.pop(0)
        for folder in folders | {os.path.dirname(made) for made in self._folders}:
            _sync(folder)
        self._folders = []


def make_folders(folder: str, made: list[str]) -> None:
    """Make a folder and those above it, readable by all.

    Args:
        folder: Absolute path.
        made: Takes the folders that were missing, as they are made.
    """
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        os.mkdir(path)
        made.append(path)
        # whatever the caller's umask
        os.chmod(path, 0o755)  # noqa: S103 - folders such as /etc/sysctl.d are for all


def _sync(folder: str) -> None:
    """Make a change of a folder last."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _names(user: int, group: int) -> str:
    try:
        owner = pwd.getpwuid(user).pw_name
    except KeyError:
        owner = str(user)
    try:
        return f"{owner}:{grp.getgrgid(group).gr_name}"
    except KeyError:
        return f"{owner}:{group}"


def _numbers(entry: dict[str, Any]) -> tuple[int, int]:
    try:
        return pwd.getpwnam(entry["owner"]).pw_uid, grp.getgrnam(entry["group"]).gr_gid
    except KeyError:
        owner = f"{entry['owner']}:{entry['group']}"
        raise TreeError(
            {entry["path"]: f"needs a user and a group that do not exist here: {owner}"}
        ) from None
