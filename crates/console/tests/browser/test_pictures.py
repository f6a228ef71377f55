"""How pages look: their parts, where these lie and their colors, compared with what `pictures/layout.json` has.

Pixels are not compared: the fonts of another machine move every line of text a little, and a tolerance that lets
this pass lets a lost table pass too. Compared are the parts in their order, where blocks begin and how wide they are,
and colors, which fonts do not change. The pictures beside the layout are for people: a change of them is part of the
change that is reviewed. `just console-pictures` takes both again.
"""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from conftest import KEY, Server, png

PICTURES = Path(__file__).parent / "pictures"
SIZE = {"width": 1440, "height": 900}

# Pixels by which a block may begin elsewhere or be wider, and the part of its width: scroll bars differ by machine.
TOLERANCE = 24
PART = 0.08

# The parts of a page: what they are, where, and in which colors. Texts of rows are no part, as times and ids differ.
PARTS = """() => {
  const blocks = "header, nav, main, h1, h2, main form, main .scroll, lab-plot, svg.heat, ul.thumbs, ul.pinned, dialog";
  const seen = (it) => it.checkVisibility() && it.getBoundingClientRect().width > 0;
  const name = (it) => {
    const text = ["H1", "H2", "SUMMARY"].includes(it.tagName) ? it.textContent : it.getAttribute("aria-label") ?? "";
    return `${it.tagName.toLowerCase()} ${text}`.trim().slice(0, 80);
  };
  return [...document.querySelectorAll(`${blocks}, main summary`)].filter(seen).map((it) => {
    const { x, width } = it.getBoundingClientRect();
    const { color, backgroundColor } = getComputedStyle(it);
    const isBlock = it.matches(blocks);
    const box = isBlock ? { x: Math.round(x), width: Math.round(width) } : {};
    return { name: name(it), ...box, color, ground: backgroundColor };
  });
}"""


# Whether a page says that it waits, or has a plot that is not drawn yet.
WAITS = """[...document.querySelectorAll("[role=status]")].some((it) => it.textContent.endsWith("…")) ||
  [...document.querySelectorAll("lab-plot")].some((it) => !it.querySelector(".main-svg"))"""

