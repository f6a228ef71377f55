"""Models of images, texts and tables, and of segmentation: AutoGluon's MultiModalPredictor."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from autogluon.multimodal import MultiModalPredictor

from . import events, masks
from .dataset import Dataset
from .failure import Exit, Failure, names, time_limit_too_short
from .images import png
from .model import Prediction, of_classes, of_values
from .run_directory import Manifest

# AutoGluon has no good_quality for these models.
PRESETS = {
    "best_quality": "best_quality",
    "high_quality": "high_quality",
    "good_quality": "high_quality",
    "medium_quality": "medium_quality",
}
# Segmentation ignores presets: the size of the model expresses the quality.
SEGMENTATION_CHECKPOINTS = {
    "best_quality": "facebook/sam-vit-huge",
    "high_quality": "facebook/sam-vit-large",
    "good_quality": "facebook/sam-vit-large",
    "medium_quality": "facebook/sam-vit-base",
}
CHECKPOINT_SETTINGS = {
    "image": "model.timm_image.checkpoint_name",
    "text": "model.hf_text.checkpoint_name",
    "segmentation": "model.sam.checkpoint_name",
}
COLUMN_TYPES = {
    "image": "image_path",
    "integer": "numerical",
    "float": "numerical",
    "boolean": "numerical",
}
MODEL_NAME = "MultiModalPredictor"
# Errors of the model hub's client when a checkpoint is not on this machine.
CHECKPOINT_ERRORS = (
    "LocalEntryNotFoundError",
    "OfflineModeIsEnabled",
    "RepositoryNotFoundError",
    "couldn't connect to",
    "outgoing traffic has been disabled",
    "is not a local folder and is not a valid model identifier",
    "does not exist or model is invalid",
)


class MultimodalModel:
    """Fitted MultiModalPredictor."""

    def __init__(self, predictor: MultiModalPredictor, problem_type: str) -> None:
        self.predictor = predictor
        self.problem_type = problem_type
        self.classes = [] if is_without_classes(problem_type) else list(predictor.class_labels)
        self.fit_seconds: float | None = None

    def predict(self, frame: pd.DataFrame) -> Prediction:
        """Predicts the target."""
        frame = readable(frame.reset_index(drop=True))
        if self.problem_type == "regression":
            return of_values(self.predictor.predict(frame, as_pandas=False))
        probabilities = self.predictor.predict_proba(frame, as_pandas=False)
        codes = probabilities.argmax(axis=1)
        return of_classes(codes, probabilities, self.classes)

    def segment(
        self, frame: pd.DataFrame, chosen: masks.Options
    ) -> tuple[list[str], list[list[dict[str, Any]]]]:
        """Predicts the masks of images, as PNG images of all classes, and each with its confidence.

        One image at a time: the probabilities of a large image take hundreds of megabytes.
        """
        images, found = [], []
        for row in range(len(frame)):
            one = frame.iloc[[row]].reset_index(drop=True)
            image, of_image = masks.of_classes(self.probabilities(one), chosen)
            images.append(png(image))
            found.append(of_image)
        return images, found

    def probabilities(self, frame: pd.DataFrame) -> np.ndarray:
        """Returns the probabilities of the pixels of one image, by class if there are several."""
        try:
            found = self.predictor.predict_proba(frame, as_pandas=False, as_multiclass=False)
        except AssertionError:
            # So it is asked for a model of several classes.
            found = self.predictor.predict_proba(frame, as_pandas=False)
        values = np.asarray(found[0])
        # Whatever the size of the image is, the last three dimensions are class, height and width.
        values = values.reshape(values.shape[-3:])
        return values[0] if len(values) == 1 else values

    def segmentation_metrics(self, test: pd.DataFrame) -> dict[str, dict[str, Any]]:
        """Returns the intersection over union on held-out images."""
        scores = self.predictor.evaluate(test.reset_index(drop=True), metrics=["iou"])
        return {"iou": {"value": float(scores["iou"]), "higher_is_better": True}}

    def leaderboard(self, test: pd.DataFrame) -> list[dict[str, Any]]:
        """Returns the single model that AutoGluon fits here. The caller knows its score."""
        return [
            {
                "model": MODEL_NAME,
                "score": None,
                "validation_score": None,
                "fit_seconds": self.fit_seconds,
                "predict_seconds": None,
            }
        ]

    def feature_importance(self, test: pd.DataFrame, seed: int) -> None:
        """Returns none: AutoGluon does not calculate it for these models."""
        return None

    def save(self, directory: Path) -> None:
        """Writes the model with everything that predicting needs without a network."""
        self.predictor.save(str(directory), standalone=True)


def is_without_classes(problem_type: str) -> bool:
    """Returns true for problems whose predictions are no classes."""
    return problem_type in ("regression", "semantic_segmentation")


def readable(frame: pd.DataFrame) -> pd.DataFrame:
    """Converts dates to texts, which AutoGluon's multimodal models read."""
    dates = frame.select_dtypes("datetime64[ns]").columns
    return (
        frame.assign(**{name: frame[name].astype(str) for name in dates}) if len(dates) else frame
    )


