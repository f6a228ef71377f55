"""Answers prediction requests with a loaded model, all waiting ones together."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from . import arrow_messages, columns, frames
from .columns import Feature
from .failure import Exit, is_memory_error
from .model import Model, SegmentingModel
from .numbers import finite
from .prediction_request import MAX_BATCH_ROWS, Request, RequestError, internal, request_id
from .prediction_request import parse as parse_request
from .versions import versions


class Predictor:
    """Loaded model with the features that it reads."""

    def __init__(
        self, manifest: dict[str, Any], model: Model | SegmentingModel, run_directory: Path
    ) -> None:
        self.manifest = manifest
        self.model = model
        self.images = run_directory / "images"
        self.features = [Feature(**it) for it in manifest["features"]]
        self.warm_up()

    def warm_up(self) -> None:
        """Predicts one row without values, so that the first request finds everything loaded."""
        if any(it.data_type == "image" for it in self.features):
            return
        try:
            nulls = {it.name: columns.parse(it, [None])[0] for it in self.features}
            self.model.predict(pd.DataFrame(nulls))
        except Exception:
            traceback.print_exc()

    def ready(self) -> dict[str, Any]:
        """Returns the first message."""
        names = ("training_id", "task_type", "problem_type", "target_column", "classes", "features")
        return finite(
            {
                "type": "ready",
                "protocol": 1,
                **{name: self.manifest[name] for name in names},
                "versions": versions(),
                "max_frame_bytes": frames.MAX_FRAME_BYTES,
                "max_batch_rows": MAX_BATCH_ROWS,
            }
        )

    def serve(self, source: BinaryIO, output: BinaryIO) -> Exit:
        """Answers requests. Those that wait at the same time are predicted together."""
        inbox = frames.Inbox(source)
        held: list[Request] = []
        while True:
            batch, held = self.next_batch(inbox, held, output)
            if not batch:
                return Exit.INTERNAL if inbox.is_truncated else Exit.OK
            for answer in self.answers(batch):
                frames.write_frame(output, answer)
            for request in batch:
                request.discard_images()

    def next_batch(
        self, inbox: frames.Inbox, held: list[Request], output: BinaryIO
    ) -> tuple[list[Request], list[Request]]:
        """Returns all waiting requests, up to a limit of rows, and a request that exceeds it.

        Answers requests with problems at once. Blocks while there is none.
        """
        batch, rows = list(held), sum(len(it.frame) for it in held)
        while (frame := inbox.take(is_blocking=not batch)) is not None:
            request = self.accept(frame, output)
            if request is None:
                continue
            if batch and rows + len(request.frame) > MAX_BATCH_ROWS:
                return batch, [request]
            batch.append(request)
            rows += len(request.frame)
        return batch, []

    def accept(self, frame: bytearray | frames.FrameError, output: BinaryIO) -> Request | None:
        """Returns the request of a frame, or answers with its problems and returns none."""
        identifier: Any = None
        try:
            if isinstance(frame, frames.FrameError):
                raise frame
            if arrow_messages.is_arrow(frame):
                identifier, message = arrow_messages.decode(frame)
            else:
                message = frames.decode(frame)
                identifier = request_id(message)
            if identifier is None:
                raise frames.FrameError("a request needs an `id`, a text or a whole number")
            if arrow_messages.is_arrow(frame):
                return arrow_messages.parse(identifier, message, self.features)
            return parse_request(message, self.features, self.images)
        except RequestError as error:
            answer = error.as_json()
        except frames.FrameError as error:
            answer = internal(str(error))
        except Exception as error:
            traceback.print_exc()
            answer = internal(f"the request cannot be read: {type(error).__name__}")
        frames.write_frame(output, message_of({"id": identifier, "error": answer}))
        return None

    def answers(self, batch: list[Request]) -> Iterator[frames.Body]:
        """Predicts a batch in one call; one by one if that call fails."""
        if self.manifest["problem_type"] == "semantic_segmentation":
            yield from map(self.segmented, batch)
            return
        try:
            if len(batch) == 1:
                predicted = self.model.predict(batch[0].frame)
            else:
                predicted = self.model.predict(
                    pd.concat([it.frame for it in batch], ignore_index=True)
                )
        except Exception as error:
            traceback.print_exc()
            if len(batch) > 1:
                for request in batch:
                    yield from self.answers([request])
                return
            yield message_of({"id": batch[0].id, "error": internal(reason(error))})
            return
        start = 0
        for request in batch:
            end = start + len(request.frame)
            if request.is_arrow:
                body = arrow_messages.encode(request.id, predicted, start, end)
                yield limited(request.id, body)
            else:
                values, probabilities = predicted.rows(start, end)
                yield message_of(
                    {"id": request.id, "predictions": values, "probabilities": probabilities}
                )
            start = end

    def segmented(self, request: Request) -> frames.Body:
        """Answers a request for masks, with its own thresholds."""
        from . import masks

        try:
            chosen = masks.options(request.segmentation)
            images, found = self.model.segment(request.frame, chosen)
        except Exception as error:
            traceback.print_exc()
            return message_of({"id": request.id, "error": internal(reason(error))})
        return message_of(
            {"id": request.id, "predictions": images, "probabilities": None, "masks": found}
        )


def reason(error: Exception) -> str:
    """Returns the message for a prediction that failed."""
    if is_memory_error(error):
        return "the model needs more memory than it may use: send fewer rows at once"
    return f"the model failed: {type(error).__name__}: {str(error)[:300]}"


def message_of(message: dict[str, Any]) -> frames.Body:
    """Returns the body of an answer in JSON."""
    return limited(message["id"], frames.encode(message))


def limited(identifier: Any, body: frames.Body) -> frames.Body:
    """Returns the body of an answer. One that is too long becomes an error."""
    if len(body) <= frames.MAX_FRAME_BYTES:
        return body
    text = f"the answer has more than {frames.MAX_FRAME_BYTES} bytes; send fewer rows at once"
    return frames.encode({"id": identifier, "error": internal(text)})
