"""Defects that were seen in the first console, and that no other test would find again."""

from __future__ import annotations

import csv

import pytest
from playwright.sync_api import expect

from conftest import check_accessible, wait_until

ROWS = 120


@pytest.fixture(scope="module")
def tubes(server):
    """A table of more rows than a page has, with wide columns and empty cells."""
    name = {"name": "name", "data_type": "string", "is_unique": True, "is_nullable": False}
    columns = [name, *({"name": f"remark_{n}", "data_type": "string"} for n in range(12))]
    server.call("PUT", "/tables/rack_tube", {"semantic_category": "curated", "columns": columns})
    rows = [{"name": f"T{n:03}", "remark_0": "x" * 40} for n in range(ROWS)]
    server.call("POST", "/data/write", {"tables": [{"table": "rack_tube", "rows": rows}]})


@pytest.fixture(scope="module")
def two_plates(server):
    """A well A1 on each of two plates, each with a curve."""
    name = {"name": "name", "data_type": "string", "is_unique": True, "is_nullable": False}
    server.call("PUT", "/tables/dish", {"semantic_category": "curated", "columns": [name]})
    columns = [
        name,
        {"name": "plate", "data_type": "string"},
        {"name": "well", "data_type": "string"},
        {"name": "strain", "data_type": "string"},
    ]
    server.call("PUT", "/tables/spot", {"semantic_category": "curated", "columns": columns})
    owner = {"name": "spot", "data_type": "string", "references": "spot", "is_nullable": False}
    light = [owner, {"name": "time", "data_type": "float"}, {"name": "light", "data_type": "float"}]
    server.call("PUT", "/tables/spot_curve", {"semantic_category": "raw", "columns": light})
    rows = [{"name": f"{plate} A1", "plate": plate, "well": "A1", "strain": "ΔrpoS"} for plate in ("One", "Two")]
    ids = server.call("POST", "/data/write", {"tables": [{"table": "spot", "rows": rows}]})["tables"][0]["ids"]
    points = {"time": [0, 1], "light": [1, 2]}
    first, second = ({"table": "spot_curve", "parent": id, "columns": points} for id in ids)
    server.call("POST", "/data/write", {"job_name": "First plate", "series": [first]})
    return server.call("POST", "/data/write", {"job_name": "Second plate", "series": [second]})["job_execution_id"]


def test_a_colored_curve_still_names_its_well_and_plate_also_in_the_file(two_plates, page, tmp_path):
    page.goto("/#/plates/spot_curve?_all=1&_layout=overlaid&_color=strain")
    wait_until(page, "document.querySelector('lab-plot')?.data?.length >= 2")
    about = page.evaluate("document.querySelector('lab-plot').data.map((it) => it.hovertemplate)")
    assert any(it.startswith("Two A1 · Two · A1<br>strain: ΔrpoS<br>time: ") for it in about), about
    with page.expect_download() as values:
        page.get_by_role("button", name="CSV").click()
    values.value.save_as(tmp_path / "curves.csv")
    with (tmp_path / "curves.csv").open(encoding="utf-8-sig", newline="") as file:
        assert {row["plate"] for row in csv.DictReader(file)} == {"One", "Two"}


def test_what_an_execution_wrote_is_plotted(two_plates, page):
    page.goto(f"/#/executions/{two_plates}")
    page.get_by_role("link", name="Plot what it wrote").click()
    expect(page.locator(".told").first).to_have_text("1 curve, 2 points.")
    check_accessible(page)
    page.get_by_role("button", name="Show the curves of all executions").click()
    expect(page.locator(".told").first).to_have_text("2 curves, 4 points.")
    page.go_back()
    expect(page.locator(".told").first).to_have_text("1 curve, 2 points.")


