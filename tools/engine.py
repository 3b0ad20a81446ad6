"""The Pulumi engine, its bridge and IBM's provider: found where they are, else built.

``python3 -m tools.engine ensure|status|env``. Uses the standard library alone, so that it runs
before anything is installed.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.build import BRIDGE, CLI, PROVIDER, Part, built, cache_folder, machine
from tools.processes import end_leftovers, last_panic

__all__ = ["Engine", "EngineError", "ensure", "find", "last_panic", "reap_providers"]

OLDEST = (3, 249, 0)
"""The generated SDK calls ``register_package``, which older engines do not know how to serve."""

NEWEST_MAJOR = 3
LANGUAGE_HOST = "pulumi-language-python"
HERE = Path(__file__).resolve().parent
OVERLAY = (".vela", "engine", "bin")

Say = Callable[[str], None]


class EngineError(Exception):
    """The engine is not to be had; the message says the ways on."""


@dataclass(frozen=True, slots=True)
class Found:
    """A program: where it is, and where it came from."""

    path: Path
    origin: str


@dataclass(frozen=True, slots=True)
class Engine:
    """A complete tool chain.

    Attributes:
        cli: The ``pulumi`` command line.
        bridge: Pulumi's bridge to Terraform providers.
        provider: IBM's Terraform provider, which the bridge runs.
        language_host: The official Python language host, or None where ours stands in.
    """

    cli: Found
    bridge: Found
    provider: Found
    language_host: Path | None

    def environment(self) -> dict[str, str]:
        """Variables for every process that runs the engine.

        ``VELA_PROVIDER_LOG`` may be added: the provider's standard error goes there.
        """
        overlay = _overlay(self)
        folders = [str(overlay / "bin"), *os.environ.get("PATH", "").split(os.pathsep)]
        return {
            "PATH": os.pathsep.join(dict.fromkeys(folders)),
            "PULUMI_DYNAMIC_TF_PLUGIN_CACHE_DIR": str(overlay / "providers"),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_DISABLE_REGISTRY_RESOLVE": "true",
            "PULUMI_PARALLEL_DIFF": "true",
            # without it provider and bridge write a trace of megabytes at each run
            "TF_LOG": "ERROR",
            "VELA_PYTHON": sys.executable,
        }


def version_of(cli: Path) -> tuple[int, int, int] | None:
    """Version of a ``pulumi`` program; None where it does not say one."""
    try:
        text = subprocess.run(
            [cli, "version"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"},
        ).stdout
        major, minor, patch = text.strip().lstrip("v").split("-")[0].split(".")
        return int(major), int(minor), int(patch)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def _which(name: str) -> str | None:
    """A program on PATH, our own overlay left out: ``eval "$(vela env)"`` puts that there."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    others = [folder for folder in folders if Path(folder).parts[-3:] != OVERLAY]
    return shutil.which(name, path=os.pathsep.join(others))


def overlay_folder() -> Path:
    """Folder of links to the parts: each clone has its own, since its language host differs."""
    return HERE.parent / Path(*OVERLAY).parent


def find_cli() -> tuple[Found | None, str]:
    """``pulumi`` on PATH, and why it is not used where it is not."""
    path = _which("pulumi")
    if path is None:
        return None, "there is no pulumi on PATH"
    version = version_of(Path(path))
    said = ".".join(map(str, version)) if version else "unknown"
    if version is None or version < OLDEST or version[0] > NEWEST_MAJOR:
        oldest = ".".join(map(str, OLDEST))
        return None, f"{path} has version {said}; {oldest} or newer below 4 is needed"
    return Found(Path(path), f"found, version {said}"), ""


def _find_bridge() -> Found | None:
    path = _which(BRIDGE.binary)
    if path:
        return Found(Path(path), "found on PATH")
    plugins = _pulumi_home() / "plugins"
    cached = plugins / f"resource-terraform-provider-v{BRIDGE.release}" / BRIDGE.binary
    return Found(cached, "found in Pulumi's cache") if cached.is_file() else None


def _find_provider() -> Found | None:
    cached = _pulumi_home() / "dynamic_tf_plugins" / _provider_path()
    return Found(cached, "found in Pulumi's cache") if cached.is_file() else None


def _pulumi_home() -> Path:
    return Path(os.environ.get("PULUMI_HOME", Path.home() / ".pulumi"))


def _provider_path() -> Path:
    """Path of IBM's provider in a plugin cache, as OpenTofu lays it out."""
    folder = Path("registry.opentofu.org/ibm-cloud/ibm") / PROVIDER.release / machine()
    return folder / f"terraform-provider-ibm_v{PROVIDER.release}"


def find(folder: Path | None = None) -> dict[str, Found | None]:
    """Each part where it was found, or None."""
    folder = folder or cache_folder()
    parts: dict[str, Found | None] = {
        "pulumi": find_cli()[0],
        "bridge": _find_bridge(),
        "provider": _find_provider(),
    }
    for name, part in (("pulumi", CLI), ("bridge", BRIDGE), ("provider", PROVIDER)):
        path = part.path(folder)
        if parts[name] is None and path.is_file():
            parts[name] = Found(path, f"built, version {part.release}")
    return parts


