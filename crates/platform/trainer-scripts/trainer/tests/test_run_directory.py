"""The manifest, and secrets that are added to it."""

from __future__ import annotations

import json
import os
import unittest
from typing import Any
from unittest import mock

from labdata_trainer.run_directory import SECRETS_VARIABLE, Manifest, read_manifest
from tests import support

SECRETS = {
    "inputs": {"dataset": "http://platform/dataset", "image_locations": {"token": "t"}},
    "outputs": {
        "artifact": {"url": "http://platform/artifact", "headers": {"a": "b"}},
        "report": {"token": "t"},
    },
}


def read(**changes: Any) -> Manifest:
    """Returns a manifest whose URLs of the platform are known."""
    calls = {
        "inputs": {"image_locations": {"url": "http://platform/images"}},
        "outputs": {"report": {"url": "http://platform/report"}},
    }
    return read_manifest(support.run_directory(None, **{**calls, **changes}))


class Secrets(unittest.TestCase):
    """Tokens and signed URLs of a manifest."""

    def assert_complete(self, manifest: Manifest) -> None:
        """Fails if a secret or a URL is missing."""
        self.assertEqual(manifest.dataset, "http://platform/dataset")
        self.assertEqual(manifest.artifact.url, "http://platform/artifact")
        self.assertEqual(manifest.artifact.headers, {"a": "b"})
        for callback, url in (
            (manifest.report, "http://platform/report"),
            (manifest.image_locations, "http://platform/images"),
        ):
            self.assertEqual((callback.url, callback.token), (url, "t"))

    def test_secrets_of_the_manifest_are_added_to_it(self) -> None:
        self.assert_complete(read(secrets=SECRETS))

    def test_secrets_of_the_environment_are_added_and_not_inherited(self) -> None:
        with mock.patch.dict(os.environ, {SECRETS_VARIABLE: json.dumps(SECRETS)}):
            self.assert_complete(read(secrets=None))
            self.assertNotIn(SECRETS_VARIABLE, os.environ)


if __name__ == "__main__":
    unittest.main()
