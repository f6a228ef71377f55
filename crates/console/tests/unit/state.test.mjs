// Addresses.

import assert from "node:assert/strict";
import { test } from "node:test";
import { address, parts } from "../../assets/state.js";

test("an address leads to what it was made of", () => {
  const made = address("tables", "a/b?c#d", { "name__contains": "5 % & more", _sort: "-x", _plate: ["p 1", "p2"], _page: null, _log: false });
  const { page, one, values } = parts(made);
  assert.equal(page, "tables");
  assert.equal(one, "a/b?c#d");
  assert.equal(values.get("name__contains"), "5 % & more");
  assert.deepEqual(values.getAll("_plate"), ["p 1", "p2"]);
  assert.equal(values.has("_page"), false);
});

test("a page without a thing has none", () => {
  assert.deepEqual([parts("#/files").page, parts("#/files").one], ["files", ""]);
  assert.equal(parts("").page, "");
  assert.equal(address("executions", "", { _job: "1" }), "#/executions?_job=1");
});

test("a broken escape is read as it stands", () => {
  assert.equal(parts("#/tables/%zz").one, "%zz");
});
