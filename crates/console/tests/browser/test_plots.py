"""Plots: many curves, plates and long curves, with the times that they take."""

from __future__ import annotations

import csv
import math
import re

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
    wait_until(page, "document.querySelector('lab-plot')?.layout?.yaxis.type === 'log'")
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
      const of = (name) => data.find((it) => it.hovertemplate.startsWith(name));
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
    with (tmp_path / "plate.csv").open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.reader(file))
    assert lines[0] == ["id", "name", "time", "od600"]
    assert len(lines) == 1 + 96 * POINTS
    assert ["A01", "0", str(growth_at(0, 0))] in [line[1:] for line in lines]
    # A well of few pixels has few points, all of them once somebody zooms.
    counts = "[...new Set(document.querySelector('lab-plot').data.map((it) => it.x.length))]"
    assert max(page.evaluate(counts)) < POINTS
    page.get_by_role("button", name="+", exact=True).click()
    wait_until(page, f"{counts}.join() === '{POINTS}'")
    assert page.evaluate("document.querySelector('lab-plot').layout.xaxis.range[0]") > 1


def test_a_row_shows_its_curves(curves, page):
    page.goto("/#/tables/plate_well?name=A01")
    page.click("td >> text=A01")
    expect(page.locator("lab-plot .js-line")).to_have_count(2)
    expect(page.locator(".told")).to_have_text(["577 points", "250,000 points"])
    page.locator("section", has_text="trace").get_by_role("button", name="+").click()
    wait_until(page, "document.querySelectorAll('lab-plot')[1]?.layout?.xaxis.range[0] > 50000")
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


def test_plates_are_listed_and_compared_each_in_a_grid_of_its_own(three_plates, page):
    page.goto("/#/plates/assay_curve")
    expect(page.locator(".thumbs li")).to_have_count(3)
    expect(page.locator(".thumbs svg rect").first).to_be_visible()
    check_accessible(page)
    for plate in three_plates[1:]:
        page.get_by_role("checkbox", name=f"Choose {plate}").check()
    page.click("button:has-text('Compare the chosen plates')")
    expect(page.locator("figcaption")).to_have_text(["Plate 2", "Plate 10"])
    expect(page.locator("lab-plot .js-line")).to_have_count(12)
    expect(page.locator(".told")).to_have_text("12 curves, 36 points.")
    # Both are drawn to one scale, on the smallest plate that holds their wells.
    ticks = "[...document.querySelectorAll('lab-plot')].map((it) => it.layout.xaxis.ticktext.length)"
    assert page.evaluate(ticks) == [3, 3]
    about = page.evaluate("document.querySelector('lab-plot').data.map((it) => it.hovertemplate)")
    assert any(it.startswith("Plate 2 A1 · Plate 2 · A1<br>") for it in about)
    page.get_by_role("button", name="Take out Plate 2").click()
    expect(page.locator("figcaption")).to_have_text(["Plate 10"])
    page.go_back()
    expect(page.locator("figcaption")).to_have_text(["Plate 2", "Plate 10"])


def test_conditions_are_means_with_their_n_without_blanks_and_in_natural_order(three_plates, page, tmp_path):
    page.goto("/#/plates/assay_curve?_all=1&_layout=means+by+condition&_by=dose&_blank=is_blank")
    names = "document.querySelector('lab-plot')?.data?.filter((it) => it.showlegend).map((it) => it.name)"
    wait_until(page, f"{names}?.length === 3")
    assert page.evaluate(names) == ["0 mmol/L (n = 3)", "1 mmol/L (n = 6)", "10 mmol/L (n = 6)"]
    expect(page.locator("main")).to_contain_text(
        "The mean of its plate's blanks is subtracted from each curve (3 blanks in all)."
    )
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").click()
    saved.value.save_as(tmp_path / "means.csv")
    with (tmp_path / "means.csv").open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.DictReader(file))
    last = next(it for it in lines if it["condition"] == "10 mmol/L" and it["time"] == "20")
    # Wells A1 and B1 of three plates: 13 and 13.3, and the blank is -0.5.
    assert (last["n"], round(float(last["mean"]), 6)) == ("6", 13.65)
    assert round(float(last["sd"]), 6) == round(0.15 * math.sqrt(6 / 5), 6)
    check_accessible(page)


