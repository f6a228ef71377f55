// JSON and numbers that keep all their digits.

import assert from "node:assert/strict";
import { test } from "node:test";
import { numberOf, parse, stringify } from "../../assets/exact.js";

test("long whole numbers survive reading and writing", () => {
  for (const text of ['{"a":9007199254740993}', "[-9223372036854775808,1,1.5]", "12345678901234567", '{"t":"12345678901234567"}']) {
    assert.equal(stringify(parse(text)), text);
  }
});

test("what is written in a field is that number, or none", () => {
  assert.equal(numberOf("9007199254740993", true), 9007199254740993n);
  assert.equal(numberOf(" 1e3 ", false), 1000);
  assert.equal(numberOf("", false), null);
  for (const [text, isWhole] of [["1e999", false], ["0x10", false], ["1.5", true], ["1e3", true], ["1,5", false]]) {
    assert.ok(Number.isNaN(numberOf(text, isWhole)), text);
  }
});

test("a number too small to be stored is refused, as one too large is, and 0 is none of them", () => {
  for (const text of ["1e-400", "-0.1e-999", ".00001e-320"]) {
    assert.ok(Number.isNaN(numberOf(text, false)), text);
  }
  assert.deepEqual(["0", "0.0e5", "-0e-999", "5e-324"].map((text) => numberOf(text, false) === 0), [true, true, true, false]);
});
