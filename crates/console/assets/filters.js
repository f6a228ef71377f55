// Conditions on the rows of a table, each one a chip, in the address.

import { failure, h, show } from "./dom.js";
import { change, values } from "./state.js";
import { keysOf, labelOf, parsed, references, written } from "./tables.js";

const CONDITIONS = [
  ["is", ""],
  ["contains", "__contains"],
  ["is one of", "__in"],
  ["at least", "__gte"],
  ["at most", "__lte"],
  ["is empty", "__isnull"],
];

/**
 * Columns to filter by, also of rows that rows refer to, by their names in filters.
 * @param {Table} table
 * @param {Table[]} all
 */
function columnsOf(table, all) {
  /** @type {Map<string, Column>} */
  const columns = new Map(table.columns.map((column) => [column.name, column]));
  for (const reference of references(table)) {
    const other = all.find((it) => it.name === reference.foreign_key_table_name);
    for (const column of other ? written(other) : []) {
      columns.set(`${reference.name}__${column.name}`, column);
    }
  }
  return columns;
}

/**
 * A filter's column and condition.
 * @param {string} name
 * @param {Map<string, Column>} columns
 */
function split(name, columns) {
  const [, suffix] = CONDITIONS.find(([, it]) => it && name.endsWith(it) && columns.has(name.slice(0, -it.length))) ?? ["", ""];
  return { column: suffix ? name.slice(0, -suffix.length) : name, suffix };
}

/**
 * The filters of the address as the API takes them.
 * @param {Table} table
 * @param {Table[]} all
 */
export async function filters(table, all) {
  const columns = columnsOf(table, all);
  /** @type {Record<string, any>} */
  const wanted = {};
  for (const [name, text] of values()) {
    if (name.startsWith("_")) {
      continue;
    }
    const { column, suffix } = split(name, columns);
    const of = columns.get(column);
    if (!of) {
      throw new Error(`The table ${table.name} has no column "${column}" to filter by.`);
    }
    const other = all.find((it) => it.name === of.foreign_key_table_name);
    const listed = texts(of, suffix, text);
    if (suffix === "__isnull") {
      wanted[name] = text === "true";
    } else if (suffix === "__contains") {
      wanted[other ? `${column}__${labelOf(other)}${suffix}` : name] = text;
    } else if (other && (suffix === "" || suffix === "__in")) {
      // By what the cells show, which may be the name of several rows.
      wanted[`${column}__in`] = (await Promise.all(listed.map((it) => keysOf(other, it)))).flat();
    } else {
      const found = listed.map((it) => parsed({ ...of, name: column }, it));
      wanted[name] = suffix === "__in" ? found : found[0];
    }
  }
  return wanted;
}

/**
 * The texts of a filter's value. Blanks are part of a text; in a list they may as well stand between its entries.
 * @param {Column} of
 * @param {string} suffix
 * @param {string} text
 */
export function texts(of, suffix, text) {
  const isText = ["string", "text"].includes(of.data_type) || of.foreign_key_table_name !== null;
  const all = suffix === "__in" ? text.split(",") : [text];
  return isText ? [...new Set(suffix === "__in" ? all.flatMap((it) => [it, it.trim()]) : all)] : all.map((it) => it.trim());
}

/** A condition of the address in words. @param {string} name @param {string} text @param {ReturnType<typeof columnsOf>} columns */
function wordsOf(name, text, columns) {
  const { column, suffix } = split(name, columns);
  const condition = CONDITIONS.find(([, it]) => it === suffix)?.[0] ?? "is";
  return `${column.replace("__", " → ")} ${condition}${suffix === "__isnull" ? "" : ` ${text}`}`;
}

/**
 * Fails if a text is no value of a column. Those of references are names, which are looked up later.
 * @param {Column} of
 * @param {string} name
 * @param {string} suffix
 * @param {string} text
 */
function check(of, name, suffix, text) {
  if (!["__isnull", "__contains"].includes(suffix) && of.foreign_key_table_name === null) {
    texts(of, suffix, text).forEach((it) => parsed({ ...of, name }, it));
  }
}

/**
 * The conditions as chips, and a form that adds one.
 * @param {Table} table
 * @param {Table[]} all
 * @param {() => void} changed
 */
export function filterBar(table, all, changed) {
  const columns = columnsOf(table, all);
  const option = (/** @type {string} */ name) => h("option", { value: name }, name.replace("__", " → "));
  const column = h("select", { "aria-label": "Column to filter by" }, [...columns.keys()].map(option));
  const kind = h("select", { "aria-label": "Condition" }, CONDITIONS.map(([text, value]) => h("option", { value }, text)));
  const value = h("input", { "aria-label": "Value", placeholder: "value" });
  column.value = columns.has(labelOf(table)) ? labelOf(table) : column.value;
  kind.addEventListener("change", () => (value.hidden = kind.value === "__isnull"));
  const chips = h("ul", { class: "chips", "aria-label": "Filters" });
  const told = h("div", { "aria-live": "polite" });
  const set = (/** @type {Record<string, string | null>} */ filter) => {
    show(told);
    change({ ...filter, _page: null }, true);
    const hadFocus = chips.contains(document.activeElement);
    draw();
    if (hadFocus) {
      value.focus();
    }
    changed();
  };
  const draw = () => {
    const all = [...values()].filter(([name]) => !name.startsWith("_"));
    const chip = (/** @type {string} */ words, /** @type {string} */ name) => h("li", { class: "chip" }, words, h("button", { type: "button", "aria-label": `Remove the filter ${words}`, click: () => set({ [name]: null }) }, "×"));
    show(chips, ...all.map(([name, text]) => chip(wordsOf(name, text, columns), name)));
    chips.hidden = all.length === 0;
  };
  const add = (/** @type {Event} */ event) => {
    event.preventDefault();
    const isEmpty = kind.value === "__isnull";
    if (!isEmpty && value.value === "") {
      show(told, failure("Write the value to filter by."));
      return;
    }
    try {
      check(/** @type {Column} */ (columns.get(column.value)), column.value, kind.value, value.value);
    } catch (error) {
      show(told, failure(error));
      return;
    }
    const text = isEmpty ? "true" : value.value;
    value.value = "";
    set({ [column.value + kind.value]: text });
  };
  draw();
  return h("div", null, h("form", { class: "bar", submit: add }, column, kind, value, h("button", null, "Filter")), told, chips);
}
