"""Heartbeats: every minute the platform hears that this computer is alive, and what waits here."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import labdata_client

from ..errors import Busy, ConnectionFailed, NotFound
from .watcher import log

if TYPE_CHECKING:
    from .._sync._lab import Lab
    from .watcher import Watcher

HEARTBEAT_SECONDS = 60.0
"""Between two heartbeats. The platform takes a device for offline after three minutes without one."""

REQUEST_SECONDS = 20.0
"""Longest time that a heartbeat takes."""

APP_VERSION = f"labdata-watch {labdata_client.__version__}"


class Heart:
    """Sends the heartbeats of one watcher. Nothing that befalls them touches its uploads."""

    def __init__(self, lab: Lab, instrument: str, watcher: Watcher) -> None:
        self._lab = lab
        self._instrument = instrument
        self._watcher = watcher
        self._stopping = threading.Event()
        self._has_failed = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="heartbeats")

    def start(self) -> None:
        """Send a heartbeat now and every minute, in a thread: an upload may take longer."""
        self._thread.start()

    def stop(self) -> None:
        """Send no more heartbeats; one under way is not waited for."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.beat()
            self._stopping.wait(HEARTBEAT_SECONDS)

    def beat(self) -> None:
        """Send one heartbeat; an error is logged once until the next success."""
        try:
            condition = self._watcher.condition()
            self._lab.heartbeat(
                self._instrument,
                status="error" if condition.has_trouble else "online",
                app_version=APP_VERSION,
                is_watching=condition.is_watching,
                queued_files=condition.queued_files,
                detail=condition.detail(),
            )
        except (ConnectionFailed, Busy, NotFound):
            # The watcher itself logs a platform that is away. One of an older release has no heartbeats, and
            # may be upgraded at any time.
            return
        except Exception as error:  # noqa: BLE001 - no error of a heartbeat may stop uploads
            if not self._has_failed:
                log.warning("no heartbeat could be sent: %s", error)
            self._has_failed = True
        else:
            self._has_failed = False