def fit(
    dataset: Dataset, train: pd.DataFrame, manifest: Manifest, directory: Path
) -> MultimodalModel:
    """Fits a multimodal or segmentation model within the time limit."""
    is_segmentation = manifest.task_type == "segmentation"
    predictor = MultiModalPredictor(
        label=dataset.target,
        problem_type=dataset.problem_type,
        path=str(directory),
        verbosity=2,
        enable_progress_bar=False,
    )
    events.emit("model_start", model=MODEL_NAME)
    started = time.monotonic()
    try:
        predictor.fit(
            readable(train),
            presets=None if is_segmentation else PRESETS[manifest.quality_preset],
            time_limit=max(1, int(manifest.time_limit_seconds)),
            hyperparameters=hyperparameters(manifest),
            # AutoGluon has other types for the images of a segmentation.
            column_types=None if is_segmentation else column_types(dataset),
            seed=manifest.seed % 2**32,
        )
    except Exception as error:
        failure = explained(error, manifest, time.monotonic() - started)
        if failure is None:
            raise
        raise failure from error
    model = MultimodalModel(predictor, dataset.problem_type)
    model.fit_seconds = time.monotonic() - started
    events.emit(
        "model_done",
        model=MODEL_NAME,
        failed=False,
        models_tried=1,
        fit_seconds=model.fit_seconds,
    )
    return model


def hyperparameters(manifest: Manifest) -> dict[str, Any]:
    """Returns the settings of the machine and of the checkpoints."""
    settings: dict[str, Any] = {
        "env.num_gpus": manifest.gpus,
        "env.num_workers": 0,
        "env.num_workers_inference": 0,
    }
    if not manifest.gpus:
        settings["env.precision"] = 32
    checkpoints = dict(manifest.checkpoints)
    if manifest.task_type == "segmentation":
        settings["env.per_gpu_batch_size"] = 1
        checkpoints.setdefault("segmentation", SEGMENTATION_CHECKPOINTS[manifest.quality_preset])
    kinds = ("segmentation",) if manifest.task_type == "segmentation" else ("image", "text")
    for kind in kinds:
        if kind in checkpoints:
            settings[CHECKPOINT_SETTINGS[kind]] = checkpoints[kind]
    return settings


def column_types(dataset: Dataset) -> dict[str, str]:
    """Returns the types of columns that AutoGluon should not guess."""
    return {
        it.name: COLUMN_TYPES[it.data_type]
        for it in dataset.features
        if it.data_type in COLUMN_TYPES
    }


def explained(error: Exception, manifest: Manifest, seconds: float) -> Failure | None:
    """Returns the failure that an error of a fit means; none if it has no special meaning."""
    text = f"{type(error).__name__}: {error}"
    if any(sign in f"{text} {names(error)}" for sign in CHECKPOINT_ERRORS):
        return Failure(
            Exit.MISSING,
            "checkpoint_missing",
            "The pretrained model that the training starts from is not on the training machine. "
            f"Ask the operator of the server to install it. The reason was {text[:300]}",
        )
    if isinstance(error, FileNotFoundError) and seconds >= manifest.time_limit_seconds:
        # No checkpoint was written before the time limit.
        return time_limit_too_short(manifest.time_limit_seconds)
    return None


def load(directory: Path, problem_type: str) -> MultimodalModel:
    """Loads a saved model. Runs pickles."""
    predictor = MultiModalPredictor.load(str(directory), verbosity=1)
    return MultimodalModel(predictor, problem_type)
