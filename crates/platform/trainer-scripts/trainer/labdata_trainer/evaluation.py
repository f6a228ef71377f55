"""Metrics and pictures of a model from the rows that were held out of its training."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn import metrics

from .model import Prediction
from .numbers import plain

MAX_RESIDUALS = 1_000
MAX_CONFUSION_CLASSES = 100

PRIMARY_METRICS = {
    "binary": "accuracy",
    "multiclass": "accuracy",
    "regression": "root_mean_squared_error",
    "semantic_segmentation": "iou",
}

LOWER_IS_BETTER = {
    "log_loss",
    "root_mean_squared_error",
    "mean_absolute_error",
    "median_absolute_error",
}


@dataclass(frozen=True)
class HeldOut:
    """Actual and predicted targets of the held-out rows."""

    actual: list[Any]
    prediction: Prediction


def measured(values: dict[str, Callable[[], float]]) -> dict[str, dict[str, Any]]:
    """Calculates metrics. Leaves out those that these rows do not define."""
    result = {}
    for name, calculate in values.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                value = plain(calculate())
            except ValueError:
                continue
        if value is not None:
            result[name] = {"value": value, "higher_is_better": name not in LOWER_IS_BETTER}
    return result


def regression(held_out: HeldOut) -> dict[str, dict[str, Any]]:
    """Returns the metrics of a regression."""
    actual = np.array(held_out.actual, dtype=float)
    predicted = np.array(held_out.prediction.values, dtype=float)
    return measured(
        {
            "root_mean_squared_error": lambda: metrics.root_mean_squared_error(actual, predicted),
            "mean_absolute_error": lambda: metrics.mean_absolute_error(actual, predicted),
            "median_absolute_error": lambda: metrics.median_absolute_error(actual, predicted),
            "r2": lambda: metrics.r2_score(actual, predicted),
            "pearsonr": lambda: float(np.corrcoef(actual, predicted)[0, 1]),
        }
    )


def classification(held_out: HeldOut, classes: list[Any]) -> dict[str, dict[str, Any]]:
    """Returns the metrics of a classification. The last class of two is the positive one."""
    code = {label: index for index, label in enumerate(classes)}
    actual = np.array([code[plain(it)] for it in held_out.actual])
    predicted = np.array([code[plain(it)] for it in held_out.prediction.values])
    probabilities = held_out.prediction.probabilities
    is_binary = len(classes) == 2
    average, suffix = ("binary", "") if is_binary else ("macro", "_macro")
    options = {"average": average, "zero_division": 0}
    calculations: dict[str, Callable[[], float]] = {
        "accuracy": lambda: metrics.accuracy_score(actual, predicted),
        "balanced_accuracy": lambda: metrics.balanced_accuracy_score(actual, predicted),
        "mcc": lambda: metrics.matthews_corrcoef(actual, predicted),
        f"f1{suffix}": lambda: metrics.f1_score(actual, predicted, **options),
        f"precision{suffix}": lambda: metrics.precision_score(actual, predicted, **options),
        f"recall{suffix}": lambda: metrics.recall_score(actual, predicted, **options),
    }
    if probabilities is not None:
        all_labels = list(range(len(classes)))
        calculations["log_loss"] = lambda: metrics.log_loss(
            actual, probabilities, labels=all_labels
        )
        if is_binary:
            calculations["roc_auc"] = lambda: metrics.roc_auc_score(actual, probabilities[:, 1])
        else:
            calculations["roc_auc_ovr_macro"] = lambda: metrics.roc_auc_score(
                actual, normalized(probabilities), multi_class="ovr", labels=all_labels
            )
    return measured(calculations)


def normalized(probabilities: np.ndarray) -> np.ndarray:
    """Returns probabilities whose rows sum to 1 exactly enough for scikit-learn."""
    wide = probabilities.astype("float64")
    return wide / wide.sum(axis=1, keepdims=True)


def confusion_matrix(held_out: HeldOut, classes: list[Any]) -> dict[str, Any] | None:
    """Counts rows by actual class (outer list) and predicted class; none for very many classes."""
    if len(classes) > MAX_CONFUSION_CLASSES:
        return None
    code = {label: index for index, label in enumerate(classes)}
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    for actual, predicted in zip(held_out.actual, held_out.prediction.values, strict=True):
        counts[code[plain(actual)], code[plain(predicted)]] += 1
    return {"labels": classes, "counts": counts.tolist()}


def residuals(held_out: HeldOut, seed: int) -> list[dict[str, Any]]:
    """Returns actual and predicted values of at most [`MAX_RESIDUALS`] held-out rows."""
    rows = np.arange(len(held_out.actual))
    if len(rows) > MAX_RESIDUALS:
        rows = np.sort(np.random.default_rng(seed).choice(rows, MAX_RESIDUALS, replace=False))
    return [
        {"actual": plain(held_out.actual[row]), "predicted": plain(held_out.prediction.values[row])}
        for row in rows
    ]


def sample(test: pd.DataFrame, rows: int, seed: int) -> pd.DataFrame:
    """Returns at most that many rows of a frame."""
    return test if len(test) <= rows else test.sample(rows, random_state=seed % 2**32)
