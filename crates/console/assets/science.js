// Arithmetic over curves: means of replicates, blanks, and measures of a curve. Nothing here knows of pages.

/**
 * @typedef {object} Points
 * @property {any[]} x
 * @property {(number | null)[]} y
 */

/**
 * Mean and spread of numbers.
 * @param {number[]} values
 * @returns {{n: number, mean: number, sd: number | null, sem: number | null}} the sample's standard deviation and the standard
 *   error of the mean; null of a single value
 */
export function spread(values) {
  const n = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / n;
  if (n < 2) {
    return { n, mean, sd: null, sem: null };
  }
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const sd = Math.sqrt(squares / (n - 1));
  return { n, mean, sd, sem: sd / Math.sqrt(n) };
}

/**
 * A function to a curve's value at an x: that of its reading there, linear between two readings, null outside of them.
 * @param {Points} curve
 * @returns {(at: number) => number | null}
 */
export function valueAt({ x, y }) {
  let known = [...y.keys()].filter((it) => typeof y[it] === "number" && x[it] !== null);
  if (known.some((it, index) => index > 0 && x[it] < x[known[index - 1]])) {
    known = known.sort((a, b) => x[a] - x[b]);
  }
  return (at) => {
    let [from, to] = [0, known.length - 1];
    if (to < 0 || !(at >= x[known[from]] && at <= x[known[to]])) {
      return null;
    }
    while (to - from > 1) {
      const middle = (from + to) >> 1;
      [from, to] = x[known[middle]] <= at ? [middle, to] : [from, middle];
    }
    const [a, b] = [known[from], known[x[known[from]] === at ? from : to]];
    const [low, high] = [Number(y[a]), Number(y[b])];
    return x[a] === x[b] ? low : low + ((high - low) * (at - x[a])) / (x[b] - x[a]);
  };
}

/** Indices of the points with an x, by their x. @param {Points} curve */
function byX({ x }) {
  return [...x.keys()].filter((it) => x[it] !== null).sort((a, b) => x[a] - x[b]);
}

/**
 * How readings of curves belong together: at the `same` x; by `cycle`, as of readers that read one well after the other, where every
 * curve has its n-th reading before any has the next; else they are `interpolated` at common x.
 * @typedef {"same" | "cycle" | "interpolated"} Matching
 */

/**
 * Puts curves on common x.
 * @template {Points} T
 * @param {T[]} curves
 * @param {boolean} isEndpoint whether single readings are one cycle, whatever their x
 * @returns {{how: Matching, apart: number, curves: T[]}} `apart` is the greatest distance of x within a cycle
 */
export function matched(curves, isEndpoint) {
  const orders = curves.map(byX);
  const all = [...new Set(curves.flatMap((it) => it.x))].filter((it) => it !== null).sort((a, b) => a - b);
  const rank = new Map(all.map((at, index) => [at, index]));
  const isWhole = orders.every((order, index) => {
    const [from, to] = [order[0], order[order.length - 1]].map((it) => rank.get(curves[index].x[it]) ?? 0);
    return order.length === 0 || new Set(curves[index].x).size - Number(curves[index].x.includes(null)) === to - from + 1;
  });
  const read = orders.flatMap((order, index) => (order.length ? [index] : []));
  if (isWhole && !(isEndpoint && all.length > 1 && read.every((it) => orders[it].length === 1))) {
    return { how: "same", apart: 0, curves };
  }
  const cycles = orders[read[0]].map((_, cycle) => read.map((it) => curves[it].x[orders[it][cycle]]));
  const ends = cycles.map((it) => extent(it) ?? [0, 0]);
  if (read.every((it) => orders[it].length === cycles.length) && ends.every(([low], index) => index === 0 || ends[index - 1][1] < low)) {
    const x = cycles.map((it) => it.reduce((sum, at) => sum + at, 0) / it.length);
    const apart = Math.max(0, ...ends.map(([low, high]) => high - low));
    return { how: "cycle", apart, curves: curves.map((it, index) => ({ ...it, x, y: orders[index].map((at) => it.y[at]) })) };
  }
  // The x of the curve with the most readings, and beyond them those of the others.
  const most = orders.reduce((best, order, index) => (order.length > orders[best].length ? index : best), 0);
  const own = new Set(curves[most].x);
  const [low, high] = extent(own) ?? [0, 0];
  const x = all.filter((at) => own.has(at) || at < low || at > high);
  return { how: "interpolated", apart: 0, curves: curves.map((it) => ({ ...it, x, y: x.map(valueAt(it)) })) };
}