# Looks at a page in a row, a tenth of a second apart, at which it has to be quiet.
QUIET = 5


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A server of its own, so that what other tests write is on no page."""
    server = Server(tmp_path_factory.mktemp("pictures"), {})
    yield server, fill(server)
    server.stop()


def fill(server: Server) -> dict[str, str]:
    """Three plates with curves, a file, a job and a saved view; the addresses of the pages by name."""
    unique = {"data_type": "string", "is_unique": True, "is_nullable": False}
    name = {"name": "name", **unique}
    tables = {
        "strain": [name, {"name": "genotype", "data_type": "text"}],
        "plate": [name, {"name": "measured_at", "data_type": "datetime"}],
        "sample": [
            name,
            {"name": "plate", "data_type": "string", "references": "plate"},
            {"name": "well", "data_type": "string"},
            {"name": "strain", "data_type": "string", "references": "strain"},
            {"name": "iptg", "data_type": "float", "unit": "mmol/L", "label": "IPTG"},
            {"name": "is_blank", "data_type": "boolean"},
        ],
    }
    for table, columns in tables.items():
        server.call("PUT", f"/tables/{table}", {"semantic_category": "curated", "columns": columns})
    curve = [
        {"name": "sample", "data_type": "string", "references": "sample", "is_nullable": False},
        {"name": "time", "data_type": "float", "unit": "s"},
        {"name": "od600", "data_type": "float", "label": "OD600"},
        {"name": "gfp", "data_type": "float", "label": "GFP"},
    ]
    server.call("PUT", "/tables/growth_curve", {"semantic_category": "raw", "columns": curve})
    strains = ["BY4741", "W303", "ΔrpoS"]
    plates = [{"name": f"Plate {n}", "measured_at": f"2026-03-0{n}T08:30:00Z"} for n in (1, 2, 3)]
    rows = {"strain": [{"name": it} for it in strains], "plate": plates, "sample": [*samples(strains)]}
    written = {}
    for table, of in rows.items():
        body = {"job_name": "Set up the lab", "tables": [{"table": table, "rows": of}]}
        written[table] = server.call("POST", "/data/write", body)
    ids = written["sample"]["tables"][0]["ids"]
    series = [
        {"table": "growth_curve", "parent": id, "columns": points(row, n)}
        for n, (id, row) in enumerate(zip(ids, rows["sample"], strict=True))
    ]
    run = server.call("POST", "/data/write", {"job_name": "Parse Gen5 export", "series": series})["job_execution_id"]
    instrument = server.call("POST", "/instruments", {"name": "Reader 1", "instrument_type": "plate_reader"})["id"]
    text = server.upload("2026-03-01 growth.csv", b"well,od600\nA1,0.1\nA2,0.2\n", instrument)
    image = server.upload("colony.png", png(320, 200, (20, 120, 90)), instrument)
    code = 'import os\n\nprint("file", os.environ["LABDATA_FILE_ID"])\n'
    job = server.call("POST", "/jobs", {"name": "Parse Gen5 export nightly", "code": code})["id"]
    view = {"name": "Maxima of March", "address": "#/plates/growth_curve?_all=1&_layout=heat+map", "is_pinned": True}
    server.call("POST", "/saved-views", view)
    server.call("PUT", "/tables/obsolete", {"semantic_category": "curated", "columns": [name]})
    server.call("DELETE", "/tables/obsolete?force=true")
    sql = (
        "select+s.name+as+strain%2C+count%28*%29+from+sample+join+strain+s+on+s.id+%3D+strain_id+group+by+1+order+by+1"
    )
    compared = "&".join(f"_plate={id}" for id in written["plate"]["tables"][0]["ids"])
    one = f"growth_curve?{compared.split('&')[0]}"
    return {
        "home": "home",
        "tables": "tables",
        "table": "tables/sample",
        "table-filtered": "tables/sample?iptg__gte=3&_sort=-name",
        "row": f"tables/sample%2F{ids[0]}",
        "plates": "plates/growth_curve",
        "plates-compared": f"plates/growth_curve?{compared}",
        "curves": "plates/growth_curve?_all=1&_layout=overlaid&_color=strain",
        "curves-second-axis": f"plates/{one}&_layout=overlaid&_y2=gfp&_pin={ids[0]}",
        "means": "plates/growth_curve?_all=1&_layout=means+by+condition&_by=iptg&_blank=is_blank",
        "heat-map": f"plates/{one}&_layout=heat+map",
        "files": "files",
        "file": f"files/{text}",
        "image": f"files/{image}",
        "instruments": "instruments",
        "executions": "executions",
        "execution": f"executions/{run}",
        "jobs": "jobs",
        "job": f"jobs/{job}",
        "models": "models",
        "sql": f"sql?q={sql}&_chart=1",
        "trash": "trash",
        "admin": "admin",
    }


def samples(strains: list[str]):
    for plate in (1, 2, 3):
        for index in range(24):
            well = f"{'ABCD'[index // 6]}{index % 6 + 1}"
            blank = index % 6 == 5
            strain = {} if blank else {"strain": {"name": strains[index % 3]}}
            yield {
                "name": f"P{plate}-{well}",
                "plate": {"name": f"Plate {plate}"},
                "well": well,
                "iptg": [0, 0.1, 1, 3, 10][index % 5],
                "is_blank": blank,
                **strain,
            }


def points(row: dict, number: int) -> dict[str, list[float]]:
    """A simulated growth curve."""
    time = [1200.0 * step for step in range(49)]
    top = 0 if row["is_blank"] else 1.3 - 0.05 * row["iptg"] + number % 7 / 100
    grown = [0.04 + top / (1 + math.exp(-(at / 3600 - 6 - row["iptg"] / 2))) for at in time]
    return {"time": time, "od600": [round(it, 4) for it in grown], "gfp": [round(900 * it * it, 1) for it in grown]}


class Traffic:
    """The requests of a page that have no response yet, but for the stream of events, which has no end."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.open: set[object] = set()
        page.on("request", lambda request: "/events" in request.url or self.open.add(request))
        for end in ("requestfinished", "requestfailed"):
            page.on(end, lambda request: self.open.discard(request))

    def settled(self) -> None:
        """Waits until what is shown has been read and drawn."""
        expect(self.page.locator("h1").first).to_be_visible()
        deadline = time.monotonic() + 60
        quiet = 0
        while quiet < QUIET:
            assert time.monotonic() < deadline, [request.url for request in self.open]
            self.page.wait_for_timeout(100)
            quiet = 0 if self.open or self.page.evaluate(WAITS) else quiet + 1