def test_a_plate_is_compared_with_another_by_condition(three_plates, page):
    page.goto("/#/plates/assay_curve?_all=1&_layout=means+by+condition&_by=dose&_blank=is_blank")
    expect(page.locator("main")).to_contain_text(
        "Curves of 3 plates are taken together. To compare the plates, choose plate among the conditions."
    )
    page.get_by_role("group", name="Conditions").get_by_label("plate", exact=True).check()
    names = "document.querySelector('lab-plot')?.data?.filter((it) => it.showlegend).map((it) => it.name)"
    wait_until(page, f"{names}?.length === 9")
    found = page.evaluate(names)
    for plate in three_plates:
        assert [it for it in found if plate in it.split(", ")] == [
            f"{plate}, {dose} mmol/L (n = {n})" for dose, n in ((0, 1), (1, 2), (10, 2))
        ]
    expect(page.locator("main")).not_to_contain_text("are taken together")


def test_a_heat_map_shows_a_measure_of_each_well(three_plates, page):
    page.goto("/#/plates/assay_curve?_all=1&_layout=heat+map&_measure=last+value")
    expect(page.locator("svg.heat")).to_have_count(3)
    title = page.locator("svg.heat title", has_text="A1: Plate 1 A1")
    expect(title).to_contain_text("A1: Plate 1 A1 · Plate 1 · A1, last value of signal: 13")
    expect(page.locator(".scale")).to_contain_text("-0.5")
    check_accessible(page)
    page.get_by_role("combobox", name="Color shows").select_option("value at")
    page.get_by_role("slider", name="X of the value").press("Home")
    expect(title).to_contain_text("signal at 0 s: 1")
    page.reload()
    expect(title).to_contain_text("signal at 0 s: 1")


def test_what_a_log_scale_leaves_out_is_said_in_numbers(three_plates, page):
    page.goto("/#/plates/assay_curve?_all=1&_layout=overlaid&_log=1")
    expect(page.locator(".note")).to_have_text("A log scale has no place for 3 values that are zero or negative.")


def test_a_chart_says_what_it_adds_up(three_plates, page):
    page.goto("/#/sql")
    page.fill(
        "textarea",
        'select a.name, c.signal, c."time" from assay a join assay_curve c on c.assay_id = a.id where a.dose = 10',
    )
    page.keyboard.press("Control+Enter")
    page.click("button:has-text('Chart')")
    expect(page.locator(".chart .note")).to_contain_text(
        "Several rows have the same name: a bar is their mean, of 18 rows in all."
    )
    expect(page.locator(".ytitle")).to_have_text("mean of signal")
    page.get_by_role("combobox", name="Rows at one X").select_option("sum")
    expect(page.locator(".ytitle")).to_have_text("sum of signal")
    page.reload()
    expect(page.locator(".ytitle")).to_have_text("sum of signal")
    page.get_by_role("combobox", name="X axis").select_option("time")
    page.get_by_role("combobox", name="As", exact=True).select_option("lines")
    expect(page.locator(".chart .note")).to_contain_text("A color by the column that tells them apart")
    page.get_by_role("combobox", name="Color by").select_option("name")
    expect(page.locator(".chart .note")).to_have_count(0)
    expect(page.locator(".scatterlayer .js-line")).to_have_count(6)


def test_curves_are_highlighted_by_hand_and_in_the_address(three_plates, page):
    page.goto("/#/plates/assay_curve?_all=1&_layout=overlaid")
    expect(page.locator(".told").first).to_contain_text("curves")
    field = page.get_by_label("Highlight a curve")
    name = page.locator("#curves-to-pin option").first.get_attribute("value")
    field.fill(name)
    page.keyboard.press("Tab")
    chosen = page.get_by_role("list", name="Highlighted curves")
    expect(chosen.get_by_role("link", name=name)).to_be_visible()
    assert "_pin=" in page.url
    page.reload()
    expect(chosen.get_by_role("link", name=name)).to_be_visible()
    drawn = "document.querySelector('lab-plot')?.data"
    wait_until(page, f"{drawn}?.length > 0")
    opacities = page.evaluate(f"{drawn}.map((it) => it.opacity)")
    assert opacities.count(1) == 1
    assert opacities[-1] == 1
    check_accessible(page)
    chosen.get_by_role("button", name=f"Unpin {name}").click()
    wait_until(page, f"{drawn}?.every((it) => it.opacity === 1)")
    # The hand over a point of a curve dims the others.
    page.locator("lab-plot").scroll_into_view_if_needed()
    end = """() => {
      const line = [...document.querySelectorAll(".scatterlayer .js-line")].at(-1);
      const { x, y } = line.getPointAtLength(0).matrixTransform(line.getScreenCTM());
      return [x, y];
    }"""
    lit = page.locator("lab-plot.dims .trace.lit")
    # The page may still move below the hand.
    for _ in range(20):
        x, y = page.evaluate(end)
        page.mouse.move(x + 5, y + 5)
        page.mouse.move(x, y)
        page.wait_for_timeout(200)
        if lit.count() > 0:
            break
    expect(lit).not_to_have_count(0)


