"""The files of a run: reads the manifest and writes results atomically."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .callback import Callback, parse_callback
from .failure import Exit, Failure, unsupported
from .numbers import finite
from .transfer import Upload

TASK_TYPES = ("tabular", "multimodal", "segmentation")
PRESETS = ("best_quality", "high_quality", "good_quality", "medium_quality")
# Holds the secrets of a manifest that others can read.
SECRETS_VARIABLE = "LABDATA_TRAINER_SECRETS"
PROBLEM_TYPES = ("binary", "multiclass", "regression", "semantic_segmentation")


@dataclass(frozen=True)
class Manifest:
    """Order of a training, as in `manifest.json`."""

    training_id: str
    attempt: int
    task_type: str
    quality_preset: str
    problem_type: str
    target_column: str
    feature_columns: list[str] | None
    image_columns: list[str]
    seed: int
    time_limit_seconds: float
    cpus: int
    memory_bytes: int | None
    gpus: int
    dataset: str
    images: dict[str, str]
    image_locations: Callback | None = None
    artifact: Upload | None = None
    report: Callback | None = None
    checkpoints: dict[str, str] = field(default_factory=dict)


def read_manifest(run_directory: Path) -> Manifest:
    """Reads the manifest of a training."""
    try:
        raw = json.loads((run_directory / "manifest.json").read_text())
        secrets = os.environ.pop(SECRETS_VARIABLE, None)
        for more in (raw.pop("secrets", None), json.loads(secrets) if secrets else None):
            add(raw, more or {})
        return parse_manifest(raw)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Failure(
            Exit.INTERNAL,
            "manifest_invalid",
            f"The manifest is invalid: {type(error).__name__}: {error}",
        ) from error


def add(target: dict[str, Any], more: dict[str, Any]) -> None:
    """Adds the fields of one object to another, at all depths."""
    for name, value in more.items():
        if isinstance(value, dict) and isinstance(target.get(name), dict):
            add(target[name], value)
        else:
            target[name] = value


def parse_manifest(raw: dict[str, Any]) -> Manifest:
    """Converts the JSON of a manifest."""
    inputs = raw["inputs"]
    outputs = raw.get("outputs") or {}
    return Manifest(
        training_id=str(raw["training_id"]),
        attempt=int(raw["attempt"]),
        task_type=raw["task_type"],
        quality_preset=raw["quality_preset"],
        problem_type=raw["problem_type"],
        target_column=str(raw["target_column"]),
        feature_columns=raw.get("feature_columns"),
        image_columns=list(raw.get("image_columns") or []),
        seed=int(raw["seed"]),
        time_limit_seconds=float(raw["time_limit_seconds"]),
        cpus=max(1, int(raw["cpus"])),
        memory_bytes=raw.get("memory_bytes"),
        gpus=int(raw.get("gpus") or 0),
        dataset=str(inputs["dataset"]),
        images={str(key): str(value) for key, value in (inputs.get("images") or {}).items()},
        image_locations=parse_callback(inputs.get("image_locations")),
        artifact=parse_upload(outputs.get("artifact")),
        report=parse_callback(outputs.get("report")),
        checkpoints=dict(raw.get("checkpoints") or {}),
    )


def parse_upload(raw: Any) -> Upload | None:
    """Converts the JSON of a signed URL; none if it is absent."""
    return Upload(str(raw["url"]), dict(raw.get("headers") or {})) if raw else None


def check_combination(manifest: Manifest) -> None:
    """Rejects tasks, problem types and columns that do not fit together."""
    for name, value, allowed in (
        ("task_type", manifest.task_type, TASK_TYPES),
        ("quality_preset", manifest.quality_preset, PRESETS),
        ("problem_type", manifest.problem_type, PROBLEM_TYPES),
    ):
        if value not in allowed:
            raise unsupported(f"unknown_{name}", f"{name} {value!r} is not supported.")
    is_segmentation = manifest.task_type == "segmentation"
    if not is_segmentation and manifest.problem_type == "semantic_segmentation":
        raise unsupported(
            "problem_type_not_supported",
            "problem_type semantic_segmentation needs task_type segmentation, "
            f"not {manifest.task_type}.",
        )
    if is_segmentation and manifest.problem_type != "semantic_segmentation":
        raise unsupported(
            "problem_type_not_supported",
            "task_type segmentation supports only problem_type semantic_segmentation, "
            f"not {manifest.problem_type}.",
        )
    if manifest.task_type == "tabular" and manifest.image_columns:
        raise unsupported(
            "image_columns_not_supported",
            "task_type tabular does not read images. Use task_type multimodal, or leave out "
            "image_columns.",
        )
    if is_segmentation and len(manifest.image_columns) != 1:
        raise unsupported(
            "image_columns_not_supported",
            "task_type segmentation needs exactly one image column, "
            f"not {len(manifest.image_columns)}.",
        )
    if manifest.target_column in [*(manifest.feature_columns or []), *manifest.image_columns]:
        raise unsupported(
            "target_is_feature",
            f'The target column "{manifest.target_column}" is also listed as a feature. Remove it '
            "from the feature columns.",
        )


def write_json(path: Path, value: object) -> None:
    """Writes a JSON file such that readers see all of it or nothing."""
    pending = path.with_name(path.name + ".tmp")
    with pending.open("w", encoding="utf-8") as file:
        json.dump(finite(value), file, allow_nan=False, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    pending.rename(path)
