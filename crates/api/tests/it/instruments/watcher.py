"""The watcher of `labdata-watch` as a process that a test steers: a line on standard input is an order, and time
is an argument. Each order is answered by a line; a line `uploaded NAME` comes for each file in between."""

import logging
import sys
from pathlib import Path

from labdata_client import connect
from labdata_client.watch.heartbeat import Heart
from labdata_client.watch.state import State
from labdata_client.watch.watcher import Watcher, log


class Uploads(logging.Handler):
    """Says which file has been uploaded, before the state is written: a kill may come in between."""

    def emit(self, record: logging.LogRecord) -> None:
        if " is uploaded as " in record.getMessage():
            print("uploaded", record.args[1], flush=True)


url, key, instrument, folder, state = sys.argv[1:]
lab = connect(url, key, retry_seconds=0, progress=False)
watcher = Watcher(lab, Path(folder), instrument, State(Path(state)), settle_seconds=5)
heart = Heart(lab, instrument, watcher)
log.addHandler(Uploads())
log.setLevel(logging.INFO)
log.propagate = False
print("ready", flush=True)
for order in sys.stdin:
    name, _, argument = order.strip().partition(" ")
    if name == "look":
        watcher.step(float(argument))
        print("looked", watcher.condition().queued_files, flush=True)
    elif name == "beat":
        heart.beat()
        print("beaten", flush=True)
