"""Deliveries verify with the public library of Standard Webhooks."""

from __future__ import annotations

import queue
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest
from conftest import KEY
from standardwebhooks.webhooks import Webhook, WebhookVerificationError


class Receiver:
    """A server that answers one status after the other, the last one for good."""

    def __init__(self, *statuses: int) -> None:
        self.requests: queue.Queue[tuple[dict[str, str], str]] = queue.Queue()
        receiver, answers = self, list(statuses)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                receiver.requests.put((dict(self.headers), body))
                self.send_response(answers.pop(0) if len(answers) > 1 else answers[0])
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def next(self) -> tuple[dict[str, str], str]:
        return self.requests.get(timeout=60)

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def api(server):
    headers = {"authorization": f"Bearer {KEY}"}
    with httpx.Client(
        base_url=f"{server.url}/api/v1", headers=headers, trust_env=False, timeout=60
    ) as client:
        yield client


@pytest.fixture
def receiver(request):
    receiver = Receiver(*getattr(request, "param", [204]))
    yield receiver
    receiver.stop()


def make(api, receiver, **fields):
    body = {"url": receiver.url, "events": ["*"], **fields}
    made = api.post("/webhooks", json=body)
    made.raise_for_status()
    return made.json()


@pytest.fixture
def webhook(api, receiver):
    made = make(api, receiver, filters={"table": "experiment"})
    yield made
    api.delete(f"/webhooks/{made['id']}")


def test_an_event_verifies_and_has_ids_only(api, receiver, webhook):
    table = {"table": "experiment", "mode": "insert", "rows": [{"name": "told by a webhook"}]}
    written = api.post("/data/write", json={"job_name": "Webhooks", "tables": [table]})
    written.raise_for_status()
    headers, body = receiver.next()
    told = Webhook(webhook["secret"]).verify(body, headers)
    assert told["type"] == "data.written"
    assert told["data"] == {"job_execution_id": written.json()["job_execution_id"], "table": "experiment"}
    assert set(told) == {"type", "timestamp", "data"}
    with pytest.raises(WebhookVerificationError):
        Webhook(webhook["secret"]).verify(body.replace("experiment", "operation"), headers)


def test_old_and_new_secret_verify_after_a_rotation(api, receiver, webhook):
    rotated = api.post(f"/webhooks/{webhook['id']}/rotate").json()
    assert rotated["secret"] != webhook["secret"]
    api.post(f"/webhooks/{webhook['id']}/test").raise_for_status()
    headers, body = receiver.next()
    for secret in [webhook["secret"], rotated["secret"]]:
        assert Webhook(secret).verify(body, headers)["type"] == "webhook.test"


@pytest.mark.parametrize("receiver", [(500, 204)], indirect=True)
def test_a_retry_verifies_under_the_same_id(api, receiver, webhook):
    api.post(f"/webhooks/{webhook['id']}/test").raise_for_status()
    ids = set()
    for _ in range(2):
        headers, body = receiver.next()
        Webhook(webhook["secret"]).verify(body, headers)
        ids.add({name.lower(): value for name, value in headers.items()}["webhook-id"])
    (delivery,) = api.get(f"/webhooks/{webhook['id']}/deliveries").json()
    assert ids == {delivery["id"]}
