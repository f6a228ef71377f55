"""Tabular models: AutoGluon's TabularPredictor."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
from autogluon.core.callbacks import AbstractCallback
from autogluon.tabular import TabularPredictor

from . import evaluation, events
from .dataset import Dataset
from .failure import (
    MEMORY_ERRORS,
    MEMORY_SIGNS,
    TIME_ERRORS,
    Exit,
    Failure,
    out_of_memory,
    time_limit_too_short,
)
from .model import Prediction, of_classes, of_values
from .numbers import plain
from .run_directory import Manifest

IMPORTANCE_ROWS = 1_000
IMPORTANCE_SECONDS = 5.0
LEADERBOARD_ROWS = 2_000
# Model types that AutoGluon tries by default, with the package that each needs.
OPTIONAL_MODELS = {
    "CAT": "catboost",
    "FASTAI": "fastai",
    "GBM": "lightgbm",
    "NN_TORCH": "torch",
    "XGB": "xgboost",
}
# AutoGluon plans with it; the sandbox enforces the limit itself.
MEMORY_SHARE = 0.9


class Progress(AbstractCallback):
    """Emits an event before and after each model. Scores get the sign that people expect."""

    def __init__(self) -> None:
        super().__init__()
        self.tried = 0
        self.current = ""
        self.best: float | None = None
        self.started = time.monotonic()

    def _before_model_fit(self, trainer: Any, model: Any, **_: Any) -> tuple[bool, bool]:
        self.started, self.current = time.monotonic(), model.name
        events.emit("model_start", model=model.name)
        return False, False

    def _after_model_fit(self, trainer: Any, model_names: list[str], **_: Any) -> bool:
        self.tried += 1
        metric = trainer.eval_metric
        for name in model_names:
            score = trainer.get_model_attribute(model=name, attribute="val_score", default=None)
            if score is not None and (self.best is None or score > self.best):
                self.best = score
            events.emit(
                "model_done",
                model=name,
                failed=False,
                metric=metric.name,
                score=with_sign(score, metric),
                best_score=with_sign(self.best, metric),
                higher_is_better=metric.greater_is_better_internal,
                models_tried=self.tried,
                fit_seconds=time.monotonic() - self.started,
            )
        if not model_names:
            events.emit("model_done", model=self.current, failed=True, models_tried=self.tried)
        return False


def with_sign(score: float | None, metric: Any) -> float | None:
    """Returns a score as its metric is defined. AutoGluon negates errors: higher is better."""
    if score is None:
        return None
    return float(score) if metric.greater_is_better_internal else -float(score)


class TabularModel:
    """Fitted TabularPredictor."""

    def __init__(self, predictor: TabularPredictor) -> None:
        self.predictor = predictor
        self.classes: list[Any] = list(predictor.class_labels or [])
        self.name = repeated_model(predictor)

    def predict(self, frame: pd.DataFrame) -> Prediction:
        """Predicts the target. One pass through the models gives classes and probabilities."""
        if not self.predictor.can_predict_proba:
            return of_values(self.predictor.predict(frame, model=self.name, as_pandas=False))
        probabilities = self.predictor.predict_proba(frame, model=self.name, as_pandas=False)
        threshold = self.predictor.decision_threshold
        if len(self.classes) == 2 and threshold is not None:
            codes = (probabilities[:, 1] > threshold).astype(int)
        else:
            codes = probabilities.argmax(axis=1)
        return of_classes(codes, probabilities, self.classes)

    def leaderboard(self, test: pd.DataFrame) -> list[dict[str, Any]]:
        """Returns the models that can predict, with their scores on held-out rows."""
        metric = self.predictor.eval_metric
        sampled = evaluation.sample(test, LEADERBOARD_ROWS, 0)
        table = self.predictor.leaderboard(sampled, display=False)
        return [
            {
                "model": row["model"],
                "score": with_sign(row["score_test"], metric),
                "validation_score": with_sign(row["score_val"], metric),
                "fit_seconds": plain(row["fit_time"]),
                "predict_seconds": plain(row["pred_time_test"]),
            }
            for row in table.to_dict("records")
            if plain(row["score_test"]) is not None
        ]

    def feature_importance(self, test: pd.DataFrame, seed: int) -> list[dict[str, Any]] | None:
        """Returns the loss of score when a feature is shuffled; none if it takes too long."""
        sampled = evaluation.sample(test, IMPORTANCE_ROWS, seed)
        started = time.monotonic()
        self.predict(sampled)
        features = len(test.columns) - 1
        if (time.monotonic() - started) * features > 4 * IMPORTANCE_SECONDS:
            events.warn("importance_skipped", "The importance of features would take too long.")
            return None
        table = self.predictor.feature_importance(
            sampled,
            time_limit=IMPORTANCE_SECONDS,
            num_shuffle_sets=5,
            include_confidence_band=False,
            silent=True,
        )
        return [
            {
                "feature": name,
                "importance": plain(row["importance"]),
                "stddev": plain(row["stddev"]),
            }
            for name, row in table.iterrows()
        ]

    def save(self, directory: Path) -> None:
        """Writes the best model and the models that it depends on."""
        self.predictor.clone_for_deployment(str(directory))


def repeated_model(predictor: TabularPredictor) -> str | None:
    """Returns the model that the best one repeats; none if it does not.

    The best model is a weighted ensemble. One of a single model adds a fifth to the time of a
    prediction, and changes nothing unless it is calibrated.
    """
    best = predictor.model_best
    model = predictor._trainer.load_model(best)
    if any(getattr(model, it, True) for it in ("temperature_scalar", "conformalize")):
        return None
    members = list((predictor.model_info(best).get("children_info") or {}).values())
    weights = members[0].get("model_weights") if len(members) == 1 else None
    return next(iter(weights)) if weights and list(weights.values()) == [1.0] else None


def fit(dataset: Dataset, train: pd.DataFrame, manifest: Manifest, directory: Path) -> TabularModel:
    """Fits a tabular model within the time limit."""
    predictor = TabularPredictor(
        label=dataset.target,
        problem_type=dataset.problem_type,
        path=str(directory),
        verbosity=2,
        # Classes are large enough by now, and none is dropped silently.
        learner_kwargs={"random_state": manifest.seed % 2**32, "label_count_threshold": 2},
    )
    memory: float | str = "auto"
    if manifest.memory_bytes:
        granted = manifest.memory_bytes * MEMORY_SHARE
        if (events.resident_bytes() or 0) >= granted:
            # AutoGluon would fit what is left of its models after one step.
            raise out_of_memory()
        memory = granted / 1e9
    predictor.fit(
        train,
        presets=manifest.quality_preset,
        time_limit=manifest.time_limit_seconds,
        num_cpus=manifest.cpus,
        num_gpus=manifest.gpus,
        memory_limit=memory,
        excluded_model_types=[
            it for it, package in OPTIONAL_MODELS.items() if not find_spec(package)
        ],
        callbacks=[Progress()],
        raise_on_no_models_fitted=False,
    )
    if not predictor.model_names():
        raise no_model(predictor, manifest)
    # Evaluation reads each model many times.
    predictor.persist(max_memory=None)
    return TabularModel(predictor)


def no_model(predictor: TabularPredictor, manifest: Manifest) -> Failure:
    """Returns the reason why no model could be fitted."""
    failures = predictor.model_failures()
    kinds = set(failures["exc_type"]) if len(failures) else set()
    texts = " ".join(map(str, failures["exc_str"])) if kinds else ""
    if kinds & MEMORY_ERRORS or any(sign in texts for sign in MEMORY_SIGNS):
        return out_of_memory()
    if not kinds or kinds & TIME_ERRORS:
        return time_limit_too_short(manifest.time_limit_seconds)
    first = failures.iloc[0]
    reason = f"{first['exc_type']}: {first['exc_str']}"
    return Failure(
        Exit.INTERNAL, "no_model", f"No model could be fitted. The first error was {reason}"
    )


def load(directory: Path) -> TabularModel:
    """Loads a saved model into memory. Runs pickles."""
    predictor = TabularPredictor.load(str(directory), verbosity=1)
    predictor.persist(max_memory=None)
    return TabularModel(predictor)
