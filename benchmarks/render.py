"""Time to plan and render every file of ``vela``, and what doubling the racks costs."""

import sys
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from vela.model.load import load  # noqa: E402
from vela.plan import build  # noqa: E402
from vela.render.cluster import bundles  # noqa: E402
from vela.render.templates import Templates  # noqa: E402

ROUNDS = 5


def seconds(racks: int) -> float:
    """Median time of plan and render with so many racks."""
    loaded = load(ROOT, "vela")
    hosts = loaded.environment.hosts.model_copy(update={"racks": racks, "overrides": {}})
    environment = loaded.environment.model_copy(update={"hosts": hosts})
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        plan = build(environment, loaded.hardware)
        bundles(plan, None, Templates(ROOT / "templates"), lambda _: None)
        times.append(time.perf_counter() - begun)
    return median(times)


def main() -> None:
    """Print the figures."""
    half, whole = seconds(24), seconds(48)
    print(f"24 racks, 96 hosts    {half:6.3f} s")
    print(f"48 racks, 192 hosts   {whole:6.3f} s  doubling {whole / half:4.2f}  goal 2.2")


if __name__ == "__main__":
    main()
