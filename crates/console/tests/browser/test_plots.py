"""Plots: many curves, plates and long curves, with the times that they take."""

from __future__ import annotations

import csv
import math

import pytest
from playwright.sync_api import expect

from conftest import check_accessible, wait_until

WELLS = [f"{row}{column:02}" for row in "ABCDEFGH" for column in range(1, 13)]
POINTS = 577
LONG = 250_000
HOSTILE = "<a href='https://example.com'>strain</a>"

# Milliseconds that the issue asks for. Machines of CI are shared, so the tests fail past a multiple only.
WANTED = {"long": 400, "plate": 500, "zoom": 150}
SLACK = 8

# Draws what a plot shows once more, in a plot of its own, up to the painted frame; then a step of zoom.
MEASURE = """
async () => {
  const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  const shown = document.querySelector("lab-plot");
  const curves = shown.data.map((it) => ({ name: it.name, x: [...it.x], y: [...it.y] }));
  const times = [];
  for (let turn = 0; turn < 3; turn++) {
    const place = document.createElement("lab-plot");
    shown.before(place);
    const began = performance.now();
    await place.draw(curves, { title: "x", type: "linear" }, { title: "y", type: "linear" });
    await painted();
    const drawn = performance.now();
    await place.zoom(0.5);
    await painted();
    times.push({ draw: drawn - began, zoom: performance.now() - drawn });
    place.remove();
  }
  return { curves: curves.length, points: curves.reduce((sum, it) => sum + it.x.length, 0), times };
}
"""


@pytest.fixture(scope="module")
def curves(server):
    """A plate of 96 wells with curves of 577 points, and one curve of 250,000."""
    key = {"name": "name", "data_type": "string", "is_unique": True, "is_nullable": False}
    group = {"name": "treatment", "data_type": "string"}
    server.call("PUT", "/tables/plate_well", {"semantic_category": "curated", "columns": [key, group]})
    owner = {"name": "well", "data_type": "string", "references": "plate_well", "is_nullable": False}
    growth = [owner, {"name": "time", "data_type": "float"}, {"name": "od600", "data_type": "float"}]
    server.call("PUT", "/tables/growth", {"semantic_category": "raw", "columns": growth})
    trace = [owner, {"name": "value", "data_type": "float"}]
    server.call("PUT", "/tables/trace", {"semantic_category": "raw", "columns": trace})
    rows = [{"name": well, "treatment": HOSTILE if index % 2 else "none"} for index, well in enumerate(WELLS)]
    rows.append({"name": "no well"})
    written = server.call("POST", "/data/write", {"tables": [{"table": "plate_well", "rows": rows}]})
    ids = written["tables"][0]["ids"]
    time = [300.0 * point for point in range(POINTS)]
    series = [
        {"table": "growth", "parent": id, "columns": {"time": time, "od600": [growth_at(at, n) for at in time]}}
        for n, id in enumerate(ids[: len(WELLS)])
    ]
    server.call("POST", "/data/write", {"series": series})
    values = [round(math.sin(point / 9000) + math.sin(point * 7919) / 20, 4) for point in range(LONG)]
    long = [{"table": "trace", "parent": ids[0], "columns": {"value": values}}]
    server.call("POST", "/data/write", {"series": long})


def growth_at(seconds: float, number: int) -> float:
    return round(0.05 + 1.2 / (1 + math.exp(-(seconds - 60_000 - 700 * number) / 9000)), 4)


def measure(page, kind: str) -> dict:
    found = page.evaluate(MEASURE)
    draw = min(it["draw"] for it in found["times"])
    zoom = min(it["zoom"] for it in found["times"])
    what = f"{found['curves']} curves, {found['points']:,} points"
    print(f"\n{what}: drawn in {draw:.0f} ms of {WANTED[kind]}, a zoom step in {zoom:.0f} ms of {WANTED['zoom']}")
    assert draw < SLACK * WANTED[kind]
    assert zoom < SLACK * WANTED["zoom"]
    return found


