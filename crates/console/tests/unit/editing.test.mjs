import assert from "node:assert/strict";
import { test } from "node:test";

import { told } from "../../assets/api.js";
import { cellsOf } from "../../assets/cells.js";
import { visible } from "../../assets/dom.js";
import { texts } from "../../assets/filters.js";
import { edited } from "../../assets/tables.js";

test("a block of a spreadsheet is read with its quotes", () => {
  const cases = [
    ["a\tb\r\nc\td\r\n", [["a", "b"], ["c", "d"]]],
    ['"two\nlines"\tx\r\ny\tz', [["two\nlines", "x"], ["y", "z"]]],
    ['"say ""no""\nnow"', [['say "no"\nnow']]],
    ['5" pipe\t"quoted"\n""', [['5" pipe', '"quoted"'], ['""']]],
    ["a\t\n\tb\n", [["a", ""], ["", "b"]]],
    ["", [[""]]],
  ];
  for (const [block, cells] of cases) {
    assert.deepEqual(cellsOf(block), cells, JSON.stringify(block));
  }
});

test("an edited text keeps the line breaks of what was not changed", () => {
  const cases = [
    ["a\r\nb\r\nc", "a\nb\nc!", "a\r\nb\r\nc!"],
    ["a\r\nb\r\nc", "a\nX\nc", "a\r\nX\r\nc"],
    ["a\rb\nc", "a\nb\nc", "a\rb\nc"],
    ["a\r\nb", "b", "b"],
    ["aa", "aaa", "aaa"],
    ["", "new\nline", "new\nline"],
  ];
  for (const [before, after, stored] of cases) {
    assert.equal(edited(before, after), stored, JSON.stringify([before, after]));
  }
});

test("blanks of a text belong to the filter, around a number they do not", () => {
  const [text, number] = [{ data_type: "string", foreign_key_table_name: null }, { data_type: "integer", foreign_key_table_name: null }];
  assert.deepEqual(texts(text, "", " lead"), [" lead"]);
  assert.deepEqual(texts(text, "__in", "WT, KO"), ["WT", " KO", "KO"]);
  assert.deepEqual(texts(number, "__in", "1, 2"), ["1", "2"]);
});

test("a problem names the row and the column, not the place in the request", () => {
  const words = (path) => told({ errors: [{ path, message: "is wrong" }] }, 400);
  assert.equal(words("tables[0].rows[0].owner"), "owner: is wrong");
  assert.equal(words("tables[0].rows[2].owner"), "row 3, owner: is wrong");
  assert.equal(words("tables[0]"), "is wrong");
  assert.equal(words("limit"), "limit: is wrong");
  assert.equal(told({ detail: [{ loc: ["body", "tables[0].rows[1].od"], msg: "is wrong" }] }, 422), "row 2, od: is wrong");
});

test("characters that turn a text around are shown by their codes", () => {
  assert.equal(visible("\u202eKEEP\u0007"), "[U+202E]KEEP[U+0007]");
  assert.equal(visible("Δ µ\tשלום\n"), "Δ µ\tשלום\n");
});
