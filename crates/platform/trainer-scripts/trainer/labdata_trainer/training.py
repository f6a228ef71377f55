"""Steps of a training: reads, checks, fits, evaluates and packs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from . import artifact, evaluation, events, transfer
from . import dataset as datasets
from .dataset import Dataset
from .model import TrainedModel
from .run_directory import Manifest
from .versions import versions

# Most images whose locations are asked for at once.
MAX_LOCATIONS = 500


def train(run_directory: Path, manifest: Manifest) -> dict[str, Any]:
    """Reads, checks, fits, evaluates and packs. Returns the content of `result.json`."""
    events.begin_phase("reading")
    path = transfer.fetch(manifest.dataset, run_directory / "dataset.parquet", "The dataset")
    table = datasets.read(path, manifest)
    events.begin_phase("checking")
    dataset = datasets.check(table, manifest)
    del table
    if manifest.task_type != "tabular":
        locations = image_locations(dataset, manifest)
        images = transfer.fetch_all(locations, run_directory / "images")
        dataset = datasets.with_image_paths(dataset, images)
        check_images(images)
    training, test = datasets.split(dataset, manifest.seed)
    events.begin_phase("fitting")
    model = import_fitter(manifest).fit(dataset, training, manifest, run_directory / "fit")
    events.begin_phase("evaluating")
    result = evaluate(model, dataset, test, manifest)
    result["rows"] = {"train": len(training), "test": len(test)}
    events.begin_phase("packing")
    result["artifact"] = pack(model, result, manifest, run_directory)
    return result


def image_locations(dataset: Dataset, manifest: Manifest) -> dict[str, str]:
    """Returns the locations of the images that the dataset names, as far as they are known."""
    locations = dict(manifest.images)
    if manifest.image_locations is None:
        return locations
    unknown = [it for it in datasets.image_files(dataset) if it not in locations]
    for start in range(0, len(unknown), MAX_LOCATIONS):
        answer = manifest.image_locations.deliver(
            {"images": unknown[start : start + MAX_LOCATIONS]},
            "The images cannot be located",
            "input_unreachable",
        )
        locations.update(json.loads(answer)["images"])
    return locations


def check_images(paths: dict[str, Path]) -> None:
    """Rejects files that are no readable images."""
    # The environment of tabular models need not have Pillow.
    from . import images

    images.check(paths)


def import_fitter(manifest: Manifest) -> Any:
    """Imports the module that fits models of this task."""
    if manifest.task_type == "tabular":
        from . import tabular_model as fitter
    else:
        from . import multimodal_model as fitter
    return fitter


def evaluate(
    model: TrainedModel, dataset: Dataset, test: pd.DataFrame, manifest: Manifest
) -> dict[str, Any]:
    """Measures the model on the held-out rows."""
    result: dict[str, Any] = {
        "training_id": manifest.training_id,
        "attempt": manifest.attempt,
        "task_type": manifest.task_type,
        "quality_preset": manifest.quality_preset,
        "problem_type": dataset.problem_type,
        "target_column": dataset.target,
        "classes": dataset.classes,
        "features": [it.as_json() for it in dataset.features],
        "primary_metric": evaluation.PRIMARY_METRICS[dataset.problem_type],
        "confusion_matrix": None,
        "residuals": None,
        "versions": versions(),
    }
    if dataset.problem_type == "semantic_segmentation":
        result["metrics"] = model.segmentation_metrics(test)
    else:
        prediction = model.predict(test.drop(columns=[dataset.target]))
        held_out = evaluation.HeldOut(test[dataset.target].tolist(), prediction)
        if dataset.is_classification:
            result["metrics"] = evaluation.classification(held_out, dataset.classes)
            result["confusion_matrix"] = evaluation.confusion_matrix(held_out, dataset.classes)
        else:
            result["metrics"] = evaluation.regression(held_out)
            result["residuals"] = evaluation.residuals(held_out, manifest.seed)
    for name, metric in result["metrics"].items():
        events.emit("metric", name=name, **metric)
    result["leaderboard"] = model.leaderboard(test)
    result["feature_importance"] = model.feature_importance(test, manifest.seed)
    return result


def pack(
    model: TrainedModel, result: dict[str, Any], manifest: Manifest, run_directory: Path
) -> dict[str, Any]:
    """Writes the artifact and sends it. Returns its description."""
    directory = run_directory / "predictor"
    model.save(directory)
    names = (
        "training_id",
        "task_type",
        "problem_type",
        "target_column",
        "classes",
        "features",
        "versions",
    )
    described = {name: result[name] for name in names}
    written = artifact.pack(directory, described, run_directory / artifact.NAME)
    if manifest.artifact is not None:
        path = run_directory / artifact.NAME
        transfer.store(manifest.artifact, path, "The artifact of the training")
    return written
