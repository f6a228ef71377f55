"""Answers that the server of a test cannot give: of a trained model.

Their shapes are those of docs/API.md; a proxy gives them.
"""

import json

import pandas as pd
import polars as pl
import pytest


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

    def test_a_segmentation(self, shaky, proxy):
        annotation = {"file_id": "7", "label": "cell", "mask": "iVBO", "confidence": 0.75}
        answer = {
            "predictions": ["iVBO"],
            "probabilities": None,
            "model_id": "1",
            "model_name": "cells",
            "annotations": [annotation],
        }
        proxy.answers[self.PATH] = ("application/json", json.dumps(answer).encode())
        found = shaky.predict("cells", [{"image": "7"}], pixel_threshold=0.25, max_hole_pixels=0)
        sent = json.loads(proxy.bodies[-1])
        assert (sent["pixel_threshold"], sent["max_hole_pixels"]) == (0.25, 0)
        assert "min_confidence" not in sent
        assert found.annotations == [annotation]

    def test_a_regression(self, shaky, proxy):
        answer = {"predictions": [1.5], "probabilities": None, "model_id": "1", "model_name": "yield"}
        proxy.answers[self.PATH] = ("application/json", json.dumps(answer).encode())
        found = shaky.predict(model_id="1", data=[{"hue": 1.0}])
        assert found.probabilities is None
        assert found.annotations is None
        assert found.to_polars().rows() == [(1.5,)]
