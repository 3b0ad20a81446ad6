"""The Pulumi stack of an environment, through the Automation API.

Pulumi's program stays an ordinary project (a "local program"), so that ``pulumi up`` typed in
the project folder does the same.
"""

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vela.operate.errors import Failure

if TYPE_CHECKING:
    from pulumi import automation

PROJECT = "vela"
CHANGING = frozenset({"create", "update", "delete", "replace", "create-replacement",
                      "delete-replaced", "import"})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the engine, as an event told it.

    Attributes:
        op: The engine's word: create, update, delete, same, replace, refresh ….
        urn: Name of the resource in the state.
        type: Type token.
        diffs: Properties that differ, in the provider's spelling.
        new: State after the step, as the engine writes it; empty for a delete.
        old: State before the step; empty for a create.
    """

    op: str
    urn: str
    type: str
    diffs: tuple[str, ...] = ()
    new: Mapping[str, Any] = field(default_factory=dict)
    old: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Logical name."""
        return self.urn.rsplit("::", 1)[-1]

    @property
    def type_name(self) -> str:
        """Last part of the type token, such as ``IsSubnet``."""
        return self.type.rsplit(":", 1)[-1]

    @property
    def is_resource(self) -> bool:
        """Whether it is a cloud resource, not a component, provider or the stack."""
        return self.type.startswith("ibm:index/")

    @property
    def changes(self) -> bool:
        """Whether it changes something."""
        return self.op in CHANGING


OnStep = Callable[[Step, str], None]
"""Takes a step and its phase: ``begin``, ``done`` or ``failed``."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one operation of the engine did or would do."""

    steps: tuple[Step, ...]
    messages: tuple[str, ...]
    seconds: float

    @property
    def changes(self) -> tuple[Step, ...]:
        """Steps on cloud resources that change something."""
        return tuple(step for step in self.steps if step.is_resource and step.changes)


class Stack:
    """One environment's stack; every method blocks and has an outer time limit."""

    def __init__(
        self,
        root: Path,
        name: str,
        variables: Mapping[str, str],
        *,
        after: Callable[[], None] = lambda: None,
        why: Callable[[], str | None] = lambda: None,
    ) -> None:
        """Select the stack, or make it.

        Args:
            root: Project folder.
            name: Stack, which is the environment.
            variables: Environment of the engine: backend, passphrase, cloud endpoints.
            after: Called after each operation, to end provider processes that are left over.
            why: Gives the reason when the provider died.

        Raises:
            Failure: The stack cannot be selected.
        """
        # half a second that no other command needs
        from pulumi import automation  # noqa: PLC0415

        from vela.operate.command import EngineCommand, TooSlow  # noqa: PLC0415

        os.environ["PATH"] = variables.get("PATH", os.environ["PATH"])
        self.name = name
        self._after = after
        self._why = why
        self._errors = automation.CommandError
        self._too_slow = TooSlow
        self._command = EngineCommand()
        options = automation.LocalWorkspaceOptions(
            env_vars=dict(variables), pulumi_command=self._command
        )
        try:
            self._stack = automation.create_or_select_stack(
                stack_name=name, work_dir=str(root), opts=options
            )
        except automation.CommandError as error:
            detail = _last_words(str(error))
            raise Failure(f"stack {name} cannot be selected", "", detail) from None

    def preview(self, seconds: float, on_step: OnStep | None = None) -> Run:
        """Look at the cloud and say what an up would change; changes nothing."""
        return self._operate(
            "preview", lambda event: self._stack.preview(refresh=True, on_event=event), seconds,
            on_step,
        )  # fmt: skip

    def up(self, seconds: float, on_step: OnStep | None = None) -> Run:
        """Refresh, then make the cloud what the program says."""
        return self._operate(
            "up",
            lambda event: self._stack.up(
                refresh=True, continue_on_error=True, show_secrets=False, on_event=event
            ),
            seconds,
            on_step,
        )

    def refresh(self, seconds: float, on_step: OnStep | None = None) -> Run:
        """Make the state what the cloud says."""
        return self._operate(
            "refresh",
            lambda event: self._stack.refresh(show_secrets=False, on_event=event),
            seconds,
            on_step,
        )

    def destroy(self, seconds: float, on_step: OnStep | None = None) -> Run:
        """Delete everything that the state knows."""
        return self._operate(
            "destroy",
            lambda event: self._stack.destroy(
                refresh=True, continue_on_error=True, show_secrets=False, on_event=event
            ),
            seconds,
            on_step,
        )

    def remove(self) -> None:
        """Forget the stack itself, once it is empty."""
        self._stack.workspace.remove_stack(self.name)

    def outputs(self) -> dict[str, Any]:
        """Stack outputs as plain values; ours are never secret."""
        return {key: value.value for key, value in self._stack.outputs().items()}

    def export(self) -> dict[str, Any]:
        """The state: the deployment, as ``pulumi stack export`` gives it."""
        return dict(self._stack.export_stack().deployment or {})

    def load(self, deployment: Mapping[str, Any]) -> None:
        """Replace the state."""
        from pulumi import automation  # noqa: PLC0415 - as above

        self._stack.import_stack(automation.Deployment(version=3, deployment=dict(deployment)))

    def unlock(self) -> None:
        """Remove the lock of a run that is dead; the caller has made sure of that."""
        self._stack.cancel()

    def _operate(
        self,
        what: str,
        call: Callable[[Callable[["automation.EngineEvent"], None]], object],
        seconds: float,
        on_step: OnStep | None,
    ) -> Run:
        collector = _Collector(on_step)
        begun = time.monotonic()
        self._command.seconds = seconds
        try:
            call(collector.take)
        except self._too_slow:
            message = f"pulumi {what} did not end within {seconds:.0f} s and was stopped"
            raise Failure(message, "run it again, with a larger --timeout") from None
        except self._errors as error:
            reason = self._why()
            detail = "\n".join(collector.errors) or _last_words(str(error))
            if reason:
                detail = f"{detail}\nthe provider died:\n{reason}"
            raise EngineFailure(
                f"pulumi {what} of {self.name} failed", detail, collector.steps
            ) from None
        finally:
            self._after()
        return Run(tuple(collector.steps), tuple(collector.messages), time.monotonic() - begun)


