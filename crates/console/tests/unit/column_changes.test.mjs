import assert from "node:assert/strict";
import test from "node:test";

import { accessChanges, columnChanges } from "../../assets/column_changes.js";

const AMOUNT = { name: "amount", data_type: "integer", label: null, unit: "mg", description: null, is_nullable: true, is_unique: false };

const words = (after) => columnChanges(AMOUNT, { ...AMOUNT, ...after }).map((it) => it.words);

test("a column that stays as it is has no changes", () => {
  assert.deepEqual(words({}), []);
  assert.deepEqual(words({ label: "", description: null }), []);
});

test("each change of a column is said with what follows from it", () => {
  assert.match(words({ name: "mass" })[0], /^amount is called mass; its values stay/);
  assert.deepEqual(words({ data_type: "float" }), ["amount: integer becomes float, if every stored value converts exactly"]);
  assert.deepEqual(words({ unit: "g" }), ['amount: unit "mg" → "g". The stored numbers stay as they are.']);
  assert.deepEqual(words({ unit: null }), ['amount: unit "mg" → none. The stored numbers stay as they are.']);
  assert.deepEqual(words({ label: "Amount" }), ['amount: label none → "Amount"']);
  assert.deepEqual(words({ is_nullable: false, is_unique: true }), [
    "amount is required, if every row has a value",
    "amount has to be unique, if all stored values differ",
  ]);
});

test("a changed access says who reads and writes then", () => {
  assert.deepEqual(accessChanges({}, { read: [], write: [] }), []);
  assert.deepEqual(accessChanges({ read: ["a"] }, { read: ["a"], write: [] }), []);
  const opened = accessChanges({ read: ["a"] }, { read: [], write: [] });
  assert.match(opened[0].words, /read by everyone of the organization/);
  const kept = accessChanges({}, { read: ["Clinic"], write: ["Nurses"] });
  assert.match(kept[0].words, /read by Clinic and administrators, and by who writes it/);
  assert.match(kept[1].words, /written by Nurses and administrators/);
});
