"""Masks of images: drawn with pointer and keyboard, saved, vetted, corrected, predicted."""

from __future__ import annotations

import json
import urllib.parse
import uuid

import pytest
from playwright.sync_api import Locator, Page, expect

from conftest import check_accessible, check_fits_a_phone, png

# The pure functions of a mask, in the page: what a brush and a polygon cover, and a step undone.
FUNCTIONS = """async () => {
  const address = new URL("masks.js", document.querySelector("script[type=module]").src);
  const { Mask, Steps, polygon, polygonRows, stroke } = await import(address);
  const mask = new Mask(20, 7);
  stroke(mask, { x: 10.5, y: 3.5 }, { x: 10.5, y: 3.5 }, 2, true);
  const brushed = mask.count();
  const steps = new Steps(mask);
  const points = [{ x: 1, y: 1 }, { x: 18, y: 1 }, { x: 18, y: 6 }, { x: 1, y: 6 }];
  steps.begin();
  steps.touch(polygonRows(mask, points));
  polygon(mask, points, true);
  steps.end();
  const filled = mask.count();
  steps.undo();
  const undone = mask.count();
  steps.redo();
  stroke(mask, { x: 0, y: 3 }, { x: 20, y: 3 }, 10, false);
  return [brushed, filled, undone, mask.count()];
}"""


@pytest.fixture
def image(server) -> str:
    """The id of an image of 80 by 60 pixels."""
    camera = server.call("POST", "/instruments", {"name": f"microscope {uuid.uuid4().hex}"})
    return server.upload("cells.png", png(80, 60, (90, 120, 140)), camera["id"])


def begin(page: Page, image: str) -> Locator:
    """Opens the editor of an image; its canvas."""
    page.goto(f"/#/files/{image}")
    page.get_by_role("button", name="Label this image").click()
    canvas = page.get_by_role("application", name="Mask of cells.png")
    expect(canvas).to_be_focused()
    return canvas


def draw(page: Page, canvas: Locator) -> None:
    """Draws a line of the brush across the middle."""
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.4, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, y, steps=5)
    page.mouse.up()


def save(page: Page, label: str) -> None:
    page.get_by_label("Label", exact=True).fill(label)
    page.get_by_role("button", name="Save the mask").click()
    expect(saved(page).filter(has_text=label).first).to_be_visible()


def saved(page: Page) -> Locator:
    return page.get_by_role("list", name="Saved masks").get_by_role("listitem")


def test_the_functions_of_a_mask(page):
    page.goto("/#/files")
    assert page.evaluate(FUNCTIONS) == [13, 85, 13, 0]


def test_a_mask_is_drawn_saved_corrected_and_deleted(page, server, image):
    canvas = begin(page, image)
    draw(page, canvas)
    save(page, "fiber")
    (first,) = server.call("GET", f"/images/{image}/annotations")
    assert (first["label"], first["is_human_vetted"], first["width"]) == ("fiber", True, 80)
    bounds = first["bbox"]
    assert bounds["y"] < 30 < bounds["y"] + bounds["height"] < 40
    assert bounds["x"] < 35 and bounds["x"] + bounds["width"] > 45
    check_accessible(page)

    # A correction takes the place of the mask.
    saved(page).get_by_role("button", name="Correct").click()
    # It is read before it is in the editor.
    expect(canvas).to_be_focused()
    canvas.press("Control+z")
    canvas.press("]")
    canvas.press(" ")
    save(page, "thick fiber")
    expect(saved(page)).to_have_count(1)
    (second,) = server.call("GET", f"/images/{image}/annotations")
    assert second["label"] == "thick fiber"
    assert second["foreground_fraction"] > first["foreground_fraction"]

    saved(page).get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete the mask thick fiber").click()
    expect(page.get_by_text("No masks yet.")).to_be_visible()
    assert server.call("GET", f"/images/{image}/annotations") == []


