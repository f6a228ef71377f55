"""Models of images, texts and tables, and segmentation: `just test-multimodal`.

The checkpoints are tiny and have random weights: these tests show that the code works, and nothing
about quality.
"""

from __future__ import annotations

import base64
import functools
import io
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

from labdata_trainer import artifact
from labdata_trainer.failure import Exit
from tests import multimodal_fixtures, support
from tests.multimodal_fixtures import ROWS, SIDE

MULTIMODAL = support.TRAINER / "multimodal.py"


@functools.cache
def checkpoints() -> dict[str, str]:
    """Creates a checkpoint of each kind."""
    directory = Path(tempfile.mkdtemp(dir=support.SCRATCH)) / "checkpoints"
    multimodal_fixtures.write_checkpoints(directory)
    return {name: str(directory / name) for name in ("image", "text", "segmentation")}


@functools.cache
def images() -> dict[str, str]:
    """Draws red and blue discs, and their masks. Returns paths by file id."""
    directory = Path(tempfile.mkdtemp(dir=support.SCRATCH)) / "images"
    multimodal_fixtures.write_images(directory)
    return {path.stem: str(path) for path in directory.iterdir()}


def multimodal_table(target: list[Any]) -> pa.Table:
    """Returns a table of images, texts, numbers and dates."""
    return pa.table(
        {
            "picture": [f"image-{row}" for row in range(ROWS)],
            "note": [
                f"the {'warm' if row % 2 else 'cold'} sample {chr(97 + row % 26)} looked fine"
                for row in range(ROWS)
            ],
            "volume": [row / 7 for row in range(ROWS)],
            "day": pa.array(range(ROWS), pa.date32()),
            "target": target,
        }
    )


def order(**changes: Any) -> dict[str, Any]:
    """Returns the changes of a manifest for a model of images."""
    return {
        "task_type": "multimodal",
        "problem_type": "binary",
        "image_columns": ["picture"],
        "inputs": {"dataset": "data.parquet", "images": images()},
        "checkpoints": checkpoints(),
        # Ends the fit: the default is tens of epochs.
        "time_limit_seconds": 20,
        **changes,
    }


@functools.cache
def classified() -> support.Outcome:
    """Trains a classification, once for all tests."""
    target = ["red" if row % 2 else "blue" for row in range(ROWS)]
    return support.train(multimodal_table(target), MULTIMODAL, **order())


@functools.cache
def segmented() -> support.Outcome:
    """Trains a segmentation, once for all tests."""
    table = pa.table(
        {
            "picture": [f"image-{row}" for row in range(ROWS)],
            "target": [f"mask-{row}" for row in range(ROWS)],
        }
    )
    task = {"task_type": "segmentation", "problem_type": "semantic_segmentation"}
    return support.train(table, MULTIMODAL, **order(**task))


