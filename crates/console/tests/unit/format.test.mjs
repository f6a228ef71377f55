// Values as people see them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { counted, duration, instant, naturally, number, text } from "../../assets/format.js";

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
  assert.equal(duration("2026-03-01T08:30:00Z", "2026-03-01T09:45:00Z"), "1 h 15 min");
});
