"""The whole main job, by mouse and by keyboard alone: define tables, import, upload, run, look, change, revert."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from conftest import WATCH

DEMO = Path(__file__).parents[4] / "docs" / "demo"
EXPORT = DEMO / "simulated_growth_curves.txt"
SCRIPT = (DEMO / "parse_growth_curves.py").read_text("utf-8")

# Most places that the Tab key visits before the one that is meant.
TABS = 120


class Mouse:
    """Someone who points at things."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, place: Locator) -> None:
        place.click()

    def write(self, place: Locator, text: str) -> None:
        place.fill(text)

    def choose(self, place: Locator, option: str) -> None:
        place.select_option(label=option)

    def attach(self, place: Locator, file: Path) -> None:
        with self.page.expect_file_chooser() as chooser:
            place.click()
        chooser.value.set_files(file)


class Keyboard(Mouse):
    """Someone without a mouse."""

    def reach(self, place: Locator) -> None:
        expect(place).to_be_visible()
        for _ in range(TABS):
            if place.evaluate("it => it === document.activeElement"):
                return
            # An editor takes the Tab key, and lets go of it after Escape.
            if self.page.evaluate("document.activeElement?.classList.contains('code') ?? false"):
                self.page.keyboard.press("Escape")
            self.page.keyboard.press("Tab")
        raise AssertionError(f"no way to {place} by the Tab key")

    def press(self, place: Locator) -> None:
        self.reach(place)
        is_box = place.evaluate("it => it.type === 'checkbox'")
        self.page.keyboard.press("Space" if is_box else "Enter")

    def write(self, place: Locator, text: str) -> None:
        self.reach(place)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(text)

    def choose(self, place: Locator, option: str) -> None:
        self.reach(place)
        shown = "it => it.selectedOptions[0].textContent"
        self.page.keyboard.press("Home")
        for _ in range(place.locator("option").count()):
            if place.evaluate(shown) == option:
                return
            self.page.keyboard.press("ArrowDown")
        assert place.evaluate(shown) == option

    def attach(self, place: Locator, file: Path) -> None:
        self.reach(place)
        with self.page.expect_file_chooser() as chooser:
            self.page.keyboard.press("Enter")
        chooser.value.set_files(file)


