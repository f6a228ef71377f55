// Plate view: the curves of many rows, over each other or at their wells.

import { post } from "../api.js";
import { failure, h, load, show } from "../dom.js";
import { grid } from "../grid.js";
import { plot, plotTools, saveValues } from "../plot.js";
import { condition, isNumeric, keyOf, labelOf, named, names as namesOf, read, references, rowLink, schema, title, written } from "../tables.js";

/** @typedef {import("../tables.js").Table} Table */
/** @typedef {import("../tables.js").Column} Column */

/** Most curves of a view: a plate of 384 wells, and some. */
const MOST = 400;

/** Most pages of rows that are looked through for curves. */
const PAGES = 10;

/** Plates by their numbers of rows and columns. */
const PLATES = /** @type {[number, number][]} */ ([[8, 12], [16, 24], [32, 48]]);

/** Name of the axis of points without a column of their own for it. */
const NUMBER = "point";

/** Part of a well that its curve fills. */
const FILLED = 0.88;

/** Tables of curves. */
export function plates() {
  const place = h("div", null);
  load(place, "Reading the tables", async () => {
    const all = await schema();
    const raw = all.filter((table) => table.semantic_category === "raw");
    const row = (/** @type {Table} */ table) => [
      h("a", { href: `#/plates/${table.name}` }, table.name),
      references(table).map((it) => it.foreign_key_table_name).join(", "),
      table.row_count_estimate,
      table.description ?? "",
    ];
    return grid(["Table", "Curves of", "Points", "Description"], raw.map(row), "No curves yet. They are kept in tables of the kind raw, which a script or an import of the instrument's files fills.");
  });
  return [h("h1", null, "Plates and curves"), place];
}

/**
 * Curves of one table.
 * @param {string} name
 */
export function plate(name) {
  const place = h("div", null);
  load(place, "Reading the tables", async () => {
    const all = await schema();
    return view(named(all, name), all);
  });
  return [h("p", null, h("a", { href: "#/plates" }, "← Plates and curves")), h("h1", null, name), place];
}

/**
 * Columns for the axes: x is the first one of times or numbers, y the next of numbers.
 * @param {Table} table
 */
export function axes(table) {
  const own = table.columns.filter((column) => column.name !== "order" && (isNumeric(column) || ["datetime", "date"].includes(column.data_type)));
  const y = own.filter(isNumeric);
  const x = own.length > 1 ? own[0].name : NUMBER;
  return { x, y: (y.find((column) => column.name !== x) ?? y[0])?.name ?? "", xs: [NUMBER, ...own.map((it) => it.name)], ys: y.map((it) => it.name) };
}

/**
 * @param {string} label
 * @param {string[]} options
 * @param {string} value
 * @param {() => void} changed
 */
function choice(label, options, value, changed) {
  const select = /** @type {HTMLSelectElement} */ (
    h("select", { change: changed }, options.map((it) => h("option", { value: it, selected: it === value }, it || "–")))
  );
  return { select, field: h("label", null, label, select) };
}

/**
 * Reads the curves of some rows.
 * @param {Table} table
 * @param {string} parentColumn
 * @param {unknown[]} parents
 * @param {string} x
 * @param {string} y
 * @returns {Promise<{key: any, x: any[], y: any[]}[]>}
 */
export async function series(table, parentColumn, parents, x, y) {
  const columns = [...new Set([x, y])].filter((it) => it !== NUMBER);
  const isTime = ["datetime", "date"].includes(table.columns.find((it) => it.name === x)?.data_type ?? "");
  const found = await post("/tools/series", { table: table.name, parent_column: parentColumn, parents, columns });
  return found.map((/** @type {any} */ one) => {
    const values = one.columns[y];
    const at = x === NUMBER ? values.map((/** @type {any} */ _, /** @type {number} */ index) => index) : one.columns[x];
    return { key: one.parent, x: isTime ? at.map((/** @type {any} */ it) => it && Date.parse(it)) : at, y: values };
  });
}

/**
 * @param {Table} table
 * @param {string} name
 * @returns {"date" | "linear"}
 */
export function axisType(table, name) {
  const type = table.columns.find((column) => column.name === name)?.data_type;
  return type === "datetime" || type === "date" ? "date" : "linear";
}

/**
 * @param {Table} table
 * @param {Table[]} all
 */
