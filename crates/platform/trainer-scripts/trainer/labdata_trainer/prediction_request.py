"""Requests of the prediction protocol: checks them and converts their columns."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from . import columns, transfer
from .columns import Feature, Problem
from .failure import Failure

MAX_BATCH_ROWS = 10_000
MAX_PROBLEMS = 100


class RequestError(Exception):
    """Request that cannot be predicted, with its problems."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(problems[0].message)
        self.problems = problems

    def as_json(self) -> dict[str, Any]:
        """Returns the first problem, with the next ones in `more`."""
        first, *more = [it.as_json() for it in self.problems[:MAX_PROBLEMS]]
        return {**first, "more": more}


@dataclass(frozen=True)
class Request:
    """Checked request. `images` holds its fetched files, if any. Answers have its format.

    `segmentation` has the thresholds of masks, if the request gives any.
    """

    id: Any
    frame: pd.DataFrame
    images: Path | None = None
    is_arrow: bool = False
    segmentation: Any = None

    def discard_images(self) -> None:
        """Deletes the fetched files."""
        if self.images is not None:
            shutil.rmtree(self.images, ignore_errors=True)


def request_id(message: Any) -> Any:
    """Returns the id of a message; none if it has no usable one."""
    value = message.get("id") if isinstance(message, dict) else None
    return value if isinstance(value, (str, int)) and not isinstance(value, bool) else None


def internal(message: str) -> dict[str, Any]:
    """Returns an error that no change of the values avoids."""
    return {"kind": "internal", "row": None, "column": None, "message": message, "more": []}


def wrong_column(column: str | None, message: str) -> RequestError:
    """Returns the error of a column as a whole."""
    return RequestError([Problem(None, column or "", message)])


def parse(message: dict[str, Any], features: list[Feature], images: Path) -> Request:
    """Converts a message into a request with a frame of all features."""
    given = message.get("columns")
    if not isinstance(given, dict):
        raise wrong_column(None, "`columns` must be an object of lists")
    missing = missing_columns(set(given), features)
    not_lists = [
        Problem(None, it.name, f'the column "{it.name}" must be a list of values')
        for it in features
        if it.name in given and not isinstance(given[it.name], list)
    ]
    if missing or not_lists:
        raise RequestError([*missing, *not_lists])
    rows = check_lengths(given, features)
    converted, problems = {}, []
    for feature in features:
        series, found = columns.parse(feature, given[feature.name])
        problems += found
        converted[feature.name] = series
    if problems:
        raise RequestError(sorted(problems, key=lambda it: it.row or 0))
    frame = pd.DataFrame(converted, index=pd.RangeIndex(rows), copy=False)
    names = [it.name for it in features if it.data_type == "image"]
    if not names:
        return Request(request_id(message), frame)
    images.mkdir(exist_ok=True)
    request = Request(
        request_id(message),
        frame,
        Path(tempfile.mkdtemp(dir=images)),
        segmentation=message.get("segmentation"),
    )
    try:
        return replace(request, frame=with_images(request, names, message.get("images")))
    except BaseException:
        request.discard_images()
        raise


def missing_columns(given: set[str], features: list[Feature]) -> list[Problem]:
    """Returns a problem for each feature that a request lacks."""
    return [
        Problem(None, it.name, f'the column "{it.name}" is missing')
        for it in features
        if it.name not in given
    ]


def check_rows(rows: int, features: list[Feature]) -> None:
    """Rejects requests without rows, and those with too many."""
    if rows == 0 or rows > MAX_BATCH_ROWS:
        raise wrong_column(
            features[0].name, f"a request has between 1 and {MAX_BATCH_ROWS} rows, not {rows}"
        )


def check_lengths(given: dict[str, list[Any]], features: list[Feature]) -> int:
    """Returns the number of rows, which all columns have."""
    rows = len(given[features[0].name])
    check_rows(rows, features)
    for feature in features:
        if len(given[feature.name]) != rows:
            raise wrong_column(
                feature.name,
                f'the column "{feature.name}" has {len(given[feature.name])} values; '
                f'"{features[0].name}" has {rows}',
            )
    return rows


def with_images(request: Request, names: list[str], locations: Any) -> pd.DataFrame:
    """Replaces file ids by local paths. `locations` names where each file can be fetched."""
    from . import images

    frame = request.frame
    locations = locations if isinstance(locations, dict) else {}
    check_files(
        frame,
        names,
        {
            file: None if file in locations else "it has no location"
            for name in names
            for file in frame[name]
        },
    )
    wanted = {file: str(locations[file]) for name in names for file in frame[name]}
    try:
        paths = transfer.fetch_all(wanted, request.images)
    except Failure as failure:
        raise wrong_column(names[0], failure.message) from failure
    check_files(frame, names, {file: images.unreadable(path) for file, path in paths.items()})
    return frame.assign(**{name: frame[name].map(lambda it: str(paths[it])) for name in names})


def check_files(frame: pd.DataFrame, names: list[str], reasons: dict[str, str | None]) -> None:
    """Rejects a request with files that have a reason against them."""
    problems = [
        Problem(row, name, f'the file "{file[:60]}" cannot be read as an image: {reasons[file]}')
        for name in names
        for row, file in enumerate(frame[name])
        if reasons[file] is not None
    ]
    if problems:
        raise RequestError(problems)
