// Tables: what there is, and the rows of one.

import { call, get } from "../api.js";
import { h, load } from "../dom.js";
import { grid } from "../grid.js";

const PAGE = 50;

/** The list of tables. */
export function tables() {
  const place = h("div", null);
  load(place, "Reading the tables", async () => {
    const all = await get("/tools/schema");
    const row = (/** @type {any} */ table) => [
      h("a", { href: `#/tables/${encodeURIComponent(table.name)}` }, table.name),
      table.id === null ? "core" : table.semantic_category,
      table.row_count_estimate,
      table.columns.length,
      table.description ?? "",
    ];
    const own = all.filter((/** @type {any} */ table) => table.id !== null);
    const core = all.filter((/** @type {any} */ table) => table.id === null);
    const hint = "No table yet. Define one with PUT /api/v1/tables/{name}, or import a file from a script.";
    return h(
      "div",
      null,
      grid(["Table", "Kind", "Rows or points", "Columns", "Description"], own.map(row), hint),
      h("h2", null, "Core tables"),
      grid(["Table", "Kind", "Rows", "Columns", "Description"], core.map(row), "None."),
    );
  });
  return [h("h1", null, "Tables"), place];
}

/**
 * The rows of a table.
 * @param {string} name
 */
export function table(name) {
  const place = h("div", null);
  load(place, "Reading the table", async () => {
    const all = await get("/tools/schema");
    const found = all.find((/** @type {any} */ it) => it.name === name);
    if (!found) {
      throw new Error(`There is no table "${name}".`);
    }
    return rows(found);
  });
  return [h("p", null, h("a", { href: "#/tables" }, "← Tables")), h("h1", null, name), place];
}

/**
 * A value as the column's type has it.
 * @param {string} type
 * @param {string} text
 */
function read(type, text) {
  if (["integer", "float"].includes(type)) {
    const number = Number(text);
    if (Number.isNaN(number)) {
      throw new Error(`The column holds numbers, and "${text}" is none.`);
    }
    return number;
  }
  return type === "boolean" ? text === "true" : text;
}

/**
 * Filters on one column, an order by one column, and pages.
 * @param {any} found
 */
function rows(found) {
  const names = found.columns.map((/** @type {any} */ column) => column.name);
  let order = "";
  const column = /** @type {HTMLSelectElement} */ (
    h("select", { "aria-label": "Column to filter by" }, names.map((/** @type {string} */ it) => h("option", null, it)))
  );
  const kind = /** @type {HTMLSelectElement} */ (
    h(
      "select",
      { "aria-label": "Condition" },
      [["is", ""], ["contains", "__contains"], ["at least", "__gte"], ["at most", "__lte"]].map(([text, value]) =>
        h("option", { value }, text),
      ),
    )
  );
  const value = /** @type {HTMLInputElement} */ (h("input", { "aria-label": "Value", placeholder: "value" }));
  const place = h("div", { "aria-live": "polite" });
  const filters = () => {
    const text = value.value;
    if (text === "") {
      return {};
    }
    const type = found.columns.find((/** @type {any} */ it) => it.name === column.value).data_type;
    return { [column.value + kind.value]: read(type, text) };
  };
  const ask = async (/** @type {string} */ address) =>
    call("POST", address, {
      target_name: found.name,
      target_type: found.id === null ? "core_table" : "table",
      mode: "multiple",
      filters: filters(),
      limit: PAGE,
      ...(order ? { order_by: [order] } : {}),
    });
  const header = (/** @type {string} */ name) => {
    const next = order === name ? `-${name}` : order === `-${name}` ? "" : name;
    const mark = order === name ? " ↑" : order === `-${name}` ? " ↓" : "";
    const sort = () => {
      order = next;
      first();
    };
    return h("button", { type: "button", class: "plain", click: sort, title: "Sort" }, name + mark);
  };
  const page = async (/** @type {string} */ address, /** @type {boolean} */ isFirst) => {
    const { body, next } = await ask(address);
    const values = body.map((/** @type {any} */ row) => names.map((/** @type {string} */ it) => row[it]));
    const empty = value.value ? "No row meets the condition." : "No rows yet.";
    const more = next ? h("button", { type: "button", click: () => turn(next, false) }, "Next page") : null;
    const back = isFirst ? null : h("button", { type: "button", click: first }, "First page");
    return h("div", null, grid(names.map(header), values, empty), h("p", { class: "pages" }, back, more));
  };
  const turn = (/** @type {string} */ address, /** @type {boolean} */ isFirst) =>
    load(place, "Reading rows", () => page(address, isFirst));
  const first = () => turn("/tools/read", true);
  const apply = (/** @type {Event} */ event) => {
    event.preventDefault();
    first();
  };
  first();
  const exported = (/** @type {string} */ format) =>
    h(
      "a",
      { href: `api/v1/tables/${encodeURIComponent(found.name)}/export?format=${format}`, download: true },
      format.toUpperCase(),
    );
  return h(
    "div",
    null,
    found.description ? h("p", null, found.description) : null,
    h("form", { class: "bar", submit: apply }, column, kind, value, h("button", null, "Filter")),
    place,
    found.id === null ? null : h("p", { class: "quiet" }, "The whole table as ", exported("csv"), " ", exported("parquet")),
  );
}

