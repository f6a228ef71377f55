"""Interface of a model, tabular or multimodal, for training and predicting."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from .numbers import label_text, plain

if TYPE_CHECKING:
    from .masks import Options


@dataclass(frozen=True)
class Prediction:
    """Predictions for a frame. `probabilities` has one row per row and one column per class.

    `codes` has the index of each predicted class in `classes`; none if there are no classes.
    """

    values: np.ndarray
    probabilities: np.ndarray | None = None
    class_names: list[str] = field(default_factory=list)
    classes: np.ndarray | None = None
    codes: np.ndarray | None = None

    def rows(self, start: int, end: int) -> tuple[list[Any], list[dict[str, Any]] | None]:
        """Returns predictions and probabilities of some rows, as JSON values."""
        values = [plain(value) for value in self.values[start:end]]
        if self.probabilities is None:
            return values, None
        numbers = self.probabilities[start:end].astype(float)
        if not np.isfinite(numbers).all():
            numbers = np.where(np.isfinite(numbers), numbers, None)
        return values, [dict(zip(self.class_names, row, strict=True)) for row in numbers.tolist()]


class Model(Protocol):
    """Fitted model."""

    def predict(self, frame: pd.DataFrame) -> Prediction:
        """Predicts the target for a frame of features."""


class SegmentingModel(Model, Protocol):
    """Fitted model of masks."""

    def segment(
        self, frame: pd.DataFrame, chosen: Options
    ) -> tuple[list[str], list[list[dict[str, Any]]]]:
        """Predicts the masks of images, as PNG images of all classes, and each with its confidence."""


class TrainedModel(Model, Protocol):
    """Fitted model, as its training has it."""

    def leaderboard(self, test: pd.DataFrame) -> list[dict[str, Any]]:
        """Returns the models that were tried, best first."""

    def feature_importance(self, test: pd.DataFrame, seed: int) -> list[dict[str, Any]] | None:
        """Returns the importance of each feature, most important first."""

    def save(self, directory: Path) -> None:
        """Writes only what predicting needs."""


def of_values(values: Any) -> Prediction:
    """Returns predictions that are no classes."""
    return Prediction(array(values))


def of_classes(codes: np.ndarray, probabilities: np.ndarray, classes: list[Any]) -> Prediction:
    """Returns predicted classes, by their indices."""
    labels = array(classes)
    names = [label_text(it) for it in classes]
    return Prediction(labels[codes], probabilities, names, labels, codes)


def array(values: Any) -> np.ndarray:
    """Returns values of one type as an array. Texts stay objects, which need not be padded."""
    values = np.asarray(values)
    return values.astype(object) if values.dtype.kind == "U" else values
