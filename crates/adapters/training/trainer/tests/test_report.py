"""Reports: batches, lost connections, and what a platform that is away costs."""

from __future__ import annotations

import time
import unittest
from typing import Any
from unittest import mock

from labdata_trainer import report, transfer
from labdata_trainer.callback import Callback
from labdata_trainer.failure import Failure
from labdata_trainer.report import MAX_WAITING, Reporter
from tests.support import FileServer, file_server


class Reports(unittest.TestCase):
    """Events, result and error over HTTP."""

    def setUp(self) -> None:
        self.server: FileServer = self.enterContext(file_server())
        self.enterContext(mock.patch.object(report, "INTERVAL_SECONDS", 0.05))
        self.enterContext(mock.patch.object(transfer, "FIRST_DELAY_SECONDS", 0.001))
        self.reporter = Reporter(Callback(f"{self.server.url}/report", "secret"))

    def bodies(self) -> list[dict[str, Any]]:
        return [body for _, _, body in self.server.posted]

    def events(self) -> list[int]:
        return [it["n"] for body in self.bodies() for it in body.get("events", [])]

    def wait_for_events(self, count: int) -> None:
        deadline = time.monotonic() + 20
        while len(self.events()) < count and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(self.events(), list(range(count)))

    def test_events_arrive_in_order_and_in_batches(self) -> None:
        for n in range(500):
            self.reporter.add({"n": n})
        self.reporter.start()
        self.wait_for_events(500)
        self.assertEqual(len(self.server.posted), 3)

    def test_a_batch_that_was_not_taken_is_sent_again(self) -> None:
        self.server.statuses = [503, 0]
        self.reporter.start()
        for n in range(5):
            self.reporter.add({"n": n})
        self.wait_for_events(5)

    def test_a_platform_that_is_away_costs_the_oldest_events_only(self) -> None:
        away = Reporter(Callback("http://127.0.0.1:1/report", "secret"))
        for n in range(MAX_WAITING):
            away.add({"n": n})
        away.send_events()
        away.add({"n": MAX_WAITING})
        self.assertEqual(len(away.waiting), MAX_WAITING)
        self.assertEqual((away.waiting[0]["n"], away.waiting[-1]["n"]), (1, MAX_WAITING))

    def test_the_result_comes_after_all_events(self) -> None:
        self.reporter.add({"n": 0})
        self.reporter.add({"n": 1})
        self.reporter.finish("result", {"score": float("nan")})
        self.assertEqual(
            self.bodies(), [{"events": [{"n": 0}, {"n": 1}]}, {"result": {"score": None}}]
        )

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
