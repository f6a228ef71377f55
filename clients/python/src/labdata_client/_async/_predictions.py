"""Predictions by ML models, in as many requests as the rows need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labdata_client._progress import Progress
from labdata_client._results import Predictions
from labdata_client.errors import body_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ._transport import AsyncTransport

REQUEST_ROWS = 10_000
"""Rows of one request."""


async def predict(
    transport: AsyncTransport,
    model: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    *,
    progress: bool | None,
) -> Predictions:
    """Predict rows with a model; without rows, one request checks that it exists."""
    found: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    answer: dict[str, Any] = {}
    shown = progress if len(rows) > REQUEST_ROWS else False
    with Progress(shown, "predict", " rows", len(rows)) as bar:
        start = 0
        while start < len(rows) or not answer:
            chunk = rows[start : start + REQUEST_ROWS]
            response = await transport.request("POST", "/ml-models/predict", json={**model, "data": chunk})
            answer = body_of(response)
            probabilities = answer["probabilities"] or [None] * len(chunk)
            found.extend(
                {"prediction": prediction, "probabilities": by_class}
                for prediction, by_class in zip(answer["predictions"], probabilities)
            )
            annotations.extend(answer.get("annotations") or [])
            start += len(chunk)
            bar.advance(len(chunk))
    return Predictions(
        found,
        model_id=answer["model_id"],
        model_name=answer["model_name"],
        annotations=annotations if "annotations" in answer else None,
    )
