// Tables: what there is, and the rows of one.

import { failure, h, load, show } from "../dom.js";
import { grid } from "../grid.js";
import { picture } from "../picture.js";
import { rowForm } from "../row_form.js";
import { condition, keyOf, labelOf, labeled, named, names, read, rowLink, schema, title, written } from "../tables.js";
import { importForm } from "./imports.js";
import { definition } from "./definition.js";
import { row } from "./rows.js";

/** @typedef {import("../tables.js").Table} Table */

/** Rows of a page. */
const PAGE = 50;

/** Core tables that rows can be written to; the others are views of what the platform keeps. */
const WRITABLE = ["experiment", "carrier", "operation"];

/** The tables, as a picture and as lists. */
export function tables() {
  const place = h("div", null);
  const again = () =>
    load(place, "Reading the tables", async () => {
      const all = await schema();
      const line = (/** @type {Table} */ table) => [
        h("a", { href: `#/tables/${encodeURIComponent(table.name)}` }, table.name),
        table.semantic_category,
        table.row_count_estimate,
        written(table).length,
        table.description ?? "",
      ];
      const own = all.filter((table) => table.id !== null);
      const core = all.filter((table) => table.id === null);
      const hint = "No table yet. Define one below, or let a script do it: PUT /api/v1/tables/{name}.";
      return h(
        "div",
        null,
        own.length ? picture(all) : null,
        grid(["Table", "Kind", "Rows or points", "Columns", "Description"], own.map(line), hint),
        folded("Define a table", () => definition(all)),
        h("h2", null, "Core tables"),
        labeled(grid(["Table", "Kind", "Rows", "Columns", "Description"], core.map(line), "None."), "Core tables"),
      );
    });
  again();
  return [h("h1", null, "Tables"), place];
}

/**
 * A part of the page that is made when it is opened.
 * @param {string} name
 * @param {() => Node} make
 */
function folded(name, make) {
  const place = h("div", null);
  const details = h("details", null, h("summary", null, name), place);
  details.addEventListener("toggle", () => {
    if (/** @type {HTMLDetailsElement} */ (details).open && !place.hasChildNodes()) {
      show(place, make());
    }
  });
  return details;
}

/**
 * The rows of a table, or one of them: `name`, `name?column=value`, or `name/key`.
 * @param {string} address
 */
export function table(address) {
  const parts = /^([^/?]+)(?:\/(.*)|\?([^=]*)=(.*))?$/s.exec(address);
  const [, name, key, column, value] = parts ?? ["", address];
  if (key !== undefined) {
    return row(name, key);
  }
  const place = h("div", null);
  load(place, "Reading the table", async () => {
    const all = await schema();
    return rows(named(all, name), all, column ? { column, value } : null);
  });
  return [h("p", null, h("a", { href: "#/tables" }, "← Tables")), h("h1", null, name), place];
}

/**
 * A filter, an order, chosen columns, and pages.
 * @param {Table} found
 * @param {Table[]} all
 * @param {{column: string, value: string} | null} wanted
 */
function rows(found, all, wanted) {
  const chosen = new Set(written(found).map((it) => it.name));
  const key = keyOf(found);
  const label = labelOf(found);
  const isRaw = found.semantic_category === "raw";
  if (key === "id" && label !== key) {
    chosen.delete(key);
  }
  let order = "";
  const place = h("div", { "aria-live": "polite" });
  const filter = condition(found, all, () => first());
  if (wanted) {
    filter.set(wanted.column, wanted.value);
  }
  const header = (/** @type {string} */ name) => {
    const mark = order === name ? " ↑" : order === `-${name}` ? " ↓" : "";
    const sort = () => {
      order = order === name ? `-${name}` : order === `-${name}` ? "" : name;
      first();
    };
    return h("button", { type: "button", class: "plain", click: sort, title: "Sort" }, title(found, name) + mark);
  };
  const cell = (/** @type {any} */ it, /** @type {import("../tables.js").Column} */ column, /** @type {any} */ known) => {
    const value = it[column.name];
    if (!isRaw && value !== null && (column.name === label || column.name === key)) {
      return h("a", { href: rowLink(found.name, it[key]) }, value);
    }
    if (column.is_foreign_key && value !== null) {
      return h("a", { href: rowLink(/** @type {string} */ (column.foreign_key_table_name), value) }, known.get(column.name)?.get(value) ?? value);
    }
    return value;
  };
  const page = async (/** @type {string | undefined} */ address) => {
    const shown = found.columns.filter((it) => chosen.has(it.name));
    const needed = isRaw ? shown.map((it) => it.name) : [...new Set([key, ...shown.map((it) => it.name)])];
    const body = { filters: filter.filters(), limit: PAGE, columns: needed, ...(order ? { order_by: [order] } : {}) };
    const { body: lines, next } = await read(found, body, address);
    const known = await names({ ...found, columns: shown }, all, lines);
    const values = lines.map((/** @type {any} */ it) => shown.map((column) => cell(it, column, known)));
    const empty = Object.keys(body.filters).length ? "No row meets the condition." : "No rows yet. Add one below, or import a file.";
    const more = next ? h("button", { type: "button", click: () => turn(next) }, "Next page") : null;
    const back = address ? h("button", { type: "button", click: first }, "First page") : null;
    return h("div", null, grid(shown.map((it) => header(it.name)), values, empty), h("p", { class: "pages" }, back, more));
  };
  const turn = (/** @type {string | undefined} */ address) => load(place, "Reading rows", () => page(address));
  const first = () => turn(undefined);
  first();
  const name = encodeURIComponent(found.name);
  const exported = (/** @type {string} */ format, label = format.toUpperCase()) =>
    h("a", { href: `api/v1/tables/${name}/export?format=${format}`, download: true }, label);
  const isWritable = found.semantic_category === "curated" || WRITABLE.includes(found.name);
  const added = (/** @type {any} */ id) => (location.hash = rowLink(found.name, id));
  return h(
    "div",
    null,
    found.description ? h("p", null, found.description) : null,
    isRaw ? h("p", null, h("a", { href: `#/plates/${name}` }, "Draw the curves")) : null,
    filter.form,
    columnChoice(found, chosen, first),
    place,
    isWritable ? folded("Add a row", () => rowForm(found, all, null, new Map(), added)) : null,
    isWritable ? folded("Import a file", () => importForm(found, first)) : null,
    found.id === null ? null : h("p", { class: "quiet" }, "The whole table as ", exported("csv"), " ", exported("csv&neutralize_formulas=true", "CSV for spreadsheets"), " ", exported("parquet"), " ", exported("arrow")),
  );
}

/**
 * @param {Table} found
 * @param {Set<string>} chosen
 * @param {() => void} changed
 */
function columnChoice(found, chosen, changed) {
  const told = h("div", { "aria-live": "polite" });
  const box = (/** @type {string} */ name) => {
    const input = /** @type {HTMLInputElement} */ (h("input", { type: "checkbox", checked: chosen.has(name) }));
    input.addEventListener("change", () => {
      if (!input.checked && chosen.size === 1) {
        input.checked = true;
        show(told, failure("One column has to stay."));
        return;
      }
      show(told);
      chosen[input.checked ? "add" : "delete"](name);
      changed();
    });
    return h("label", { class: "check" }, input, name);
  };
  return h("details", null, h("summary", null, "Columns"), h("div", { class: "fields" }, found.columns.map((it) => box(it.name))), told);
}
