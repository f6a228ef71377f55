// A SQL statement, its result as a table and as a chart, and the statements before it.

import { choice, flag } from "../choices.js";
import { timeAxis } from "../curves.js";
import { failure, folded, h, input, labeled, load, loaded, show } from "../dom.js";
import { drawable, isNumber } from "../exact.js";
import { counted, distinctly, grouped, isInstant, milliseconds, naturally, text } from "../format.js";
import { data, grid } from "../grid.js";
import { mayLeave, saved } from "../guard.js";
import { plot, plotTools } from "../plot.js";
import { remembered } from "../rights.js";
import { saveValues } from "../saving.js";
import { change, values } from "../state.js";
import { TOGETHER, bars, parameterCount } from "../sql.js";
import { schema, sql } from "../tables.js";
import { saveView, viewsOf } from "../views.js";

/** @typedef {{columns: string[], data: any[][]}} Result */

/** Most statements that are remembered. */
const REMEMBERED = 50;

/** Most rows that are shown; a file and the chart have all of them. */
const SHOWN = 1000;

const FIRST = 'select name, semantic_category from "table" order by name';

/** The statements that the person who is signed in has run in this browser, the latest first. */
function history() {
  const store = remembered("sql");
  /** @returns {string[]} */
  const all = () => {
    try {
      return JSON.parse(store.get() ?? "[]");
    } catch {
      return [];
    }
  };
  const keep = (/** @type {string[]} */ statements) => store.set(JSON.stringify(statements.slice(0, REMEMBERED)));
  const add = (/** @type {string} */ statement) => keep([statement, ...all().filter((it) => it !== statement)]);
  return { all, add, forget: () => keep([]) };
}

/**
 * The statements before, each as a button.
 * @param {ReturnType<typeof history>} known
 * @param {(statement: string) => Promise<void>} take
 */
function before(known, take) {
  const statements = h("div", null);
  const draw = () => {
    const all = known.all();
    const line = (/** @type {string} */ statement) => h("li", null, h("button", { type: "button", class: "plain statement", click: () => take(statement), title: "Put it into the box" }, statement));
    const forget = () => {
      known.forget();
      draw();
    };
    const words = h("p", { class: "quiet" }, "They are kept in this browser only. ", h("button", { type: "button", click: forget }, "Clear the history"));
    show(statements, ...(all.length ? [h("ul", { class: "statements" }, all.map(line)), words] : [h("p", { class: "empty" }, "None yet.")]));
  };
  draw();
  return { draw, element: h("details", null, h("summary", null, "History"), statements) };
}

