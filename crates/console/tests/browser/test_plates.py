"""Plates: several side by side, their rows, what a filter leaves out, and choices that Back undoes."""

from __future__ import annotations

import base64
import csv
import math
import re
import struct

import pytest
from playwright.sync_api import expect

from conftest import check_accessible, check_fits_a_phone, wait_until, wait_until_counted


@pytest.fixture
def plate_keys(server, three_plates) -> dict[str, str]:
    """Keys of the plates by their names."""
    rows = server.call("POST", "/tools/read", {"target_name": "assay_plate", "target_type": "table"})
    return {row["name"]: row["id"] for row in rows}


def test_compared_plates_are_saved_and_zoomed_together(plate_keys, page, tmp_path):
    page.goto(f"/#/plates/assay_curve?_plate={plate_keys['Plate 2']}&_plate={plate_keys['Plate 10']}")
    expect(page.locator("lab-plot .js-line")).to_have_count(12)
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").click()
    saved.value.save_as(tmp_path / "plates.csv")
    with (tmp_path / "plates.csv").open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 36
    assert {line["plate"] for line in lines} == {"Plate 2", "Plate 10"}
    with page.expect_download() as saved:
        page.get_by_role("button", name="PNG").click()
    saved.value.save_as(tmp_path / "plates.png")
    width, height = struct.unpack(">II", (tmp_path / "plates.png").read_bytes()[16:24])
    # Both are in the picture, as they are on the page.
    assert width > 1.9 * height
    ranges = "[...document.querySelectorAll('lab-plot')].map((it) => it.layout.xaxis.range[0])"
    whole = page.evaluate(ranges)
    page.get_by_role("button", name="+", exact=True).click()
    wait_until(page, f"{ranges}.every((it) => it > 1)")
    page.get_by_role("button", name="Reset").click()
    wait_until(page, f"{ranges}.join() === '{','.join(map(str, whole))}'")
    check_accessible(page)
    check_fits_a_phone(page)