class EngineFailure(Failure):
    """The engine ended with an error; the steps that it took are kept."""

    def __init__(self, message: str, detail: str, steps: list[Step]) -> None:
        """Take what is known."""
        super().__init__(
            message, "run the command again: it goes on where this one stopped", detail
        )
        self.steps = tuple(steps)


class _Collector:
    """Takes the engine's events, on the Automation API's thread."""

    def __init__(self, on_step: OnStep | None) -> None:
        self.steps: list[Step] = []
        self.messages: list[str] = []
        self.errors: list[str] = []
        self._on_step = on_step

    def take(self, event: "automation.EngineEvent") -> None:
        if event.resource_pre_event:
            self._step(event.resource_pre_event.metadata, "begin")
        elif event.res_outputs_event:
            self._step(event.res_outputs_event.metadata, "done")
        elif event.res_op_failed_event:
            self._step(event.res_op_failed_event.metadata, "failed")
        elif event.diagnostic_event and not event.diagnostic_event.ephemeral:
            text = _summary(_plain(event.diagnostic_event.message).strip())
            if text and event.diagnostic_event.severity == "error":
                name = (event.diagnostic_event.urn or "").rsplit("::", 1)[-1]
                # the stack's own word, that an update failed, says nothing more
                if text != "update failed":
                    self.errors.append(f"{name}: {text}" if name else text)
            elif text and event.diagnostic_event.severity == "warning":
                self.messages.append(text)

    def _step(self, metadata: Any, phase: str) -> None:
        step = Step(
            op=str(getattr(metadata.op, "value", metadata.op)),
            urn=metadata.urn,
            type=metadata.type,
            diffs=tuple(metadata.detailed_diff or metadata.diffs or ()),
            new=_state(metadata.new),
            old=_state(metadata.old),
        )
        if phase == "begin":
            self.steps.append(step)
        if self._on_step:
            self._on_step(step, phase)


def _state(state: Any) -> Mapping[str, Any]:
    return dict(vars(state)) if state is not None else {}


def _plain(text: str) -> str:
    """Drop the engine's colour marks."""
    for mark in ("<{%reset%}>", "<{%fg 1%}>", "<{%fg 2%}>", "<{%fg 3%}>", "<{%fg 5%}>",
                 "<{%fg 8%}>", "<{%fg 11%}>", "<{%fg 13%}>", "<{%bold%}>"):  # fmt: skip
        text = text.replace(mark, "")
    return text


def _summary(text: str) -> str:
    """What went wrong, from the block of YAML that IBM's provider writes about an error."""
    match = re.search(r"^summary: *(.+?)^(?:severity|resource):", text, re.DOTALL | re.MULTILINE)
    if match is None:
        return text
    words = " ".join(match.group(1).replace("|-", "").split())
    return words.strip("'\"").replace("''", "'")


def _last_words(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-20:])
