"""What every command on an environment begins with: model, rules, plan, lock, engine."""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vela.model.load import Loaded, load
from vela.operate import lab, lock
from vela.operate.errors import Failure
from vela.operate.project import Project, private, read_json, write, write_json
from vela.outputs import ClusterOutputs
from vela.plan import Plan, build
from vela.rules import check

if TYPE_CHECKING:
    from tools.engine import Engine
    from vela.operate.stack import Stack

Say = Callable[[str], None]
"""Takes one line on what is going on."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A valid environment and its plan."""

    project: Project
    loaded: Loaded
    plan: Plan

    @property
    def name(self) -> str:
        """Name of the environment."""
        return self.plan.name

    @property
    def simulated(self) -> bool:
        """Whether the cloud is the simulator."""
        return self.plan.environment.lab.cloud == "simulated"

    def node_root(self, node: str) -> str | None:
        """Directory that stands for a node, or None for a real one."""
        if self.plan.environment.lab.nodes == "directories":
            return str(self.project.node_root(self.name, node))
        return None


def open_cluster(project: Project, name: str) -> Cluster:
    """Load an environment, hold it against the rules, and plan it.

    Raises:
        InvalidInput: With every error.
    """
    loaded = load(project.root, name)
    check(loaded)
    return Cluster(project, loaded, build(loaded.environment, loaded.hardware))


def saved_outputs(cluster: Cluster) -> ClusterOutputs | None:
    """What the cloud decided at the last up; None before it."""
    saved = read_json(cluster.project.outputs(cluster.name))
    return None if saved is None else ClusterOutputs.model_validate(saved)


def save_outputs(cluster: Cluster, outputs: ClusterOutputs) -> None:
    """Keep the outputs, so that the playbooks need neither engine nor passphrase."""
    path = cluster.project.outputs(cluster.name)
    write_json(path, outputs.model_dump(mode="json", by_alias=True))


@dataclass(frozen=True, slots=True)
class Engines:
    """What the cloud part of a command works with."""

    stack: "Stack"
    variables: Mapping[str, str]

    @property
    def backend(self) -> str:
        """URL of the state backend."""
        return self.variables["PULUMI_BACKEND_URL"]


@contextmanager
def locked(cluster: Cluster, command: str) -> Iterator[None]:
    """Hold the environment's lock."""
    with lock.held(cluster.project.run(cluster.name), cluster.name, command):
        yield


def engines(cluster: Cluster, say: Say) -> Engines:
    """Find or build the engine, start the simulated cloud, select the stack.

    Raises:
        Failure: One of them is not to be had.
    """
    from tools.processes import adopt_orphans  # noqa: PLC0415 - the cloud part's alone
    from vela.operate.stack import Stack  # noqa: PLC0415

    engine = find_engine(say)
    variables = variables_of(cluster, engine)
    # after the simulated cloud was started, which is to outlive us
    adopt_orphans()
    log = Path(variables["VELA_PROVIDER_LOG"])
    private(log.parent)
    log.write_text("", encoding="utf-8")
    return Engines(
        Stack(
            cluster.project.root,
            cluster.name,
            variables,
            after=lambda: _reap(engine),
            why=lambda: _last_panic(log),
        ),
        variables,
    )


def find_engine(say: Say) -> "Engine":
    """The engine, found or built.

    Raises:
        Failure: A part is missing and cannot be built.
    """
    from tools.engine import EngineError, ensure  # noqa: PLC0415

    try:
        return ensure(say)
    except EngineError as error:
        message, _, rest = str(error).partition("\n")
        raise Failure(message, "", rest) from None


def variables_of(cluster: Cluster, engine: "Engine") -> dict[str, str]:
    """Environment of the engine: where it lies, its backend, its passphrase, its cloud.

    What a person has set goes before our defaults.
    """
    project = cluster.project
    private(project.state / "state")
    variables = {
        **engine.environment(),
        "PULUMI_BACKEND_URL": os.environ.get(
            "PULUMI_BACKEND_URL", f"file://{project.state / 'state'}"
        ),
        "VELA_PROVIDER_LOG": str(project.run(cluster.name) / "provider.log"),
        **lab.cloud_environment(project, cluster.plan.environment),
    }
    if not {"PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"} & set(os.environ):
        variables["PULUMI_CONFIG_PASSPHRASE_FILE"] = str(_passphrase(project, cluster.name))
    return variables


def _passphrase(project: Project, name: str) -> Path:
    """Passphrase of the state's secrets, made once for a clone. Our state holds none."""
    path = project.state / "passphrase"
    if not path.exists():
        write(path, secrets.token_urlsafe(32) + "\n")
        # the salt of a passphrase that is gone, left by a .vela that was deleted
        settings = project.root / f"Pulumi.{name}.yaml"
        if settings.is_file():
            lines = settings.read_text(encoding="utf-8").splitlines(keepends=True)
            kept = [line for line in lines if not line.startswith("encryptionsalt:")]
            write(settings, "".join(kept)) if kept else settings.unlink()
    return path


def _reap(engine: "Engine") -> None:
    from tools.engine import reap_providers  # noqa: PLC0415

    reap_providers(engine)


def _last_panic(log: Path) -> str | None:
    from tools.engine import last_panic  # noqa: PLC0415

    return last_panic(log)


def need_outputs(cluster: Cluster) -> ClusterOutputs:
    """Saved outputs.

    Raises:
        Failure: There are none yet.
    """
    outputs = saved_outputs(cluster)
    if outputs is None:
        message = f"there are no saved outputs of {cluster.name}"
        raise Failure(message, f"run vela up {cluster.name} first")
    return outputs
