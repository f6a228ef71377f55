import assert from "node:assert/strict";
import { test } from "node:test";

import { colorsOf } from "../../assets/pages/plate_parts.js";

test("numbers share the scale of colors, of which what has no value has no part", () => {
  const groups = [10, null, 0, 5].map((value) => ({ name: String(value), value }));
  assert.deepEqual([...colorsOf(groups)], [["0", 0], ["5", 0.5], ["10", 1], ["null", null]]);
  assert.deepEqual([...colorsOf(groups.slice(0, 2)).values()], [undefined, undefined]);
});
