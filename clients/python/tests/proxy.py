"""A proxy between client and server that refuses requests and loses connections, as told."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class Proxy:
    """Passes requests on; `plan` says what happens to the next ones.

    An entry is a status (with headers, and a code) to answer without passing on, `"lost before"` or
    `"lost after"` the server carried the request out, or None.
    """

    def __init__(self, target: str) -> None:
        self.plan: list = []
        self.answers: dict[str, tuple[str, bytes]] = {}
        """Answers of paths that the server cannot answer: content type and body."""
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.bodies: list[bytes] = []
        address = urlsplit(target)
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                proxy.seen.append((self.command, self.path, dict(self.headers)))
                proxy.bodies.append(body)
                step = proxy.plan.pop(0) if proxy.plan else None
                if step == "lost before":
                    self.lose()
                    return
                if isinstance(step, tuple):
                    error = {"detail": "refused by the test", "code": "".join(step[2:])}
                    self.answer(step[0], step[1], json.dumps(error).encode())
                    return
                if self.path in proxy.answers:
                    content_type, content = proxy.answers[self.path]
                    self.answer(200, {"Content-Type": content_type}, content)
                    return
                upstream = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
                upstream.request(self.command, self.path, body, dict(self.headers))
                answer = upstream.getresponse()
                if answer.getheader("Content-Type") == "text/event-stream":
                    self.stream(answer)
                    upstream.close()
                    return
                content = answer.read()
                upstream.close()
                if step == "lost after":
                    self.lose()
                    return
                kept = {
                    k: v
                    for k, v in answer.getheaders()
                    if k.lower() not in ("transfer-encoding", "connection")
                }
                self.answer(answer.status, kept, content)

            do_GET = do_POST = do_PUT = do_PATCH = handle_any  # noqa: N815

            def stream(self, answer: http.client.HTTPResponse) -> None:
                """Pass events on as they come, until the client leaves."""
                self.close_connection = True
                self.send_response(answer.status)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                with contextlib.suppress(OSError):
                    while line := answer.readline():
                        self.wfile.write(line)

            def lose(self) -> None:
                self.close_connection = True
                self.connection.close()

            def answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    if name.lower() != "content-length":
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Keep the output of the tests clean."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """A connection that a test loses is no error."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
