"""A model's page, with answers in place of a training: that takes AutoGluon and minutes."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Page, expect

from conftest import check_accessible, check_fits_a_phone

HOSTILE = "<img src=x onerror=window.hacked=1>"

VERSION = {
    "id": "m1",
    "name": HOSTILE,
    "status": "ready",
    "target_column": "yield",
    "problem_type": "regression",
    "training_completed_at": "2026-03-01T12:00:00Z",
    "error_message": None,
    "evaluation_metrics": {"rmse": 0.5},
    "progress": None,
}
MODEL = VERSION | {"version_number": 2, "currently_active": True}
OLDER = VERSION | {"version_number": 1, "currently_active": False}

RESULTS = {
    "version_number": 2,
    "problem_type": "regression",
    "primary_metric": "rmse",
    "metrics": {"rmse": {"value": 0.5, "higher_is_better": False}},
    "leaderboard": [
        {"model": HOSTILE, "score": -0.5, "validation_score": -0.6, "fit_seconds": 1.5, "predict_seconds": 0.1}
    ],
    "rows": {"train": 80, "validation": 0, "test": 20},
    "features": [{"name": "volume", "data_type": "float", "levels": None}],
    "feature_importance": [{"feature": "volume", "importance": 0.7, "stddev": 0.1}],
    "confusion_matrix": None,
    "classes": None,
    "residuals": [{"actual": n / 10, "predicted": n / 10 + (-1) ** n / 20} for n in range(20)],
    "versions": {},
}


def answer(page: Page, path: str, body: object) -> None:
    pattern = re.compile(rf"/api/v1/{re.escape(path)}(\?.*)?$")
    page.route(pattern, lambda route: route.fulfill(body=json.dumps(body), content_type="application/json"))


def test_a_model_shows_its_metrics_and_predictions_and_is_rolled_back(page):
    answer(page, "ml-models/m1", MODEL)
    answer(page, "ml-models/m1/versions", [MODEL, OLDER])
    answer(page, "ml-models/m1/results", RESULTS)
    answer(page, "ml-models/predict", {"predictions": [1.25], "probabilities": None})
    activated = []

    def activate(route) -> None:
        activated.append(route.request.post_data_json)
        route.fulfill(body="{}", content_type="application/json")

    page.route("**/api/v1/ml-models/m1/activate", activate)
    page.goto("/#/models/m1")
    expect(page.locator("h1")).to_contain_text(HOSTILE)
    expect(page.get_by_role("row", name="rmse 0.5 lower is better")).to_be_visible()
    plot = page.get_by_role("img", name="Predicted over actual yield of 20 rows")
    expect(plot.locator(".scatterlayer .point")).to_have_count(20)
    expect(plot.locator(".scatterlayer .js-line")).to_have_count(1)
    check_accessible(page)
    page.get_by_label("volume").last.fill("3")
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("main")).to_contain_text("yield: 1.25")
    page.get_by_role("button", name="Activate").click()
    expect(page.get_by_role("button", name="Activate")).to_be_enabled()
    assert activated == [{"version_number": 1}]
    assert page.evaluate("window.hacked") is None
    check_fits_a_phone(page)


def test_a_further_version_of_a_model_is_trained(server, page):
    server.call("POST", "/datasets", {"name": "yields", "query": "select 1 as volume, 2 as yield"})
    answer(page, "ml-models/m1", MODEL)
    answer(page, "ml-models/m1/versions", [MODEL])
    answer(page, "ml-models/m1/results", RESULTS)
    trained = []

    def models(route) -> None:
        if route.request.method == "POST":
            trained.append(route.request.post_data_json)
        body = MODEL if route.request.method == "POST" else [MODEL]
        route.fulfill(body=json.dumps(body), content_type="application/json")

    page.route("**/api/v1/ml-models", models)
    page.goto("/#/models")
    page.click("text=Train a model")
    form = page.locator("form", has=page.get_by_role("button", name="Train", exact=True))
    form.locator("label", has_text="Train").locator("select").select_option("m1")
    expect(form.get_by_label("Name", exact=True)).to_be_disabled()
    form.get_by_label("Column to predict").select_option("yield")
    check_accessible(page)
    form.get_by_role("button", name="Train", exact=True).click()
    expect(page.locator("h1")).to_contain_text(HOSTILE)
    assert [(it["ml_model_id"], it["target_column"], "name" in it) for it in trained] == [("m1", "yield", False)]
