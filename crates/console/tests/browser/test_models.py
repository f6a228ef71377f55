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
    "dataset_id": "d1",
    "quality_preset": "medium_quality",
    "evaluation_metrics": {"mean_absolute_error": 0.4, "root_mean_squared_error": 0.5},
    "progress": {
        "phase": "done",
        "models_tried": 2,
        "best_score": {"metric": "root_mean_squared_error", "value": 0.6},
        "updated_at": "2026-03-01T12:00:00Z",
    },
}
MODEL = VERSION | {"version_number": 2, "currently_active": True}
OLDER = VERSION | {"version_number": 1, "currently_active": False}

RESULTS = {
    "version_number": 2,
    "problem_type": "regression",
    "primary_metric": "root_mean_squared_error",
    "metrics": {
        "mean_absolute_error": {"value": 0.4, "higher_is_better": False},
        "root_mean_squared_error": {"value": 0.5, "higher_is_better": False},
    },
    "leaderboard": [
        {"model": HOSTILE, "score": 0.5, "validation_score": 0.6, "fit_seconds": 1.5, "predict_seconds": 0.1},
        {"model": "other", "score": 0.4, "validation_score": 0.7, "fit_seconds": 1.5, "predict_seconds": 0.1},
    ],
    "rows": {"train": 80, "validation": 0, "test": 20},
    "features": [
        {"name": "volume", "data_type": "float", "nullable": False, "levels": None},
        {"name": "harvested", "data_type": "date", "nullable": False, "levels": None},
        {"name": "is_blank", "data_type": "boolean", "nullable": True, "levels": None},
    ],
    "feature_importance": [{"feature": "volume", "importance": 0.7, "stddev": 0.1}],
    "confusion_matrix": None,
    "classes": None,
    "residuals": [{"actual": n / 10, "predicted": n / 10 + (-1) ** n / 20} for n in range(20)],
    "versions": {},
}


DATASET = {"id": "d1", "name": "yields of spring", "row_count": 1100, "columns": [], "created_at": None}


def answer(page: Page, path: str, body: object) -> None:
    pattern = re.compile(rf"/api/v1/{re.escape(path)}(\?.*)?$")
    page.route(pattern, lambda route: route.fulfill(body=json.dumps(body), content_type="application/json"))


def test_a_model_shows_its_metrics_and_is_rolled_back(page):
    answer(page, "ml-models/m1", MODEL)
    answer(page, "ml-models/m1/versions", [MODEL, OLDER])
    answer(page, "ml-models/m1/results", RESULTS)
    answer(page, "datasets/d1", DATASET)
    activated = []

    def activate(route) -> None:
        activated.append(route.request.post_data_json)
        route.fulfill(body="{}", content_type="application/json")

    page.route("**/api/v1/ml-models/m1/activate", activate)
    page.goto("/#/models/m1")
    expect(page.locator("h1")).to_contain_text(HOSTILE)
    expect(page.locator("main dl")).to_contain_text("yields of spring (1,100 rows)")
    metrics = page.get_by_role("region", name="Table of Metric, Value, Direction").locator("tbody tr")
    # The metric by which models were chosen is first, and names what the scores of the leaderboard are.
    expect(metrics.first).to_contain_text("root mean squared error")
    expect(metrics.first).to_contain_text("lower is better")
    expect(page.get_by_text("Scores are the root mean squared error: lower is better.")).to_be_visible()
    expect(page.get_by_role("row", name="volume").locator("td.number")).to_have_text(["0.7", "0.1"])
    expect(section(page, "Versions").locator("tbody tr").first).to_contain_text("root mean squared error 0.5")
    plot = page.get_by_role("img", name="Predicted over actual yield of 20 rows")
    expect(plot.locator(".scatterlayer .point")).to_have_count(20)
    expect(plot.locator(".scatterlayer .js-line")).to_have_count(1)
    check_accessible(page)
    page.get_by_role("button", name="Activate").click()
    expect(page.get_by_role("button", name="Activate")).to_be_enabled()
    assert activated == [{"version_number": 1}]
    assert page.evaluate("window.hacked") is None
    check_fits_a_phone(page)


def section(page: Page, name: str):
    return page.locator("section", has=page.get_by_role("heading", name=name, exact=True))


