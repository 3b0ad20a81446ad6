"""The simulator as an HTTP server on 127.0.0.1."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Mapping
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
        server, cloud = self.server, self.server.cloud
        match self.command, path:
            case "GET", "/_lab/state":
                waiting = [asdict(fault) for fault in server.faults.waiting]
                counts = cloud.store.counts()
                return Answer(200, {"url": server.url, "counts": counts, "faults": waiting})
            case "POST", "/_lab/faults":
                try:
                    return Answer(201, asdict(server.faults.add(body or {})))
                except (TypeError, ValueError) as error:
                    raise ApiError(400, "invalid_value", str(error)) from None
            case "DELETE", "/_lab/faults":
                server.faults.clear()
                return Answer(204)
            case "POST", "/_lab/fail":
                cloud.failing.append(str((body or {}).get("kind")))
                return Answer(204)
            case "PUT", "/_lab/quotas":
                cloud.quotas |= {str(k): int(v) for k, v in (body or {}).items()}
                return Answer(200, cloud.quotas)
            case "PUT", "/_lab/polls":
                cloud.polls = int((body or {}).get("polls", 1))
                return Answer(200, {"polls": cloud.polls})
            case "POST", "/_lab/reset":
                cloud.store.clear()
                platform.seed(cloud)
                compute.seed(cloud)
                return Answer(204)
        raise ApiError(404, "not_found", f"{path} is not a path of the simulator")

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
