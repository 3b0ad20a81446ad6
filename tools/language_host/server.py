"""Serves Pulumi's LanguageRuntime for Python programs.

The engine starts this program, reads a port from its standard output, and asks it to run the
project's program in a process of its own. What the program prints is passed on by that
process; errors are logged to the engine once, as the official host does.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent import futures
from importlib import metadata
from pathlib import Path

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import language_pb2 as language
from pulumi.runtime.proto import language_pb2_grpc, plugin_pb2

BAIL = 32
"""Exit code of a program whose error the engine was already told."""

LIST_PACKAGES = """
import json
from importlib.metadata import distributions
print(json.dumps(sorted({(found.name, found.version) for found in distributions()})))
"""

RUNNER = Path(__file__).resolve().parent / "runner.py"


class Host(language_pb2_grpc.LanguageRuntimeServicer):
    """One language host, for one run of the engine."""

    def __init__(self, engine: str, ended: threading.Event) -> None:
        """Take the engine's address, and what to set when the host shall end."""
        self._engine = engine
        self._program: subprocess.Popen[bytes] | None = None
        self._ended = ended

    def Handshake(  # noqa: N802 - the service's name
        self, request: language.LanguageHandshakeRequest, context: grpc.ServicerContext
    ) -> language.LanguageHandshakeResponse:
        """Learn the engine's address."""
        del context
        self._engine = request.engine_address
        return language.LanguageHandshakeResponse()

    def GetPluginInfo(  # noqa: N802
        self, request: empty_pb2.Empty, context: grpc.ServicerContext
    ) -> plugin_pb2.PluginInfo:
        """Say which version of the SDK this is."""
        del request, context
        return plugin_pb2.PluginInfo(version=metadata.version("pulumi"))

    def GetRequiredPackages(  # noqa: N802
        self, request: language.GetRequiredPackagesRequest, context: grpc.ServicerContext
    ) -> language.GetRequiredPackagesResponse:
        """Name no package: the SDK registers its own when the program runs."""
        del request, context
        return language.GetRequiredPackagesResponse()

    def GetRequiredPlugins(  # noqa: N802
        self, request: language.GetRequiredPluginsRequest, context: grpc.ServicerContext
    ) -> language.GetRequiredPluginsResponse:
        """As above, for older engines."""
        del request, context
        return language.GetRequiredPluginsResponse()

    def RuntimeOptionsPrompts(  # noqa: N802
        self, request: language.RuntimeOptionsRequest, context: grpc.ServicerContext
    ) -> language.RuntimeOptionsResponse:
        """Ask nothing."""
        del request, context
        return language.RuntimeOptionsResponse()

    def About(  # noqa: N802
        self, request: language.AboutRequest, context: grpc.ServicerContext
    ) -> language.AboutResponse:
        """Say which interpreter runs programs."""
        del context
        python = interpreter(request.info)
        done = subprocess.run([python, "--version"], capture_output=True, text=True, check=False)
        version = done.stdout.strip().removeprefix("Python ")
        return language.AboutResponse(
            executable=python, version=version, metadata={"host": "vela's stand-in"}
        )

    def GetProgramDependencies(  # noqa: N802
        self, request: language.GetProgramDependenciesRequest, context: grpc.ServicerContext
    ) -> language.GetProgramDependenciesResponse:
        """List the packages of the program's interpreter."""
        del context
        listing = subprocess.run(
            [
                interpreter(request.info),
                "-c",
                LIST_PACKAGES,
            ],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        found = [
            language.DependencyInfo(name=name, version=version)
            for name, version in json.loads(listing or "[]")
        ]
        return language.GetProgramDependenciesResponse(dependencies=found)

    def InstallDependencies(  # noqa: N802
        self, request: language.InstallDependenciesRequest, context: grpc.ServicerContext
    ) -> Iterator[language.InstallDependenciesResponse]:
        """Install nothing; say who does."""
        del request, context
        yield language.InstallDependenciesResponse(stdout=b"dependencies: run make setup\n")

    def Run(  # noqa: N802
        self, request: language.RunRequest, context: grpc.ServicerContext
    ) -> language.RunResponse:
        """Run the program to its end."""
        settings = {
            "project": request.project,
            "stack": request.stack,
            "organization": request.organization,
            "monitor": request.monitor_address,
            "engine": self._engine,
            "parallel": request.parallel,
            "dry_run": request.dryRun,
            "config": dict(request.config),
            "secret_keys": list(request.configSecretKeys),
            "program": str(Path(request.info.program_directory) / request.info.entry_point),
        }
        process = subprocess.Popen(
            [interpreter(request.info), str(RUNNER)],
            cwd=request.pwd or None,
            stdin=subprocess.PIPE,
        )
        self._program = process
        context.add_callback(self._stop)
        if process.stdin:
            # not by argument or environment: configuration may hold secrets
            process.stdin.write(json.dumps(settings).encode())
            process.stdin.close()
        code = process.wait()
        self._program = None
        if code == BAIL:
            return language.RunResponse(bail=True)
        error = "" if code == 0 else f"the program ended with exit code {code}"
        return language.RunResponse(error=error)

    def Cancel(  # noqa: N802
        self, request: empty_pb2.Empty, context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        """End the program, and then this host: the engine waits for that."""
        del request, context
        self._stop()
        self._ended.set()
        return empty_pb2.Empty()

    def _stop(self) -> None:
        if self._program and self._program.poll() is None:
            self._program.terminate()


def interpreter(info: language.ProgramInfo) -> str:
    """The interpreter of the project's virtual environment, else our own."""
    virtualenv = dict(info.options).get("virtualenv")
    if isinstance(virtualenv, str) and virtualenv:
        root = Path(info.root_directory or ".")
        python = root / virtualenv / "bin" / "python"
        if python.is_file():
            return str(python)
    return sys.executable


def main() -> int:
    """Serve until the engine goes."""
    # Ctrl-C reaches the whole group: the engine decides what ends, and asks us to
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    engine = next((a for a in sys.argv[1:] if ":" in a and not a.startswith("-")), "")
    ended = threading.Event()
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=8),
        options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)],
    )
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(Host(engine, ended), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)  # noqa: T201 - the engine reads it
    parent = os.getppid()
    # the engine may also end without asking us to
    while not ended.wait(1) and os.getppid() == parent:
        pass
    server.stop(0.2).wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
