"""The rules of spectral, with the exceptions in spectral.yaml."""

from pathlib import Path


def test_the_document_keeps_the_rules_of_spectral(node, document):
    ruleset = Path(__file__).with_name("spectral.yaml")
    node(
        "@stoplight/spectral-cli",
        "dist/index.js",
        "lint",
        document,
        "--ruleset",
        ruleset,
        "--fail-severity",
        "hint",
        "--quiet",
    )
