"""Starts and stops the stand-ins, as programs of their own: product code imports none."""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from vela.model.environment import Environment
from vela.operate.errors import Failure
from vela.operate.project import Project, private

SECONDS_TO_START = 30


def cloud_environment(project: Project, environment: Environment) -> Mapping[str, str]:
    """Variables that lead Pulumi's provider and IBM's client to the environment's cloud.

    Starts the simulated cloud where the environment asks for it; empty for the real one.

    Raises:
        Failure: The simulator does not start.
    """
    if environment.lab.cloud != "simulated":
        return {}
    answer = simulator(project, "start")
    return {str(key): str(value) for key, value in answer["environment"].items()}


def simulator(project: Project, command: str) -> dict[str, Any]:
    """Run ``python -m lab.cloud COMMAND`` on the project's simulator.

    Raises:
        Failure: It failed; with its last words.
    """
    arguments = [sys.executable, "-m", "lab.cloud", command]
    arguments += ["--dir", str(private(project.simulator))]
    try:
        done = subprocess.run(
            arguments,
            cwd=project.root,
            capture_output=True,
            text=True,
            timeout=SECONDS_TO_START,
            check=False,
        )
    except subprocess.TimeoutExpired:
        message = f"the simulated cloud did not answer within {SECONDS_TO_START} s"
        raise Failure(message, f"see the logs in {project.simulator}") from None
    if done.returncode:
        raise Failure(
            f"the simulated cloud could not {command}",
            f"see the logs in {project.simulator}",
            done.stderr.strip()[-2000:],
        )
    answer: dict[str, Any] = json.loads(done.stdout or "{}")
    return answer


def is_empty(project: Project) -> bool:
    """Whether the simulated cloud holds no VPC of any environment."""
    counts = simulator(project, "status").get("counts", {})
    return not counts.get("vpcs")