def differences(before: list[dict], now: list[dict]) -> list[str]:
    """What a person would have to look at."""
    names = [[it["name"] for it in parts] for parts in (before, now)]
    if names[0] != names[1]:
        lost = [it for it in names[0] if it not in names[1]]
        new = [it for it in names[1] if it not in names[0]]
        return [f"parts: lost {lost}, new {new}" if lost or new else f"the parts are in another order: {names[1]}"]
    found = []
    for was, part in zip(before, now, strict=True):
        for side in ("x", "width"):
            if side in was and abs(was[side] - part[side]) > TOLERANCE + PART * was["width"]:
                found.append(f"{part['name']}: {side} {was[side]} → {part[side]}")
        for color in ("color", "ground"):
            if was[color] != part[color]:
                found.append(f"{part['name']}: {color} {was[color]} → {part[color]}")
    return found


def test_pages_look_as_their_pictures(lab, browser):
    server, addresses = lab
    is_update = os.environ.get("CONSOLE_LAYOUT") == "update"
    stored = PICTURES / "layout.json"
    before = json.loads(stored.read_text()) if stored.exists() else {}
    context = browser.new_context(
        locale="en-US", timezone_id="Europe/Berlin", base_url=server.url, viewport=SIZE, device_scale_factor=0.5
    )
    page = context.new_page()
    page.set_default_timeout(30_000)
    page.goto("/")
    page.fill("#key", KEY)
    page.click("text=Sign in")
    expect(page.locator("nav")).to_be_visible()
    traffic = Traffic(page)
    now: dict[str, list[dict]] = {}
    problems = []
    for name, address in addresses.items():
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.goto("about:blank")
            page.goto(f"/#/{address}")
            traffic.settled()
            key = f"{name}-{scheme}"
            now[key] = page.evaluate(PARTS)
            assert page.evaluate("document.documentElement.scrollWidth") <= SIZE["width"], key
            if is_update:
                PICTURES.mkdir(exist_ok=True)
                page.screenshot(path=PICTURES / f"{key}.jpg", type="jpeg", quality=60)
            else:
                problems += [f"{key}: {it}" for it in differences(before.get(key, []), now[key])]
    context.close()
    if is_update:
        stored.write_text(json.dumps(now, indent=0, ensure_ascii=False) + "\n")
    assert problems == [], "look at the pages; `just console-pictures` takes their pictures again"
    assert is_update or before.keys() == now.keys()


def test_a_lost_part_a_moved_block_and_another_color_are_found():
    part = {"name": "lab-plot od600", "x": 230, "width": 1190, "color": "rgb(0, 0, 0)", "ground": "rgb(1, 1, 1)"}
    assert differences([part], [{**part, "x": 236, "width": 1176}]) == []
    assert differences([part], [{**part, "width": 600}]) == ["lab-plot od600: width 1190 → 600"]
    assert differences([part], [{**part, "color": "rgb(9, 0, 0)"}]) == [
        "lab-plot od600: color rgb(0, 0, 0) → rgb(9, 0, 0)"
    ]
    assert differences([part], [])[0].startswith("parts: lost ['lab-plot od600']")