function view(table, all) {
  const owners = references(table);
  const first = axes(table);
  if (first.y === "") {
    return h("p", { class: "empty" }, "This table has no column of numbers to draw.");
  }
  const area = h("div", null);
  const owner = choice("Curves of", owners.map((it) => it.name), owners[0].name, () => show(area, ofParent()));
  /** The view over one of the tables that own curves. */
  const ofParent = () => {
    const column = /** @type {Column} */ (owners.find((it) => it.name === owner.select.value));
    return curvesOf(table, column.name, named(all, column.foreign_key_table_name), all);
  };
  show(area, ofParent());
  return h("div", null, owners.length > 1 ? h("div", { class: "fields" }, owner.field) : null, area);
}

/**
 * @param {Table} table
 * @param {string} parentColumn
 * @param {Table} parent
 * @param {Table[]} all
 */
function curvesOf(table, parentColumn, parent, all) {
  const { x, y, xs, ys } = axes(table);
  const texts = written(parent).filter((it) => it.data_type === "string").map((it) => it.name);
  const told = h("span", { class: "quiet told", role: "status" });
  const place = plot();
  /** @type {any[]} */
  let rows = [];
  /** @type {{key: any, x: any[], y: any[]}[]} */
  let curves = [];
  /** @type {Map<string, Map<any, string>>} */
  let known = new Map();
  const again = () => readCurves();
  const redraw = () => drawCurves();
  const across = choice("X axis", xs, x, again);
  const up = choice("Y axis", ys, y, again);
  const well = choice("Well column", texts, texts.find((it) => /well|position/.test(it)) ?? labelOf(parent), redraw);
  const color = choice("Color by", ["", ...written(parent).map((it) => it.name)], "", redraw);
  const arranged = choice("Layout", ["overlaid", "as a plate"], "overlaid", redraw);
  const log = /** @type {HTMLInputElement} */ (h("input", { type: "checkbox", change: redraw }));
  const filter = condition(parent, all, again);

  /** Numbers the readings, so that a slow answer does not replace a later one. */
  let reading = 0;
  async function readCurves() {
    const number = ++reading;
    const waiting = setTimeout(() => show(told, "Reading the curves…"), 300);
    try {
      const got = await readPages();
      const others = await namesOf(parent, all, got.map((it) => it.row));
      if (number === reading) {
        known = others;
        rows = got.map((it) => it.row);
        curves = got.map((it) => it.curve);
        await drawCurves();
      }
    } catch (error) {
      show(told, failure(error));
    } finally {
      clearTimeout(waiting);
    }
  }

  /** Rows that have curves. Those without are passed over, as far as some pages reach. */
  async function readPages() {
    const filters = filter.filters();
    const got = [];
    /** @type {string | null | undefined} */
    let address = undefined;
    for (let page = 0; page < PAGES && address !== null && got.length < MOST; page++) {
      const { body, next } = await read(parent, { filters, limit: MOST }, address);
      const keys = body.map((/** @type {any} */ row) => row[keyOf(parent)]);
      const found = keys.length ? await series(table, parentColumn, keys, across.select.value, up.select.value) : [];
      got.push(...found.map((curve, index) => ({ row: body[index], curve })).filter((it) => it.curve.y.length > 0));
      address = next;
    }
    return got.slice(0, MOST);
  }

  async function drawCurves() {
    const names = { x: across.select.value, y: up.select.value };
    const isLog = log.checked;
    const group = (/** @type {any} */ row) => {
      const value = row[color.select.value];
      return color.select.value ? String(known.get(color.select.value)?.get(value) ?? value) : undefined;
    };
    const listed = curves.map((curve, index) => ({
      ...curve,
      name: String(rows[index][well.select.value] ?? curve.key),
      group: group(rows[index]),
      link: rowLink(parent.name, curve.key),
    }));
    const points = curves.reduce((sum, curve) => sum + curve.y.length, 0);
    const most = rows.length >= MOST ? " These are the first; a filter chooses others." : "";
    place.setAttribute("aria-label", `${curves.length} curves of ${names.y} over ${names.x}`);
    if (curves.length === 0) {
      show(told, "No row with a curve meets the condition.");
    }
    try {
      const isPlate = arranged.select.value === "as a plate";
      const began = performance.now();
      const left = isPlate ? await drawPlate(place, listed, names, isLog) : await drawOver(place, table, listed, names, isLog);
      performance.measure("plot", { start: began });
      if (curves.length > 0) {
        const lost = left ? ` ${left} of them have no well in ${well.select.value}.` : "";
        show(told, `${curves.length} ${curves.length === 1 ? "curve" : "curves"}, ${points.toLocaleString()} points.${lost}${most}`);
      }
    } catch (error) {
      show(told, failure(error));
    }
  }

  const values = () => {
    const label = well.select.value;
    const lines = curves.flatMap((curve, index) => curve.x.map((at, point) => [curve.key, rows[index][label], at, curve.y[point]]));
    saveValues([keyOf(parent), label, across.select.value, up.select.value], lines, `${table.name}.csv`);
  };
  readCurves();
  const check = h("label", { class: "check" }, log, "Log scale");
  return h(
    "div",
    null,
    filter.form,
    h("div", { class: "fields" }, across.field, up.field, arranged.field, well.field, color.field, check),
    h("div", { class: "plot-tools" }, told, plotTools(place, table.name, values)),
    place,
    h("p", { class: "quiet" }, "Drag over a part to zoom in, double-click to reset, click a curve to open its row."),
  );
}