# Colors of a picture at places of the page, and whether a part of the page left ink in it.
IN_PICTURE = """async ([png, margin]) => {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  const part = document.querySelector(".plates").parentElement.getBoundingClientRect();
  const [left, top] = [part.left - margin, part.bottom + margin - image.height / 2];
  const pixels = (x, y, width, height) => {
    const { data } = context.getImageData(2 * (x - left), 2 * (y - top), 2 * width, 2 * height);
    const color = (_, index) => `rgb(${[...data.slice(4 * index, 4 * index + 3)].join(", ")})`;
    return Array.from({ length: data.length / 4 }, color);
  };
  const ink = ({ x, y, width, height }) => new Set(pixels(x, y, width, height)).size > 2;
  const boxes = [...document.querySelectorAll("svg.heat g rect, svg.heat a rect")];
  const texts = [...document.querySelectorAll("figcaption, .scale span, li:has(.swatch)")];
  const plate = document.querySelector("svg.heat");
  const corner = (it) => pixels(it.getBoundingClientRect().x + 5, it.getBoundingClientRect().y + 5, 1, 1)[0];
  return {
    size: [image.width / 2, image.height / 2],
    wells: boxes.map((it) => [getComputedStyle(it).fill, corner(it)]),
    ground: [getComputedStyle(plate).backgroundColor, corner(plate)],
    texts: texts.map((it) => [it.textContent, ink(it.getBoundingClientRect())]),
    title: ink({ x: part.x, y: top, width: 200, height: part.y - top }),
  };
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("shown", ["_measure=last+value", "_color=dose"])
def test_heat_maps_are_saved_as_they_are_shown(plate_keys, page, tmp_path, scheme, shown):
    page.emulate_media(color_scheme=scheme)
    plates = f"_plate={plate_keys['Plate 2']}&_plate={plate_keys['Plate 10']}"
    page.goto(f"/#/plates/assay_curve?{plates}&_layout=heat+map&{shown}")
    expect(page.locator("svg.heat")).to_have_count(2)
    with page.expect_download() as saved:
        page.get_by_role("button", name="PNG").click()
    assert saved.value.suggested_filename == "assay_curve-wells.png"
    saved.value.save_as(tmp_path / "wells.png")
    content = (tmp_path / "wells.png").read_bytes()
    found = page.evaluate(IN_PICTURE, [base64.b64encode(content).decode(), 12])
    part = page.locator(".plates").bounding_box()
    assert found["size"][0] >= part["width"] + 24
    assert len(found["wells"]) == 12
    for kind, pairs in (("well", found["wells"]), ("ground", [found["ground"]])):
        for on_page, in_picture in pairs:
            assert close(on_page, in_picture), (kind, on_page, in_picture)
    texts = [text for text, has_ink in found["texts"] if has_ink]
    assert texts == [text for text, _ in found["texts"] if text]
    assert {"Plate 2", "Plate 10"} < set(texts)
    assert ("last value of signal" if "measure" in shown else "10 mmol/L") in texts
    assert found["title"]


def close(color: str, other: str) -> bool:
    """Whether two colors are the same but for rounding."""
    one, two = (re.findall(r"\d+", it) for it in (color, other))
    return all(abs(int(a) - int(b)) <= 3 for a, b in zip(one, two, strict=True))


def test_a_plate_leads_to_its_row_and_the_row_to_its_curves(plate_keys, page):
    page.goto(f"/#/plates/assay_curve?_plate={plate_keys['Plate 2']}&_plate={plate_keys['Plate 10']}")
    chips = page.get_by_role("list", name="Plates, by plate of assay")
    expect(chips.get_by_role("link", name="Plate 10")).to_be_visible()
    page.locator("figcaption").get_by_role("link", name="Plate 2").click()
    expect(page.locator("h1")).to_have_text("Plate 2")
    page.get_by_role("link", name="assay_curve").click()
    expect(page.locator("figcaption")).to_have_text(["Plate 2"])
    expect(page.locator(".told")).to_have_text("6 curves, 18 points.")
    page.get_by_role("combobox", name="Layout").select_option("heat map")
    page.locator("figcaption").get_by_role("link", name="Plate 2").click()
    expect(page.locator("h1")).to_have_text("Plate 2")


def test_back_undoes_the_choice_of_a_layout_and_of_a_color(three_plates, page):
    page.goto("/#/plates/assay_curve?_all=1")
    layout = page.get_by_role("combobox", name="Layout")
    layout.select_option("overlaid")
    layout.select_option("heat map")
    page.get_by_role("combobox", name="Color by").select_option("dose")
    expect(page.locator("svg.heat").first).to_have_attribute("aria-label", "Plate 1 dose of each well")
    page.go_back()
    expect(page.locator("svg.heat").first).to_have_attribute("aria-label", "Plate 1 maximum of signal")
    page.go_back()
    expect(page.locator("lab-plot")).to_have_count(1)
    expect(layout).to_have_value("overlaid")
    page.go_forward()
    expect(layout).to_have_value("heat map")


def test_what_a_filter_leaves_out_is_said_in_numbers(server, three_plates, page):
    server.call("POST", "/data/write", {"tables": [{"table": "assay", "rows": [{"name": "Spare", "dose": 10}]}]})
    # The numbers of rows are those of PostgreSQL's statistics, which come a moment later.
    wait_until_counted(server, page, "assay", 19)
    page.goto("/#/plates/assay_curve?_all=1&_layout=overlaid&dose=10")
    expect(page.get_by_text("7 of about 19 rows of assay. 1 of 7 rows has no curve in assay_curve.")).to_be_visible()
    page.goto("/#/tables/assay?dose=10")
    expect(page.get_by_text("7 of about 19 rows", exact=True)).to_be_visible()
    page.get_by_role("button", name="Remove the filter dose is 10").click()
    expect(page.get_by_text("19 rows", exact=True)).to_be_visible()


def test_conditions_of_several_columns_have_a_band_of_their_standard_error(three_plates, page):
    page.goto("/#/plates/assay_curve?_all=1&_layout=means+by+condition&_by=dose")
    page.get_by_role("group", name="Conditions").get_by_label("is_blank", exact=True).check()
    page.get_by_role("combobox", name="Band").select_option("SEM")
    expect(page.locator(".ytitle")).to_have_text("signal, mean ± SEM")
    drawn = "document.querySelector('lab-plot').data"
    names = [it for it in page.evaluate(f"{drawn}.map((it) => it.showlegend && it.name)") if it]
    assert names == [
        "0 mmol/L, not is_blank (n = 3)",
        "1 mmol/L, not is_blank (n = 6)",
        "10 mmol/L, not is_blank (n = 6)",
        "no dose, is_blank (n = 3)",
    ]
    # Wells A1 and B1 of three plates: 13 and 13.3 at the last of three times; a band goes there and back.
    bands = page.evaluate(f"{drawn}.filter((it) => it.fill === 'toself').map((it) => it.y)")
    band = next(it for it in bands if abs((it[2] + it[3]) / 2 - 13.15) < 1e-6)
    assert abs((band[2] - band[3]) / 2 - 0.15 * math.sqrt(6 / 5) / math.sqrt(6)) < 1e-6
    page.get_by_role("combobox", name="Band").select_option("none")
    expect(page.locator(".ytitle")).to_have_text("signal, mean")


@pytest.fixture(scope="module")
def many_plates(server):
    """26 plates of one well; the newest has fluorescence besides, and the oldest no curve."""
    name = {"name": "name", "data_type": "string", "is_unique": True, "is_nullable": False}
    server.call("PUT", "/tables/screen_plate", {"semantic_category": "curated", "columns": [name]})
    plate = {"name": "plate", "data_type": "string", "references": "screen_plate"}
    columns = [name, plate, {"name": "well", "data_type": "string"}]
    server.call("PUT", "/tables/screen", {"semantic_category": "curated", "columns": columns})
    owner = {"name": "screen", "data_type": "string", "references": "screen", "is_nullable": False}
    units = [("time", "s"), ("od600", None), ("gfp", "[arb'U]")]
    points = [owner, *({"name": name, "data_type": "float", "unit": unit} for name, unit in units)]
    server.call("PUT", "/tables/screen_curve", {"semantic_category": "raw", "columns": points})
    for n in range(26):
        server.call("POST", "/data/write", {"tables": [{"table": "screen_plate", "rows": [{"name": f"S{n:02}"}]}]})
        row = {"name": f"S{n:02} A1", "plate": {"name": f"S{n:02}"}, "well": "A1"}
        id = server.call("POST", "/data/write", {"tables": [{"table": "screen", "rows": [row]}]})["tables"][0]["ids"][0]
        curve = {"time": [0.0, 1.0], "od600": [0.1, 0.2], "gfp": [5.0, 9.0] if n == 25 else [None, None]}
        if n > 0:
            series = [{"table": "screen_curve", "parent": id, "columns": curve}]
            server.call("POST", "/data/write", {"series": series})


def test_older_plates_are_on_further_pages_and_found_by_name(many_plates, server, page):
    page.goto("/#/plates/screen_curve")
    plates = page.locator(".thumbs li")
    expect(plates).to_have_count(24)
    expect(page.get_by_text("24 plates on this page, about 26 in all")).to_be_visible()
    expect(plates.first).to_contain_text("1 well: od600, gfp ([arb'U]), ")
    expect(plates.nth(1)).to_contain_text("1 well: od600, ")
    page.get_by_role("checkbox", name="Choose S25").check()
    page.get_by_role("button", name="Next page").click()
    expect(plates).to_have_count(2)
    expect(plates.last).to_contain_text("1 well without a curve, ")
    page.get_by_role("checkbox", name="Choose S01").check()
    check_accessible(page)
    # Those of both pages are compared.
    page.get_by_role("button", name="Compare the chosen plates").click()
    expect(page.locator("figcaption")).to_have_text(["S01", "S25"])
    page.go_back()
    expect(plates).to_have_count(2)
    page.get_by_label("Part of a plate's name").fill("s1")
    page.get_by_role("button", name="Find").click()
    expect(plates).to_have_count(10)
    page.reload()
    expect(plates).to_have_count(10)
    page.get_by_label("Part of a plate's name").fill("%")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_text("No plate has that in its name.")).to_be_visible()
    check_fits_a_phone(page)


def test_pictures_of_plates_show_every_well_of_full_plates(server, page):
    name = {"name": "name", "data_type": "string", "is_unique": True, "is_nullable": False}
    columns = [name, {"name": "plate", "data_type": "string"}, {"name": "well", "data_type": "string"}]
    server.call("PUT", "/tables/full", {"semantic_category": "curated", "columns": columns})
    owner = {"name": "full", "data_type": "string", "references": "full", "is_nullable": False}
    value = {"name": "value", "data_type": "float"}
    server.call("PUT", "/tables/full_curve", {"semantic_category": "raw", "columns": [owner, value]})
    letters = [*"ABCDEFGHIJKLMNOPQRSTUVWXYZ", *(f"A{it}" for it in "ABCDEF")]
    wells = [f"{row}{column}" for row in letters for column in range(1, 49)]
    # More wells together than a result of SQL has rows.
    for plate in range(7):
        rows = [{"name": f"{plate} {well}", "plate": f"Full {plate}", "well": well} for well in wells]
        ids = server.call("POST", "/data/write", {"tables": [{"table": "full", "rows": rows}]})["tables"][0]["ids"]
        series = [{"table": "full_curve", "parent": id, "columns": {"value": [n]}} for n, id in enumerate(ids)]
        server.call("POST", "/data/write", {"series": series})
    page.goto("/#/plates/full_curve")
    expect(page.locator(".thumbs svg.heat")).to_have_count(7)
    drawn = "[...document.querySelectorAll('.thumbs svg.heat')].map((it) => it.querySelectorAll('rect').length)"
    assert page.evaluate(drawn) == [1536] * 7


def test_wells_without_a_condition_do_not_look_like_those_with_the_most(three_plates, page):
    page.goto("/#/plates/assay_curve?_all=1&_layout=heat+map&_color=dose")
    none = page.locator(".chip", has_text="no dose").locator(".swatch")
    expect(none).to_have_css("background-color", "rgb(194, 86, 155)")
    most = page.locator(".chip", has_text="10 mmol/L").locator(".swatch")
    expect(most).to_have_css("background-color", "rgb(254, 232, 56)")


def test_a_heat_map_says_that_it_rounds(three_plates, page):
    page.goto("/#/plates/assay_curve?_all=1&_layout=heat+map&_measure=greatest+slope")
    expect(page.locator(".scale")).to_contain_text("in the wells rounded, exact in the CSV")
    page.goto("/#/plates/assay_curve?_all=1&_layout=heat+map&_measure=maximum")
    expect(page.locator(".scale")).to_contain_text("maximum of signal")
    expect(page.locator(".scale")).not_to_contain_text("rounded")
