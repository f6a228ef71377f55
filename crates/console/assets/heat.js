// A plate as colors: one for each well, on a scale that everybody can read.

import { h, s } from "./dom.js";
import { number } from "./format.js";
import { isLight, letters, sequential } from "./science.js";

/** Size of a well in the picture's own measure, and of what stands beside the wells. */
const WELL = 30;
const SIDE = 24;

/** Columns of a plate up to which values stand in the wells. */
export const WRITTEN = 12;

/**
 * @typedef {object} Spot
 * @property {{row: number, column: number}} well
 * @property {string} name what the well holds, for its title
 * @property {number | null} value
 * @property {string} [color] in place of that of the value
 * @property {string} [link] page that a click leads to
 */

/**
 * Draws a plate.
 * @param {[number, number]} size numbers of rows and columns
 * @param {Spot[]} spots
 * @param {[number, number] | null} range of the scale
 * @param {{label: string, isSmall?: boolean, brief?: (value: number) => string}} options
 */
export function heatMap([rows, columns], spots, range, { label, isSmall = false, brief = short }) {
  const side = isSmall ? 1 : SIDE;
  const share = (/** @type {number} */ value) => (range && range[1] > range[0] ? (value - range[0]) / (range[1] - range[0]) : 0.5);
  const x = (/** @type {number} */ column) => side + column * WELL;
  const y = (/** @type {number} */ row) => side + row * WELL;
  const empty = Array.from({ length: rows }, (_, row) => Array.from({ length: columns }, (_, column) => `M${x(column) + 1},${y(row) + 1}h${WELL - 2}v${WELL - 2}h${2 - WELL}z`)).flat();
  const spot = (/** @type {Spot} */ it) => {
    const at = it.value === null ? null : share(it.value);
    const fill = it.color ?? (at === null ? null : sequential(at));
    const box = s("rect", { x: x(it.well.column) + 1, y: y(it.well.row) + 1, width: WELL - 2, height: WELL - 2, rx: 3, ...(fill ? { fill } : { class: "none" }) });
    const words = isSmall || columns > WRITTEN || it.value === null || it.color ? null : text(x(it.well.column) + WELL / 2, y(it.well.row) + WELL / 2, brief(it.value), `value${isLight(at ?? 1) ? "" : " dark"}`);
    const inner = [s("title", {}, `${letters(it.well.row)}${it.well.column + 1}: ${it.name}`), box, ...(words ? [words] : [])];
    return it.link && !isSmall ? s("a", { href: it.link }, ...inner) : s("g", {}, ...inner);
  };
  const names = isSmall
    ? []
    : [
        ...Array.from({ length: columns }, (_, column) => text(x(column) + WELL / 2, SIDE / 2, String(column + 1))),
        ...Array.from({ length: rows }, (_, row) => text(SIDE / 2, y(row) + WELL / 2, letters(row))),
      ];
  const box = `0 0 ${side + columns * WELL + 1} ${side + rows * WELL + 1}`;
  return s("svg", { class: "heat", viewBox: box, role: isSmall ? "img" : "group", "aria-label": label }, s("path", { class: "none", d: empty.join("") }), ...names, ...spots.map(spot));
}

/** A value as it fits into a well. @param {number} value */
export function short(value) {
  const texts = [3, 2, 1].map((digits) => (Number.isInteger(value) && Math.abs(value) < 10_000 ? String(value) : String(Number(value.toPrecision(digits)))));
  return texts.find((it) => it.length <= 5) ?? value.toExponential(0);
}

/**
 * @param {number} x
 * @param {number} y
 * @param {string} content
 * @param {string} [kind]
 */
function text(x, y, content, kind = "") {
  return s("text", { x, y, ...(kind ? { class: kind } : {}) }, content);
}

/**
 * The scale of heat maps, with its ends.
 * @param {[number, number] | null} range
 * @param {string} name of what it measures
 * @param {(value: number) => string} [written]
 */
export function scale(range, name, written = number) {
  if (!range) {
    return h("p", { class: "quiet" }, `No well has a value of ${name}.`);
  }
  const steps = Array.from({ length: 40 }, (_, index) => s("rect", { x: index, y: 0, width: 1.05, height: 1, fill: sequential(index / 39) }));
  const bar = s("svg", { viewBox: "0 0 40 1", preserveAspectRatio: "none", "aria-hidden": "true" }, ...steps);
  return h("p", { class: "scale" }, h("span", null, written(range[0])), bar, h("span", null, written(range[1])), h("span", { class: "quiet" }, name));
}