/**
 * Mean curve of curves: at each x the mean of those that have a value there.
 * @param {Points[]} curves
 * @param {boolean} [isEndpoint] whether single readings are one cycle, as those of a plate's blanks are
 * @returns {{how: Matching, apart: number, x: any[], n: number[], mean: number[], sd: (number | null)[], sem: (number | null)[]}}
 */
export function meanCurve(curves, isEndpoint = false) {
  const { how, apart, curves: common } = matched(curves, isEndpoint);
  /** @type {Map<any, number[]>} */
  const at = new Map();
  for (const { x, y } of common) {
    for (const [index, place] of x.entries()) {
      const value = y[index];
      if (place !== null && typeof value === "number") {
        const values = at.get(place);
        if (values) {
          values.push(value);
        } else {
          at.set(place, [value]);
        }
      }
    }
  }
  const places = [...at.keys()].sort((a, b) => a - b);
  const found = places.map((place) => spread(/** @type {number[]} */ (at.get(place))));
  return {
    how,
    apart,
    x: places,
    n: found.map((it) => it.n),
    mean: found.map((it) => it.mean),
    sd: found.map((it) => it.sd),
    sem: found.map((it) => it.sem),
  };
}

/**
 * A curve without its blank: the blank's mean at the same x is subtracted, that of the same cycle, or one between two readings of
 * the blank. Where there is no blank, there is no value.
 * @template {Points} T
 * @param {T} curve
 * @param {Points} blank mean curve of the blanks
 * @returns {{curve: T, left: number, how: Matching}} `left` counts the values without a blank
 */
export function withoutBlank(curve, blank) {
  const { how, curves } = matched([curve, blank], true);
  const cycle = new Map(how === "cycle" ? byX(curve).map((it, index) => [it, curves[1].y[index]]) : []);
  const between = valueAt(blank);
  let left = 0;
  const y = curve.y.map((value, index) => {
    const base = how === "cycle" ? cycle.get(index) : between(curve.x[index]);
    if (typeof value !== "number") {
      return null;
    }
    if (typeof base !== "number") {
      left += 1;
      return null;
    }
    return value - base;
  });
  return { curve: { ...curve, y }, left, how };
}

/** What a heat map shows of a curve. */
export const MEASURES = /** @type {const} */ (["value at", "maximum", "X of the maximum", "last value", "greatest slope"]);

/**
 * @param {Points} curve
 * @param {string} measure one of `MEASURES`
 * @param {number} at the x of `value at`
 * @returns {number | null} null where the curve has no such value
 */
export function measured({ x, y }, measure, at) {
  if (measure === "value at") {
    return valueAt({ x, y })(at);
  }
  const known = y.flatMap((value, index) => (typeof value === "number" && x[index] !== null ? [index] : []));
  if (known.length === 0) {
    return null;
  }
  const top = known.reduce((best, index) => (Number(y[index]) > Number(y[best]) ? index : best));
  switch (measure) {
    case "maximum":
      return Number(y[top]);
    case "X of the maximum":
      return x[top];
    case "last value":
      return Number(y[known[known.length - 1]]);
    default:
      return greatestSlope(known.map((index) => [x[index], Number(y[index])]));
  }
}

/**
 * Indices of the points with which a line looks as with all of them: of those that follow each other in one pixel the first, the
 * lowest, the highest and the last, and every gap.
 * @param {any[]} x
 * @param {(number | null)[]} y
 * @param {number} pixels
 */
export function thinned(x, y, pixels) {
  const [low, high] = extent(x) ?? [0, 0];
  const pixel = x.map((at) => Math.floor(((at - low) / (high - low || 1)) * pixels));
  const found = [];
  for (let first = 0, next = 0; first < x.length; first = next) {
    let [lowest, highest] = [first, first];
    const gaps = [];
    for (next = first; next < x.length && pixel[next] === pixel[first]; next++) {
      const value = y[next];
      if (value === null) {
        gaps.push(next);
      } else {
        lowest = value < (y[lowest] ?? Infinity) ? next : lowest;
        highest = value > (y[highest] ?? -Infinity) ? next : highest;
      }
    }
    found.push(...new Set([first, lowest, highest, next - 1, ...gaps].sort((a, b) => a - b)));
  }
  return found;
}

