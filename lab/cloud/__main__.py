"""``python -m lab.cloud``: the simulated IBM Cloud alone."""

import argparse
import fcntl
import json
import os
import signal
import sys
import threading
from pathlib import Path

from lab.cloud import control, environment


def main() -> int:
    """Run one command; answers are JSON on standard output."""
    parser = argparse.ArgumentParser(prog="python -m lab.cloud", description=__doc__)
    parser.add_argument("command", choices=("start", "stop", "status", "serve"))
    parser.add_argument("--dir", type=Path, required=True, help="folder of state, log and port")
    parser.add_argument("--port", type=int, default=0, help="port; by default the last one used")
    arguments = parser.parse_args()
    folder: Path = arguments.dir.resolve()
    try:
        match arguments.command:
            case "serve":
                return serve(folder, arguments.port)
            case "start":
                answer = control.start(folder)
            case "stop":
                answer = control.stop(folder)
            case _:
                answer = control.status(folder)
    except control.ControlError as error:
        print(f"simulated cloud: {error}", file=sys.stderr)  # noqa: T201
        return 1
    print(json.dumps(answer, indent=2))  # noqa: T201
    return 0


def serve(folder: Path, port: int) -> int:
    """Serve until SIGTERM or Ctrl-C; refuses a second server on one folder."""
    from lab.cloud.server import Simulator  # noqa: PLC0415 - start and stop need none of it

    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"a server holds {folder} already", file=sys.stderr)  # noqa: T201
        return 1
    ready = folder / "server.json"
    state, log = folder / "state.json", folder / "requests.log"
    try:
        server = Simulator(port or _last_port(ready), state, log)
    except OSError:
        server = Simulator(0, state, log)
    content = {
        "url": server.url,
        "pid": os.getpid(),
        "environment": environment(server.url),
    }
    temporary = ready.with_suffix(".new")
    temporary.write_text(json.dumps(content), encoding="utf-8")
    temporary.chmod(0o600)
    temporary.replace(ready)

    def stop(*_: object) -> None:
        threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    server.serve_forever(poll_interval=0.1)
    server.close()
    ready.unlink(missing_ok=True)
    (folder / "port").write_text(server.url.rsplit(":", 1)[1], encoding="utf-8")
    return 0


def _last_port(ready: Path) -> int:
    """The port of the last server of a folder, ended in good order or killed."""
    try:
        return int((ready.parent / "port").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        pass
    try:
        url = json.loads(ready.read_text(encoding="utf-8"))["url"]
        return int(url.rsplit(":", 1)[1])
    except (OSError, ValueError, KeyError):
        return 0


if __name__ == "__main__":
    sys.exit(main())
