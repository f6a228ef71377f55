// A SQL statement, its result as a table and as a chart, and the statements before it.

import { get, post } from "../api.js";
import { failure, h, load, show } from "../dom.js";
import { isNumber } from "../exact.js";
import { grid } from "../grid.js";
import { plot, plotTools, saveValues } from "../plot.js";

/** @typedef {{columns: string[], data: any[][]}} Result */

/** Most statements that are remembered. */
const REMEMBERED = 50;

/** Most rows that are shown; a file and the chart have all of them. */
const SHOWN = 1000;

const FIRST = 'select name, semantic_category from "table" order by name';

/** The last statement and whose it was, for as long as the page is open. */
let last = { organization: "", statement: FIRST };

/**
 * The statements that were run in this browser, the latest first, for each organization.
 * @param {string} organization
 */
function history(organization) {
  const key = `labdata-sql-${organization}`;
  /** @returns {string[]} */
  const all = () => {
    try {
      const found = JSON.parse(localStorage.getItem(key) ?? "[]");
      return Array.isArray(found) ? found.filter((it) => typeof it === "string") : [];
    } catch {
      return [];
    }
  };
  const keep = (/** @type {string[]} */ statements) => {
    try {
      localStorage.setItem(key, JSON.stringify(statements.slice(0, REMEMBERED)));
    } catch {
      // A browser without room, or that forbids it, runs statements all the same.
    }
  };
  const add = (/** @type {string} */ statement) => keep([statement, ...all().filter((it) => it !== statement)]);
  return { all, add, forget: () => keep([]) };
}

/** The SQL box. */
export function query() {
  const text = /** @type {HTMLTextAreaElement} */ (h("textarea", { "aria-label": "SQL", rows: "6", spellcheck: "false" }, FIRST));
  const place = h("div", { "aria-live": "polite" });
  const before = h("details", null, h("summary", null, "History"));
  const statements = h("div", null);
  before.append(statements);
  /** @type {ReturnType<typeof history> | null} */
  let known = null;
  let organization = "";
  const session = get("/session").then(
    (me) => {
      organization = me.organization.id;
      known = history(organization);
      if (text.value === FIRST) {
        text.value = last.organization === organization ? last.statement : (known.all()[0] ?? FIRST);
      }
      list();
    },
    (error) => show(statements, failure(error)),
  );
  const list = () => {
    const all = known?.all() ?? [];
    const line = (/** @type {string} */ statement) => {
      const take = () => {
        text.value = statement;
        text.focus();
      };
      return h("li", null, h("button", { type: "button", class: "plain statement", click: take, title: "Put it into the box" }, statement));
    };
    const forget = () => {
      known?.forget();
      list();
    };
    const words = h("p", { class: "quiet" }, "They are kept in this browser only. ", h("button", { type: "button", click: forget }, "Clear the history"));
    show(statements, ...(all.length ? [h("ul", { class: "statements" }, all.map(line)), words] : [h("p", { class: "empty" }, "None yet.")]));
  };
  const run = (/** @type {Event} */ event) => {
    event.preventDefault();
    const statement = text.value;
    last = { organization, statement };
    load(place, "The query runs, for 15 s at most", async () => {
      const began = performance.now();
      /** @type {Result} */
      const result = await post("/tools/query", { query: statement });
      const took = Math.round(performance.now() - began);
      // A fast query may be done before it is known whose statement it is.
      await session;
      known?.add(statement);
      list();
      return shown(result, took);
    });
  };
  const key = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      run(event);
    }
  };
  text.addEventListener("keydown", key);
  const hint = h("small", { class: "quiet" }, "Ctrl+Enter. One SELECT over your organization's tables.");
  return [
    h("h1", null, "SQL"),
    h("form", { submit: run }, text, h("p", null, h("button", { class: "primary" }, "Run"), " ", hint)),
    before,
    place,
  ];
}

/**
 * @param {Result} result
 * @param {number} took
 */