/** The SQL box. */
export function query() {
  const box = h("textarea", { "aria-label": "SQL", rows: "6", spellcheck: "false" });
  const place = h("div", { "aria-live": "polite" });
  // A statement stands in the address once it has run.
  const save = h("div", { hidden: true }, saveView());
  const known = history();
  const given = values().get("q");
  box.defaultValue = given ?? known.all()[0] ?? FIRST;
  const params = parameters(box);
  const earlier = before(known, async (statement) => {
    if (box.value.trim() && !(await mayLeave(form))) {
      return;
    }
    box.value = box.defaultValue = statement;
    params.draw();
    box.focus();
  });
  const run = (/** @type {Event | null} */ event) => {
    event?.preventDefault();
    const statement = box.value;
    // Another statement begins with a view of its own.
    const isNew = statement !== values().get("q");
    const gone = [...values().keys()].filter((name) => isNew && !name.startsWith("_p"));
    change({ ...Object.fromEntries(gone.map((name) => [name, null])), q: statement }, isNew);
    // The address has it now.
    saved(form);
    load(place, "The query runs, for 15 s at most", async () => {
      const began = performance.now();
      const result = await sql(statement, params.value());
      const took = Math.round(performance.now() - began);
      known.add(statement);
      earlier.draw();
      save.hidden = false;
      return shown(result, took);
    });
  };
  box.addEventListener("keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && run(event));
  const form = h("form", { submit: run }, box, params.place, h("p", null, h("button", { class: "primary" }, "Run"), " ", h("small", { class: "quiet" }, "Ctrl+Enter. One SELECT over your organization's tables.")));
  if (given) {
    run(null);
  }
  const queries = h("div", null);
  const views = h("details", null, h("summary", null, "Saved queries"), queries);
  views.addEventListener("toggle", () => views.open && viewsOf(queries, "sql"));
  return [h("h1", null, "SQL"), form, h("div", { class: "tools" }, views, earlier.element, tree(box), save), place];
}

/**
 * @param {Result} result
 * @param {number} took
 */
function shown(result, took) {
  const count = result.data.length;
  const part = count > SHOWN ? `, of which the first ${grouped(SHOWN)} are shown` : "";
  const area = h("div", null);
  const open = () => {
    change({ _chart: "1" });
    show(area, chart(result));
  };
  const file = () => saveValues(result.columns, result.data, "query.csv");
  const numbers = result.columns.some((_, index) => isNumeric(result, index));
  if (numbers && values().has("_chart")) {
    open();
  }
  return h(
    "div",
    null,
    h(
      "div",
      { class: "plot-tools" },
      h("span", { class: "quiet told" }, `${counted(count, "row")} in ${took} ms${part}`),
      count > 0 && numbers ? h("button", { type: "button", click: open }, "Chart") : null,
      count > 0 ? h("button", { type: "button", click: file, title: "Save the result" }, "CSV") : null,
    ),
    area,
    grid(result.columns, data(result.data.slice(0, SHOWN)), "The result has no rows."),
  );
}

/**
 * @param {Result} result
 * @param {number} index
 */
function isNumeric(result, index) {
  const values = result.data.map((row) => row[index]).filter((value) => value !== null);
  return values.length > 0 && values.every(isNumber);
}

/**
 * @param {Result} result
 * @param {number} index
 * @returns {"linear" | "date" | "category"}
 */
function axisType(result, index) {
  if (isNumeric(result, index)) {
    return "linear";
  }
  const values = result.data.map((row) => row[index]).filter((value) => value !== null);
  const instants = values.filter(isInstant).length;
  // Instants and times without a zone have no place on one axis.
  const isDate = values.length > 0 && (instants === 0 || instants === values.length) && values.every((value) => milliseconds(value) !== null && /^\d{4}-\d\d-\d\d([T ]|$)/.test(value));
  return isDate ? "date" : "category";
}

/**
 * Fields for the parameters of a statement: `$1` and so on, or one for each `%s`. They stand in the address. What is written is
 * sent as text, which the server reads as the type that the statement has there: `0012` is a name or a number.
 * @param {HTMLTextAreaElement} text
 */
function parameters(text) {
  const place = h("div", { class: "fields" });
  const draw = () => {
    const count = parameterCount(text.value);
    if (place.children.length === count) {
      return;
    }
    const field = (/** @type {number} */ number) => {
      const box = input({ value: values().get(`_p${number}`) ?? "", placeholder: "a value, or nothing for null" });
      box.addEventListener("change", () => change({ [`_p${number}`]: box.value }));
      return labeled(`Parameter $${number}`, box);
    };
    show(place, ...Array.from({ length: count }, (_, index) => field(index + 1)));
  };
  text.addEventListener("input", draw);
  draw();
  return { place, draw, value: () => [...place.querySelectorAll("input")].map((it) => (it.value === "" ? null : it.value)) };
}

/** The tables with their columns; a click puts a name into the statement. @param {HTMLTextAreaElement} text */
function tree(text) {
  const put = (/** @type {string} */ name) => () => {
    text.setRangeText(name, text.selectionStart, text.selectionEnd, "end");
    text.focus();
  };
  const name = (/** @type {string} */ it) => h("button", { type: "button", class: "plain", title: "Put it into the statement", click: put(it) }, it);
  const column = (/** @type {Column} */ it) => h("li", null, name(it.sql_column_name), " ", h("span", { class: "quiet" }, it.foreign_key_table_name ? `→ ${it.foreign_key_table_name}` : it.data_type, it.unit ? `, ${it.unit}` : ""));
  const read = async () => h("div", { class: "columns" }, (await schema()).map((table) => h("details", null, h("summary", null, table.name), h("p", null, name(table.name)), h("ul", null, table.columns.map(column)))));
  return folded("Tables and columns", () => loaded("Reading the tables", read));
}

/** A value as a key: objects are read anew for each row. @param {any} value */
function keyed(value) {
  return value !== null && typeof value === "object" ? text(value) : value;
}

/**
 * @typedef {object} View what is drawn of a result; columns by their numbers
 * @property {number} x
 * @property {number} y
 * @property {number} error negative for none
 * @property {number[]} by columns that tell lines apart
 * @property {"linear" | "date" | "category"} type of the X axis
 * @property {"lines" | "markers" | "bars"} shape
 * @property {string} together what a bar is of several rows
 * @property {boolean} isLog
 * @property {boolean} isLogX
 */
/** @typedef {Map<string, {key: any, at: any, y: any, error: any}[]>} Groups points by the names of their lines */

/** @param {Result} result @param {View} view */
function groupsOf({ columns, data }, { x, y, error, by, type }) {
  const labels = by.map((index) => distinctly(data.map((row) => keyed(row[index])), (it) => (it === null ? `no ${columns[index]}` : text(it) || '""')));
  /** @type {Groups} */
  const groups = new Map();
  for (const row of data) {
    const name = by.map((index, each) => labels[each].get(keyed(row[index]))).join(", ") || columns[y];
    const points = groups.get(name) ?? [];
    groups.set(name, points);
    const at = type === "date" ? milliseconds(row[x]) : type === "category" ? String(row[x] ?? "") : drawable(row[x]);
    points.push({ key: row[x], at, y: drawable(row[y]), error: error < 0 ? null : drawable(row[error]) });
  }
  return groups;
}

/** Rows that share their X with another one of their line. @param {Groups} groups */
function sharedOf(groups) {
  return [...groups.values()].reduce((sum, points) => sum + points.length - new Set(points.map((it) => it.key)).size, 0);
}

/**
 * What a chart rounds, puts together and leaves out.
 * @param {Result} result
 * @param {View} view
 * @param {number} shared
 */
function notesOf({ columns, data }, { x, y, error, shape, together, isLog, isLogX }, shared) {
  const isBelow = (/** @type {number} */ index) => (/** @type {any[]} */ row) => row[index] !== null && Number(row[index]) <= 0;
  const rounded = data.filter((row) => [x, y].some((index) => typeof row[index] === "bigint")).length;
  const beside = isLogX ? data.filter(isBelow(x)).length : 0;
  const left = isLog ? data.filter(isBelow(y)).length : 0;
  const joined =
    shape === "bars"
      ? `Several rows have the same ${columns[x]}: a bar is their ${together}, of ${counted(data.length, "row")} in all.${error >= 0 ? " A bar of several rows has no error bar." : ""}`
      : shape === "lines" && `${counted(shared, "row")} share the ${columns[x]} of another one of their line. A color by the column that tells them apart draws a line for each.`;
  return [
    rounded > 0 && `${counted(rounded, "row")} with whole numbers beyond 2^53: their last digits are rounded in the chart.`,
    shared > 0 && joined,
    beside > 0 && `A log X has no place for ${counted(beside, "row")} whose ${columns[x]} is zero or negative.`,
    left > 0 && `A log scale has no place for ${counted(left, "value")} that ${left === 1 ? "is" : "are"} zero or negative.`,
  ].filter(Boolean);
}

/** @param {Groups} groups @param {View} view */
function curvesOf(groups, { shape, type, together, error }) {
  return [...groups]
    .sort(([a], [b]) => naturally(a, b))
    .map(([name, points]) => {
      const placed = shape === "bars" ? bars(points, together) : shape === "lines" && type !== "category" ? [...points].sort((a, b) => naturally(a.at, b.at)) : points;
      return { name, x: placed.map((it) => it.at), y: placed.map((it) => it.y), ...(error >= 0 ? { error: placed.map((it) => it.error) } : {}) };
    });
}

/** A chart of the result. Its choices stand in the address. @param {Result} result */
function chart(result) {
  const { columns } = result;
  const numeric = columns.map((_, index) => index).filter((index) => isNumeric(result, index));
  const numbers = numeric.map((index) => columns[index]);
  const first = numeric.find((index) => index !== 0) ?? numeric[0];
  const across = choice("X axis", "_x", columns, columns[0], () => again());
  const up = choice("Y axis", "_y", numbers, columns[first], () => again());
  const isUsuallyBars = axisType(result, 0) === "category";
  const kind = choice("As", "_as", ["lines", "markers", "bars"], isUsuallyBars ? "bars" : "lines", () => again());
  const color = choice("Color by", "_color", ["", ...columns], "", () => again());
  const also = choice("and by", "_also", ["", ...columns], "", () => again());
  const error = choice("Error bars", "_error", ["", ...numbers], "", () => again());
  const together = choice("Rows at one X", "_together", Object.keys(TOGETHER), "mean", () => again());
  const log = flag("Log scale", "_log", () => again());
  const logX = flag("Log X", "_logx", () => again());
  const place = plot();
  const told = h("div", { "aria-live": "polite" });
  /** @returns {View} */
  const view = () => {
    const at = (/** @type {{value: () => string}} */ it) => columns.indexOf(it.value());
    const type = axisType(result, at(across));
    const shape = /** @type {View["shape"]} */ (kind.value());
    logX.field.hidden = type !== "linear" || shape === "bars";
    const by = [at(color), at(also)].filter((index) => index >= 0);
    return { x: at(across), y: at(up), error: at(error), by, type, shape, together: together.value(), isLog: log.box.checked, isLogX: logX.box.checked && !logX.field.hidden };
  };
  const again = async () => {
    const drawn = view();
    const { x, y, type, isLog, isLogX } = drawn;
    const groups = groupsOf(result, drawn);
    const shared = sharedOf(groups);
    const areTogether = drawn.shape === "bars" && shared > 0;
    together.field.hidden = !areTogether;
    const curves = curvesOf(groups, drawn);
    const axis = type === "date" ? timeAxis(columns[x], curves, result.data.some((row) => isInstant(row[x]))) : { title: columns[x], type: isLogX ? /** @type {const} */ ("log") : type };
    const title = areTogether ? `${drawn.together} of ${columns[y]}` : columns[y];
    place.setAttribute("aria-label", `${title} over ${columns[x]}`);
    try {
      await place.draw(curves, axis, { title, type: isLog ? "log" : "linear" }, { kind: drawn.shape });
      show(told, ...notesOf(result, drawn, shared).map((it) => h("p", { class: "note warns" }, it)));
    } catch (failed) {
      show(told, failure(failed));
    }
  };
  again();
  const fields = [across.field, up.field, kind.field, color.field, also.field, error.field, together.field, log.field, logX.field];
  return h("div", { class: "chart" }, h("div", { class: "fields" }, fields), told, plotTools([place], "query", () => saveValues(columns, result.data, "query.csv")), place);
}
