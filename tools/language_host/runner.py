"""Runs one Pulumi program; its settings come as JSON on standard input."""

import asyncio
import json
import logging
import runpy
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

import pulumi
from pulumi import log
from pulumi.runtime import Settings, configure
from pulumi.runtime.config import set_all_config
from pulumi.runtime.stack import run_in_stack

BAIL = 32


def main() -> int:
    """Run the program, and give its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settings: dict[str, Any] = json.load(sys.stdin)
    # failed outputs are reported below, once; asyncio would print each again
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    set_all_config(settings["config"], settings["secret_keys"])
    configure(
        Settings(
            project=settings["project"],
            stack=settings["stack"],
            organization=settings["organization"],
            monitor=settings["monitor"],
            engine=settings["engine"],
            parallel=settings["parallel"],
            dry_run=settings["dry_run"],
        )
    )
    program = Path(settings["program"])
    folder = program if program.is_dir() else program.parent
    main_file = folder / "__main__.py" if program.is_dir() else program
    sys.path.insert(0, str(folder))
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(run_in_stack(lambda: _run(main_file)))
    except Exception as error:  # noqa: BLE001 - any error of the program is its user's to see
        return _report(error, loop)
    finally:
        sys.stdout.flush()
    return 0


def _run(main_file: Path) -> None:
    runpy.run_path(str(main_file), run_name="__main__")


def _report(error: Exception, loop: asyncio.AbstractEventLoop) -> int:
    """Tell the engine about an error: a message where it was meant as one, else where it was."""
    if isinstance(error, pulumi.RunError):
        text = str(error)
    else:
        lines = traceback.format_exception(error)
        text = "the program failed\n" + "".join(lines).rstrip()
    log.error(text)
    pending = asyncio.all_tasks(loop)
    if pending:
        loop.run_until_complete(asyncio.wait(pending, timeout=5))
    return BAIL


if __name__ == "__main__":
    sys.exit(main())
