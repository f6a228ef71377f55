"""Reports of a training to the platform: its progress while it runs, then its result or error."""

from __future__ import annotations

import http.client
import threading
import time
from typing import Any

from .callback import Callback

INTERVAL_SECONDS = 1.0
PROGRESS_TIMEOUT_SECONDS = 10.0


class Reporter:
    """Sends the progress from a thread, at most once per second, then the result or the error."""

    def __init__(self, callback: Callback) -> None:
        self.callback = callback
        self.progress: dict[str, Any] = {
            "phase": "preparing",
            "models_tried": 0,
            "best_score": None,
        }
        self.changed = threading.Condition()
        self.has_news = False
        self.is_sending = False
        self.is_closed = False

    def start(self) -> None:
        """Begins to send the progress."""
        threading.Thread(target=self.run, name="reporter", daemon=True).start()

    def add(self, event: dict[str, Any]) -> None:
        """Takes an event into the progress. Never waits for the platform."""
        with self.changed:
            if event["type"] == "phase":
                self.progress["phase"] = event["phase"]
            elif event["type"] == "model_done":
                self.progress["models_tried"] = event["models_tried"]
                if event.get("best_score") is not None:
                    self.progress["best_score"] = {
                        "metric": event["metric"],
                        "value": event["best_score"],
                    }
            else:
                return
            self.has_news = True
            self.changed.notify_all()

    def run(self) -> None:
        """Sends news until the process ends."""
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.has_news and not self.is_closed)
                self.is_sending = True
            self.send_progress()
            with self.changed:
                self.is_sending = False
                self.changed.notify_all()
            time.sleep(INTERVAL_SECONDS)

    def send_progress(self) -> None:
        """Sends the progress. If the platform does not take it, the next attempt sends the latest."""
        with self.changed:
            self.has_news = False
            body = {"progress": dict(self.progress)}
        try:
            self.callback.post(body, PROGRESS_TIMEOUT_SECONDS)
        except (OSError, http.client.HTTPException):
            with self.changed:
                self.has_news = True

    def finish(self, kind: str, content: dict[str, Any]) -> None:
        """Sends the latest progress, which tells where a training failed, then the result or the
        error; retries the latter if need be. No progress follows."""
        with self.changed:
            self.is_closed = True
            self.changed.wait_for(lambda: not self.is_sending, PROGRESS_TIMEOUT_SECONDS)
            has_news = self.has_news
        if has_news:
            self.send_progress()
        self.callback.deliver(
            {kind: content}, f"The {kind} of the training cannot be reported", "output_unreachable"
        )