function shown(result, took) {
  const count = result.data.length;
  const part = count > SHOWN ? `, of which the first ${SHOWN.toLocaleString()} are shown` : "";
  const area = h("div", null);
  const open = () => show(area, chart(result));
  const file = () => saveValues(result.columns, result.data, "query.csv");
  const numbers = result.columns.some((_, index) => isNumeric(result, index));
  return h(
    "div",
    null,
    h(
      "div",
      { class: "plot-tools" },
      h("span", { class: "quiet told" }, `${count.toLocaleString()} ${count === 1 ? "row" : "rows"} in ${took} ms${part}`),
      count > 0 && numbers ? h("button", { type: "button", click: open }, "Chart") : null,
      count > 0 ? h("button", { type: "button", click: file, title: "Save the result" }, "CSV") : null,
    ),
    area,
    grid(result.columns, result.data.slice(0, SHOWN), "The result has no rows."),
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
  const isDate = values.length > 0 && values.every((value) => /^\d{4}-\d\d-\d\d([T ]|$)/.test(value));
  return isDate ? "date" : "category";
}

/**
 * A value as a plot draws it, where the last digits of a long number cannot be seen.
 * @param {any} value
 */
function drawable(value) {
  return typeof value === "bigint" ? Number(value) : value;
}

/**
 * A chart of the result.
 * @param {Result} result
 */
function chart(result) {
  const { columns } = result;
  const numeric = columns.map((_, index) => index).filter((index) => isNumeric(result, index));
  const option = (/** @type {number} */ index) => h("option", { value: index }, columns[index]);
  const every = columns.map((_, index) => option(index));
  const select = (/** @type {string} */ label, /** @type {HTMLElement[]} */ options) => {
    const input = /** @type {HTMLSelectElement} */ (h("select", { change: () => again() }, options));
    return { input, field: h("label", null, label, input) };
  };
  const across = select("X axis", every);
  const up = select("Y axis", numeric.map(option));
  const color = select("Color by", [h("option", { value: "" }, "–"), ...columns.map((_, index) => option(index))]);
  const kind = select("As", ["lines", "markers", "bars"].map((it) => h("option", { value: it }, it === "markers" ? "points" : it)));
  const log = /** @type {HTMLInputElement} */ (h("input", { type: "checkbox", change: () => again() }));
  const first = numeric.find((index) => index !== 0) ?? numeric[0];
  up.input.value = String(first);
  kind.input.value = axisType(result, 0) === "category" ? "bars" : "lines";
  const place = plot();
  const told = h("span", { class: "told" });
  const again = async () => {
    const [x, y] = [Number(across.input.value), Number(up.input.value)];
    const type = axisType(result, x);
    const by = color.input.value === "" ? null : Number(color.input.value);
    /** @type {Map<string, {name: string, x: any[], y: any[]}>} */
    const curves = new Map();
    for (const row of result.data) {
      const name = String(by === null ? columns[y] : row[by]);
      const curve = curves.get(name) ?? { name, x: [], y: [] };
      curves.set(name, curve);
      curve.x.push(type === "date" ? row[x] && Date.parse(row[x]) : type === "category" ? String(row[x]) : drawable(row[x]));
      curve.y.push(drawable(row[y]));
    }
    place.setAttribute("aria-label", `${columns[y]} over ${columns[x]}`);
    const shape = /** @type {"lines" | "markers" | "bars"} */ (kind.input.value);
    try {
      await place.draw([...curves.values()], { title: columns[x], type }, { title: columns[y], type: log.checked ? "log" : "linear" }, { kind: shape });
      show(told);
    } catch (error) {
      show(told, failure(error));
    }
  };
  again();
  const fields = [across.field, up.field, kind.field, color.field, h("label", { class: "check" }, log, "Log scale")];
  const tools = plotTools(place, "query", () => saveValues(columns, result.data, "query.csv"));
  return h("div", { class: "chart" }, h("div", { class: "fields" }, fields), h("div", { class: "plot-tools" }, told, tools), place);
}
