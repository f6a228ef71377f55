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
 * Mean curve of curves: at each x the mean of those that have a value there.
 * @param {Points[]} curves
 * @returns {{x: any[], n: number[], mean: number[], sd: (number | null)[], sem: (number | null)[]}}
 */
export function meanCurve(curves) {
  /** @type {Map<any, number[]>} */
  const at = new Map();
  for (const { x, y } of curves) {
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
    x: places,
    n: found.map((it) => it.n),
    mean: found.map((it) => it.mean),
    sd: found.map((it) => it.sd),
    sem: found.map((it) => it.sem),
  };
}

/**
 * A curve without its blank: at each x the blank's mean is subtracted. Where there is no blank, there is no value.
 * @template {Points} T
 * @param {T} curve
 * @param {Points} blank mean curve of the blanks
 * @returns {{curve: T, left: number}} `left` counts the values without a blank
 */
export function withoutBlank(curve, blank) {
  const at = new Map(blank.x.map((place, index) => [place, blank.y[index]]));
  let left = 0;
  const y = curve.y.map((value, index) => {
    const base = at.get(curve.x[index]);
    if (typeof value !== "number") {
      return null;
    }
    if (typeof base !== "number") {
      left += 1;
      return null;
    }
    return value - base;
  });
  return { curve: { ...curve, y }, left };
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
    return nearest(x, y, at);
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
 * The value at the place that is nearest to another; the first one of two that are equally near. A loop, as a slider asks it
 * of every point of every well at each of its steps.
 * @param {any[]} x
 * @param {any[]} y
 * @param {number} at
 */
function nearest(x, y, at) {
  let best = null;
  let distance = Infinity;
  for (let index = 0; index < y.length; index++) {
    const away = Math.abs(x[index] - at);
    if (away < distance && typeof y[index] === "number" && x[index] !== null) {
      best = y[index];
      distance = away;
    }
  }
  return best;
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

/** Points of a line that a slope is taken from: fewer follow the noise. */
const SLOPE_POINTS = 5;

/**
 * The greatest slope of the least-squares lines through five neighbouring points.
 * @param {number[][]} points
 */
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

/**
 * Row and column of a well's name such as A1, A01 or AB12, from 0.
 * @param {string} name
 */
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
export const PLATES = [[2, 3], [3, 4], [4, 6], [6, 8], [8, 12], [16, 24], [32, 48]];

/**
 * The smallest plate that has all of these wells.
 * @param {({row: number, column: number} | null)[]} wells
 */
export function plateOf(wells) {
  const fits = (/** @type {[number, number]} */ [rows, columns]) => wells.every((well) => !well || (well.row < rows && well.column < columns));
  return PLATES.find(fits) ?? PLATES[PLATES.length - 1];
}

/** Stops of a scale from dark blue to yellow, whose lightness grows evenly: also for those who see no red or green. */
const STOPS = [[0, 34, 78], [62, 75, 107], [124, 123, 120], [188, 175, 111], [254, 232, 56]];

/**
 * A color of the sequential scale.
 * @param {number} share from 0 to 1
 */
export function sequential(share) {
  const place = Math.min(Math.max(share, 0), 1) * (STOPS.length - 1);
  const from = Math.min(Math.floor(place), STOPS.length - 2);
  const mix = STOPS[from].map((it, index) => Math.round(it + (STOPS[from + 1][index] - it) * (place - from)));
  return `#${mix.map((it) => it.toString(16).padStart(2, "0")).join("")}`;
}

/** Whether dark text is read better on a color of the scale. @param {number} share */
export function isLight(share) {
  return share > 0.45;
}