def test_a_second_axis_shows_another_measure_of_the_same_curves(server, page):
    key = {"name": "name", "data_type": "string", "is_unique": True, "is_nullable": False}
    server.call("PUT", "/tables/fermenter", {"semantic_category": "curated", "columns": [key]})
    owner = {"name": "fermenter", "data_type": "string", "references": "fermenter", "is_nullable": False}
    columns = [
        owner,
        {"name": "hours", "data_type": "float", "unit": "h"},
        {"name": "biomass", "data_type": "float", "unit": "g/L"},
        {"name": "ph", "data_type": "float", "label": "pH"},
    ]
    server.call("PUT", "/tables/fermentation", {"semantic_category": "raw", "columns": columns})
    written = server.call(
        "POST", "/data/write", {"tables": [{"table": "fermenter", "rows": [{"name": "F1"}, {"name": "F2"}]}]}
    )
    points = {"hours": [0.0, 1.0, 2.0], "biomass": [0.1, 1.5, 9.0], "ph": [7.0, 6.8, 6.1]}
    series = [{"table": "fermentation", "parent": key, "columns": points} for key in written["tables"][0]["ids"]]
    server.call("POST", "/data/write", {"series": series})
    page.goto("/#/plates/fermentation")
    page.get_by_label("Second axis").select_option("ph")
    page.get_by_label("Log X").check()
    drawn = "document.querySelector('lab-plot')?.data"
    wait_until(page, f"{drawn}?.filter((it) => it.yaxis === 'y2').length === 2")
    assert page.evaluate(f"{drawn}.find((it) => it.yaxis === 'y2').y") == [7.0, 6.8, 6.1]
    expect(page.locator(".y2title")).to_have_text("pH (dotted)")
    expect(page.locator(".note")).to_have_text("A log X has no place for 2 values that are zero or negative.")
    assert "_y2=ph" in page.url
    check_accessible(page)