def ensure(say: Say) -> Engine:
    """Find the tool chain, and build what is missing.

    Args:
        say: Takes a line at the beginning of long work, and every half minute during it.

    Raises:
        EngineError: A part is missing and cannot be built.
    """
    folder = cache_folder()
    parts = find(folder)
    wanted = {"pulumi": CLI, "bridge": BRIDGE, "provider": PROVIDER}
    missing = {name: part for name, part in wanted.items() if parts[name] is None}
    if missing:
        _announce(list(missing.values()), say)
        for name, part in missing.items():
            parts[name] = Found(_build(part, folder, say), f"built, version {part.release}")
    cli, bridge, provider = parts["pulumi"], parts["bridge"], parts["provider"]
    if cli is None or bridge is None or provider is None:
        message = "the engine is incomplete after its build"
        raise EngineError(message)
    return Engine(cli, bridge, provider, _official_language_host(cli))


def _official_language_host(cli: Found) -> Path | None:
    beside = cli.path.resolve().parent / LANGUAGE_HOST
    if beside.is_file():
        return beside
    path = _which(LANGUAGE_HOST)
    return Path(path) if path else None


def _announce(parts: list[Part], say: Say) -> None:
    go = shutil.which("go")
    if go is None:
        names = ", ".join(part.binary for part in parts)
        why = find_cli()[1]
        message = (
            f"the Pulumi engine is not here ({why or 'pulumi is there'}; missing: {names}) "
            "and there is no Go to build it with\n"
            "two ways on:\n"
            "  1. install the Pulumi command line, version 3.249 or newer: "
            "pulumi.com/docs/iac/download-install; it fetches the rest by itself\n"
            "  2. install Go 1.25 or newer: go.dev/doc/install; then run this again, "
            "which builds all of it in about 20 minutes"
        )
        raise EngineError(message)
    minutes = sum(part.minutes for part in parts)
    names = ", ".join(f"{part.title} {part.release}" for part in parts)
    say(f"building {names} with Go, once for this machine: some {minutes:.0f} minutes on two cores")


def _build(part: Part, folder: Path, say: Say) -> Path:
    try:
        return built(part, folder, say)
    except subprocess.CalledProcessError as error:
        message = f"building {part.binary} failed\n{error.output}"
        raise EngineError(message) from None


def _overlay(engine: Engine) -> Path:
    """A folder of links to the parts, with the provider behind a script that keeps its words.

    When the provider panics, the bridge says no more than that the connection ended; the
    reason is on the provider's standard error.
    """
    overlay = overlay_folder()
    commands = overlay / "bin"
    commands.mkdir(parents=True, exist_ok=True)
    host = engine.language_host or HERE / "language_host" / LANGUAGE_HOST
    for name, target in (
        ("pulumi", engine.cli.path),
        (BRIDGE.binary, engine.bridge.path),
        (LANGUAGE_HOST, host),
    ):
        _link(commands / name, target)
    wrapper = overlay / "providers" / _provider_path()
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    real = shlex.quote(str(engine.provider.path))
    text = f'#!/bin/sh\nexec {real} "$@" 2>>"${{VELA_PROVIDER_LOG:-/dev/null}}"\n'
    if not wrapper.is_file() or wrapper.read_text(encoding="utf-8") != text:
        temporary = wrapper.with_suffix(f".{os.getpid()}")
        temporary.write_text(text, encoding="utf-8")
        temporary.chmod(0o755)
        temporary.replace(wrapper)
    return overlay


def _link(link: Path, target: Path) -> None:
    if link.is_symlink() and link.readlink() == target:
        return
    temporary = link.with_name(f"{link.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)


def reap_providers(engine: Engine) -> int:
    """End provider and bridge processes that an operation of ours left behind.

    The bridge ends without stopping the provider that it started, so each operation leaves
    one, of some 200 MB.

    Returns:
        How many were ended.
    """
    names = {engine.provider.path.name, engine.bridge.path.name, "terraform-provider-ibm"}
    return end_leftovers({name[:15] for name in names})


def status() -> Mapping[str, str]:
    """Where each part is, in words."""
    words = {}
    for name, found in find().items():
        words[name] = f"{found.path} ({found.origin})" if found else "missing: will be built"
    cli = find()["pulumi"]
    host = _official_language_host(cli) if cli else None
    words["language host"] = str(host) if host else f"ours, {HERE / 'language_host'}"
    return words


def main() -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="python3 -m tools.engine", description=__doc__)
    parser.add_argument("command", choices=("ensure", "status", "env"))
    command = parser.parse_args().command

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)  # noqa: T201

    try:
        if command == "ensure":
            ensure(say)
        if command == "env":
            for key, value in sorted(ensure(say).environment().items()):
                print(f"export {key}={shlex.quote(value)}")  # noqa: T201
            return 0
    except EngineError as error:
        say(f"error: {error}")
        return 1
    for name, words in status().items():
        print(f"{name:14} {words}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
