"""Contract 2: a bundle holds everything that one node shall have.

A bundle is put on its node by one module call with check and diff, because the cost of a
playbook goes with hosts times tasks.
"""

import hashlib
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, computed_field

from vela.model.change import Change


def _absolute(path: str) -> str:
    if not path.startswith("/") or re.search(r"(^|/)\.{1,2}(/|$)|//|/$", path):
        msg = f"{path!r} is not a normalised absolute path of a file"
        raise ValueError(msg)
    return path


AbsolutePath = Annotated[str, AfterValidator(_absolute)]
Mode = Annotated[str, Field(pattern=r"^0[0-7]{3}$")]


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BundleFile(_Entry):
    """One file of a node.

    Attributes:
        path: Absolute path on the node.
        mode: Four octal digits.
        owner: User name; group likewise. Not applied under a bundle's ``root``.
        content: Text, UTF-8.
        change: What it costs to change this file on a node that works.
        restart: systemd units to restart when the file changed, in this order.
    """

    path: AbsolutePath
    mode: Mode = "0644"
    owner: str = "root"
    group: str = "root"
    content: str
    change: Change
    restart: tuple[str, ...] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def sha256(self) -> str:
        """Checksum of the content, 64 hexadecimal digits."""
        return hashlib.sha256(self.content.encode()).hexdigest()


class Bundle(_Entry):
    """Everything that one node shall have.

    Attributes:
        node: Name in the plan.
        kind: Host or switch (guests live on their host).
        root: Directory to apply the files under, in place of ``/``; None for a real node.
            Under a root neither packages nor units nor owners are applied.
        packages: Distribution packages that must be installed.
        files: Sorted by path, each path once.
    """

    schema_version: Literal[1] = Field(1, alias="schema")
    node: str
    kind: Literal["host", "switch"]
    root: str | None
    packages: tuple[str, ...] = ()
    files: tuple[BundleFile, ...]
