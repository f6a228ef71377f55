"""Reports of a training to the platform: its events while it runs, then its result or error."""

from __future__ import annotations

import http.client
import threading
import time
from collections import deque
from typing import Any

from .callback import Callback

INTERVAL_SECONDS = 1.0
EVENT_TIMEOUT_SECONDS = 10.0
# Events wait while the platform cannot be reached; the oldest are dropped first.
MAX_WAITING = 1000
MAX_BATCH = 200


class Reporter:
    """Sends events in batches, at most one per second, from a thread."""

    def __init__(self, callback: Callback) -> None:
        self.callback = callback
        self.waiting: deque[dict[str, Any]] = deque(maxlen=MAX_WAITING)
        self.changed = threading.Condition()
        self.is_sending = False
        self.is_closed = False

    def start(self) -> None:
        """Begins to send events."""
        threading.Thread(target=self.run, name="reporter", daemon=True).start()

    def add(self, event: dict[str, Any]) -> None:
        """Queues an event. Never waits for the platform."""
        with self.changed:
            self.waiting.append(event)
            self.changed.notify_all()

    def run(self) -> None:
        """Sends what waits until the process ends."""
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.waiting and not self.is_closed)
                self.is_sending = True
            self.send_events()
            with self.changed:
                self.is_sending = False
                self.changed.notify_all()
            time.sleep(INTERVAL_SECONDS)

    def send_events(self) -> None:
        """Sends one batch. It waits for the next attempt if the platform does not take it."""
        with self.changed:
            batch = [self.waiting.popleft() for _ in range(min(MAX_BATCH, len(self.waiting)))]
        if not batch:
            return
        try:
            self.callback.post({"events": batch}, EVENT_TIMEOUT_SECONDS)
        except (OSError, http.client.HTTPException):
            with self.changed:
                room = MAX_WAITING - len(self.waiting)
                self.waiting.extendleft(reversed(batch[-room:] if room else []))

    def finish(self, kind: str, content: dict[str, Any]) -> None:
        """Sends the events that wait, then the result or the error; retries if need be."""
        with self.changed:
            self.is_closed = True
            self.changed.wait_for(lambda: not self.is_sending, EVENT_TIMEOUT_SECONDS)
        self.send_events()
        self.callback.deliver(
            {kind: content}, f"The {kind} of the training cannot be reported", "output_unreachable"
        )
        # An error can follow a result that was not delivered.
        self.is_closed = False