class Story:
    """What a scientist does, by the names of what is on the pages."""

    def __init__(self, person: Mouse, key: str) -> None:
        self.person, self.page, self.key = person, person.page, key

    def picture(self, name: str) -> None:
        """A picture of the page for the documentation, where `CONSOLE_PICTURES` names a directory for them."""
        directory = os.environ.get("CONSOLE_PICTURES")
        if directory and type(self.person) is Mouse:
            self.page.mouse.move(0, 0)
            self.page.screenshot(path=Path(directory) / f"{name}.png")

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def label(self, name: str, index: int = 0) -> Locator:
        return self.page.get_by_label(name, exact=True).nth(index)

    def go(self, name: str) -> None:
        self.person.press(self.page.get_by_role("navigation").get_by_role("link", name=name, exact=True))
        expect(self.page.locator("nav a[aria-current=page]")).to_have_text(name)

    def open(self, name: str) -> None:
        self.person.press(self.page.locator("summary", has_text=name).first)

    def sign_in(self) -> None:
        self.page.goto("/")
        self.person.write(self.page.locator("#key"), self.key)
        self.person.press(self.button("Sign in"))
        expect(self.page.locator("nav")).to_be_visible()

    def define(self, name: str, holds: str, columns: list[tuple[str, str]], unique: str = "") -> None:
        self.go("Tables")
        self.open("Define a table")
        form = self.page.locator("form", has=self.button("Define the table"))
        self.person.write(form.get_by_label("Name", exact=True), name)
        self.person.choose(form.get_by_label("Holds"), holds)
        for index, (column, kind) in enumerate(columns):
            if index > 0:
                self.person.press(form.get_by_role("button", name="Another column"))
            self.person.write(form.get_by_label("Column", exact=True).nth(index), column)
            self.person.choose(form.get_by_label("Type").nth(index), kind)
            if column == unique:
                self.person.press(form.get_by_label("Unique", exact=True).nth(index))
        self.person.press(self.button("Define the table"))
        expect(self.page.locator("h1")).to_have_text(name)

    def import_rows(self, file: Path) -> None:
        self.open("Import a file")
        self.person.attach(self.page.locator("main input[type=file]"), file)
        self.person.press(self.button("Check"))
        expect(self.page.locator("main")).to_contain_text("It would be 2 rows created")
        self.person.press(self.button(f"Import {file.name}"))
        expect(self.page.locator("main")).to_contain_text("2 rows created, 0 updated")

    def upload(self, instrument: str) -> None:
        self.go("Admin")
        self.open("New instrument")
        form = self.page.locator("form", has=self.button("Add the instrument"))
        self.person.write(form.get_by_label("Name", exact=True), instrument)
        self.person.press(self.button("Add the instrument"))
        expect(self.page.locator("td").get_by_role("link", name=instrument, exact=True)).to_be_visible()
        self.go("Files")
        self.person.choose(self.label("Instrument"), instrument)
        self.person.attach(self.page.locator("main input[type=file]"), EXPORT)
        expect(self.page.get_by_role("list", name="Uploads")).to_contain_text("Stored")

    def run(self, job: str) -> None:
        self.go("Jobs")
        self.open("New job")
        self.person.write(self.label("Name"), job)
        self.person.write(self.page.locator("main textarea").first, SCRIPT)
        self.person.press(self.button("Create the job"))
        expect(self.page.locator("h1")).to_have_text(job)
        files = self.page.get_by_role("combobox", name="File", exact=True)
        option = files.locator("option", has_text=EXPORT.name).first
        expect(option).to_be_attached()
        self.person.choose(files, option.text_content())
        self.person.press(self.button("Run"))
        expect(self.page.get_by_label("Log")).to_contain_text("24 wells, 100 reads")
        expect(self.page.locator("h1 .badge.completed")).to_be_visible()

    def see(self, told: str) -> None:
        self.go("Plates")
        self.person.press(self.page.get_by_role("link", name="growth_curve", exact=True))
        expect(self.page.locator("main")).to_contain_text(told)
        if told.startswith("24"):
            expect(self.page.locator("lab-plot svg").first).to_be_visible()
            self.picture("plate")

    def change(self, row: str) -> None:
        self.go("Tables")
        expect(self.page.locator("main svg").first).to_be_visible()
        self.picture("tables")
        self.person.press(self.page.locator("main").get_by_role("link", name="sample", exact=True).last)
        self.person.press(self.page.get_by_role("link", name=row, exact=True))
        expect(self.page.locator("h1")).to_have_text(row)
        self.person.press(self.button("Change"))
        self.person.write(self.page.locator("form").get_by_label("well"), "H12")
        self.person.press(self.page.locator("form button.primary"))
        expect(self.page.locator("dd", has_text="H12")).to_be_visible()

    def revert(self, job: str) -> None:
        self.go("Jobs")
        self.person.press(self.page.get_by_role("link", name=job, exact=True))
        expect(self.page.locator("pre.code")).to_be_visible()
        self.picture("job")
        self.go("Executions")
        self.person.press(self.page.get_by_role("link", name=job, exact=True).first)
        self.person.press(self.button("Preview the revert"))
        sure = self.page.locator("button.danger", has_text="25 rows of carrier, sample")
        expect(sure).to_be_visible()
        sure.scroll_into_view_if_needed()
        self.picture("revert")
        self.person.press(sure)
        expect(self.page.locator("main")).to_contain_text("Reverted by")


@pytest.mark.parametrize("kind", [Mouse, Keyboard])
def test_the_whole_main_job(kind, server, browser, tmp_path):
    # An organization for each: the tables have the same names.
    key = server.key_of(f"main-job-{kind.__name__.lower()}", "read,write,admin")
    context = browser.new_context(locale="en-US", base_url=server.url, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(30_000)
    page.add_init_script(WATCH)
    # From now on, not from the moment before a key is pressed: the browser would open a dialog that nobody sees.
    page.on("filechooser", lambda _: None)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    samples = tmp_path / "samples.csv"
    samples.write_text("name,well\nblank,A1\nmedium,A2\n")
    story = Story(kind(page), key)
    story.sign_in()
    story.define("sample", "rows (curated)", [("name", "string"), ("well", "string"), ("plate", "carrier")], "name")
    story.import_rows(samples)
    story.define(
        "growth_curve", "points of curves (raw)", [("sample", "sample"), ("time_h", "float"), ("od600", "float")]
    )
    story.upload("reader")
    story.run("parse growth curves")
    # One reading of the simulated file overflowed, and has no value.
    story.see("24 curves, 2,399 points")
    story.change("blank")
    story.revert("parse growth curves")
    story.see("No row with a curve")
    problems += page.evaluate("window.violations")
    context.close()
    assert problems == []