/**
 * @param {import("../plot.js").Plot} place
 * @param {Table} table
 * @param {import("../plot.js").Curve[]} curves
 * @param {{x: string, y: string}} names
 * @param {boolean} isLog
 */
async function drawOver(place, table, curves, names, isLog) {
  const x = { title: title(table, names.x), type: axisType(table, names.x) };
  await place.draw(curves, x, { title: title(table, names.y), type: isLog ? "log" : "linear" });
  return 0;
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

/**
 * Draws curves at their wells: each one in a square of its own, all to one scale, on one pair of axes, so that a plate of
 * 384 wells is one plot. Returns the number of curves without a well.
 * @param {import("../plot.js").Plot} place
 * @param {import("../plot.js").Curve[]} curves
 * @param {{x: string, y: string}} names
 * @param {boolean} isLog
 */
async function drawPlate(place, curves, names, isLog) {
  const wells = curves.map((curve) => wellOf(curve.name));
  const known = wells.filter((well) => well !== null);
  const fits = ([rows, columns] = [0, 0]) => known.every((well) => well.row < rows && well.column < columns);
  const [rows, columns] = PLATES.find(fits) ?? PLATES[PLATES.length - 1];
  const height = (/** @type {any} */ value) => (value === null || (isLog && value <= 0) ? null : isLog ? Math.log10(value) : value);
  const across = range(curves.map((curve) => curve.x));
  const up = range(curves.map((curve) => curve.y.map(height)));
  const moved = [];
  for (const [index, curve] of curves.entries()) {
    const well = wells[index];
    if (!well || well.row >= rows || well.column >= columns) {
      continue;
    }
    const left = well.column + 1 - FILLED / 2;
    const bottom = well.row + 1 + FILLED / 2;
    moved.push({
      ...curve,
      x: curve.x.map((at) => left + FILLED * across(at)),
      y: curve.y.map((value) => (height(value) === null ? null : bottom - FILLED * up(height(value)))),
      group: curve.group ?? names.y,
      text: curve.y.map((value, point) => `${curve.name}\u2003${names.x} ${curve.x[point]}\u2003${names.y} ${value}`),
    });
  }
  const numbers = (/** @type {number} */ count) => Array.from({ length: count }, (_, index) => index + 1);
  const letters = (/** @type {number} */ index) => (index > 26 ? String.fromCharCode(64 + Math.floor((index - 1) / 26)) : "") + String.fromCharCode(65 + ((index - 1) % 26));
  await place.draw(
    moved,
    { title: `${names.y} over ${names.x}${isLog ? ", logarithmic" : ""}`, type: "linear", range: [0.5, columns + 0.5], ticks: { at: numbers(columns), text: numbers(columns).map(String) } },
    { title: "", type: "linear", range: [rows + 0.5, 0.5], ticks: { at: numbers(rows), text: numbers(rows).map(letters) } },
    { kind: "lines", isPlate: true },
  );
  return curves.length - moved.length;
}

/**
 * A function from values to their place in the range of all of them, 0 to 1.
 * @param {any[][]} lists
 */
function range(lists) {
  let low = Infinity;
  let high = -Infinity;
  for (const list of lists) {
    for (const value of list) {
      if (value !== null && value < low) {
        low = value;
      }
      if (value !== null && value > high) {
        high = value;
      }
    }
  }
  const span = high - low || 1;
  return (/** @type {number} */ value) => (value - low) / span;
}