def test_a_polygon_is_drawn_with_the_keyboard_alone(page, server, image):
    canvas = begin(page, image)
    status = page.locator(".mask-editor [role=status]")
    canvas.press("p")
    expect(page.get_by_role("button", name="Polygon")).to_have_attribute("aria-pressed", "true")
    canvas.press(" ")
    for key in ("Shift+ArrowRight", "Shift+ArrowDown"):
        canvas.press(key)
        canvas.press(" ")
    canvas.press("Enter")
    expect(status).not_to_contain_text("covers 0.00 %")
    drawn = status.inner_text()
    canvas.press("Control+z")
    expect(status).to_contain_text("covers 0.00 %")
    canvas.press("Control+y")
    expect(status).to_have_text(drawn)
    page.get_by_role("button", name="Clear").click()
    expect(status).to_contain_text("covers 0.00 %")
    page.get_by_role("button", name="Undo").click()
    page.get_by_label("Vetted: datasets learn from it").uncheck()
    save(page, "corner")
    (corner,) = server.call("GET", f"/images/{image}/annotations")
    assert (corner["is_human_vetted"], corner["bbox"]["width"]) == (False, corner["bbox"]["height"])
    saved(page).get_by_role("button", name="Vet", exact=True).click()
    expect(saved(page).get_by_text("vetted", exact=True)).to_be_visible()
    check_fits_a_phone(page)


def test_an_empty_mask_is_not_saved(page, server, image):
    begin(page, image)
    page.get_by_label("Label", exact=True).fill("nothing")
    page.get_by_role("button", name="Save the mask").click()
    expect(page.get_by_role("alert")).to_contain_text("The mask is empty")
    assert server.call("GET", f"/images/{image}/annotations") == []


def test_predicted_masks_are_accepted_or_dismissed(page, server, image):
    model = {"id": "m", "name": "segmenter", "task_type": "segmentation", "status": "ready", "image_columns": ["image"]}
    page.route("**/api/v1/ml-models", lambda route: route.fulfill(json=[model]))

    # The mask of a real request, which the server has drawn before.
    canvas = begin(page, image)
    draw(page, canvas)
    save(page, "cell")
    (annotation,) = server.call("GET", f"/images/{image}/annotations")
    path = urllib.parse.urlsplit(annotation["mask_url"])
    mask = page.evaluate(
        """async (address) => {
          const bytes = new Uint8Array(await (await fetch(address)).arrayBuffer());
          return btoa(String.fromCharCode(...bytes));
        }""",
        f"{path.path}?{path.query}",
    )
    predicted = {
        "file_id": image,
        "label": "predicted cell",
        "mask": mask,
        "width": 80,
        "height": 60,
        "foreground_fraction": annotation["foreground_fraction"],
        "confidence": 0.75,
    }
    asked = []

    def predict(route):
        asked.append(json.loads(route.request.post_data))
        route.fulfill(json={"predictions": [mask], "probabilities": None, "annotations": [predicted, predicted]})

    page.route("**/api/v1/ml-models/predict", predict)
    page.get_by_text("Predict masks with a model").click()
    page.get_by_label("Threshold of a pixel").fill("0.25")
    page.get_by_role("button", name="Predict", exact=True).click()
    found = page.get_by_role("list", name="Predicted masks").get_by_role("listitem")
    expect(found).to_have_count(2)
    expect(found.first).to_contain_text("confidence 0.75")
    assert asked[0]["data"] == [{"image": image}]
    assert asked[0]["pixel_threshold"] == 0.25
    check_accessible(page)
    found.first.get_by_role("button", name="Accept").click()
    expect(found).to_have_count(1)
    found.first.get_by_role("button", name="Dismiss").click()
    expect(page.get_by_role("list", name="Predicted masks")).to_have_count(0)
    labels = [(it["label"], it["is_human_vetted"]) for it in server.call("GET", f"/images/{image}/annotations")]
    assert labels == [("cell", True), ("predicted cell", True)]