def test_rows_stay_when_the_next_page_cannot_be_read(tubes, page):
    page.goto("/#/tables/rack_tube")
    expect(page.locator("tbody tr")).to_have_count(50)
    page.route("**/tools/read*", lambda route: route.abort())
    page.get_by_role("button", name="Next page").click()
    expect(page.get_by_role("alert")).to_contain_text("The platform cannot be reached.")
    expect(page.locator("tbody tr")).to_have_count(50)
    page.unroute("**/tools/read*")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("tbody")).to_contain_text("T069")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_the_second_page_is_found_again_by_a_reload_and_left_by_back(tubes, page):
    page.goto("/#/tables/rack_tube?_sort=name")
    first = page.locator("tbody tr").first
    expect(first).to_contain_text("T000")
    page.get_by_role("button", name="Next page").click()
    expect(first).to_contain_text("T050")
    page.reload()
    expect(first).to_contain_text("T050")
    page.get_by_role("button", name="Next page").click()
    expect(first).to_contain_text("T100")
    page.go_back()
    expect(first).to_contain_text("T050")
    page.go_back()
    expect(first).to_contain_text("T000")
    expect(page.get_by_role("button", name="First page")).to_have_count(0)


def test_a_page_that_follows_events_keeps_its_entries_when_it_cannot_be_read_again(tubes, server, page):
    page.goto("/#/tables")
    tables = page.get_by_role("link", name="rack_tube", exact=True)
    expect(tables.first).to_be_visible()
    page.route("**/tools/schema*", lambda route: route.abort())
    columns = [{"name": "name", "data_type": "string"}]
    server.call("PUT", "/tables/rack_of_later", {"semantic_category": "curated", "columns": columns})
    expect(page.get_by_role("alert")).to_contain_text("The platform cannot be reached.")
    expect(tables.first).to_be_visible()
    check_accessible(page)
    page.unroute("**/tools/schema*")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("link", name="rack_of_later").first).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.parametrize("size", [(1440, 900), (1024, 768)])
def test_actions_counts_and_pager_are_seen_without_scrolling(tubes, page, size):
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto("/#/tables/rack_tube")
    expect(page.get_by_text("50 rows on this page")).to_be_visible()
    found = [
        page.get_by_role("button", name="Next page"),
        page.get_by_text("Add a row", exact=True),
        page.get_by_text("Import a file", exact=True),
        page.get_by_role("button", name="Sign out"),
    ]
    for it in found:
        box = it.bounding_box()
        assert box["y"] + box["height"] <= size[1], it
        # On one line.
        assert box["height"] < 40, it
    # Pages stand at the side, in groups.
    assert page.locator("nav .group ul").count() == 3
    assert page.locator("nav").bounding_box()["x"] < page.locator("main").bounding_box()["x"]


def test_the_head_and_the_names_of_a_wide_table_stay_in_sight(tubes, page):
    page.set_viewport_size({"width": 1024, "height": 500})
    page.goto("/#/tables/rack_tube")
    scroll = page.locator(".scroll").first
    expect(page.locator("tbody tr")).to_have_count(50)
    scroll.evaluate("(it) => it.scrollTo(400, 400)")
    wait_until(page, "document.querySelector('.scroll').scrollLeft > 0")
    edges = scroll.evaluate(
        """(it) => {
          const [outer, head, name] = [it, it.querySelector("th"), it.querySelector("tbody tr:last-child td")];
          const [place, top, left] = [outer, head, name].map((each) => each.getBoundingClientRect());
          return { down: top.top - place.top, across: left.left - place.left };
        }"""
    )
    assert abs(edges["down"]) < 3, edges
    assert abs(edges["across"]) < 3, edges
    # An empty cell is empty.
    texts = page.locator("tbody tr").first.locator("td").all_inner_texts()
    assert texts[2:] == [""] * 11


def test_files_and_jobs_come_by_themselves(server, page):
    instrument = server.call("POST", "/instruments", {"name": "Reader of a live list"})["id"]
    page.goto("/#/files")
    expect(page.locator("h1")).to_have_text("Files")
    server.upload("came by itself.csv", b"a\n1\n", instrument)
    expect(page.locator("td", has_text="came by itself.csv")).to_be_visible()
    page.goto("/#/jobs")
    expect(page.locator("h1")).to_have_text("Jobs")
    expect(page.locator("main .scroll, main .empty").first).to_be_visible()
    server.call("POST", "/job-executions", {"job_name": "Opened elsewhere"})
    # Names of what scripts elsewhere write are no jobs of the platform.
    page.get_by_text("Names of what scripts elsewhere wrote").click()
    expect(page.locator("details td", has_text="Opened elsewhere")).to_be_visible()
    assert page.locator("main > div > div > .scroll td", has_text="Opened elsewhere").count() == 0


