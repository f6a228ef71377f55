// Charts that the agent's Python drew with Plotly, drawn as plots of the console.
//
// Of a figure only the values of its lines, points and bars and the names of its axes are used: other parts may hold
// texts that plotly.js takes for markup, and addresses that it would load.

import { timeAxis } from "./curves.js";
import { failure, h, show } from "./dom.js";
import { isInstant, milliseconds } from "./format.js";
import { plot } from "./plot.js";

/** Types of numbers in a figure's packed values, by their names in it. */
const PACKED = /** @type {Record<string, any>} */ ({
  f8: Float64Array,
  f4: Float32Array,
  i4: Int32Array,
  u4: Uint32Array,
  i2: Int16Array,
  u2: Uint16Array,
  i1: Int8Array,
  u1: Uint8Array,
});

/**
 * The values of a field of a trace: a list, or numbers packed as Base64.
 * @param {any} field
 * @returns {any[] | null}
 */
function values(field) {
  if (Array.isArray(field)) {
    return field;
  }
  const type = PACKED[field?.dtype];
  if (!type || field.shape !== undefined || typeof field.bdata !== "string") {
    return null;
  }
  const bytes = Uint8Array.from(atob(field.bdata), (letter) => letter.charCodeAt(0));
  return [...new type(bytes.buffer)];
}

/**
 * @param {any[][]} columns
 * @param {any} layout of the axis
 * @param {string} title unless the layout has one
 * @returns {import("./plot.js").Axis}
 */
function axis(columns, layout, title) {
  const given = layout?.title?.text ?? layout?.title;
  const all = columns.flat().filter((value) => value !== null);
  const isNumber = all.every((value) => typeof value === "number");
  const isDate = !isNumber && all.every((value) => /^\d{4}-\d\d-\d\d/.test(String(value)) && milliseconds(value) !== null);
  const type = isDate ? "date" : !isNumber ? "category" : layout?.type === "log" ? "log" : "linear";
  return { title: typeof given === "string" ? given : title, type };
}

/**
 * Draws a figure, if all of its traces are lines, points or bars.
 * @param {import("./plot.js").Plot} place
 * @param {any} figure
 */
async function drawFigure(place, figure) {
  const traces = Array.isArray(figure?.data) ? figure.data : [];
  const isBars = traces.length > 0 && traces.every((/** @type {any} */ it) => it.type === "bar");
  const curves = [];
  for (const [index, it] of traces.entries()) {
    const isLine = ["scatter", "scattergl", undefined].includes(it.type);
    const y = values(it.y);
    const x = it.x === undefined ? y?.map((_, at) => at) : values(it.x);
    if (!(isLine || isBars) || !x || !y) {
      throw new Error("The console draws lines, points and bars only. Download the figure and open it with Plotly.");
    }
    curves.push({ name: String(it.name ?? `Trace ${index + 1}`), x, y });
  }
  const across = axis(curves.map((curve) => curve.x), figure.layout?.xaxis, "x");
  const up = axis(curves.map((curve) => curve.y), figure.layout?.yaxis, "y");
  const areInstants = curves.some((curve) => curve.x.some(isInstant));
  if (across.type === "date") {
    for (const curve of curves) {
      curve.x = curve.x.map(milliseconds);
    }
  }
  const isPoints = traces.every((/** @type {any} */ it) => it.mode === "markers");
  await place.draw(curves, across.type === "date" ? timeAxis(across.title, curves, areInstants) : across, up, { kind: isBars ? "bars" : isPoints ? "markers" : undefined });
}

/**
 * A figure in the JSON of Plotly.
 * @param {string} address
 * @param {string} name
 */
export function chart(address, name) {
  const place = plot(name, "small");
  const shown = h("div", null, place);
  const work = async () => {
    const response = await fetch(address);
    if (!response.ok) {
      throw new Error(`The figure cannot be read (${response.status}).`);
    }
    await drawFigure(place, await response.json());
  };
  work().catch((error) => show(shown, failure(error)));
  return shown;
}
