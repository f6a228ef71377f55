// Values as people see them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { CALENDAR, counted, distinctly, duration, instant, milliseconds, moment, naturally, number, text, zoneAt } from "../../assets/format.js";

test("a fraction has six significant digits, and what stands before the point is never rounded", () => {
  assert.equal(number(0.040100000000000004), "0.0401");
  assert.equal(number(1 / 3), "0.333333");
  assert.equal(number(1e-7), "1e-7");
  assert.equal(number(123456789.25), "123456789.3");
  assert.equal(number(-0.1), "-0.1");
});

test("a whole number has all of its digits", () => {
  assert.equal(number(9007199254740991), "9007199254740991");
  assert.equal(number(12345678901234567890n), "12345678901234567890");
  assert.equal(number(0), "0");
});

test("an instant is the same everywhere, with its zone and all its digits", () => {
  assert.equal(instant("2026-03-01T08:30:00Z", "UTC"), "2026-03-01 08:30 UTC");
  assert.equal(instant("2026-03-01T08:30:00Z", "Europe/Berlin"), "2026-03-01 09:30 GMT+1");
  assert.equal(instant("2026-03-01T08:30:07.123456Z", "UTC"), "2026-03-01 08:30:07.123456 UTC");
  assert.equal(instant("2026-07-01T23:30:00Z", "Europe/Berlin"), "2026-07-02 01:30 GMT+2");
  assert.equal(instant(Date.UTC(2026, 2, 1, 8, 30, 0, 500), "UTC"), "2026-03-01 08:30:00.5 UTC");
});

test("nothing is an empty text, and an object its JSON", () => {
  assert.equal(text(null), "");
  assert.equal(text(undefined), "");
  assert.equal(text({ a: 12345678901234567n }), '{"a":12345678901234567}');
  assert.equal(text(false), "false");
});

test("values are listed as people list them", () => {
  assert.deepEqual([10, 3, 1, 0, null].sort(naturally), [0, 1, 3, 10, null]);
  assert.deepEqual(["A10", "A2", "b1", "A1"].sort(naturally), ["A1", "A2", "A10", "b1"]);
  assert.deepEqual(["10", "3", "1", "0"].sort(naturally), ["0", "1", "3", "10"]);
});

test("counts and durations are words", () => {
  assert.equal(counted(1, "row"), "1 row");
  assert.equal(counted(55392, "point"), "55,392 points");
  assert.equal(duration("2026-03-01T08:30:00Z", "2026-03-01T08:30:01.25Z"), "1.3 s");
  assert.equal(duration("2026-03-01T08:30:00Z", "2026-03-01T08:30:00.04Z"), "under 0.1 s");
  assert.equal(duration("2026-03-01T08:30:00Z", "2026-03-01T08:31:59.7Z"), "2 min 0 s");
  assert.equal(duration("2026-03-01T08:30:00Z", "2026-03-01T09:29:59.9Z"), "1 h 0 min");
  assert.equal(duration("2026-03-01T08:30:00Z", "2026-03-01T09:45:00Z"), "1 h 15 min");
});

test("dates and times without a zone are what is written, wherever the browser is", () => {
  for (const zone of ["UTC", "America/New_York", "Europe/Berlin"]) {
    process.env.TZ = zone;
    assert.equal(moment(milliseconds("2026-03-29"), CALENDAR), "2026-03-29", zone);
    assert.equal(moment(milliseconds("2026-03-29T02:30:00"), CALENDAR), "2026-03-29 02:30", zone);
    assert.equal(moment(milliseconds("2026-03-29 02:30:10.5"), CALENDAR), "2026-03-29 02:30:10.5", zone);
  }
  assert.equal(milliseconds("no date"), null);
  assert.equal(milliseconds(null), null);
});

test("instants of one axis are on one clock, also where clocks are put back", () => {
  process.env.TZ = "Europe/Berlin";
  const instants = ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"].map(milliseconds);
  const zone = zoneAt(instants[0]);
  assert.deepEqual(instants.map((it) => moment(it, zone)), ["2026-10-25 02:30 UTC+2", "2026-10-25 03:30 UTC+2"]);
  process.env.TZ = "America/St_Johns";
  assert.equal(zoneAt(milliseconds("2026-01-01T00:00:00Z")).name, "UTC−3:30");
  process.env.TZ = "UTC";
  assert.deepEqual(zoneAt(0), { offset: 0, name: "UTC" });
});

test("values that differ have words that differ", () => {
  assert.deepEqual([...distinctly(["key-1", "key-2", "key-3"], (it) => (it === "key-3" ? "Plate 2" : "Plate 1")).values()], ["Plate 1 (key-1)", "Plate 1 (key-2)", "Plate 2"]);
  const words = distinctly([0.12345678, 0.12345681, 2 / 3, null], (it) => (it === null ? "no dose" : `${number(it)} mmol/L`));
  assert.deepEqual([...words.values()], ["0.12345678 mmol/L", "0.12345681 mmol/L", "0.666667 mmol/L", "no dose"]);
});

test("an instant of any column is one, and no other text", () => {
  process.env.TZ = "UTC";
  assert.equal(text("2026-03-01T08:30:00.5Z"), "2026-03-01 08:30:00.5 UTC");
  assert.equal(text("2026-03-01T08:30:00Z", "string"), "2026-03-01T08:30:00Z");
  assert.equal(text("2026-03-01T08:30:00"), "2026-03-01T08:30:00");
});
