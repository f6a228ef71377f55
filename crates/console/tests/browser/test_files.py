"""Files: several at once and large ones by drop, each with its progress, and what a file led to."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from conftest import check_accessible, check_fits_a_phone, png

HOSTILE = "<img src=x onerror=window.hacked=1>.csv"

# Bytes; more than an upload in one request takes.
LARGE = 24 << 20

# Writes two rows.
SCRIPT = """
import json, os, urllib.request

address = os.environ["LABDATA_BASE_URL"] + "/api/v1/data/write"
headers = {"Authorization": "Bearer " + os.environ["LABDATA_API_KEY"], "Content-Type": "application/json"}
tables = [{"table": "led", "rows": [{"well": "A1"}, {"well": "A2"}]}]
urllib.request.urlopen(urllib.request.Request(address, json.dumps({"tables": tables}).encode(), headers)).close()
"""

# Drops files of some text and that many bytes on an element.
DROP = """(area, files) => {
  const dropped = new DataTransfer();
  for (const [name, bytes] of files) {
    dropped.items.add(new File(["well,volume\\nA1,2\\n".padEnd(bytes)], name, { type: "text/csv" }));
  }
  area.dispatchEvent(new DragEvent("drop", { dataTransfer: dropped, bubbles: true, cancelable: true }));
}"""


@pytest.fixture(scope="module")
def instrument(server) -> str:
    server.call("POST", "/instruments", {"name": "dropped on"})
    return "dropped on"


def drop(page: Page, instrument: str, *files: tuple[str, int]) -> Locator:
    """Opens the page of files, drops some, and returns the lines of the uploads."""
    page.goto("/#/files")
    page.get_by_label("Instrument").select_option(instrument)
    page.locator(".drop").evaluate(DROP, list(files))
    return page.get_by_role("list", name="Uploads").get_by_role("listitem")


def test_several_files_are_dropped_and_each_is_stored_or_says_why_not(page, server, instrument):
    lines = drop(page, instrument, ("large.csv", LARGE), (HOSTILE, 0), ("a.csv", 0), ("b.csv", 0))
    expect(lines).to_have_count(4)
    for name in ("large.csv", HOSTILE, "a.csv", "b.csv"):
        expect(lines.filter(has_text=name)).to_contain_text("Stored")
        expect(page.get_by_role("link", name=name, exact=True)).to_be_visible()
    sizes = {it["file_name"]: it["size_kilobytes"] for it in server.call("GET", "/files?query=large.csv")}
    assert sizes == {"large.csv": LARGE >> 10}
    assert page.evaluate("window.hacked") is None
    check_accessible(page)

    lines = drop(page, instrument, ("a.csv", 0), ("c.csv", 0))
    expect(lines.filter(has_text="c.csv")).to_contain_text("Stored")
    expect(lines.filter(has_text="a.csv").get_by_role("alert")).to_contain_text("already has a file of this name")
    check_fits_a_phone(page)


def test_an_upload_tells_its_progress_and_is_cancelled(page, server, instrument):
    # Slow enough that its progress is seen.
    devtools = page.context.new_cdp_session(page)
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 1 << 20}
    devtools.send("Network.enable")
    devtools.send("Network.emulateNetworkConditions", slow)
    lines = drop(page, instrument, ("slow.csv", LARGE))
    bar = lines.get_by_role("progressbar", name="Progress of slow.csv")
    expect(bar).not_to_have_js_property("value", 0)
    expect(lines).to_contain_text("%")
    lines.get_by_role("button", name="Cancel slow.csv").click()
    expect(lines).to_contain_text("Cancelled")
    assert server.call("GET", "/files?query=slow.csv") == []


def test_a_file_shows_what_it_led_to(page, server, instrument):
    lines = drop(page, instrument, ("led.csv", 0))
    expect(lines).to_contain_text("Stored")
    columns = [{"name": "well", "data_type": "string"}]
    server.call("PUT", "/tables/led", {"semantic_category": "curated", "columns": columns})
    file = server.call("GET", "/files?query=led.csv")[0]["file_id"]
    page.get_by_role("link", name="led.csv", exact=True).click()
    expect(page.locator("main")).to_contain_text("No run on the platform was given this file.")
    job = server.call("POST", "/jobs", {"name": "read led", "code": SCRIPT})["id"]
    server.call("POST", f"/jobs/{job}/run", {"file_id": file})
    page.reload()
    expect(page.get_by_role("link", name="read led")).to_be_visible()
    page.get_by_role("link", name="read led").click()
    expect(page.locator("h1 .badge.completed")).to_be_visible()
    page.goto(f"/#/files/{file}")
    expect(page.get_by_role("row", name="read led")).to_contain_text("2 rows of led")
    check_accessible(page)


def test_images_are_shown_and_others_say_why_not(page, server):
    instrument = server.call("POST", "/instruments", {"name": "camera"})["id"]
    green = server.upload("green.png", png(300, 200, (20, 160, 90)), instrument)
    wide = server.upload("wide.png", png(4096, 16, (20, 160, 90)), instrument)
    broken = server.upload("broken.png", png(300, 200, (0, 0, 0))[:60], instrument)
    raw = server.upload("raw.bin", bytes(range(256)), instrument)

    page.goto(f"/#/files/{green}")
    picture = page.get_by_role("img", name="green.png")
    expect(picture).to_be_visible()
    expect(page.locator("figcaption")).to_have_text("300 by 200 pixels")
    middle = "it => [...it.getContext('2d').getImageData(150, 100, 1, 1).data]"
    assert picture.evaluate(middle) == [20, 160, 90, 255]
    check_accessible(page)
    page.goto(f"/#/files/{wide}")
    expect(page.locator("figcaption")).to_have_text("4,096 by 16 pixels")
    check_fits_a_phone(page)

    page.goto(f"/#/files/{broken}")
    expect(page.locator("main")).to_contain_text("This browser cannot decode the image. Download it to see it.")
    page.goto(f"/#/files/{raw}")
    expect(page.locator("main")).to_contain_text("No preview: not text.")


def test_files_are_filtered_by_name_extension_and_instrument(page, server):
    balance = server.call("POST", "/instruments", {"name": "balance"})["id"]
    for name in ("weights.csv", "weights.txt"):
        server.upload(name, b"1", balance)
    page.goto("/#/files")
    rows = page.locator("tbody tr")
    page.get_by_label("Source", exact=True).select_option("balance")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("balance")
    page.get_by_label("Extensions").fill("TXT, md")
    page.get_by_role("button", name="Filter").click()
    expect(rows).to_have_count(1)
    page.get_by_label("Part of the name").fill("nothing like it")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("No file meets the conditions.")
    check_accessible(page)
