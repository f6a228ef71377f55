// Rules of the SQL page.

import assert from "node:assert/strict";
import { test } from "node:test";
import { bars, parameterCount } from "../../assets/sql.js";

test("a statement has a field for each of its parameters", () => {
  for (const [statement, count] of [
    ["select 1", 0],
    ["select * from a where b = $2 or c = $1 or d = $2", 2],
    ["select * from a where b = %s and c = %s", 2],
    ["select 'it''s %s $3', \"%s\" from a where b like '%%s' -- $4", 0],
    ["select 'x%s' from a where b = $1 and 5 % 2 = 1", 1],
  ]) {
    assert.equal(parameterCount(statement), count, statement);
  }
});

test("a bar of one row has its error, a bar of several has none", () => {
  const points = [
    { key: "a", at: "a", y: 1, error: 0.1 },
    { key: "b", at: "b", y: 2, error: 0.2 },
    { key: "b", at: "b", y: 4, error: 0.4 },
    { key: "c", at: "c", y: null, error: 0.3 },
  ];
  assert.deepEqual(bars(points, "mean"), [
    { at: "a", y: 1, error: 0.1 },
    { at: "b", y: 3, error: null },
    { at: "c", y: null, error: null },
  ]);
  assert.equal(bars(points, "greatest")[1].y, 4);
});

test("long whole numbers that are drawn at one place stay two bars", () => {
  const at = 9007199254740992;
  assert.equal(bars([{ key: 9007199254740992n, at, y: 1, error: null }, { key: 9007199254740993n, at, y: 3, error: null }], "sum").length, 2);
});
