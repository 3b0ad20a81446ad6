"""The command line. Heavy imports happen in the command that needs them."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from vela.operate.flow import Outcome
    from vela.operate.session import Cluster

DONE, FAILED, INVALID, DIFFERENT = 0, 1, 2, 3
INTERRUPTED = 130

environment = click.argument("name", metavar="NAME")
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")
timeout = click.option(
    "--timeout",
    "minutes",
    type=click.FloatRange(min=0.1),
    default=120.0,
    show_default=True,
    help="Outer limit of the cloud part, minutes.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--project",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    default=None,
    help="Project folder; by default the one that you are in.",
)
@click.version_option(package_name="vela")
@click.pass_context
def main(context: click.Context, project: Path | None) -> None:
    """One description of an AI cluster; cloud, hosts, guests and switches from it.

    NAME is a file in environments/, and the Pulumi stack of that name. Exit codes: 0 done or
    nothing to do, 1 failed, 2 invalid input, 3 differences found.
    """
    context.obj = project or Path.cwd()


def command(function: Callable[..., int]) -> click.Command:
    """Register a command; what it returns is the exit code, what it raises is shown."""

    @click.pass_context
    def run(context: click.Context, /, **arguments: Any) -> None:
        sys.exit(_guarded(lambda: function(context.obj, **arguments)))

    run.__doc__ = function.__doc__
    run.__name__ = function.__name__
    run.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    return main.command(name=function.__name__.rstrip("_"))(run)


def _guarded(call: Callable[[], int]) -> int:
    """Turn what a person can cause into a message and an exit code."""
    from vela.model.diagnostic import InvalidInput  # noqa: PLC0415 - see the module's docstring
    from vela.operate.errors import Failure  # noqa: PLC0415

    try:
        return call()
    except InvalidInput as error:
        click.echo(str(error), err=True)
        noun = "error" if len(error.diagnostics) == 1 else "errors"
        click.echo(f"{len(error.diagnostics)} {noun}", err=True)
        return INVALID
    except Failure as error:
        click.echo(f"{click.style('error:', fg='red', bold=True)} {error.message}", err=True)
        if error.detail:
            click.echo("\n".join(f"  {line}" for line in error.detail.splitlines()), err=True)
        if error.hint:
            click.echo(f"hint: {error.hint}", err=True)
        return FAILED
    except KeyboardInterrupt:
        click.echo("interrupted; run the command again and it goes on from here", err=True)
        return INTERRUPTED


def _open(start: Path, name: str) -> "Cluster":
    from vela.operate.project import find  # noqa: PLC0415
    from vela.operate.session import open_cluster  # noqa: PLC0415

    return open_cluster(find(start), name)


@command
@environment
@as_json
def validate(start: Path, name: str, as_json: bool) -> int:
    """Hold an environment against the model and the rules."""
    from vela.report.plain import summary, write_json  # noqa: PLC0415

    cluster = _open(start, name)
    if as_json:
        write_json({"schema": 1, "environment": name, "valid": True})
    else:
        click.echo(f"environments/{name}.yaml is valid: {summary(cluster.plan)}")
    return DONE


@command
@environment
@as_json
def show(start: Path, name: str, as_json: bool) -> int:
    """Show the plan: counts, addresses, cables, and every default."""
    from vela.report.plain import plan_data, plan_text, write_json  # noqa: PLC0415

    cluster = _open(start, name)
    if as_json:
        write_json(plan_data(cluster.plan))
    else:
        click.echo_via_pager(plan_text(cluster.plan))
    return DONE


@command
@environment
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder to write to; made if it is not there.",
)
def render(start: Path, name: str, out: Path) -> int:
    """Write every file of every node, and an inventory, into a folder."""
    from vela.operate.configure import render as rendered  # noqa: PLC0415
    from vela.operate.configure import write_inventory, write_tree  # noqa: PLC0415
    from vela.operate.session import saved_outputs  # noqa: PLC0415

    cluster = _open(start, name)
    outputs = saved_outputs(cluster)
    made = rendered(cluster, outputs)
    files = write_tree(made, out)
    write_inventory(cluster, outputs, made, out)
    click.echo(f"{files} files of {len(made)} nodes in {out}")
    if outputs is None:
        click.echo("left out: network files, which need the MAC addresses of an environment's up")
    return DONE


@command
@environment
@as_json
@timeout
def plan(start: Path, name: str, as_json: bool, minutes: float) -> int:
    """Say what an up would change, with the cost of each change; changes nothing."""
    from vela.operate import flow  # noqa: PLC0415

    cluster = _open(start, name)
    watch = _watcher(as_json)
    with watch:
        outcome = flow.plan(cluster, watch, flow.Limits(cloud=minutes * 60))
    return _finish(cluster, outcome, as_json, DIFFERENT if outcome.differences else DONE)


@command
@environment
@click.option("--yes", is_flag=True, help="Do not ask before the cloud is changed.")
@as_json
@timeout
def up(start: Path, name: str, yes: bool, as_json: bool, minutes: float) -> int:
    """Make cloud, hosts and switches what the environment says."""
    from vela.operate import flow  # noqa: PLC0415
    from vela.report.ask import confirm_changes  # noqa: PLC0415

    cluster = _open(start, name)
    watch = _watcher(as_json)
    ask = confirm_changes(cluster, watch, yes=yes or cluster.simulated)
    with watch:
        outcome = flow.up(cluster, watch, ask, flow.Limits(cloud=minutes * 60))
    return _finish(cluster, outcome, as_json, DIFFERENT if outcome.differences else DONE)


@command
@environment
@click.option("--check", is_flag=True, help="Look only; exit code 3 when something differs.")
@click.option("--limit", multiple=True, metavar="NODE", help="This node alone; may be repeated.")
@click.option("--only", type=click.Choice(["hosts", "switches"]), help="One kind of node alone.")
@as_json
def configure(
    start: Path, name: str, check: bool, limit: tuple[str, ...], only: Any, as_json: bool
) -> int:
    """Run the playbooks from saved outputs; needs no Pulumi."""
    from vela.operate import configuring  # noqa: PLC0415

    cluster = _open(start, name)
    watch = _watcher(as_json)
    with watch:
        outcome = configuring.configure(cluster, watch, check=check, only=only, limit=limit)
    return _finish(cluster, outcome, as_json, DIFFERENT if outcome.differences else DONE)


@command
@environment
@as_json
@timeout
def drift(start: Path, name: str, as_json: bool, minutes: float) -> int:
    """Hold cloud, hosts and switches against the plan, in one report."""
    from vela.operate import flow  # noqa: PLC0415

    cluster = _open(start, name)
    watch = _watcher(as_json)
    with watch:
        outcome = flow.drift(cluster, watch, flow.Limits(cloud=minutes * 60))
    return _finish(cluster, outcome, as_json, DIFFERENT if outcome.differences else DONE)


@command
@environment
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_json
@timeout
def destroy(start: Path, name: str, yes: bool, as_json: bool, minutes: float) -> int:
    """Delete all of it; asks for the name, and refuses where the environment is protected."""
    from vela.operate import flow  # noqa: PLC0415
    from vela.report.ask import confirm_destroy  # noqa: PLC0415

    cluster = _open(start, name)
    confirm_destroy(cluster, yes=yes)
    watch = _watcher(as_json)
    with watch:
        outcome = flow.destroy(cluster, watch, flow.Limits(cloud=minutes * 60))
    return _finish(cluster, outcome, as_json, DONE)


@command
@environment
def env(start: Path, name: str) -> int:
    """Print the variables with which `pulumi` works on an environment: eval "$(vela env NAME)"."""
    import shlex  # noqa: PLC0415

    from vela.operate.session import find_engine, variables_of  # noqa: PLC0415

    cluster = _open(start, name)
    engine = find_engine(lambda text: click.echo(text, err=True))
    for key, value in sorted(variables_of(cluster, engine).items()):
        click.echo(f"export {key}={shlex.quote(value)}")
    click.echo(f"# then: pulumi stack select --create {name}; pulumi preview")
    return DONE


@main.group()
def lab() -> None:
    """The stand-ins of this machine."""


def _lab(name: str, text: str) -> None:
    @lab.command(name=name, help=text)
    @click.option("--only", type=click.Choice(["cloud"]), default="cloud", show_default=True)
    @as_json
    @click.pass_context
    def run(context: click.Context, only: str, as_json: bool) -> None:
        del only
        sys.exit(_guarded(lambda: _run_lab(context.obj, name, as_json)))


def _run_lab(start: Path, name: str, as_json: bool) -> int:
    from vela.operate.lab import simulator  # noqa: PLC0415
    from vela.operate.project import find  # noqa: PLC0415
    from vela.report.plain import lab_text, write_json  # noqa: PLC0415

    answer = simulator(find(start), {"up": "start", "down": "stop"}.get(name, name))
    if as_json:
        write_json(answer)
    else:
        click.echo(lab_text(name, answer))
    return DONE


_lab("up", "Start the simulated IBM Cloud on a port of 127.0.0.1.")
_lab("status", "Say whether it runs, and what it holds.")
_lab("down", "Stop it; what it holds is kept.")


def _watcher(quiet: bool) -> Any:
    from vela.report.watch import watcher  # noqa: PLC0415

    return watcher(quiet=quiet)


def _finish(cluster: "Cluster", outcome: "Outcome", as_json: bool, code: int) -> int:
    code = FAILED if outcome.failures else code
    if as_json:
        from vela.report.data import outcome as data  # noqa: PLC0415
        from vela.report.plain import write_json  # noqa: PLC0415

        write_json(data(outcome, code))
    else:
        from rich.console import Console  # noqa: PLC0415

        from vela.report import text  # noqa: PLC0415

        text.show(Console(highlight=False, soft_wrap=True), cluster, outcome)
    return code


if __name__ == "__main__":
    main()
