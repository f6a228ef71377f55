"""Trainings with AutoGluon, each in a process as the platform starts it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tarfile
import time
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from labdata_trainer import artifact
from labdata_trainer.failure import Exit, explain
from labdata_trainer.processes import descendants
from labdata_trainer.run_directory import parse_manifest
from tests import support
from tests.test_artifact import Poison

PHASES = ["preparing", "reading", "checking", "fitting", "evaluating", "packing", "done"]


def members(path: Path) -> list[str]:
    """Returns the names in an artifact."""
    with pa.CompressedInputStream(pa.OSFile(str(path)), "zstd") as stream:
        return tarfile.open(fileobj=stream, mode="r|").getnames()


class Success(unittest.TestCase):
    """Trainings that end with a model."""

    def test_wine_is_classified(self) -> None:
        outcome = support.wine()
        self.assertEqual(outcome.code, Exit.OK, outcome.log[-3000:])
        result = outcome.result
        self.assertEqual(result["problem_type"], "multiclass")
        self.assertEqual(result["classes"], ["barbera", "barolo", "grignolino"])
        self.assertEqual(result["rows"], {"train": 142, "test": 36})
        self.assertEqual(result["primary_metric"], "accuracy")
        self.assertGreater(result["metrics"]["accuracy"]["value"], 0.9)
        matrix = result["confusion_matrix"]
        self.assertEqual(matrix["labels"], result["classes"])
        self.assertEqual(sum(map(sum, matrix["counts"])), 36)
        correct = sum(row[index] for index, row in enumerate(matrix["counts"]))
        self.assertAlmostEqual(correct / 36, result["metrics"]["accuracy"]["value"])
        self.assertIsNone(result["residuals"])
        self.assertEqual(len(result["features"]), 13)
        importance = result["feature_importance"]
        self.assertEqual(
            {it["feature"] for it in importance}, {it["name"] for it in result["features"]}
        )
        values = [it["importance"] for it in importance]
        self.assertEqual(values, sorted(values, reverse=True))

    def test_diabetes_is_a_regression_with_errors_of_the_right_sign(self) -> None:
        outcome = support.diabetes()
        self.assertEqual(outcome.code, Exit.OK, outcome.log[-3000:])
        result = outcome.result
        self.assertEqual(result["problem_type"], "regression")
        self.assertIsNone(result["classes"])
        metrics = result["metrics"]
        self.assertGreater(metrics["r2"]["value"], 0.4)
        self.assertTrue(metrics["r2"]["higher_is_better"])
        self.assertEqual(result["primary_metric"], "root_mean_squared_error")
        for name in ("root_mean_squared_error", "mean_absolute_error"):
            self.assertGreater(metrics[name]["value"], 0)
            self.assertFalse(metrics[name]["higher_is_better"])
        self.assertEqual(len(result["residuals"]), result["rows"]["test"])
        board = result["leaderboard"]
        self.assertGreater(len(board), 3)
        # Errors are positive, and the best model comes first.
        scores = [it["score"] for it in board]
        self.assertEqual(scores, sorted(scores))
        self.assertGreater(scores[0], 0)

    def test_events_tell_phases_models_and_metrics_in_order(self) -> None:
        for outcome in (support.wine(), support.diabetes()):
            events = outcome.events
            phases = [it["phase"] for it in events if it["type"] == "phase"]
            self.assertEqual(phases, PHASES)
            moments = [it["at"] for it in events]
            self.assertEqual(moments, sorted(moments))
            done = [it for it in events if it["type"] == "model_done"]
            self.assertEqual([it["models_tried"] for it in done], list(range(1, len(done) + 1)))
            self.assertEqual(len(done), sum(it["type"] == "model_start" for it in events))
            self.assertFalse(any(it["failed"] for it in done))
            higher = done[0]["higher_is_better"]
            best = (max if higher else min)(it["score"] for it in done)
            self.assertEqual(done[-1]["best_score"], best)
            self.assertTrue(all(it["score"] > 0 for it in done))
            names = {it["name"] for it in events if it["type"] == "metric"}
            self.assertEqual(names, set(outcome.result["metrics"]))

    def test_the_artifact_matches_its_description(self) -> None:
        outcome = support.wine()
        described = outcome.result["artifact"]
        path = outcome.directory / described["file"]
        self.assertEqual(described["sha256"], hashlib.sha256(path.read_bytes()).hexdigest())
        self.assertEqual(described["size"], path.stat().st_size)
        names = members(path)
        self.assertEqual(names[:2], ["manifest.json", "predictor"])
        self.assertFalse(outcome.directory.joinpath("error.json").exists())

    def test_a_training_repeats_with_its_seed(self) -> None:
        again = support.train(support.diabetes_table(), problem_type="regression")
        self.assertEqual(again.code, Exit.OK, again.log[-3000:])
        self.assertEqual(again.result["metrics"], support.diabetes().result["metrics"])

    def test_columns_of_all_types_and_missing_values_are_read(self) -> None:
        count = 60
        table = pa.table(
            {
                "dose": pa.array([None if it % 7 == 0 else it / 3 for it in range(count)]),
                "cycles": [it % 5 for it in range(count)],
                "washed": pa.array([None if it % 11 == 0 else it % 2 == 0 for it in range(count)]),
                "site": pa.array(["Basel", "Köln", None] * (count // 3)).dictionary_encode(),
                "day": pa.array(range(count), pa.date32()),
                "at": pa.array([it * 10**9 for it in range(count)], pa.timestamp("us", tz="UTC")),
                "void": pa.nulls(count, pa.string()),
                "target": [it % 2 == 0 for it in range(count)],
            }
        )
        outcome = support.train(table, problem_type="binary")
        self.assertEqual(outcome.code, Exit.OK, outcome.log[-3000:])
        result = outcome.result
        self.assertEqual((result["problem_type"], result["classes"]), ("binary", [False, True]))
        self.assertNotIn("void", {it["name"] for it in result["features"]})
        warnings = [it["code"] for it in outcome.events if it["type"] == "warning"]
        self.assertEqual(warnings, ["empty_columns"])

    def test_inputs_and_outputs_travel_as_signed_urls(self) -> None:
        with support.file_server() as server:
            source = support.run_directory(support.diabetes_table())
            server.files["/data"] = (source / "data.parquet").read_bytes()
            outputs = {
                "artifact": {
                    "url": f"{server.url}/artifact?signature=secret",
                    "headers": {"x-test": "artifact"},
                },
                "report": {"url": f"{server.url}/report", "token": "secret"},
            }
            outcome = support.train(
                None,
                inputs={"dataset": f"{server.url}/data?signature=secret"},
                outputs=outputs,
                problem_type="regression",
                feature_columns=["bmi", "s5"],
            )
            self.assertEqual(outcome.code, Exit.OK, outcome.log[-3000:])
            artifact, headers = server.stored["/artifact"]
            self.assertEqual(headers["x-test"], "artifact")
            stored = hashlib.sha256(artifact).hexdigest()
            self.assertEqual(stored, outcome.result["artifact"]["sha256"])
            paths, headers, bodies = zip(*server.posted, strict=True)
            self.assertEqual(set(paths), {"/report"})
            self.assertEqual({it["authorization"] for it in headers}, {"Bearer secret"})
            self.assertEqual(bodies[-1], {"result": outcome.result})
            phases = [body["progress"]["phase"] for body in bodies[:-1]]
            self.assertIn("fitting", phases)
            self.assertGreater(bodies[-2]["progress"]["models_tried"], 0)
            self.assertNotIn("secret", outcome.log)


class Failures(unittest.TestCase):
    """Trainings that end without a model."""

    def failed(self, code: str, exit_code: Exit, table: pa.Table | None, **changes: Any) -> str:
        outcome = support.train(table, **changes)
        self.assertEqual(outcome.code, exit_code, outcome.log[-3000:])
        self.assertIsNone(outcome.result)
        self.assertEqual((outcome.error["code"], outcome.error["exit_code"]), (code, exit_code))
        return outcome.error["message"]

    def test_bad_data_ends_with_its_message(self) -> None:
        table = support.wine_table().slice(0, 134)
        message = self.failed("too_few_rows_of_class", Exit.BAD_DATA, table)
        self.assertIn('The class "barbera" of "target" has only 4 rows', message)

    def test_a_combination_that_does_not_fit_is_unsupported(self) -> None:
        self.failed(
            "problem_type_not_supported",
            Exit.UNSUPPORTED,
            support.wine_table(),
            problem_type="semantic_segmentation",
        )

    def test_a_manifest_that_cannot_be_read_is_an_internal_failure(self) -> None:
        self.failed("manifest_invalid", Exit.INTERNAL, None, seed="many")

    def test_a_dataset_that_cannot_be_fetched_is_an_internal_failure(self) -> None:
        self.failed("input_unreachable", Exit.INTERNAL, None)

    def test_a_time_limit_without_a_model_says_so(self) -> None:
        message = self.failed(
            "time_limit_too_short", Exit.TIME_LIMIT, support.wine_table(), time_limit_seconds=0.01
        )
        self.assertIn("0.01 seconds", message)

    def test_a_memory_limit_that_is_too_low_says_so(self) -> None:
        message = self.failed(
            "out_of_memory", Exit.MEMORY, support.wine_table(), memory_bytes=100 * 1024**2
        )
        self.assertIn("memory", message)

    def test_without_any_model_the_first_cause_counts(self) -> None:
        from labdata_trainer import tabular_model

        order = parse_manifest(support.manifest())
        for code, failures in (
            ("out_of_memory", [("TypeError", "x"), ("LightGBMError", "std::bad_alloc")]),
            ("out_of_memory", [("TimeLimitExceeded", ""), ("NotEnoughMemoryError", "")]),
            ("time_limit_too_short", [("TypeError", "x"), ("TimeLimitExceeded", "")]),
            ("time_limit_too_short", []),
            ("no_model", [("TypeError", "x"), ("ValueError", "y")]),
        ):
            with self.subTest(failures):
                table = pd.DataFrame(failures, columns=["exc_type", "exc_str"])
                predictor = SimpleNamespace(model_failures=lambda table=table: table)
                self.assertEqual(tabular_model.no_model(predictor, order).code, code)

    def test_an_ensemble_that_repeats_one_model_is_left_out(self) -> None:
        from labdata_trainer import tabular_model

        def repeated(*members: dict[str, float], **calibration: Any) -> str | None:
            ensemble = {"temperature_scalar": None, "conformalize": None, **calibration}
            children = {str(it): {"model_weights": weights} for it, weights in enumerate(members)}
            trainer = SimpleNamespace(load_model=lambda _: SimpleNamespace(**ensemble))
            predictor = SimpleNamespace(
                model_best="E", _trainer=trainer, model_info=lambda _: {"children_info": children}
            )
            return tabular_model.repeated_model(predictor)

        self.assertEqual(repeated({"A": 1.0}), "A")
        self.assertIsNone(repeated({"A": 0.75, "B": 0.25}))
        self.assertIsNone(repeated({"A": 1.0}, {"A": 1.0}))
        self.assertIsNone(repeated())
        self.assertIsNone(repeated({"A": 1.0}, temperature_scalar=1.2))
        self.assertIsNone(repeated({"A": 1.0}, conformalize=True))

    def test_predictions_are_those_of_the_best_model(self) -> None:
        from labdata_trainer import tabular_model

        for outcome, table in (
            (support.wine(), support.wine_table()),
            (support.diabetes(), support.diabetes_table()),
        ):
            model = tabular_model.load(outcome.directory / "predictor")
            frame = table.drop_columns(["target"]).to_pandas()
            predicted = model.predict(frame)
            expected = model.predictor.predict(frame).to_numpy()
            np.testing.assert_array_equal(predicted.values, expected)
            if predicted.probabilities is not None:
                expected = model.predictor.predict_proba(frame).to_numpy()
                np.testing.assert_array_equal(predicted.probabilities, expected)

    def test_errors_of_libraries_are_explained(self) -> None:
        def caused() -> Exception:
            error = RuntimeError("fit failed")
            error.__cause__ = MemoryError()
            return error

        circular = ValueError("x")
        circular.__cause__ = circular
        for code, error in (
            ("internal", circular),
            ("out_of_memory", MemoryError()),
            ("out_of_memory", pa.ArrowMemoryError("malloc of size 64 failed")),
            ("out_of_memory", ImportError("x.so: failed to map segment from shared object")),
            ("out_of_memory", OSError(errno.ENOMEM, "Cannot allocate memory")),
            ("out_of_memory", caused()),
            ("time_limit_too_short", AssertionError("Not enough time left to train models")),
            ("dependency_missing", ModuleNotFoundError("No module named 'autogluon'")),
            ("disk_full", OSError(errno.ENOSPC, "No space left on device")),
            ("internal", KeyError("x")),
        ):
            with self.subTest(repr(error)):
                self.assertEqual(explain(error, 60).code, code)

    def test_an_environment_without_autogluon_says_so(self) -> None:
        directory = support.run_directory(support.wine_table())
        # Isolated, and without site-packages: as if the installation were gone.
        command = [sys.executable, "-I", "-S", str(support.TABULAR), "train", str(directory)]
        code = subprocess.run(command, capture_output=True, timeout=60).returncode
        self.assertEqual(code, Exit.MISSING)
        error = json.loads((directory / "error.json").read_text())
        self.assertEqual(error["code"], "dependency_missing")

    def test_a_result_that_cannot_be_delivered_does_not_count(self) -> None:
        with support.file_server() as server:
            outputs = {"report": {"url": f"{server.url}/report", "token": "secret"}}
            taken = self.refuse_results(server)
            self.failed(
                "output_unreachable",
                Exit.INTERNAL,
                support.diabetes_table(),
                outputs=outputs,
                problem_type="regression",
                feature_columns=["bmi"],
            )
            self.assertEqual([it["error"]["code"] for it in taken], ["output_unreachable"])

    @staticmethod
    def refuse_results(server: support.FileServer) -> list[dict]:
        """Makes a server refuse results. Returns the errors that it takes from then on."""
        errors: list[dict] = []

        def answer(body: dict) -> dict:
            if "error" in body:
                errors.append(body)
            if "result" in body:
                raise support.Refused(403)
            return {}

        server.answers["/report"] = answer
        return errors

    def test_a_combination_that_does_not_fit_is_reported(self) -> None:
        with support.file_server() as server:
            outputs = {"report": {"url": f"{server.url}/report", "token": "secret"}}
            outcome = support.train(None, outputs=outputs, quality_preset="worst_quality")
            self.assertEqual(outcome.code, Exit.UNSUPPORTED)
            self.assertEqual(server.posted[-1][2], {"error": outcome.error})


class Processes(unittest.TestCase):
    """Ends from outside, and files that others left."""

    def start(self, **changes: Any) -> tuple[Path, subprocess.Popen]:
        directory = support.run_directory(
            support.diabetes_table(), problem_type="regression", **changes
        )
        log = (directory / "log").open("wb")
        self.addCleanup(log.close)
        process = support.start("train", directory, stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return directory, process

    def wait_for(self, directory: Path, kind: str) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            path = directory / "events.jsonl"
            if path.exists() and f'"type": "{kind}"' in path.read_text():
                return
            time.sleep(0.05)
        self.fail(f"no event {kind}: {(directory / 'log').read_text()[-2000:]}")

    def test_term_ends_a_training_at_once(self) -> None:
        directory, process = self.start(quality_preset="best_quality", time_limit_seconds=300)
        self.wait_for(directory, "model_start")
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=10), Exit.CANCELLED)
        self.assertLess(time.monotonic() - started, 3)
        self.assertFalse((directory / "result.json").exists())

    def test_term_ends_children_too(self) -> None:
        program = (
            "import subprocess, sys, time\n"
            f"sys.path.insert(0, {str(support.TRAINER)!r})\n"
            "from labdata_trainer.processes import end_on_term\n"
            "end_on_term()\n"
            "subprocess.Popen(['sh', '-c', 'sleep 600 & wait'], start_new_session=True)\n"
            "print('ready', flush=True)\n"
            "time.sleep(600)\n"
        )
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        process.stdout.readline()
        deadline = time.monotonic() + 10
        while len(children := descendants(process.pid)) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(len(children), 2)
        process.terminate()
        self.assertEqual(process.wait(timeout=10), Exit.CANCELLED)
        for pid in children:
            with self.subTest(pid):
                self.assert_ended(pid)

    def assert_ended(self, pid: int) -> None:
        """A killed child may stay as a zombie until its new parent collects it."""
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            try:
                state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
            except OSError:
                return
            if state == b"Z":
                return
            time.sleep(0.01)
        self.fail(f"{pid} still runs")

    def test_heartbeats_continue_while_a_model_is_fitted(self) -> None:
        directory, process = self.start(quality_preset="best_quality", time_limit_seconds=300)
        self.wait_for(directory, "heartbeat")
        process.kill()
        lines = (directory / "events.jsonl").read_text().splitlines()
        beat = next(it for it in map(json.loads, lines) if it["type"] == "heartbeat")
        self.assertGreater(beat["memory_bytes"], 10 * 1024**2)
        self.assertGreaterEqual(beat["elapsed_seconds"], 5)

    def test_a_poisoned_artifact_is_not_loaded_by_a_training(self) -> None:
        directory = support.run_directory(
            support.diabetes_table(), problem_type="regression", feature_columns=["bmi"]
        )
        marker = directory / "poisoned"
        poison = directory / "poison"
        poison.mkdir()
        for name in ("predictor.pkl", "learner.pkl"):
            (poison / name).write_bytes(pickle.dumps(Poison(marker)))
        artifact.pack(poison, {}, directory / artifact.NAME)
        process = support.start(
            "train", directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.assertEqual(process.wait(timeout=120), Exit.OK)
        self.assertFalse(marker.exists())


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    unittest.main()
