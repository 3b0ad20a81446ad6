"""Outcomes as JSON for a program."""

from typing import Any

from vela.operate.flow import Outcome


def outcome(result: Outcome, code: int) -> dict[str, Any]:
    """An outcome as plain data.

    Args:
        result: The outcome.
        code: Exit code of the command.
    """
    return {
        "schema": 1,
        "command": result.command,
        "environment": result.environment,
        "exit_code": code,
        "seconds": round(result.seconds, 3),
        "cloud": None
        if result.cloud is None
        else {
            "seconds": round(result.cloud.seconds, 3),
            "changes": [
                {"op": step.op, "type": step.type, "name": step.name, "properties": step.diffs}
                for step in result.cloud.changes
            ],
        },
        "nodes": None
        if result.nodes is None
        else {
            "seconds": round(result.nodes.seconds, 3),
            "files": result.nodes.files,
            "module_calls": result.nodes.calls,
            "states": {name: node.state for name, node in result.nodes.nodes.items()},
        },
        "findings": [finding.model_dump(mode="json") for finding in result.findings],
        "adopted": [
            {"type": item.type, "name": item.name, "id": item.id} for item in result.adopted
        ],
        "notes": result.notes,
        "clean": result.clean,
    }
