"""A client of openapi-typescript and openapi-fetch."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from conftest import NODE
from server import KEY


@pytest.fixture(scope="module")
def project(node, document, generated) -> Path:
    """A TypeScript project with the generated types and the round trip."""
    project = generated / "typescript"
    shutil.copytree(Path(__file__).with_name("typescript"), project)
    # A request may leave out a field that has a default.
    options = ("--default-non-nullable", "false")
    node("openapi-typescript", "bin/cli.js", document, "--output", project / "labdata.ts", *options)
    return project


def test_the_generated_types_and_their_use_compile(node, project):
    node("typescript", "bin/tsc", "--project", project)


def test_a_generated_client_writes_reads_and_reverts(run, project, server):
    # Node removes the types itself.
    run(
        NODE,
        project / "round_trip.ts",
        env=os.environ | {"LABDATA_BASE_URL": server.url, "LABDATA_API_KEY": KEY},
    )
