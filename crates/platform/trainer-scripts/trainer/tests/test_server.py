"""The prediction protocol, with a model that records its calls."""

from __future__ import annotations

import io
import json
import os
import struct
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from PIL import Image

from labdata_trainer import frames, masks
from labdata_trainer.failure import Exit
from labdata_trainer.model import Prediction, of_classes
from labdata_trainer.server import Predictor
from tests.support import frame

FEATURES = [
    {"name": "x", "data_type": "float", "nullable": False, "levels": None},
    {"name": "site", "data_type": "string", "nullable": True, "levels": ["A"]},
]
DESCRIPTION = {
    "training_id": "t1",
    "task_type": "tabular",
    "problem_type": "binary",
    "target_column": "y",
    "classes": [False, True],
    "features": FEATURES,
}


class Recorder:
    """Model that predicts true for positive numbers, and records the sizes of its calls."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.started = threading.Event()
        self.proceed = threading.Event()
        self.proceed.set()

    def predict(self, table: pd.DataFrame) -> Prediction:
        self.calls.append(len(table))
        self.started.set()
        self.proceed.wait()
        if (table["site"] == "bad").any():
            raise ValueError("bad site")
        positive = (table["x"] > 0).to_numpy()
        probabilities = np.stack([1.0 - positive, np.where(table["x"] == 9, np.nan, positive)], 1)
        return of_classes(positive.astype(int), probabilities, [False, True])


def request(identifier: Any, x: list[Any], site: str = "A") -> bytes:
    """Returns the frame of a request."""
    columns = {"x": x, "site": [site] * len(x)}
    return frame(json.dumps({"id": identifier, "columns": columns}).encode())


def messages(data: bytes) -> list[Any]:
    """Splits frames."""
    found = []
    while data:
        (size,) = struct.unpack(">I", data[:4])
        found.append(json.loads(data[4 : 4 + size]))
        data = data[4 + size :]
    return found


class ServerTest(unittest.TestCase):
    """Test with a predictor whose model records its calls."""

    def setUp(self) -> None:
        self.model = Recorder()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.predictor = Predictor(DESCRIPTION, self.model, Path(directory.name))
        self.model.calls.clear()
        self.model.started.clear()

    def serve(self, data: bytes) -> list[Any]:
        output = io.BytesIO()
        self.code = self.predictor.serve(io.BytesIO(data), output)
        return messages(output.getvalue())


class Protocol(ServerTest):
    """Answers of a predictor."""

    def test_a_request_is_answered_with_classes_and_probabilities(self) -> None:
        self.assertEqual(
            self.serve(request("a", [1, -1])),
            [
                {
                    "id": "a",
                    "predictions": [True, False],
                    "probabilities": [{"false": 0.0, "true": 1.0}, {"false": 1.0, "true": 0.0}],
                }
            ],
        )
        self.assertEqual(self.code, Exit.OK)

    def test_probabilities_that_json_lacks_become_null(self) -> None:
        (answer,) = self.serve(request(1, [9]))
        self.assertEqual(answer["probabilities"], [{"false": 0.0, "true": None}])

    def test_waiting_requests_are_predicted_in_one_call(self) -> None:
        source, sink = os.pipe()
        output = io.BytesIO()
        self.model.proceed.clear()
        with os.fdopen(source, "rb") as stream:
            server = threading.Thread(target=self.predictor.serve, args=(stream, output))
            server.start()
            os.write(sink, request(1, [1]))
            self.assertTrue(self.model.started.wait(10))
            # The model is busy: these wait.
            os.write(sink, b"".join(request(it, [1.0] * it) for it in range(2, 6)))
            os.close(sink)
            self.model.proceed.set()
            server.join(10)
        answers = messages(output.getvalue())
        self.assertEqual([it["id"] for it in answers], [1, 2, 3, 4, 5])
        self.assertEqual([len(it["predictions"]) for it in answers], [1, 2, 3, 4, 5])
        self.assertEqual(sum(self.model.calls), 15)
        self.assertLessEqual(len(self.model.calls), 3)

    def test_a_batch_has_at_most_ten_thousand_rows(self) -> None:
        answers = self.serve(b"".join(request(it, [1.0] * 4_000) for it in range(5)))
        self.assertEqual([len(it["predictions"]) for it in answers], [4_000] * 5)
        self.assertLessEqual(max(self.model.calls), 10_000)

    def test_a_request_that_the_model_fails_on_leaves_the_others_alone(self) -> None:
        data = b"".join([request(1, [1]), request(2, [1], "bad"), request(3, [-1])])
        answers = {it["id"]: it for it in self.serve(data)}
        self.assertEqual(answers[2]["error"]["kind"], "internal")
        self.assertIn("bad site", answers[2]["error"]["message"])
        self.assertEqual((answers[1]["predictions"], answers[3]["predictions"]), ([True], [False]))

    def test_problems_name_row_and_column(self) -> None:
        (answer,) = self.serve(request(1, [1, "two", None, []]))
        error = answer["error"]
        self.assertEqual((error["kind"], error["row"], error["column"]), ("value", 1, "x"))
        self.assertEqual([(it["row"], it["column"]) for it in error["more"]], [(3, "x")])

    def test_missing_columns_are_named(self) -> None:
        (answer,) = self.serve(frame(b'{"id": 1, "columns": {"x": [1]}}'))
        error = answer["error"]
        self.assertEqual((error["kind"], error["row"], error["column"]), ("column", None, "site"))

    def test_columns_of_other_lengths_and_too_many_rows_are_rejected(self) -> None:
        for columns in (
            {"x": [1, 2], "site": ["A"]},
            {"x": [], "site": []},
            {"x": [1] * 10_001, "site": ["A"] * 10_001},
            {"x": 1, "site": ["A"]},
            [],
        ):
            with self.subTest(str(columns)[:40]):
                (answer,) = self.serve(frame(json.dumps({"id": 1, "columns": columns}).encode()))
                self.assertEqual(answer["error"]["kind"], "column")
        self.assertEqual(self.model.calls, [])

    def test_malformed_frames_are_answered_and_the_next_ones_served(self) -> None:
        for body in (b"", b"{", b"[]", b'{"columns": {}}', b"\xff", b'{"id": NaN}', b"[" * 100_000):
            with self.subTest(body[:20]):
                first, second = self.serve(frame(body) + request(2, [1]))
                self.assertEqual((first["id"], first["error"]["kind"]), (None, "internal"))
                self.assertEqual(second["predictions"], [True])

    def test_a_frame_that_is_too_long_is_skipped(self) -> None:
        size = frames.MAX_FRAME_BYTES + 1
        first, second = self.serve(struct.pack(">I", size) + bytes(size) + request(2, [1]))
        self.assertIn(str(size), first["error"]["message"])
        self.assertEqual(second["predictions"], [True])

    def test_the_end_inside_a_frame_is_an_error(self) -> None:
        whole = request(1, [1])
        for cut in (2, len(whole) - 1):
            with self.subTest(cut):
                self.assertEqual(self.serve(whole[:cut]), [])
                self.assertEqual(self.code, Exit.INTERNAL)

    def test_an_answer_that_is_too_long_becomes_an_error(self) -> None:
        from unittest import mock

        with mock.patch.object(frames, "MAX_FRAME_BYTES", 200):
            (answer,) = self.serve(request(1, [1.0] * 20))
            self.assertEqual(answer["error"]["kind"], "internal")

    def test_ready_describes_the_model(self) -> None:
        ready = self.predictor.ready()
        self.assertEqual((ready["type"], ready["protocol"]), ("ready", 1))
        self.assertEqual(ready["features"], FEATURES)
        self.assertEqual(ready["classes"], [False, True])
        self.assertIn("numpy", ready["versions"])


def arrow_request(identifier: Any, columns: dict[str, Any]) -> bytes:
    """Returns the frame of a request as an Arrow stream."""
    table = pa.table(columns).replace_schema_metadata({"id": json.dumps(identifier)})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return frame(sink.getvalue())


class ArrowProtocol(ServerTest):
    """Answers to Arrow streams."""

    def streams(self, data: bytes) -> list[pa.Table]:
        output = io.BytesIO()
        self.predictor.serve(io.BytesIO(data), output)
        data, found = output.getvalue(), []
        while data:
            (size,) = struct.unpack(">I", data[:4])
            found.append(pa.ipc.open_stream(data[4 : 4 + size]).read_all())
            data = data[4 + size :]
        return found

    def test_a_table_is_answered_with_a_table(self) -> None:
        columns = {"x": [1.0, -1.0, 9.0], "site": pa.array(["A", None, "B"]), "other": [1, 2, 3]}
        (answer,) = self.streams(arrow_request("a", columns))
        self.assertEqual(answer.schema.metadata[b"id"], b'"a"')
        self.assertEqual(
            answer.to_pydict(),
            {
                "prediction": [True, False, True],
                "probability.0": [0.0, 1.0, 0.0],
                "probability.1": [1.0, 0.0, None],
            },
        )

    def test_both_formats_share_a_batch_and_get_the_same_values(self) -> None:
        data = arrow_request(1, {"x": [1, -1], "site": pa.nulls(2)}) + request(2, [1, -1])
        output = io.BytesIO()
        self.predictor.serve(io.BytesIO(data), output)
        size = struct.unpack(">I", output.getvalue()[:4])[0]
        first = pa.ipc.open_stream(output.getvalue()[4 : 4 + size]).read_all()
        (second,) = messages(output.getvalue()[4 + size :])
        self.assertEqual(first["prediction"].to_pylist(), second["predictions"])

    def test_columns_of_other_types_and_missing_ones_are_named(self) -> None:
        for columns, column in (
            ({"x": ["1"], "site": ["A"]}, "x"),
            ({"x": [1.0], "site": [7]}, "site"),
            ({"x": [1.0]}, "site"),
            ({"x": pa.array([], pa.float64()), "site": pa.array([], pa.string())}, "x"),
        ):
            with self.subTest(str(columns)):
                (answer,) = self.serve(arrow_request(1, columns))
                error = answer["error"]
                self.assertEqual((error["kind"], error["column"]), ("column", column))

    def test_a_stream_that_is_cut_or_lacks_an_id_is_answered(self) -> None:
        whole = arrow_request(1, {"x": [1.0], "site": ["A"]})[4:]
        for body in (whole[:-100], b"\xff\xff\xff\xff", arrow_request([], {"x": [1.0]})[4:]):
            first, second = self.serve(frame(body) + request(2, [1]))
            self.assertEqual((first["id"], first["error"]["kind"]), (None, "internal"))
            self.assertEqual(second["predictions"], [True])


class Backpressure(unittest.TestCase):
    """Memory of waiting requests."""

    def test_reading_stops_while_too_many_bytes_wait(self) -> None:
        from unittest import mock

        with mock.patch.object(frames, "MAX_WAITING_BYTES", 100):
            source, sink = os.pipe()
            os.write(sink, frame(b"x" * 60) * 3)
            os.close(sink)
            with os.fdopen(source, "rb") as stream:
                inbox = frames.Inbox(stream)
                taken = []
                while (body := inbox.take(is_blocking=True)) is not None:
                    self.assertLessEqual(inbox.bytes, 100)
                    taken.append(len(body))
        self.assertEqual(taken, [60, 60, 60])


class Segmenter:
    """Model of masks that finds the left half of every image, and records its thresholds."""

    def __init__(self) -> None:
        self.chosen: list[masks.Options] = []

    def segment(
        self, table: pd.DataFrame, chosen: masks.Options
    ) -> tuple[list[str], list[list[dict[str, Any]]]]:
        self.chosen.append(chosen)
        probabilities = np.tile([0.8, 0.2], (2, 1))
        found = [masks.of_classes(probabilities, chosen)[1] for _ in range(len(table))]
        return ["image"] * len(table), found


class Segmentation(unittest.TestCase):
    """Requests for masks."""

    def test_each_request_has_its_own_thresholds(self) -> None:
        directory = Path(self.enterContext(tempfile.TemporaryDirectory()))
        Image.new("RGB", (2, 2)).save(directory / "a.png")
        description = {
            **DESCRIPTION,
            "task_type": "segmentation",
            "problem_type": "semantic_segmentation",
            "features": [
                {"name": "image", "data_type": "image", "nullable": False, "levels": None}
            ],
        }
        model = Segmenter()
        predictor = Predictor(description, model, directory)
        image = {"columns": {"image": ["a"]}, "images": {"a": str(directory / "a.png")}}
        options = ({}, {"segmentation": {"pixel_threshold": 0.9}})
        requests = [{"id": it, **image, **options[it]} for it in range(2)]
        output = io.BytesIO()
        sent = b"".join(frame(json.dumps(it).encode()) for it in requests)
        self.assertEqual(predictor.serve(io.BytesIO(sent), output), Exit.OK)
        first, second = messages(output.getvalue())
        self.assertEqual((first["predictions"], first["probabilities"]), (["image"], None))
        (mask,) = first["masks"][0]
        self.assertEqual((mask["width"], mask["foreground_fraction"]), (2, 0.5))
        self.assertEqual(second["masks"], [[]])
        self.assertEqual([it.pixel_threshold for it in model.chosen], [0.5, 0.9])


if __name__ == "__main__":
    unittest.main()