def test_a_job_runs_over_files_that_arrived_before_its_trigger(server, page):
    instrument = server.call("POST", "/instruments", {"name": "Reader of an archive"})["id"]
    for number in (1, 2):
        server.upload(f"old {number}.dat", b"1\n", instrument)
    job = server.call("POST", "/jobs", {"name": "parse the archive", "code": "print(1)\n"})["id"]
    trigger = {"trigger_enabled": True, "trigger_category": "file_uploaded"}
    conditions = {"trigger_conditions": {"file_extensions": ["dat"]}, "trigger_instrument_id": instrument}
    server.call("PATCH", f"/jobs/{job}", {**trigger, **conditions})
    page.goto(f"/#/jobs/{job}")
    page.get_by_text("Run over old files").click()
    # A worker that had not yet seen the uploads runs over them by itself.
    page.get_by_role("combobox", name="Files", exact=True).select_option("all")
    page.get_by_role("button", name="Count the files").click()
    check_accessible(page)
    page.get_by_role("button", name="Run it over 2 files").click()
    expect(page.locator(".toast")).to_contain_text("2 runs queued.")
    runs = page.locator("section", has=page.get_by_role("heading", name="Runs"))
    expect(runs.locator("tbody tr").nth(1)).to_be_visible()


def test_a_file_that_no_reading_fits_is_read_as_a_person_says(server, page):
    columns = [{"name": "par1", "data_type": "string"}, {"name": "x", "data_type": "integer"}]
    server.call("PUT", "/tables/wizard", {"semantic_category": "curated", "columns": columns})
    page.goto("/#/tables/wizard")
    page.get_by_text("Import a file", exact=True).click()
    # It begins as Parquet files do.
    content = b"PAR1;x\nA1;2\n"
    page.set_input_files("input[type=file]", {"name": "plate.csv", "mimeType": "text/csv", "buffer": content})
    expect(page.get_by_role("alert")).to_contain_text("the file is not Parquet")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("The file could not be read.")).to_be_visible()
    for field in ("Sheet", "Header in line", "Encoding"):
        expect(page.get_by_label(field, exact=True)).to_be_visible()
    for field in ("Columns end at", "Decimal sign", "Quotation mark"):
        expect(page.get_by_role("combobox", name=field)).to_be_visible()
    check_accessible(page)
    page.get_by_role("combobox", name="Columns end at").select_option(";")
    page.get_by_role("combobox", name="Format").select_option("csv")
    expect(page.locator("summary", has_text="Read as csv")).to_contain_text("semicolon")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("No problems.")).to_be_visible()
    page.get_by_role("button", name="Import plate.csv").click()
    expect(page.locator("tbody a, tbody td").filter(has_text="A1").first).to_be_visible()


def test_what_the_server_is_not_set_up_for_is_not_offered(server, page):
    # This server has an agent and no address for SQL logins.
    page.goto("/#/admin")
    section = page.locator("section", has=page.get_by_role("heading", name="SQL logins"))
    expect(section).to_contain_text("LABDATA_SQL_BIND")
    expect(section.get_by_text("New SQL login")).to_have_count(0)
    page.goto("/#/chat")
    expect(page.get_by_role("textbox", name="Question")).to_be_visible()
    detail = "the agent is not set up: the operator has to set LABDATA_LLM_PROVIDER"

    scopes = ["read", "write", "admin"]

    def without_agent(route):
        me = route.fetch().json()
        me["missing_features"] = [{"feature": "agent", "detail": detail}]
        me["api_key"]["scopes"] = scopes
        route.fulfill(json=me)

    page.route("**/api/v1/session", without_agent)
    page.reload()
    expect(page.locator("main")).to_contain_text(detail)
    expect(page.get_by_role("textbox", name="Question")).to_have_count(0)
    check_accessible(page)
    scopes.remove("admin")
    page.goto("/#/home")
    page.reload()
    pages = page.get_by_role("navigation")
    expect(pages.get_by_role("link", name="Jobs")).to_be_visible()
    expect(pages.get_by_role("link", name="Chat")).to_have_count(0)
