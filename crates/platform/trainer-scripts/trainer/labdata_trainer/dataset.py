"""The dataset of a training: reads it, checks that a model can be trained on it, and splits it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import compute
from sklearn.model_selection import train_test_split

from . import columns, events
from .columns import Feature
from .failure import bad_data, unsupported
from .numbers import listed, plain, quoted
from .run_directory import Manifest

MIN_ROWS = 10
MIN_ROWS_PER_CLASS = 5
TEST_FRACTION = 0.2
MAX_TEST_ROWS = 50_000


@dataclass(frozen=True)
class Dataset:
    """Checked dataset: features and target in one frame, without rows that lack the target."""

    frame: pd.DataFrame
    features: list[Feature]
    target: str
    problem_type: str
    classes: list[Any] | None

    @property
    def is_classification(self) -> bool:
        """True if the target is a class."""
        return self.classes is not None


def read(path: Path, manifest: Manifest) -> pa.Table:
    """Reads the columns that the training needs."""
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise bad_data("dataset_unreadable", f"The dataset is no Parquet file: {error}") from error
    present = set(schema.names)
    if manifest.target_column not in present:
        raise bad_data(
            "target_missing",
            f"The dataset has no target column {quoted(manifest.target_column)}. "
            f"Its columns are: {listed(schema.names, 20)}.",
        )
    wanted = feature_names(manifest, schema)
    missing = [quoted(name) for name in wanted if name not in present]
    if missing:
        raise bad_data(
            "feature_missing",
            f"The dataset lacks the columns {listed(missing)}. "
            f"Its columns are: {listed(schema.names, 20)}.",
        )
    try:
        return pq.read_table(path, columns=[*wanted, manifest.target_column])
    except (pa.ArrowInvalid, OSError) as error:
        raise bad_data("dataset_unreadable", f"The dataset cannot be read: {error}") from error


def feature_names(manifest: Manifest, schema: pa.Schema) -> list[str]:
    """Returns the names of the feature columns, image columns included, in a fixed order."""
    if manifest.task_type == "segmentation":
        return manifest.image_columns
    if manifest.feature_columns is not None:
        return list(dict.fromkeys([*manifest.feature_columns, *manifest.image_columns]))
    usable = []
    for field in schema:
        if field.name == manifest.target_column:
            continue
        if field.name in manifest.image_columns or columns.data_type(field.type) is not None:
            usable.append(field.name)
        else:
            events.warn(
                "column_skipped",
                f"The column {quoted(field.name)} is left out: a model cannot read values of type "
                f"{field.type}.",
            )
    return usable


def check(table: pa.Table, manifest: Manifest) -> Dataset:
    """Checks target and features, and converts them."""
    table = drop_rows_without_target(table, manifest.target_column)
    if manifest.image_columns:
        table = drop_rows_without_images(table, manifest.image_columns)
    if table.num_rows < MIN_ROWS:
        raise bad_data(
            "too_few_rows",
            f"The dataset has {table.num_rows} usable rows with a value in the target column "
            f"{quoted(manifest.target_column)}; training needs at least {MIN_ROWS}.",
        )
    target = table.column(manifest.target_column)
    if manifest.task_type == "segmentation":
        problem_type, classes, values = (
            "semantic_segmentation",
            None,
            columns.series(target, "string"),
        )
    else:
        problem_type, classes, values = check_target(target, manifest)
    features = check_features(table.drop_columns([manifest.target_column]), manifest)
    data = {it.name: columns.series(table.column(it.name), it.data_type) for it in features}
    data[manifest.target_column] = values
    frame = pd.DataFrame(data, copy=False)
    return Dataset(frame, features, manifest.target_column, problem_type, classes)


def drop_rows_without_target(table: pa.Table, name: str) -> pa.Table:
    """Drops rows whose target is null, NaN or infinite."""
    target = table.column(name)
    has_value = target.is_valid()
    if pa.types.is_floating(target.type):
        has_value = compute.and_(has_value, compute.fill_null(compute.is_finite(target), False))
    usable = table.filter(has_value)
    dropped = table.num_rows - usable.num_rows
    if table.num_rows and not usable.num_rows:
        raise bad_data("target_empty", f"The target column {quoted(name)} has no value in any row.")
    if dropped:
        events.warn(
            "rows_without_target",
            f"{dropped} of {table.num_rows} rows are left out: no value in {quoted(name)}.",
        )
    return usable


def drop_rows_without_images(table: pa.Table, names: list[str]) -> pa.Table:
    """Drops rows that lack an image."""
    has_images = np.ones(table.num_rows, dtype=bool)
    for name in names:
        has_images &= table.column(name).is_valid().to_numpy()
    usable = table.filter(pa.array(has_images))
    dropped = table.num_rows - usable.num_rows
    if dropped:
        events.warn(
            "rows_without_image",
            f"{dropped} of {table.num_rows} rows are left out: they have no image.",
        )
    return usable


def check_target(
    target: pa.ChunkedArray, manifest: Manifest
) -> tuple[str, list[Any] | None, pd.Series]:
    """Returns the problem type, the classes and the values of the target."""
    name, kind = quoted(manifest.target_column), columns.data_type(target.type)
    if kind is None or kind in columns.TEMPORAL:
        raise unsupported(
            "target_type_not_supported",
            f"The target column {name} has values of type {target.type}. A model predicts numbers, "
            "texts, or true and false.",
        )
    values = columns.labels(target, kind)
    distinct = values.unique()
    if len(distinct) == 1:
        raise bad_data(
            "constant_target",
            f"Every row has the same value, {quoted(distinct[0])}, in the target column {name}. "
            "A model needs at least two different values.",
        )
    problem_type = manifest.problem_type
    if problem_type == "regression":
        if kind not in columns.NUMERIC:
            raise bad_data(
                "target_not_numeric",
                f"The target column {name} contains values such as {quoted(distinct[0])}; "
                "problem_type regression needs numbers. Use problem_type multiclass, or convert "
                "the column.",
            )
        return problem_type, None, columns.series(target, kind)
    if problem_type == "binary" and len(distinct) != 2:
        raise bad_data(
            "target_not_binary",
            f"The target column {name} has {len(distinct)} different values, such as "
            f"{listed([quoted(it) for it in distinct[:3]])}; problem_type binary needs exactly 2. "
            "Use problem_type multiclass or regression.",
        )
    check_class_sizes(values, name)
    return problem_type, sorted(map(plain, distinct)), values


def check_class_sizes(values: pd.Series, name: str) -> None:
    """Rejects classes with too few rows to learn from and to evaluate on."""
    counts = values.value_counts(sort=False)
    small = counts[counts < MIN_ROWS_PER_CLASS].sort_index()
    if small.empty:
        return
    if len(small) == 1:
        rows = int(small.iloc[0])
        few = f"The class {quoted(small.index[0])} of {name} has only {rows} row{'s'[: rows - 1]}"
        advice = "Add rows of this class, merge it with another one, or leave it out"
    else:
        shown = listed([f"{quoted(label)} ({rows})" for label, rows in small.items()])
        few = f"{len(small)} classes of {name} have too few rows: {shown}"
        advice = "Add rows of these classes, merge them, or leave them out"
    raise bad_data(
        "too_few_rows_of_class",
        f"{few}; every class needs at least {MIN_ROWS_PER_CLASS} rows. {advice} of the dataset.",
    )


def check_features(table: pa.Table, manifest: Manifest) -> list[Feature]:
    """Returns the usable features. Columns without any value are left out."""
    features, empty, constant = [], [], 0
    for name in table.column_names:
        values = table.column(name)
        if values.null_count == len(values):
            empty.append(name)
            continue
        if name in manifest.image_columns:
            features.append(Feature(name, "image", False))
            continue
        kind = columns.data_type(values.type)
        if kind is None:
            raise bad_data(
                "feature_type_not_supported",
                f"The feature column {quoted(name)} has values of type {values.type}, which no "
                "model can read. Leave it out of feature_columns.",
            )
        feature = columns.describe(name, values, kind)
        constant += is_constant(values)
        features.append(feature)
    if not features:
        raise bad_data(
            "features_empty",
            f"No feature column has a value in any row: {listed([quoted(it) for it in empty])}."
            if empty
            else "The dataset has no feature column besides the target.",
        )
    if constant == len(features):
        raise bad_data(
            "features_constant",
            "Every feature column has the same value in all rows: there is nothing to learn from.",
        )
    if empty:
        events.warn(
            "empty_columns",
            f"The columns {listed([quoted(it) for it in empty])} are left out: they have no value.",
        )
    return features


def is_constant(values: pa.ChunkedArray) -> bool:
    """Returns true if all rows have the same value."""
    return values.null_count == 0 and len(values.unique()) == 1


def split(dataset: Dataset, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns rows to train on and rows to evaluate on. The seed alone decides which."""
    rows = len(dataset.frame)
    test = min(math.ceil(rows * TEST_FRACTION), MAX_TEST_ROWS)
    stratify = dataset.frame[dataset.target] if dataset.is_classification else None
    parts = train_test_split(
        dataset.frame, test_size=test, random_state=seed % 2**32, stratify=stratify
    )
    return parts[0].reset_index(drop=True), parts[1].reset_index(drop=True)


def image_columns(dataset: Dataset) -> list[str]:
    """Returns the names of the columns of images, masks of a segmentation included."""
    names = [it.name for it in dataset.features if it.data_type == "image"]
    if dataset.problem_type == "semantic_segmentation":
        names.append(dataset.target)
    return names


def image_files(dataset: Dataset) -> list[str]:
    """Returns the ids of all images, each once."""
    ids = (dataset.frame[name].unique() for name in image_columns(dataset))
    return list(dict.fromkeys(str(it) for column in ids for it in column))


def with_image_paths(dataset: Dataset, paths: dict[str, Path]) -> Dataset:
    """Replaces file ids in image columns, and in the masks of a segmentation, by local paths."""
    names = image_columns(dataset)
    known = {file: str(path) for file, path in paths.items()}
    replaced = {}
    for name in names:
        unknown = [quoted(it) for it in dataset.frame[name].unique() if it not in known]
        if unknown:
            raise bad_data(
                "image_missing",
                f"The column {quoted(name)} names files that cannot be used: {listed(unknown)}. "
                "Use the ids of uploaded image files.",
            )
        replaced[name] = dataset.frame[name].map(known)
    return replace(dataset, frame=dataset.frame.assign(**replaced))