def test_the_curves_of_a_plate_are_drawn_over_each_other(curves, page):
    page.goto("/#/plates/growth")
    expect(page.locator(".told")).to_have_text("96 curves, 55,392 points.")
    expect(page.locator(".scatterlayer .js-line")).to_have_count(96)
    check_accessible(page)
    page.get_by_label("Log scale").check()
    wait_until(page, "document.querySelector('lab-plot').layout.yaxis.type === 'log'")
    # Names are text, also where plotly.js knows tags.
    page.get_by_role("combobox", name="Color by").select_option("treatment")
    expect(page.locator(".legendtext", has_text=HOSTILE)).to_be_visible()
    assert page.locator("lab-plot a").count() == 0
    page.fill("input[aria-label=Value]", "C07")
    page.click("button:has-text('Filter')")
    expect(page.locator(".told")).to_have_text("1 curve, 577 points.")


def test_a_plate_shows_each_curve_at_its_well_and_can_be_saved(curves, page, tmp_path):
    page.goto("/#/plates/growth")
    expect(page.locator(".told")).to_have_text("96 curves, 55,392 points.")
    page.get_by_role("combobox", name="Layout").select_option("as a plate")
    wait_until(page, "document.querySelector('lab-plot').layout.xaxis.ticktext?.length === 12")
    # The middle of the first well, in the picture's own measure, is where its curve is.
    inside = """() => {
      const { data, layout } = document.querySelector("lab-plot");
      const of = (name) => data.find((it) => it.text[0].startsWith(name));
      const box = (curve) => [Math.min(...curve.x), Math.max(...curve.x), Math.min(...curve.y), Math.max(...curve.y)];
      return { first: box(of("A01")), last: box(of("H12")), rows: layout.yaxis.ticktext };
    }"""
    wells = page.evaluate(inside)
    assert wells["rows"] == list("ABCDEFGH")
    assert all(0.5 < edge < 1.5 for edge in wells["first"])
    assert all(11.5 < edge < 12.5 for edge in wells["last"][:2])
    assert all(7.5 < edge < 8.5 for edge in wells["last"][2:])
    with page.expect_download() as picture:
        page.get_by_role("button", name="PNG").click()
    picture.value.save_as(tmp_path / "plate.png")
    content = (tmp_path / "plate.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) > 20_000
    with page.expect_download() as values:
        page.get_by_role("button", name="CSV").click()
    values.value.save_as(tmp_path / "plate.csv")
    with (tmp_path / "plate.csv").open(newline="") as file:
        lines = list(csv.reader(file))
    assert lines[0] == ["id", "name", "time", "od600"]
    assert len(lines) == 1 + 96 * POINTS
    assert ["A01", "0", str(growth_at(0, 0))] in [line[1:] for line in lines]


def test_a_row_shows_its_curves(curves, page):
    page.goto("/#/tables/plate_well?name=A01")
    page.click("td >> text=A01")
    expect(page.locator("lab-plot .js-line")).to_have_count(2)
    expect(page.locator(".told")).to_have_text(["577 points", "250,000 points"])
    page.locator("section", has_text="trace").get_by_role("button", name="+").click()
    wait_until(page, "document.querySelectorAll('lab-plot')[1].layout.xaxis.range[0] > 50000")
    check_accessible(page)


def test_a_plot_holds_nothing_outside_the_page_and_is_drawn_again_within(curves, page):
    page.goto("/#/plates/growth")
    expect(page.locator(".told")).to_have_text("96 curves, 55,392 points.")
    removed = """() => {
      window.plot = document.querySelector("lab-plot");
      plot.remove();
      return { data: plot.data === undefined, empty: plot.childElementCount === 0 };
    }"""
    assert page.evaluate(removed) == {"data": True, "empty": True}
    page.evaluate("document.querySelector('main').append(plot)")
    expect(page.locator(".scatterlayer .js-line")).to_have_count(96)
    # In the other colors, it is drawn once more.
    ground = "plot.layout.paper_bgcolor"
    light = page.evaluate(ground)
    page.emulate_media(color_scheme="dark")
    wait_until(page, f"{ground} !== '{light}'")


def test_plots_are_drawn_in_time(curves, page):
    page.goto("/#/plates/growth")
    expect(page.locator(".told")).to_have_text("96 curves, 55,392 points.")
    found = measure(page, "plate")
    assert (found["curves"], found["points"]) == (96, 96 * POINTS)
    page.goto("/#/plates/trace")
    expect(page.locator(".told")).to_have_text("1 curve, 250,000 points.")
    found = measure(page, "long")
    assert found["points"] == LONG