def test_a_prediction_says_what_it_is_of(page):
    answer(page, "ml-models/m1", MODEL)
    answer(page, "ml-models/m1/versions", [MODEL, OLDER])
    answer(page, "ml-models/m1/results", RESULTS)
    asked = []

    def predict(route) -> None:
        asked.append(route.request.post_data_json["data"])
        body = {"predictions": [232.98934936523438], "probabilities": None, "version_number": 2}
        route.fulfill(body=json.dumps(body), content_type="application/json")

    page.route("**/api/v1/ml-models/predict", predict)
    page.goto("/#/models/m1")
    go = page.get_by_role("button", name="Predict")
    go.click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing is filled in yet.")
    page.get_by_label("volume").last.fill("3")
    page.get_by_label("is_blank").select_option("true")
    go.click()
    expect(page.locator("main")).to_contain_text("yield: 232.989 by version 2")
    # Of an empty field that was filled in every row of the training, and not of another.
    expect(page.locator(".note.warns")).to_contain_text("Without a value of harvested, though")
    check_accessible(page)
    page.get_by_label("harvested").fill("2026-03-27")
    # It was of other values than those that stand there now.
    expect(page.locator("main")).not_to_contain_text("yield: 232.989")
    go.click()
    expect(page.locator("main")).to_contain_text("yield: 232.989 by version 2")
    expect(page.locator(".note.warns")).to_have_count(0)
    assert asked == [
        [{"volume": 3, "harvested": None, "is_blank": True}],
        [{"volume": 3, "harvested": "2026-03-27", "is_blank": True}],
    ]


def test_the_active_version_predicts_after_a_later_training_failed(page):
    newest = VERSION | {
        "version_number": 3,
        "currently_active": False,
        "status": "failed",
        "error_message": "too few rows",
    }
    answer(page, "ml-models/m1", newest)
    answer(page, "ml-models/m1/versions", [newest, MODEL, OLDER])
    answer(page, "ml-models/m1/results", RESULTS)
    page.goto("/#/models/m1")
    expect(page.locator("h1 .badge")).to_have_text("ready")
    expect(page.get_by_role("button", name="Predict")).to_be_visible()
    expect(page.locator(".failure")).to_have_text("The training of version 3 failed: too few rows")
    # It ended, and is not trained.
    versions = section(page, "Versions").locator("tbody tr")
    expect(versions.first).not_to_contain_text("2026-03-01")
    expect(versions.nth(1)).to_contain_text("2026-03-01 12:00 UTC")
    # The dataset is another table's, or deleted: the server says the same of both.
    expect(page.locator("main dl")).to_contain_text("deleted, or kept to a group")


def test_a_further_version_of_a_model_is_trained(server, page):
    dataset = server.call("POST", "/datasets", {"name": "yields", "query": "select 1 as volume, 2 as yield"})
    server.call("POST", "/datasets", {"name": "other yields", "query": "select 1 as volume, 2 as other"})
    known = MODEL | {"dataset_id": dataset["id"], "quality_preset": "good_quality"}
    answer(page, "ml-models/m1", known)
    answer(page, "ml-models/m1/versions", [MODEL])
    answer(page, "ml-models/m1/results", RESULTS)
    trained = []

    def models(route) -> None:
        if route.request.method == "POST":
            trained.append(route.request.post_data_json)
        body = known if route.request.method == "POST" else [known]
        route.fulfill(body=json.dumps(body), content_type="application/json")

    page.route("**/api/v1/ml-models", models)
    page.goto("/#/models")
    page.click("text=Train a model")
    form = page.locator("form", has=page.get_by_role("button", name="Train", exact=True))
    form.locator("label", has_text="Train").locator("select").select_option("m1")
    expect(form.get_by_label("Name", exact=True)).to_be_disabled()
    # As the version before, unless something else is chosen.
    expect(form.get_by_label("Dataset")).to_have_value(dataset["id"])
    expect(form.get_by_label("Column to predict")).to_have_value("yield")
    expect(form.get_by_label("Quality")).to_have_value("good_quality")
    form.get_by_label("Dataset").select_option(label="other yields (1 row)")
    expect(form.get_by_label("Column to predict")).to_have_value("")
    form.get_by_label("Dataset").select_option(dataset["id"])
    form.get_by_label("Column to predict").select_option("yield")
    check_accessible(page)
    form.get_by_role("button", name="Train", exact=True).click()
    expect(page.locator("h1")).to_contain_text(HOSTILE)
    assert [(it["ml_model_id"], it["target_column"], "name" in it) for it in trained] == [("m1", "yield", False)]