/**
 * Indices of the points that a line does not reach, as no point beside them is known.
 * @param {any[]} x
 * @param {any[]} y
 * @param {boolean} [isLog] whether y needs to be above zero
 */
export function lonePoints(x, y, isLog = false) {
  const isKnown = (/** @type {number} */ it) => typeof y[it] === "number" && x[it] !== null && (!isLog || y[it] > 0);
  return [...y.keys()].filter((it) => isKnown(it) && !isKnown(it - 1) && !isKnown(it + 1));
}

/** Points of a line that a slope is taken from: fewer follow the noise. */
const SLOPE_POINTS = 5;

/** The greatest slope of the least-squares lines through five neighbouring points. @param {number[][]} points */
function greatestSlope(points) {
  const width = Math.min(SLOPE_POINTS, points.length);
  let best = null;
  for (let from = 0; width > 1 && from + width <= points.length; from++) {
    const part = points.slice(from, from + width);
    const [meanX, meanY] = [0, 1].map((axis) => part.reduce((sum, point) => sum + point[axis], 0) / width);
    const across = part.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
    const slope = part.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0) / across;
    best = across > 0 && (best === null || slope > best) ? slope : best;
  }
  return best;
}

/**
 * The smallest and the greatest number; null without any.
 * @param {Iterable<any>} values
 * @returns {[number, number] | null}
 */
export function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (typeof value === "number") {
      low = value < low ? value : low;
      high = value > high ? value : high;
    }
  }
  return low <= high ? [low, high] : null;
}

/** The greatest x that lies within the range of every curve; null if there is none. @param {any[][]} curves their x */
export function lastCommon(curves) {
  const ends = curves.flatMap((x) => [extent(x) ?? []]).filter((it) => it.length);
  const last = Math.min(...ends.map((it) => Number(it[1])));
  return ends.length && ends.every(([first]) => Number(first) <= last) ? last : null;
}

/** Row and column of a well's name such as A1, A01 or AB12, from 0. @param {string} name */
export function wellOf(name) {
  const parts = /^\s*([A-Za-z]{1,2})0*(\d{1,2})\s*$/.exec(name);
  if (!parts || parts[2] === "0") {
    return null;
  }
  const letters = [...parts[1].toUpperCase()].map((letter) => letter.charCodeAt(0) - 64);
  return { row: letters.reduce((sum, letter) => sum * 26 + letter, 0) - 1, column: Number(parts[2]) - 1 };
}

/** Letters of a plate's row, from 0. @param {number} row */
export function letters(row) {
  return (row > 25 ? String.fromCharCode(64 + Math.floor(row / 26)) : "") + String.fromCharCode(65 + (row % 26));
}

/** Plates by their numbers of rows and columns, from 6 wells to 1,536. @type {[number, number][]} */
const PLATES = [[2, 3], [3, 4], [4, 6], [6, 8], [8, 12], [16, 24], [32, 48]];

/** The smallest plate that has all of these wells. @param {({row: number, column: number} | null)[]} wells */
export function plateOf(wells) {
  const fits = (/** @type {[number, number]} */ [rows, columns]) => wells.every((well) => !well || (well.row < rows && well.column < columns));
  return PLATES.find(fits) ?? PLATES[PLATES.length - 1];
}

/** Stops of a scale from dark blue to yellow, whose lightness grows evenly: also for those who see no red or green. */
const STOPS = [[0, 34, 78], [62, 75, 107], [124, 123, 120], [188, 175, 111], [254, 232, 56]];

/** A color of the sequential scale. @param {number} share from 0 to 1 */
export function sequential(share) {
  const place = Math.min(Math.max(share, 0), 1) * (STOPS.length - 1);
  const from = Math.min(Math.floor(place), STOPS.length - 2);
  const mix = STOPS[from].map((it, index) => Math.round(it + (STOPS[from + 1][index] - it) * (place - from)));
  return `#${mix.map((it) => it.toString(16).padStart(2, "0")).join("")}`;
}

/** Color of what has no value, which is on no scale: among numbers it must not look like the greatest. */
export const NO_VALUE = "#c2569b";

/** Whether dark text is read better on a color of the scale. @param {number} share */
export function isLight(share) {
  return share > 0.45;
}
