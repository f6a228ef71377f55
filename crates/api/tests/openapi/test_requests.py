"""Requests that schemathesis generates from the document, valid ones and others, against a server with data."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import httpx
from accepted_answers import is_listed_leniency, is_listed_refusal
from server import KEY

DIRECTORY = Path(__file__).parent
SEED = "20261123"


def me(url: str) -> httpx.Response:
    return httpx.get(f"{url}/api/v1/me", headers={"Authorization": f"Bearer {KEY}"}, trust_env=False)


def test_answers_are_those_of_the_document(run, document, seeded_server):
    own_key = me(seeded_server.url).json()["api_key"]["id"]
    run(
        Path(sys.executable).with_name("schemathesis"),
        "--config-file",
        DIRECTORY / "schemathesis.toml",
        "run",
        document,
        "--url",
        seeded_server.url,
        "--header",
        f"Authorization: Bearer {KEY}",
        "--seed",
        os.environ.get("OPENAPI_TEST_SEED", SEED),
        "--max-examples",
        os.environ.get("OPENAPI_TEST_EXAMPLES", "25"),
        "--no-color",
        cwd=seeded_server.directory,
        env=os.environ
        | {
            "OPENAPI_TEST_KEY_ID": own_key,
            "PYTHONPATH": str(DIRECTORY),
            "SCHEMATHESIS_HOOKS": "schemathesis_hooks",
        },
    )
    assert me(seeded_server.url).is_success, "its key was revoked, so that it saw only 401"


def test_an_answer_is_listed_only_if_each_of_its_problems_is():
    cursor = b'{"type":"value_error","loc":["query","cursor"],"msg":"Value error, not a cursor of this list"}'
    other = b'{"type":"missing","loc":["body","name"],"msg":"Field required"}'
    assert is_listed_refusal("list_files", 422, b'{"detail":[%b]}' % cursor)
    assert not is_listed_refusal("list_files", 400, b'{"detail":[%b]}' % cursor)
    assert not is_listed_refusal("list_files", 422, b'{"detail":[%b,%b]}' % (cursor, other))
    assert not is_listed_refusal("list_files", 500, b"Internal Server Error")


def test_no_other_violation_of_the_document_is_accepted():
    assert not is_listed_leniency("create_instrument", "Invalid component: in body - name: Incorrect type")