@pytest.fixture(scope="module")
def readings(server) -> None:
    """Wells of two plates with long numbers: an endpoint, staggered readings, days, instants, long integers."""
    columns = [
        {"name": "name", "data_type": "string", "is_unique": True, "is_nullable": False},
        {"name": "plate_number", "data_type": "integer"},
        {"name": "well", "data_type": "string"},
        {"name": "dose", "data_type": "float"},
        {"name": "is_blank", "data_type": "boolean"},
    ]
    server.call("PUT", "/tables/reading", {"semantic_category": "curated", "columns": columns})
    rows = [
        {
            "name": f"{row}{column}",
            "plate_number": 9007199254740992 + column % 2,
            "well": f"{row}{column}",
            "dose": 0.12345678 if row == "A" else 0.12345681,
            "is_blank": row == "C",
        }
        for row in "ABC"
        for column in range(1, 7)
    ]
    ids = server.call("POST", "/data/write", {"tables": [{"table": "reading", "rows": rows}]})["tables"][0]["ids"]
    owner = {"name": "reading", "data_type": "string", "references": "reading", "is_nullable": False}
    kinds = {
        "endpoint": ("float", "float", lambda column: [600], lambda well: [well + 0.5]),
        "staggered": ("float", "float", lambda column: [60 * n + column for n in range(4)], lambda well: [well] * 4),
        "daily": ("date", "float", lambda column: ["2026-03-28", "2026-03-29"], lambda well: [1, well]),
        "nightly": (
            "datetime",
            "float",
            lambda column: [f"2026-10-25T0{n}:30:00Z" for n in range(3)],
            lambda well: [3, 2, 1],
        ),
        "long_count": ("integer", "integer", lambda column: [1, 2], lambda well: [9007199254740993 + 2 * well] * 2),
    }
    for name, (x, y, across, up) in kinds.items():
        columns = [owner, {"name": "x", "data_type": x}, {"name": "y", "data_type": y}]
        server.call("PUT", f"/tables/{name}", {"semantic_category": "raw", "columns": columns})
        series = [
            {"table": name, "parent": id, "columns": {"x": across(n % 6), "y": up(n // 6)}} for n, id in enumerate(ids)
        ]
        server.call("POST", "/data/write", {"series": series})


@pytest.mark.parametrize("layout", ["overlaid", "as+a+plate", "means+by+condition"])
def test_a_single_point_is_seen_in_every_layout(readings, page, layout):
    page.goto(f"/#/plates/endpoint?_all=1&_by=name&_layout={layout}")
    expect(page.locator(".scatterlayer .point")).to_have_count(18)
    expect(page.locator(".told").first).to_contain_text("18 curves, 18 points.")


def test_staggered_readings_have_one_mean_a_cycle_and_their_blanks(readings, page):
    page.goto("/#/plates/staggered?_all=1&_layout=means+by+condition&_by=dose&_blank=is_blank")
    expect(page.locator(".told")).to_have_text("2 means of 12 curves, 8 points.")
    expect(page.locator(".note", has_text="up to 5 apart: its x is their mean")).to_be_visible()
    # Doses that differ in the eighth digit are two conditions.
    names = "document.querySelector('lab-plot')?.data?.filter((it) => it.showlegend).map((it) => [it.name, it.y[0]])"
    wait_until(page, f"{names}?.length === 2")
    assert page.evaluate(names) == [["0.12345678 (n = 6)", -2], ["0.12345681 (n = 6)", -1]]
    expect(page.locator(".ytitle")).to_have_text("y minus blank, mean ± SD")


def test_a_heat_map_has_no_value_outside_of_the_readings(readings, page):
    page.goto("/#/plates/staggered?_all=1&_layout=heat+map&_measure=value+at&_at=0")
    expect(page.locator(".told")).to_have_text("3 values of 18 wells.")
    page.goto("/#/plates/nightly?_all=1&_layout=heat+map&_measure=X+of+the+maximum")
    expect(page.locator("svg.heat title").first).to_contain_text("X of the maximum of y: 2026-10-2")
    expect(page.locator("svg.heat text.value").first).to_have_text("00:30")


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Berlin"])
def test_times_are_on_one_clock_wherever_the_browser_is(readings, server, browser, session, zone):
    context = browser.new_context(locale="en-US", base_url=server.url, storage_state=session, timezone_id=zone)
    page = context.new_page()
    drawn = "document.querySelector('lab-plot')?.data?.[0]?.x"
    page.goto("/#/plates/daily?_all=1&_layout=overlaid")
    wait_until(page, f"{drawn}?.length === 2")
    assert [it[:16] for it in page.evaluate(drawn)] == ["2026-03-28T00:00", "2026-03-29T00:00"]
    expect(page.locator(".xtitle")).to_have_text("x")
    page.goto("/#/plates/nightly?_all=1&_layout=overlaid")
    wait_until(page, f"{drawn}?.length === 3")
    assert page.evaluate(drawn) == sorted(page.evaluate(drawn))
    expect(page.locator(".xtitle")).to_have_text(re.compile(r"^x, UTC.[24]$"))
    context.close()


def test_long_integers_choose_their_plate_and_are_drawn_with_words(readings, page, tmp_path):
    page.goto("/#/plates/long_count?_plate=9007199254740993&_layout=overlaid")
    expect(page.locator(".told").first).to_have_text("9 curves, 18 points.")
    expect(page.locator(".note")).to_contain_text("18 values beyond 2^53")
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").click()
    saved.value.save_as(tmp_path / "long.csv")
    with (tmp_path / "long.csv").open(encoding="utf-8-sig", newline="") as file:
        assert {it["y"] for it in csv.DictReader(file)} == {f"{9007199254740993 + 2 * well}" for well in range(3)}
    for layout in ("heat+map", "overlaid&_log=1"):
        page.goto(f"/#/plates/long_count?_plate=9007199254740993&_layout={layout}")
        expect(page.locator(".told").first).to_contain_text("9 ")
    expect(page.locator(".failure")).to_have_count(0)


def test_parameters_are_what_was_typed_and_a_bar_has_its_error(readings, page):
    page.goto("/#/sql?q=select+%25s%3A%3Atext+as+code%2C+''+as+blank&_p1=0012")
    expect(page.locator("td")).to_have_text(["0012", '""'])
    page.get_by_label("Parameter $1").fill("1e5")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("td").first).to_have_text("1e5")
    values = "values ('a', 1.0, 0.2), ('b', 2.0, 0.3)"
    errors = "document.querySelector('lab-plot')?.data?.[0]?.error_y?.array"
    for rows, wanted in ((values, [0.2, 0.3]), (f"{values}, ('b', 4.0, 0.4)", [0.2, None])):
        page.goto("/#/home")
        page.goto(f"/#/sql?q=select * from ({rows}) t(g, v, e)&_chart=1&_as=bars&_y=v&_error=e")
        wait_until(page, f"{errors}?.length === 2")
        assert page.evaluate(errors) == wanted
    expect(page.locator(".chart .note")).to_contain_text("A bar of several rows has no error bar.")
