"""Outcomes as text for a person."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from vela.finding import Finding, Kind
from vela.operate.flow import Outcome
from vela.operate.session import Cluster
from vela.operate.stack import Run

_OPS = {
    "create": ("+", "green", "make"),
    "update": ("~", "yellow", "change"),
    "replace": ("±", "red", "replace"),
    "create-replacement": ("±", "red", "replace"),
    "delete-replaced": ("±", "red", "replace"),
    "delete": ("-", "red", "delete"),
}
_MADE = {"create": "made", "update": "changed", "delete": "deleted", "replace": "replaced"}
MAX_ROWS = 40


def seconds(value: float) -> str:
    """A time as people say it: ``0.8 s``, ``41 s``, ``3 min 20 s``."""
    if value < 10:
        return f"{value:.1f} s"
    if value < 120:
        return f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s"


def count(number: int, noun: str) -> str:
    """A number with its noun: ``1 host``, ``4 leafs``, ``2 switches``."""
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun}es" if noun.endswith(("ch", "s", "x")) else f"{noun}s"
    return f"{number:,} {plural}"


def contents(cluster: Cluster) -> str:
    """What a cluster consists of, in one line."""
    plan = cluster.plan
    leafs = sum(switch.role == "leaf" for switch in plan.switches)
    parts = [
        f"{count(len(plan.hosts), 'host')} in {count(len(plan.racks), 'rack')}",
        *([count(leafs, "leaf")] if leafs else []),
        *([count(len(plan.switches) - leafs, "spine")] if plan.switches else []),
        *([count(len(plan.cables), "cable")] if plan.cables else []),
    ]
    return ", ".join(parts)


def show(console: Console, cluster: Cluster, outcome: Outcome) -> None:
    """Print what a command did or found."""
    match outcome.command:
        case "up":
            _up(console, cluster, outcome)
        case "plan":
            _plan(console, cluster, outcome)
        case "drift":
            _drift(console, cluster, outcome)
        case "configure":
            _configure(console, outcome)
        case "destroy":
            _destroy(console, outcome)


def _up(console: Console, cluster: Cluster, outcome: Outcome) -> None:
    name = cluster.name
    console.print()
    if outcome.failures:
        nodes = {finding.node for finding in outcome.failures}
        head = f"[bold red]{name} is up in part[/]: {count(len(nodes), 'node')} failed"
    elif outcome.differences:
        head = f"[bold yellow]{name} is up, with differences that nobody may repair unasked[/]"
    elif not outcome.changed:
        head = f"[bold green]{name} is up, nothing to change[/]"
    else:
        head = f"[bold green]{name} is up[/]"
    console.print(f"{head}  [dim]{contents(cluster)}[/]")
    console.print()
    console.print(_grid(_rows(cluster, outcome)))
    _notes(console, outcome)
    if outcome.findings:
        console.print()
        console.print(findings(outcome.findings))
    console.print()
    console.print("[bold]next[/]")
    again = [(f"vela up {name}", "again: only what is missing is done")]
    following = [
        *(again if outcome.failures else []),
        (f"vela show {name}", "addresses, cables, counts"),
        (f"vela drift {name}", "what differs from the plan, in cloud, hosts and switches"),
        (f"vela destroy {name}", "remove all of it"),
    ]
    console.print(_grid(following))


def _grid(rows: Iterable[tuple[str, ...]]) -> RenderableType:
    """Rows in columns, indented; never wrapped, since lines are read and copied."""
    listed = list(rows)
    table = Table.grid(padding=(0, 2))
    for _ in range(max(len(row) for row in listed)):
        table.add_column(no_wrap=True, overflow="ignore")
    for row in listed:
        table.add_row(*row)
    return Padding(table, (0, 0, 0, 2))


def _rows(cluster: Cluster, outcome: Outcome) -> Iterator[tuple[str, str, str]]:
    cloud = cluster.plan.environment.cloud
    where = f"{cloud.zone}, simulated" if cluster.simulated else cloud.zone
    if outcome.cloud:
        made = _done(outcome.cloud)
        yield "cloud", f"{made} in {seconds(outcome.cloud.seconds)}", f"[dim]{where}[/]"
    if outcome.adopted:
        names = ", ".join(a.name for a in outcome.adopted[:4])
        yield "", f"{count(len(outcome.adopted), 'resource')} taken into the state", names
    nodes = outcome.nodes
    if nodes:
        states = Counter(str(node.state) for node in nodes.nodes.values())
        said = ", ".join(
            f"{states[key]} {word}"
            for key, word in (
                ("changed", "configured"),
                ("ok", "already right"),
                ("failed", "failed"),
                ("unreachable", "unreachable"),
                ("unknown", "without an answer"),
            )
            if states[key]
        )
        place = (
            f".vela/{cluster.name}/NODE/"
            if cluster.plan.environment.lab.nodes == "directories"
            else "over SSH"
        )
        text = f"{said}, {count(nodes.files, 'file')} in {seconds(nodes.seconds)}"
        yield "nodes", text, f"[dim]{place}[/]"
    if outcome.clean:
        yield "second look", "nothing to change", ""
    yield "in all", seconds(outcome.seconds), ""


def _done(run: Run) -> str:
    counts = Counter(_MADE.get(step.op, "replaced") for step in run.changes)
    if not counts:
        return "nothing to change, looked"
    return ", ".join(f"{number} {word}" for word, number in counts.items())


def _plan(console: Console, cluster: Cluster, outcome: Outcome) -> None:
    console.print(f"[bold]{cluster.name}[/]  [dim]{contents(cluster)}[/]")
    console.print()
    if outcome.cloud and outcome.cloud.changes:
        console.print(steps(outcome.cloud))
        console.print()
    others = [f for f in outcome.findings if f.layer != "cloud" or f.kind is Kind.FAILURE]
    if others:
        console.print(findings(others))
        console.print()
    _notes(console, outcome)
    console.print(_verdict(outcome, f"vela up {cluster.name}", "to make it so"))


def _verdict(outcome: Outcome, command: str, verb: str) -> str:
    if outcome.failures:
        return f"[bold red]could not look everywhere[/]  [dim]{seconds(outcome.seconds)}[/]"
    if not outcome.findings:
        return f"[bold green]nothing to change[/]  [dim]{seconds(outcome.seconds)}[/]"
    classes = Counter(str(f.change) for f in outcome.differences)
    said = ", ".join(f"{number} {name}" for name, number in classes.items())
    return (
        f"[bold yellow]{count(len(outcome.differences), 'difference')}[/] ({said}); "
        f"{verb}: [bold]{command}[/]  [dim]{seconds(outcome.seconds)}[/]"
    )


def steps(run: Run) -> RenderableType:
    """Steps of the engine, counted by type, single ones by name."""
    groups: dict[tuple[str, str], list[str]] = {}
    for step in run.changes:
        groups.setdefault((step.op, step.type_name), []).append(step.name)
    rows = []
    for (op, kind), unsorted in groups.items():
        names = sorted(unsorted)
        sign, colour, word = _OPS.get(op, ("~", "yellow", op))
        shown = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
        rows.append((f"[{colour}]{sign}[/]", word, str(len(names)), kind, f"[dim]{shown}[/]"))
    return _grid(rows)


def _drift(console: Console, cluster: Cluster, outcome: Outcome) -> None:
    if outcome.findings:
        console.print(findings(outcome.findings))
        console.print()
    _notes(console, outcome)
    if not outcome.findings:
        looked = f"{contents(cluster)}; looked in {seconds(outcome.seconds)}"
        console.print(f"[bold green]no drift[/]  [dim]{looked}[/]")
    else:
        console.print(_verdict(outcome, f"vela up {cluster.name}", "to repair"))


def _configure(console: Console, outcome: Outcome) -> None:
    if outcome.findings:
        console.print(findings(outcome.findings))
        console.print()
    _notes(console, outcome)
    if outcome.nodes:
        states = Counter(node.state for node in outcome.nodes.nodes.values())
        said = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
        console.print(f"{said}  [dim]{seconds(outcome.seconds)}[/]")


def _destroy(console: Console, outcome: Outcome) -> None:
    gone = _done(outcome.cloud) if outcome.cloud else "nothing"
    console.print(
        f"[bold green]{outcome.environment} is gone[/]  "
        f"[dim]{gone} in {seconds(outcome.seconds)}[/]"
    )
    _notes(console, outcome)


def _notes(console: Console, outcome: Outcome) -> None:
    for note in outcome.notes:
        console.print(f"  [dim]note:[/] {note}", highlight=False)


def findings(items: Sequence[Finding] | Iterable[Finding]) -> RenderableType:
    """Findings as a person reads them: where, what, expected and found, what repair costs."""
    listed = list(items)
    parts: list[RenderableType] = []
    for finding in listed[:MAX_ROWS]:
        parts.append(_head(finding))
        if finding.kind is Kind.DIFFERENCE:
            parts.append(_pair("expected", finding.expected))
            parts.append(_pair("found", finding.found))
        elif finding.found:
            parts.append(_pair("said", finding.found))
        if finding.hint:
            parts.append(Text(f"    hint: {finding.hint}", style="dim"))
    if len(listed) > MAX_ROWS:
        parts.append(Text(f"… and {len(listed) - MAX_ROWS} more; --json has them all"))
    return Group(*parts)


def _head(finding: Finding) -> Text:
    colour = "red" if finding.kind is Kind.FAILURE else "yellow"
    text = Text()
    text.append(f"{finding.layer} ", style="bold")
    text.append(f"{finding.node}", style=f"bold {colour}")
    text.append(f"  {finding.item}  ")
    text.append(f"{finding.change}  {finding.rule}", style="dim")
    return text


def _pair(label: str, value: str | None) -> Text:
    text = Text(f"    {label + ':':10}")
    if value is None:
        return text.append("not there", style="italic")
    lines = value.splitlines() or [""]
    return text.append(lines[0] + (f" … ({len(lines)} lines)" if len(lines) > 1 else ""))
