"""Start of the command line and ``vela validate vela``, beyond what Python itself costs."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 7


def seconds(arguments: Sequence[str]) -> float:
    """Median wall-clock time of a command, after one run to warm caches."""
    times = []
    for _ in range(ROUNDS + 1):
        begun = time.perf_counter()
        subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
        )
        times.append(time.perf_counter() - begun)
    return median(times[1:])


def main() -> None:
    """Print the figures."""
    empty = seconds(["-c", "pass"])
    pydantic = seconds(["-c", "import pydantic"])
    start = seconds(["-m", "vela.cli", "--help"])
    validate = seconds(["-m", "vela.cli", "validate", "vela"])
    print(f"python -c pass                {empty:6.3f} s")
    print(f"python -c 'import pydantic'   {pydantic:6.3f} s")
    print(f"vela --help                   {start:6.3f} s  goal 0.25 s")
    print(f"vela validate vela            {validate:6.3f} s")
    print(f"  beyond pydantic             {validate - pydantic:6.3f} s  goal 0.5 s")


if __name__ == "__main__":
    main()
