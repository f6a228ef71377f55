"""Answers that the server of a test cannot give: of a trained model, of reading many series at once.

Their shapes are those of docs/API.md; a proxy gives them.
"""

import io
import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest


def arrow_stream(table):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


class TestSeries:
    PATH = "/api/v1/tools/series"

    def test_one_request_reads_them_all(self, shaky, proxy, tables):
        points = pa.table({"sample": ["b", "a", "a"], "hours": [0.0, 0.0, 1.0], "od600": [None, 0.1, 0.2]})
        proxy.answers[self.PATH] = ("application/vnd.apache.arrow.stream", arrow_stream(points))
        curves = shaky.series(tables.curve, ["b", "c", "a"], columns=["hours", "od600"])
        asked = json.loads(proxy.bodies[-1])
        assert asked == {"table": tables.curve, "parents": ["b", "c", "a"], "columns": ["hours", "od600"]}
        assert [(curve.parent, curve.points) for curve in curves] == [("b", 1), ("c", 0), ("a", 2)]
        assert curves[2].columns == {"hours": [0.0, 1.0], "od600": [0.1, 0.2]}
        assert curves.to_polars().equals(pl.from_arrow(points))

    def test_without_arrow(self, shaky, proxy, tables, monkeypatch):
        answer = [
            {"parent": "a", "columns": {"hours": [0.0, 1.0]}, "points": 2},
            {"parent": "b", "columns": {"hours": []}, "points": 0},
        ]
        proxy.answers[self.PATH] = ("application/json", json.dumps(answer).encode())
        monkeypatch.setattr("labdata_client._frames.has_arrow", lambda: False)
        curves = shaky.series(tables.curve, name__contains="x")
        assert json.loads(proxy.bodies[-1])["filters"] == {"name__contains": "x"}
        assert curves == answer[:1]
        assert curves.to_polars().rows() == [("a", 0.0), ("a", 1.0)]


class TestPredict:
    PATH = "/api/v1/ml-models/predict"

    @pytest.mark.parametrize(
        "data",
        [[{"hue": 1.0}, {"hue": 2.0}], pd.DataFrame({"hue": [1.0, 2.0]}), pl.DataFrame({"hue": [1.0, 2.0]})],
    )
    def test_a_classifier(self, shaky, proxy, data):
        answer = {
            "predictions": ["red", "white"],
            "probabilities": [{"red": 0.75, "white": 0.25}, {"red": 0.0, "white": 1.0}],
            "model_id": "1",
            "model_name": "cultivars",
            "version_number": 1,
        }
        proxy.answers[self.PATH] = ("application/json", json.dumps(answer).encode())
        found = shaky.predict("cultivars", data)
        sent = {"ml_model_name": "cultivars", "data": [{"hue": 1.0}, {"hue": 2.0}]}
        assert json.loads(proxy.bodies[-1]) == sent
        assert found[0] == {"prediction": "red", "probabilities": {"red": 0.75, "white": 0.25}}
        assert found.predictions == answer["predictions"]
        assert found.model_name == "cultivars"
        assert found.to_pandas().columns.tolist() == ["prediction", "probability_red", "probability_white"]

    def test_a_regression(self, shaky, proxy):
        answer = {"predictions": [1.5], "probabilities": None, "model_id": "1", "model_name": "yield"}
        proxy.answers[self.PATH] = ("application/json", json.dumps(answer).encode())
        found = shaky.predict(model_id="1", data=[{"hue": 1.0}])
        assert found.probabilities is None
        assert found.to_polars().rows() == [(1.5,)]