class Multimodal(unittest.TestCase):
    """Images, texts and a table at once."""

    def test_a_classification_is_trained_and_predicts(self) -> None:
        outcome = classified()
        self.assertEqual(outcome.code, Exit.OK, outcome.log[-5000:])
        result = outcome.result
        self.assertEqual((result["problem_type"], result["classes"]), ("binary", ["blue", "red"]))
        self.assertEqual(result["features"][0]["data_type"], "image")
        self.assertIn("accuracy", result["metrics"])
        self.assertEqual(sum(map(sum, result["confusion_matrix"]["counts"])), 8)
        client = support.Client(outcome.directory / artifact.NAME, MULTIMODAL)
        self.addCleanup(client.process.kill)
        self.assertEqual(client.first["type"], "ready", client.first)
        request = {
            "picture": ["image-0", "image-1"],
            "note": ["the cold sample", None],
            "volume": [1.0, None],
            "day": ["2026-01-01", "2026-01-02"],
        }
        client.send({"id": 1, "columns": request, "images": images()})
        answer = client.receive()
        self.assertEqual(set(answer["predictions"]) - {"blue", "red"}, set(), answer)
        for probabilities in answer["probabilities"]:
            self.assertAlmostEqual(sum(probabilities.values()), 1, 4)
        error = client.ask(request, 2)["error"]
        self.assertEqual((error["row"], error["column"]), (0, "picture"))
        self.assertEqual(client.close(), Exit.OK)

    def test_a_regression_is_trained(self) -> None:
        table = multimodal_table([row / 3 for row in range(ROWS)])
        outcome = support.train(table, MULTIMODAL, **order(problem_type="regression"))
        self.assertEqual(outcome.code, Exit.OK, outcome.log[-5000:])
        self.assertGreater(outcome.result["metrics"]["root_mean_squared_error"]["value"], 0)
        self.assertEqual(len(outcome.result["residuals"]), 8)

    def test_a_file_that_is_no_image_is_named(self) -> None:
        bad = Path(tempfile.mkdtemp(dir=support.SCRATCH)) / "bad.png"
        whole = Path(images()["image-3"]).read_bytes()
        target = ["red" if row % 2 else "blue" for row in range(ROWS)]
        for content in (b"no image", whole[: len(whole) // 2]):
            bad.write_bytes(content)
            inputs = {"dataset": "data.parquet", "images": {**images(), "image-3": str(bad)}}
            outcome = support.train(multimodal_table(target), MULTIMODAL, **order(inputs=inputs))
            self.assertEqual(outcome.code, Exit.BAD_DATA, outcome.log[-5000:])
            self.assertEqual(outcome.error["code"], "image_unreadable")
            self.assertIn('"image-3"', outcome.error["message"])

    def test_a_file_id_without_a_file_is_named(self) -> None:
        target = ["red" if row % 2 else "blue" for row in range(ROWS)]
        inputs = {"dataset": "data.parquet", "images": {}}
        outcome = support.train(multimodal_table(target), MULTIMODAL, **order(inputs=inputs))
        self.assertEqual((outcome.code, outcome.error["code"]), (Exit.BAD_DATA, "image_missing"))
        self.assertIn('"image-0"', outcome.error["message"])

    def test_a_checkpoint_that_is_not_installed_is_missing(self) -> None:
        target = ["red" if row % 2 else "blue" for row in range(ROWS)]
        outcome = support.train(multimodal_table(target), MULTIMODAL, **order(checkpoints=None))
        self.assertEqual(outcome.code, Exit.MISSING, outcome.log[-5000:])
        self.assertEqual(outcome.error["code"], "checkpoint_missing")

    def test_term_ends_a_training(self) -> None:
        target = ["red" if row % 2 else "blue" for row in range(ROWS)]
        directory = support.run_directory(multimodal_table(target), **order(time_limit_seconds=300))
        process = support.start(
            "train", directory, MULTIMODAL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None:
            events = directory / "events.jsonl"
            if events.exists() and "model_start" in events.read_text():
                break
            time.sleep(0.1)
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=10), Exit.CANCELLED)
        self.assertLess(time.monotonic() - started, 5)


class Segmentation(unittest.TestCase):
    """Masks of images."""

    def test_a_segmentation_is_trained_and_predicts_masks(self) -> None:
        outcome = segmented()
        self.assertEqual(outcome.code, Exit.OK, outcome.log[-5000:])
        result = outcome.result
        self.assertEqual(result["problem_type"], "semantic_segmentation")
        self.assertEqual(result["primary_metric"], "iou")
        self.assertTrue(0 <= result["metrics"]["iou"]["value"] <= 1)
        client = support.Client(outcome.directory / artifact.NAME, MULTIMODAL)
        self.addCleanup(client.process.kill)
        self.assertEqual(client.first["type"], "ready", client.first)
        request = {"columns": {"picture": ["image-5", "image-6"]}, "images": images()}
        client.send({"id": 1, **request})
        answer = client.receive()
        self.assertIsNone(answer["probabilities"])
        self.assertEqual(len(answer["masks"]), 2)
        for mask in (mask for row in answer["masks"] for mask in row):
            self.assertEqual((mask["width"], mask["height"], mask["class"]), (SIDE, SIDE, None))
            self.assertTrue(0.5 <= mask["confidence"] <= 1, mask)
        for threshold, is_covered in ((0.0, True), (1.0, False)):
            client.send({"id": 2, **request, "segmentation": {"pixel_threshold": threshold}})
            rows = client.receive()["masks"]
            self.assertEqual([bool(row) for row in rows], [is_covered] * 2, threshold)
        for mask in answer["predictions"]:
            picture = Image.open(io.BytesIO(base64.b64decode(mask)))
            self.assertEqual(picture.size, (SIDE, SIDE))
            self.assertLessEqual(set(np.unique(picture)), {0, 255})
        self.assertEqual(client.close(), Exit.OK)


if __name__ == "__main__":
    unittest.main()
