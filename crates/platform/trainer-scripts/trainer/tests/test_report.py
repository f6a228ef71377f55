"""Reports: progress, lost connections, and results that are refused."""

from __future__ import annotations

import time
import unittest
from typing import Any
from unittest import mock

from labdata_trainer import report, transfer
from labdata_trainer.callback import Callback
from labdata_trainer.failure import Failure
from labdata_trainer.report import Reporter
from tests.support import FileServer, file_server

TRIED = {
    "type": "model_done",
    "model": "LightGBM",
    "failed": False,
    "models_tried": 2,
    "metric": "accuracy",
    "best_score": 0.9,
}


class Reports(unittest.TestCase):
    """Progress, result and error over HTTP."""

    def setUp(self) -> None:
        self.server: FileServer = self.enterContext(file_server())
        self.enterContext(mock.patch.object(report, "INTERVAL_SECONDS", 0.05))
        self.enterContext(mock.patch.object(transfer, "FIRST_DELAY_SECONDS", 0.001))
        self.reporter = Reporter(Callback(f"{self.server.url}/report", "secret"))

    def bodies(self) -> list[dict[str, Any]]:
        return [body for _, _, body in self.server.posted]

    def wait_for(self, progress: dict[str, Any]) -> None:
        deadline = time.monotonic() + 20
        while {"progress": progress} not in self.bodies() and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(self.bodies()[-1], {"progress": progress})

    def test_events_become_one_progress(self) -> None:
        self.reporter.add({"type": "phase", "phase": "fitting"})
        self.reporter.add(TRIED)
        self.reporter.add({**TRIED, "failed": True, "models_tried": 3, "best_score": None})
        self.reporter.add({"type": "heartbeat", "phase": "fitting"})
        self.reporter.start()
        score = {"metric": "accuracy", "value": 0.9}
        self.wait_for({"phase": "fitting", "models_tried": 3, "best_score": score})
        self.assertEqual(len(self.server.posted), 1)

    def test_progress_that_was_not_taken_is_sent_again(self) -> None:
        self.server.statuses = [503, 0]
        self.reporter.start()
        self.reporter.add({"type": "phase", "phase": "reading"})
        self.wait_for({"phase": "reading", "models_tried": 0, "best_score": None})

    def test_the_phase_of_a_training_that_failed_at_once_is_known(self) -> None:
        self.reporter.add({"type": "phase", "phase": "reading"})
        self.reporter.finish("error", {"code": "out_of_memory"})
        progress = {"phase": "reading", "models_tried": 0, "best_score": None}
        self.assertEqual(
            self.bodies(), [{"progress": progress}, {"error": {"code": "out_of_memory"}}]
        )

    def test_no_progress_follows_the_result(self) -> None:
        self.reporter.finish("result", {"score": float("nan")})
        self.reporter.start()
        self.reporter.add({"type": "phase", "phase": "done"})
        time.sleep(0.2)
        self.assertEqual(self.bodies(), [{"result": {"score": None}}])

    def test_a_result_is_tried_again_and_a_refused_one_is_a_failure(self) -> None:
        self.server.statuses = [503, 429]
        self.reporter.finish("result", {})
        self.server.statuses = [401]
        with self.assertRaises(Failure) as raised:
            self.reporter.finish("result", {})
        self.assertEqual(raised.exception.code, "output_unreachable")
        self.assertNotIn("secret", raised.exception.message)

    def test_images_are_located_by_the_platform(self) -> None:
        self.server.answers["/images"] = lambda body: {"images": {it: "x" for it in body["images"]}}
        callback = Callback(f"{self.server.url}/images", "secret")
        answer = callback.deliver({"images": ["a"]}, "The images", "input_unreachable")
        self.assertEqual(answer, b'{"images": {"a": "x"}}')


if __name__ == "__main__":
    unittest.main()
