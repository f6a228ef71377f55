"""Measures TabularPredictor.predict alone, and stores the seconds on the platform at argv[1].

argv[2] is the name of the dataset and of the model.
"""

import io
import json
import statistics
import sys
import tarfile
import time
import urllib.request

import pandas as pd
import pyarrow as pa
from autogluon.tabular import TabularPredictor

base, name = sys.argv[1:]
packed = urllib.request.urlopen(f"{base}/{name}.artifact").read()
stream = pa.CompressedInputStream(pa.BufferReader(packed), "zstd")
with tarfile.open(fileobj=stream, mode="r|") as tar:
    tar.extractall("alone")
predictor = TabularPredictor.load("alone/predictor", verbosity=0)
predictor.persist(max_memory=None)
rows = json.loads(urllib.request.urlopen(f"{base}/{name}.json").read())["rows"]
data = pd.DataFrame(rows).drop(columns=["target"])
data = pd.concat([data] * (10_000 // len(data) + 1), ignore_index=True).head(10_000)
probabilities = predictor.predict_proba if predictor.can_predict_proba else len
figures = {}
for count, repeats in ((1, 100), (10_000, 50)):
    frame = data.head(count)
    for call, answer in (
        ("predict", lambda: predictor.predict(frame)),
        ("predict and predict_proba", lambda: (predictor.predict(frame), probabilities(frame))),
    ):
        seconds = []
        answer()
        for _ in range(repeats):
            started = time.monotonic()
            answer()
            seconds.append(time.monotonic() - started)
        figures[f"{count} {call}"] = statistics.median(seconds)
body = json.dumps(figures).encode()
urllib.request.urlopen(urllib.request.Request(f"{base}/{name}.alone.json", body, method="PUT"))
