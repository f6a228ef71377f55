"""Signed URLs: retries, lost answers, and secrets that stay out of messages."""

from __future__ import annotations

import contextlib
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from labdata_trainer import transfer
from labdata_trainer.failure import Failure
from labdata_trainer.transfer import Upload
from tests.support import FileServer, file_server

SECRET = "signature=secret"


class Transfer(unittest.TestCase):
    """Inputs and outputs over HTTP."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.server: FileServer = self.enterContext(file_server())
        self.enterContext(mock.patch.object(transfer, "FIRST_DELAY_SECONDS", 0.001))

    def fetch(self, path: str) -> bytes:
        url = f"{self.server.url}{path}?{SECRET}"
        return transfer.fetch(url, self.directory / "target", "The dataset").read_bytes()

    def test_a_url_is_fetched(self) -> None:
        self.server.files["/data"] = b"bytes"
        self.assertEqual(self.fetch("/data"), b"bytes")

    def test_a_busy_server_and_a_cut_connection_are_tried_again(self) -> None:
        self.server.files["/data"] = b"bytes"
        self.server.statuses = [503, 0, 429]
        self.assertEqual(self.fetch("/data"), b"bytes")
        self.assertEqual(len(self.server.requests), 4)

    def test_a_final_refusal_is_not_tried_again_and_keeps_the_secret(self) -> None:
        self.server.statuses = [403]
        with self.assertRaises(Failure) as raised:
            self.fetch("/data")
        self.assertEqual(raised.exception.message, "The dataset cannot be fetched: HTTP status 403")
        self.assertEqual(len(self.server.requests), 1)

    def test_a_server_that_cannot_be_reached_is_a_failure(self) -> None:
        with self.assertRaises(Failure) as raised:
            transfer.fetch(
                f"http://127.0.0.1:1/x?{SECRET}", self.directory / "target", "The dataset"
            )
        self.assertEqual(raised.exception.code, "input_unreachable")
        self.assertNotIn("secret", raised.exception.message)

    def test_local_paths_need_no_copy(self) -> None:
        (self.directory / "data").write_bytes(b"bytes")
        target = self.directory / "target"
        self.enterContext(contextlib.chdir(self.directory))
        for location in ("data", str(self.directory / "data"), f"file://{self.directory}/data"):
            self.assertEqual(transfer.fetch(location, target, "x"), self.directory / "data")
        with self.assertRaises(Failure):
            transfer.fetch("other", target, "The dataset")

    def test_file_ids_are_no_paths(self) -> None:
        self.server.files["/image"] = b"image"
        images = self.directory / "images"
        fetched = transfer.fetch_all({"../../escape": f"{self.server.url}/image"}, images)
        self.assertEqual(fetched["../../escape"].parent, images)

    def test_an_output_is_stored_with_the_signed_headers(self) -> None:
        (self.directory / "result").write_bytes(b"{}")
        headers = {"x-goog-if-generation-match": "0", "content-type": "application/zstd"}
        upload = Upload(f"{self.server.url}/result", headers)
        self.server.statuses = [500]
        transfer.store(upload, self.directory / "result", "The result")
        body, headers = self.server.stored["/result"]
        self.assertEqual(body, b"{}")
        self.assertEqual(headers["x-goog-if-generation-match"], "0")
        self.assertEqual(headers["content-type"], "application/zstd")

    def test_an_output_whose_answer_was_lost_counts_as_stored(self) -> None:
        (self.directory / "result").write_bytes(b"{}")
        upload = Upload(f"{self.server.url}/result", {})
        self.server.statuses = [503, 412]
        transfer.store(upload, self.directory / "result", "The result")
        self.server.statuses = [412]
        with self.assertRaises(Failure):
            transfer.store(upload, self.directory / "result", "The result")


if __name__ == "__main__":
    unittest.main()
