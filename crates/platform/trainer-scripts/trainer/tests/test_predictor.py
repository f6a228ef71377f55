"""Predictor processes with trained models."""

from __future__ import annotations

import pickle
import signal
import tempfile
import unittest
from pathlib import Path
from typing import Any

from labdata_trainer import artifact
from labdata_trainer.failure import Exit
from tests import support
from tests.test_artifact import Poison


class Predictions(unittest.TestCase):
    """Answers of a predictor process."""

    def open(self, outcome: support.Outcome, **order: Any) -> support.Client:
        self.assertEqual(outcome.code, Exit.OK, outcome.log[-3000:])
        client = support.Client(outcome.directory / artifact.NAME, **order)
        self.addCleanup(client.process.kill)
        return client

    def test_a_classification_answers_with_classes_and_probabilities(self) -> None:
        outcome = support.wine()
        client = self.open(outcome, sha256=outcome.result["artifact"]["sha256"])
        self.assertEqual(client.first["type"], "ready")
        self.assertEqual(client.first["features"], outcome.result["features"])
        self.assertEqual(client.first["versions"], outcome.result["versions"])
        table = support.wine_table()
        answer = client.ask(support.rows(table, 178))
        actual = table["target"].to_pylist()
        correct = sum(a == b for a, b in zip(answer["predictions"], actual, strict=True))
        self.assertGreater(correct, 165)
        for label, probabilities in zip(
            answer["predictions"], answer["probabilities"], strict=True
        ):
            self.assertEqual(set(probabilities), set(outcome.result["classes"]))
            self.assertAlmostEqual(sum(probabilities.values()), 1, 4)
            self.assertEqual(max(probabilities, key=probabilities.get), label)
        self.assertEqual(client.close(), Exit.OK)

    def test_a_regression_has_no_probabilities_and_accepts_nulls(self) -> None:
        client = self.open(support.diabetes())
        columns = support.rows(support.diabetes_table(), 2)
        columns["bmi"][1] = None
        answer = client.ask(columns)
        self.assertIsNone(answer["probabilities"])
        self.assertTrue(all(25 < it < 350 for it in answer["predictions"]))
        self.assertEqual(client.close(), Exit.OK)

    def test_pipelined_requests_get_the_same_answers_as_single_ones(self) -> None:
        client = self.open(support.diabetes())
        columns = support.rows(support.diabetes_table(), 20)
        requests = [{name: [it[row]] for name, it in columns.items()} for row in range(20)]
        for number, request in enumerate(requests):
            client.send({"id": number, "columns": request})
        together = {it["id"]: it["predictions"] for it in (client.receive() for _ in requests)}
        for number, request in enumerate(requests):
            self.assertEqual(client.ask(request)["predictions"], together[number])
        self.assertEqual(client.close(), Exit.OK)

    def test_malformed_frames_and_mistyped_values_leave_the_process_alive(self) -> None:
        client = self.open(support.diabetes())
        client.send_bytes(support.frame(b"no json"))
        self.assertEqual(client.receive()["error"]["kind"], "internal")
        columns = support.rows(support.diabetes_table(), 2)
        error = client.ask({**columns, "bmi": [0.1, "high"]})["error"]
        self.assertEqual((error["kind"], error["row"], error["column"]), ("value", 1, "bmi"))
        del columns["age"]
        error = client.ask(columns)["error"]
        self.assertEqual((error["kind"], error["column"]), ("column", "age"))
        self.assertEqual(
            len(client.ask(support.rows(support.diabetes_table(), 1))["predictions"]), 1
        )
        client.send_bytes(b"\x00\x00")
        self.assertEqual(client.close(), Exit.INTERNAL)

    def test_term_ends_a_predictor_at_once(self) -> None:
        client = self.open(support.diabetes())
        client.process.send_signal(signal.SIGTERM)
        self.assertEqual(client.process.wait(timeout=5), Exit.CANCELLED)
        self.assertEqual(client.close(), Exit.CANCELLED)

    def test_an_artifact_with_another_hash_is_not_loaded(self) -> None:
        client = self.open(support.diabetes(), sha256="0" * 64)
        self.assertEqual(
            (client.first["type"], client.first["code"]), ("failed", "artifact_invalid")
        )
        self.assertEqual(client.close(), Exit.BAD_DATA)

    def test_a_poisoned_artifact_can_neither_answer_nor_print_into_the_protocol(self) -> None:
        directory = Path(tempfile.mkdtemp(dir=support.SCRATCH))
        marker = directory / "poisoned"
        poison = directory / "poison"
        poison.mkdir()
        for name in ("predictor.pkl", "learner.pkl"):
            (poison / name).write_bytes(pickle.dumps(Poison(marker)))
        manifest = {"task_type": "tabular", "features": []}
        artifact.pack(poison, manifest, directory / artifact.NAME)
        client = support.Client(directory / artifact.NAME)
        self.addCleanup(client.process.kill)
        # It runs here, in the process that the sandbox confines, and ends it with a message.
        self.assertTrue(marker.exists())
        self.assertEqual(client.first["type"], "failed")
        self.assertEqual(client.close(), Exit.INTERNAL)


if __name__ == "__main__":
    unittest.main()
