// Arithmetic over curves.

import assert from "node:assert/strict";
import { test } from "node:test";
import { extent, letters, lonePoints, meanCurve, measured, plateOf, sequential, spread, thinned, wellOf, withoutBlank } from "../../assets/science.js";

test("mean, standard deviation and standard error are those of a sample", () => {
  const { n, mean, sd, sem } = spread([2, 4, 4, 4, 5, 5, 7, 9]);
  assert.deepEqual([n, mean], [8, 5]);
  assert.ok(Math.abs(sd - Math.sqrt(32 / 7)) < 1e-12);
  assert.ok(Math.abs(sem - sd / Math.sqrt(8)) < 1e-12);
});

test("a single value has no spread", () => {
  assert.deepEqual(spread([3]), { n: 1, mean: 3, sd: null, sem: null });
});

test("a mean curve counts what there is at each place", () => {
  const mean = meanCurve([
    { x: [0, 1, 2], y: [1, 2, null] },
    { x: [1, 0], y: [4, 3] },
  ]);
  assert.deepEqual(mean.x, [0, 1]);
  assert.deepEqual(mean.mean, [2, 3]);
  assert.deepEqual(mean.n, [2, 2]);
});

test("a value without a blank at its place is left out and counted", () => {
  const { curve, left } = withoutBlank({ x: [0, 1, 2], y: [1, 2, 3] }, { x: [0, 1], y: [0.25, 0.5] });
  assert.deepEqual(curve.y, [0.75, 1.5, null]);
  assert.equal(left, 1);
});

test("readings that follow well by well are matched by their cycle", () => {
  const read = (late, offset) => ({ x: [0 + late, 10 + late, 20 + late], y: [1 + offset, 2 + offset, 3 + offset] });
  const mean = meanCurve([read(0, 0), read(0.5, 1), read(1, 2)]);
  assert.deepEqual([mean.how, mean.apart], ["cycle", 1]);
  assert.deepEqual(mean.x, [0.5, 10.5, 20.5]);
  assert.deepEqual(mean.mean, [2, 3, 4]);
  assert.deepEqual(mean.n, [3, 3, 3]);
  const { curve, left, how } = withoutBlank(read(0.25, 5), { x: mean.x, y: mean.mean });
  assert.deepEqual([curve.y, left, how], [[4, 4, 4], 0, "cycle"]);
  // Single readings are of one cycle where they are known to be of one endpoint only: others may be hours apart.
  const endpoint = [{ x: [3], y: [1] }, { x: [5], y: [3] }];
  assert.deepEqual(meanCurve(endpoint, true).mean, [2]);
  assert.deepEqual(meanCurve(endpoint).mean, [1, 3]);
  assert.deepEqual(withoutBlank(endpoint[0], endpoint[1]).curve.y, [-2]);
});

test("readings at other x are interpolated within their range, and only there", () => {
  const mean = meanCurve([{ x: [0, 10, 20], y: [0, 10, 20] }, { x: [5, 25], y: [7, 27] }]);
  assert.equal(mean.how, "interpolated");
  assert.deepEqual(mean.x, [0, 10, 20, 25]);
  assert.deepEqual(mean.mean, [0, 11, 21, 27]);
  assert.deepEqual(mean.n, [1, 2, 2, 1]);
  const { curve, left, how } = withoutBlank({ x: [0, 5, 10, 30], y: [1, 1, 1, 1] }, { x: [0, 10], y: [0, 1] });
  assert.deepEqual([curve.y, left, how], [[1, 0.5, 0, null], 1, "interpolated"]);
});

test("curves of the same readings stay as they are, also those that end early or have no value", () => {
  const mean = meanCurve([{ x: [0, 1, 2], y: [1, null, 3] }, { x: [0, 1], y: [3, 4] }, { x: [], y: [] }]);
  assert.deepEqual([mean.how, mean.x, mean.mean, mean.n], ["same", [0, 1, 2], [2, 4, 3], [2, 1, 1]]);
  assert.deepEqual(meanCurve([]).x, []);
});

