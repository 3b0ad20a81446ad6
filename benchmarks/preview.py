"""Engine preview of ``vela`` from 12 to 48 racks: time, and peak memory of what runs.

Needs the engine (``make engine``); the cloud is the simulated one.
"""

import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = {"pulumi": "engine", "pulumi-resource": "bridge", "terraform-provi": "provider"}
PARTS = ("Pulumi.yaml", "__main__.py", "components", "environments", "hardware", "lab",
         "templates", "tools", "vela")  # fmt: skip


def watch(peaks: dict[str, int], done: threading.Event) -> None:
    """Keep the largest resident size of each program, kB."""
    while not done.wait(0.2):
        listing = subprocess.run(
            ["ps", "-A", "-o", "comm=,rss="], capture_output=True, text=True, check=True
        ).stdout
        for line in listing.splitlines():
            name, size = line.rsplit(None, 1)
            part = PROGRAMS.get(name.strip()[:15])
            if part:
                peaks[part] = max(peaks.get(part, 0), int(size))


def preview(racks: int) -> tuple[float, dict[str, int]]:
    """Preview an environment that does not exist yet."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for part in PARTS:
            source = ROOT / part
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, root / part)
        (root / ".venv").symlink_to(sys.prefix)
        path = root / "environments" / "vela.yaml"
        text = path.read_text(encoding="utf-8").replace("racks: 48", f"racks: {racks}")
        start = text.index("  overrides:")
        end = text.index("guests:")
        path.write_text(text[:start] + text[end:], encoding="utf-8")
        peaks: dict[str, int] = {}
        done = threading.Event()
        watcher = threading.Thread(target=watch, args=(peaks, done))
        watcher.start()
        begun = time.perf_counter()
        command = [sys.executable, "-m", "vela.cli"]
        ended = subprocess.run(
            [*command, "plan", "vela", "--json"], cwd=root, stdout=subprocess.DEVNULL, check=False
        )
        elapsed = time.perf_counter() - begun
        done.set()
        watcher.join()
        subprocess.run([*command, "lab", "down"], cwd=root, stdout=subprocess.DEVNULL, check=True)
        if ended.returncode != 3:
            message = f"vela plan ended with {ended.returncode}"
            raise SystemExit(message)
        return elapsed, peaks


def main() -> None:
    """Print the figures."""
    first = 0.0
    for racks in (12, 24, 48):
        elapsed, peaks = preview(racks)
        sizes = ", ".join(f"{part} {size // 1024} MB" for part, size in sorted(peaks.items()))
        growth = f"  x{elapsed / first:4.2f}" if first else ""
        first = elapsed
        print(f"{racks * 4:4} hosts  {elapsed:6.1f} s{growth}  {sizes}", flush=True)
    own = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(f"largest process of any run: {own} MB")


if __name__ == "__main__":
    main()
