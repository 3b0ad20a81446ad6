"""Builds the parts of the engine from pinned Go modules, once for each version and machine."""

import fcntl
import hashlib
import os
import platform
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).resolve().parent / "engine"
SECONDS_BETWEEN_WORDS = 30
LINES_OF_A_FAILURE = 25


@dataclass(frozen=True, slots=True)
class Part:
    """A program that can be built.

    Attributes:
        title: For people.
        module: Folder below tools/engine with its go.mod.
        package: Go package of its main function.
        binary: Name of the program.
        release: Version without the v, as the program's users write it.
        flags: Build flags besides ours.
        links: Linker flags besides ours.
        minutes: How long a cold build takes on two cores.
    """

    title: str
    module: str
    package: str
    binary: str
    release: str
    flags: tuple[str, ...]
    links: tuple[str, ...]
    minutes: float

    @property
    def key(self) -> str:
        """Digest of all that the program is made from."""
        digest = hashlib.sha256()
        for name in ("go.mod", "go.sum"):
            digest.update((MODULES / self.module / name).read_bytes())
        digest.update("\0".join([self.package, *self.flags, *self.links, machine()]).encode())
        return digest.hexdigest()[:16]

    def path(self, folder: Path) -> Path:
        """Where the program is once built."""
        return folder / f"{self.module}-{self.release}-{self.key}" / self.binary


CLI = Part(
    title="the Pulumi command line",
    module="pulumi",
    package="github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
    binary="pulumi",
    release="3.274.1",
    flags=("-tags", "osusergo,grpcnotrace"),
    # without it the Automation API cannot read the version
    links=("-X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v3.274.1",),
    minutes=7,
)
BRIDGE = Part(
    title="Pulumi's bridge",
    module="bridge",
    package="github.com/pulumi/pulumi-terraform-bridge/v3/dynamic",
    binary="pulumi-resource-terraform-provider",
    # a published release of the plugin: the SDK names it, and others' engines install it
    release="1.1.0",
    flags=(),
    links=(
        "-X github.com/pulumi/pulumi-terraform-bridge/v3/dynamic/version.version=v1.1.0",
        "-X google.golang.org/protobuf/reflect/protoregistry.conflictPolicy=ignore",
    ),
    minutes=4,
)
PROVIDER = Part(
    title="IBM's provider",
    module="provider",
    package="github.com/IBM-Cloud/terraform-provider-ibm",
    binary="terraform-provider-ibm",
    release="1.89.0",
    flags=(),
    links=(),
    minutes=8,
)
GENERATOR = Part(
    title="the SDK generator",
    module="gensdk",
    package="vela.invalid/engine/gensdk",
    binary="gensdk",
    release="3.274.1",
    flags=(),
    links=(),
    minutes=3,
)


def cache_folder() -> Path:
    """Folder of built programs, shared by every clone of this user."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "vela" / "engine"


def machine() -> str:
    """Operating system and processor, as Go and OpenTofu write them."""
    processor = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return f"{platform.system().lower()}_{processor}"


def built(part: Part, folder: Path, say: Callable[[str], None]) -> Path:
    """Build a part, unless it is there; two builds at once wait for each other.

    Raises:
        subprocess.CalledProcessError: The build failed; its output holds the last lines, and
            where the whole log is.
    """
    path = part.path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{part.module}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process builds {part.title}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            _go_build(part, path, folder / f"{part.module}.log", say)
    return path


def _go_build(part: Part, path: Path, log: Path, say: Callable[[str], None]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    links = " ".join(["-s", "-w", *part.links])
    command = ["go", "build", "-mod=readonly", "-trimpath", *part.flags, "-ldflags", links]
    command += ["-o", str(temporary), part.package]
    begun = spoken = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            command,
            cwd=MODULES / part.module,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "GOFLAGS": "-buildvcs=false"},
        )
        try:
            while process.poll() is None:
                time.sleep(0.2)
                if time.monotonic() - spoken > SECONDS_BETWEEN_WORDS:
                    spoken = time.monotonic()
                    minutes = (spoken - begun) / 60
                    say(f"  {part.title}: {minutes:.1f} of some {part.minutes:.0f} minutes")
        except BaseException:
            process.terminate()
            process.wait()
            temporary.unlink(missing_ok=True)
            raise
    if process.returncode:
        temporary.unlink(missing_ok=True)
        lines = log.read_text(encoding="utf-8").splitlines()[-LINES_OF_A_FAILURE:]
        tail = "\n".join([*lines, f"the whole log: {log}"])
        raise subprocess.CalledProcessError(process.returncode, command, output=tail)
    temporary.replace(path)
    say(f"  {part.title} {part.release}: built in {time.monotonic() - begun:.0f} s")
