"""Questions before something is changed that cannot be taken back."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence

import click

from vela.operate.errors import Failure
from vela.operate.session import Cluster
from vela.operate.stack import Step
from vela.report.watch import Quiet


def confirm_changes(
    cluster: Cluster, watch: Quiet, *, yes: bool
) -> Callable[[Sequence[Step]], bool]:
    """The question before the cloud is changed.

    Without a terminal nobody can answer, so then ``--yes`` is needed.
    """

    def ask(steps: Sequence[Step]) -> bool:
        if yes:
            return True
        watch.pause()
        counts = Counter(step.op for step in steps)
        said = ", ".join(f"{number} to {op}" for op, number in counts.items())
        click.echo(f"{cluster.name} in {cluster.plan.environment.cloud.zone}: {said}", err=True)
        for step in steps:
            if step.op not in {"create", "update"}:
                click.echo(f"  {step.op} {step.type_name} {step.name}", err=True)
        _need_terminal(f"vela up {cluster.name} --yes")
        return click.confirm("go on?", err=True)

    return ask


def confirm_destroy(cluster: Cluster, *, yes: bool) -> None:
    """The question before everything is deleted: the name must be typed.

    Raises:
        Failure: Another name was typed, or nobody is there to type one.
    """
    if yes or cluster.plan.environment.cloud.protect:
        return
    _need_terminal(f"vela destroy {cluster.name} --yes")
    hosts = len(cluster.plan.hosts)
    click.echo(f"this deletes {hosts} hosts of {cluster.name} and all else of it", err=True)
    typed = click.prompt(f"type {cluster.name} to go on", default="", show_default=False, err=True)
    if typed != cluster.name:
        message = "nothing was deleted"
        raise Failure(message)


def _need_terminal(command: str) -> None:
    if not sys.stdin.isatty():
        message = "this needs an answer, and there is no terminal to ask on"
        raise Failure(message, command)
