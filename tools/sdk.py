"""Generates ``sdks/ibm``, the Python SDK of IBM's provider, reduced to what is used.

``python -m tools.sdk generate|check``
"""

import argparse
import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.build import GENERATOR, PROVIDER, built, cache_folder
from tools.engine import Engine, EngineError, ensure

ROOT = Path(__file__).resolve().parent.parent
SDK = ROOT / "sdks" / "ibm"
RESOURCES = ROOT / "tools" / "sdk-resources.txt"
KEPT_FUNCTIONS = (
    # a method of the provider refers to it
    "pulumi:providers:ibm/terraformConfig",
    # the one data source of the program: resource groups are named, and taken by id
    "ibm:index/getResourceGroup:getResourceGroup",
)


def resources() -> list[str]:
    """Terraform names of what the SDK holds."""
    lines = RESOURCES.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def schema(engine: Engine, home: Path) -> dict[str, Any]:
    """The package schema of the pinned provider, resources of the list alone."""
    arguments = ["ibm-cloud/ibm", PROVIDER.release, "--include", ",".join(resources())]
    variables = {**os.environ, **engine.environment(), "PULUMI_HOME": str(home)}
    done = subprocess.run(
        [engine.cli.path, "package", "get-schema", engine.bridge.path, "--", *arguments],
        capture_output=True,
        text=True,
        env=variables,
        timeout=300,
        check=False,
    )
    if done.returncode:
        message = f"the provider gave no schema\n{done.stderr.strip()[-2000:]}"
        raise EngineError(message)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def reduce(full: dict[str, Any]) -> dict[str, Any]:
    """Drop data sources but those that are used, their types, and all descriptions."""
    small = _without_texts(full)
    small["functions"] = {k: v for k, v in small["functions"].items() if k in KEPT_FUNCTIONS}
    types = small.pop("types")
    used: set[str] = set()
    waiting = _references(small)
    while waiting:
        name = waiting.pop()
        if name not in used:
            used.add(name)
            waiting |= _references(types.get(name, {})) - used
    return {**small, "types": {name: types[name] for name in sorted(types) if name in used}}


def _without_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_texts(part)
            for key, part in value.items()
            if not (key in {"description", "deprecationMessage"} and isinstance(part, str))
        }
    if isinstance(value, list):
        return [_without_texts(part) for part in value]
    return value


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        found = set().union(*(_references(part) for part in value.values()))
        target = value.get("$ref")
        if isinstance(target, str) and target.startswith("#/types/"):
            found.add(target.removeprefix("#/types/").replace("%2F", "/"))
        return found
    if isinstance(value, list):
        return set().union(*(_references(part) for part in value))
    return set()


def generate(out: Path) -> None:
    """Generate the SDK into an empty folder."""
    engine = ensure(_say)
    generator = built(GENERATOR, cache_folder(), _say)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "schema.json"
        path.write_text(json.dumps(reduce(schema(engine, Path(folder)))), encoding="utf-8")
        subprocess.run([generator, path, out], check=True)
    project = out / "pyproject.toml"
    lines = project.read_text(encoding="utf-8").splitlines()
    # the generator names a README that it does not write
    kept = [line for line in lines if not line.strip().startswith("readme")]
    project.write_text("\n".join(kept) + "\n", encoding="utf-8")
    (out / "README.md").unlink(missing_ok=True)


def differences(one: Path, two: Path) -> list[str]:
    """Paths that differ between two folders, bytes compared; caches are not looked at."""
    names = {
        path.relative_to(folder)
        for folder in (one, two)
        for path in folder.rglob("*")
        if path.is_file() and not _is_cache(path)
    }
    return sorted(
        str(name)
        for name in names
        if not ((one / name).is_file() and (two / name).is_file())
        or not filecmp.cmp(one / name, two / name, shallow=False)
    )


def _is_cache(path: Path) -> bool:
    return any(
        part in {"__pycache__", "build"} or part.endswith(".egg-info") for part in path.parts
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def main() -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="python -m tools.sdk", description=__doc__)
    parser.add_argument("command", choices=("generate", "check"))
    command = parser.parse_args().command
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "ibm"
        try:
            generate(made)
        except EngineError as error:
            _say(f"error: {error}")
            return 1
        if command == "check":
            found = differences(SDK, made)
            for name in found:
                _say(f"sdks/ibm/{name} is not what the provider gives")
            _say(f"{len(found)} files differ" if found else "sdks/ibm is what the provider gives")
            return 1 if found else 0
        shutil.rmtree(SDK, ignore_errors=True)
        shutil.copytree(made, SDK)
    return 0


if __name__ == "__main__":
    sys.exit(main())
