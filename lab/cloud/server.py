"""The simulator as an HTTP server on 127.0.0.1."""

import contextlib
import json
import socket
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

# the modules register their routes
from lab.cloud import (  # noqa: F401
    acls,
    clusternet,
    compute,
    instances,
    interfaces,
    metal,
    platform,
    security,
    subnets,
)
from lab.cloud.api import Answer, ApiError, Cloud, Request, dispatch
from lab.cloud.faults import Fault, Faults
from lab.cloud.store import Store

LONGEST_BODY = 4_000_000


class Simulator(ThreadingHTTPServer):
    """A simulated cloud that listens."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port: int, state: Path | None, log: Path | None) -> None:
        """Listen on a port of 127.0.0.1, 0 for any free one."""
        super().__init__(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.cloud = Cloud(Store(state), self.url)
        self.faults = Faults()
        self._log = log.open("a", encoding="utf-8", buffering=1) if log else None
        self._log_lock = threading.Lock()
        platform.seed(self.cloud)
        compute.seed(self.cloud)

    def note(self, method: str, path: str, status: int, begun: float) -> None:
        """Write a request into the log: never a header or a body."""
        if self._log:
            entry = {
                "time": round(time.time(), 3),
                "method": method,
                "path": path,
                "status": status,
                "ms": round((time.monotonic() - begun) * 1000, 1),
            }
            with self._log_lock:
                self._log.write(json.dumps(entry) + "\n")

    def close(self) -> None:
        """Stop, with the state written."""
        self.server_close()
        self.cloud.store.close()
        if self._log:
            self._log.close()


class Handler(BaseHTTPRequestHandler):
    """Turns HTTP into requests, and answers into HTTP."""

    protocol_version = "HTTP/1.1"
    server: Simulator

    def setup(self) -> None:
        """Answer small requests at once."""
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().setup()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Keep standard error quiet; the log has every request."""

    def _handle(self) -> None:
        begun = time.monotonic()
        parts = urlsplit(self.path)
        try:
            body = self._body()
            answer = self._admin(parts.path, body) or self._faulty(parts.path, body)
        except ApiError as error:
            answer = Answer(error.status, error.body())
        except Exception:  # noqa: BLE001 - a defect of ours must not look like a lost connection
            traceback.print_exc()
            answer = Answer(500, ApiError(500, "simulator_defect", "see server.log").body())
        if answer is None:
            self.close_connection = True
            self.server.note(self.command, self.path, 0, begun)
            return
        self._send(answer)
        self.server.note(self.command, self.path, answer.status, begun)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _handle  # noqa: N815 - the base class's names

    def _body(self) -> Any:
        length = int(self.headers.get("Content-Length") or 0)
        if length > LONGEST_BODY:
            self.close_connection = True
            message = f"the body is larger than {LONGEST_BODY} bytes"
            raise ApiError(413, "too_large", message)
        raw = self.rfile.read(length)
        if not raw:
            return None
        if "form-urlencoded" in (self.headers.get("Content-Type") or ""):
            return dict(parse_qsl(raw.decode("utf-8", "replace"), keep_blank_values=True))
        try:
            return json.loads(raw)
        except ValueError:
            message = "the body is not JSON"
            raise ApiError(400, "invalid_json", message) from None

    def _faulty(self, path: str, body: Any) -> Answer | None:
        fault = self.server.faults.hit(self.command, path)
        if fault is None:
            return self._answer(path, body)
        if fault.kind == "stall":
            time.sleep(fault.seconds)
            return self._answer(path, body)
        if fault.kind == "lose":
            with contextlib.suppress(ApiError):
                self._answer(path, body)
        return _broken(fault)

    def _answer(self, path: str, body: Any) -> Answer:
        query = {k: v[-1] for k, v in parse_qs(urlsplit(self.path).query).items()}
        headers = {key.lower(): value for key, value in self.headers.items()}
        return dispatch(self.server.cloud, Request(self.command, path, query, body, headers))

    def _admin(self, path: str, body: Any) -> Answer | None:
        """The simulator's own paths, below ``/_lab/``."""
        if not path.startswith("/_lab/"):
            return None
        act = ADMIN.get((self.command, path))
        if act is None:
            raise ApiError(404, "not_found", f"{path} is not a path of the simulator")
        try:
            return act(self.server, body or {})
        except (TypeError, ValueError, KeyError) as error:
            raise ApiError(400, "invalid_value", str(error)) from None

    def _send(self, answer: Answer) -> None:
        raw = answer.body if isinstance(answer.body, bytes) else b""
        if answer.body is not None and not raw:
            raw = json.dumps(answer.body).encode()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.send_response(answer.status)
            for key, value in _headers(answer, raw).items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(raw)


def _headers(answer: Answer, raw: bytes) -> Mapping[str, str]:
    kind = {"Content-Type": "application/json"} if raw else {}
    return {**kind, "Content-Length": str(len(raw)), **answer.headers}


def _broken(fault: Fault) -> Answer | None:
    if fault.kind == "status":
        error = {
            "code": "simulated_fault",
            "message": f"a fault that was asked for: {fault.status}",
        }
        headers = {"Retry-After": "1"} if fault.status in {429, 503} else {}
        return Answer(fault.status, {"errors": [error], "trace": "simulated"}, headers)
    if fault.kind == "garbage":
        return Answer(200, b"<html>not what you asked for</html>")
    return None


def _state(server: Simulator, _: Mapping[str, Any]) -> Answer:
    waiting = [asdict(fault) for fault in server.faults.waiting]
    return Answer(
        200, {"url": server.url, "counts": server.cloud.store.counts(), "faults": waiting}
    )


def _add_fault(server: Simulator, body: Mapping[str, Any]) -> Answer:
    return Answer(201, asdict(server.faults.add(body)))


def _clear_faults(server: Simulator, _: Mapping[str, Any]) -> Answer:
    server.faults.clear()
    server.cloud.failing.clear()
    return Answer(204)


def _fail(server: Simulator, body: Mapping[str, Any]) -> Answer:
    server.cloud.failing.append(str(body["kind"]))
    return Answer(204)


def _quotas(server: Simulator, body: Mapping[str, Any]) -> Answer:
    server.cloud.quotas |= {str(key): int(value) for key, value in body.items()}
    return Answer(200, server.cloud.quotas)


def _polls(server: Simulator, body: Mapping[str, Any]) -> Answer:
    server.cloud.polls = int(body["polls"])
    return Answer(200, {"polls": server.cloud.polls})


def _reset(server: Simulator, _: Mapping[str, Any]) -> Answer:
    server.cloud.store.clear()
    platform.seed(server.cloud)
    compute.seed(server.cloud)
    return Answer(204)


ADMIN: Mapping[tuple[str, str], Callable[[Simulator, Mapping[str, Any]], Answer]] = {
    ("GET", "/_lab/state"): _state,
    ("POST", "/_lab/faults"): _add_fault,
    ("DELETE", "/_lab/faults"): _clear_faults,
    ("POST", "/_lab/fail"): _fail,
    ("PUT", "/_lab/quotas"): _quotas,
    ("PUT", "/_lab/polls"): _polls,
    ("POST", "/_lab/reset"): _reset,
}