test("a point without a known neighbour is by itself", () => {
  assert.deepEqual(lonePoints([0], [1]), [0]);
  assert.deepEqual(lonePoints([0, 1, 2, 3, 4], [1, null, 2, null, 3]), [0, 2, 4]);
  assert.deepEqual(lonePoints([0, 1, 2], [1, 2, null]), []);
  assert.deepEqual(lonePoints([0, null, 2], [1, 2, 3]), [0, 2]);
  assert.deepEqual(lonePoints([0, 1, 2], [-1, 2, -3], true), [1]);
});

test("the measures of a curve", () => {
  const curve = { x: [0, 10, 20, 30, 40, 50], y: [0, 0, 1, 3, 5, null] };
  assert.equal(measured(curve, "value at", 20), 1);
  assert.equal(measured(curve, "value at", 25), 2);
  assert.equal(measured(curve, "value at", 45), null);
  assert.equal(measured(curve, "value at", -1), null);
  assert.equal(measured(curve, "maximum", 0), 5);
  assert.equal(measured(curve, "X of the maximum", 0), 40);
  assert.equal(measured(curve, "last value", 0), 5);
  assert.ok(Math.abs(measured(curve, "greatest slope", 0) - 0.13) < 1e-12);
  assert.equal(measured({ x: [0], y: [null] }, "maximum", 0), null);
});

test("wells are found by every usual spelling, and nothing else is one", () => {
  assert.deepEqual(wellOf("A1"), { row: 0, column: 0 });
  assert.deepEqual(wellOf(" h012 "), { row: 7, column: 11 });
  assert.deepEqual(wellOf("AF48"), { row: 31, column: 47 });
  for (const text of ["A0", "1A", "", "ABC1", "A100", "sample 1"]) {
    assert.equal(wellOf(text), null, text);
  }
});

test("a plate is the smallest that holds its wells, from 6 to 1,536", () => {
  const of = (...names) => plateOf(names.map(wellOf)).join("×");
  assert.equal(of("A1", "B3"), "2×3");
  assert.equal(of("C4"), "3×4");
  assert.equal(of("D6"), "4×6");
  assert.equal(of("F8"), "6×8");
  assert.equal(of("H12"), "8×12");
  assert.equal(of("P24"), "16×24");
  assert.equal(of("AF48"), "32×48");
  assert.deepEqual([0, 25, 26, 31].map(letters), ["A", "Z", "AA", "AF"]);
});

test("a thinned line has the ends, the extremes and the gaps of each pixel", () => {
  const x = Array.from({ length: 1000 }, (_, index) => index);
  const y = x.map((at) => (at === 333 ? 50 : at === 777 ? -50 : at === 500 ? null : Math.sin(at)));
  const found = thinned(x, y, 10);
  assert.ok(found.length <= 45, String(found.length));
  for (const index of [0, 333, 500, 777, 999]) {
    assert.ok(found.includes(index), String(index));
  }
  assert.deepEqual(found, [...new Set(found)].sort((a, b) => a - b));
  // Every pixel has the extremes of all of its points.
  for (let pixel = 0; pixel < 10; pixel++) {
    const within = (indices) => extent(indices.filter((it) => Math.floor((it / 999) * 10) === pixel).map((it) => y[it]));
    assert.deepEqual(within(found), within(x), String(pixel));
  }
});

test("a line of fewer points than pixels stays whole, and so do one without values and one at a single place", () => {
  assert.deepEqual(thinned([0, 1, 2], [1, null, 3], 100), [0, 1, 2]);
  assert.deepEqual(thinned([], [], 100), []);
  assert.deepEqual(thinned([5, 5, 5, 5], [2, 1, 3, 2], 100), [0, 1, 2, 3]);
  assert.deepEqual(thinned([0, 1], [null, null], 1), [0, 1]);
});

test("the scale of colors grows evenly lighter", () => {
  const light = (share) => {
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(sequential(share).slice(at, at + 2), 16));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  for (let step = 1; step <= 20; step++) {
    assert.ok(light(step / 20) > light((step - 1) / 20));
  }
  assert.deepEqual(extent([null, 3, -1, undefined, 2]), [-1, 3]);
  assert.equal(extent([null]), null);
});
