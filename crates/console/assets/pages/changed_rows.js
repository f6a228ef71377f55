// The rows that an execution changed, before and after.

import { get } from "../api.js";
import { folded, h } from "../dom.js";
import { stringify } from "../exact.js";
import { grid } from "../grid.js";
import { watched } from "../list.js";
import { cellOf, labelOf, names, rowLink, schema } from "../tables.js";

/**
 * @typedef {Record<string, unknown>} Values
 * @typedef {{cell: (column: string, value: any) => any, name: (row: Api["ChangedRow"]) => string}} Words of values and of rows
 */

/** The most rows of a kind that are shown. */
const SHOWN = 100;

/**
 * A part of the page for each table with changed rows, read when it is opened.
 * @param {string} execution
 * @param {string[]} tables
 */
export function changedRows(execution, tables) {
  const live = (/** @type {string} */ _, /** @type {any} */ data) => data.job_execution_id === execution;
  return tables.map((name) =>
    folded(`Rows of ${name}, before and after`, () =>
      watched("Reading the rows", live, async () => {
        const path = `/job-executions/${execution}/changes`;
        const [{ rows }, changes, all] = await Promise.all([get(`${path}/${encodeURIComponent(name)}`), get(path), schema()]);
        const table = changes.tables.find((/** @type {Api["TableChanges"]} */ it) => it.table === name);
        // They say nothing about what was changed. No table has a column of its own with such a name.
        const system = all.flatMap((it) => it.columns).filter((it) => it.is_system);
        const found = all.find((it) => it.name === name);
        const columns = found?.columns.filter((it) => !it.is_system) ?? [];
        const known = found ? await names({ ...found, columns }, all, rows.flatMap((/** @type {any} */ it) => [it.before ?? {}, it.after ?? {}])).catch(() => new Map()) : new Map();
        const cell = (/** @type {string} */ column, /** @type {any} */ value) => cellOf(columns.find((it) => it.name === column), value, known);
        const label = found ? labelOf(found) : "id";
        const nameOf = (/** @type {any} */ row) => String((row.after ?? row.before)?.[label] ?? row.id);
        return parts(table, rows, new Set(system.map((it) => it.name)), { cell, name: nameOf });
      }),
    ),
  );
}

/**
 * @param {Api["TableChanges"]} table
 * @param {Api["ChangedRow"][]} rows
 * @param {Set<string>} system names of system columns
 * @param {Words} words
 */
function parts(table, rows, system, words) {
  const of = (/** @type {string} */ action) => rows.filter((row) => row.action === action);
  const all = [
    part(table.table, "Updated", table.updated, of("updated"), (rows, title) => updates(table.table, rows, system, words, title)),
    part(table.table, "Created", table.created, of("created"), (rows, title) => whole(rows, "after", system, (row) => link(table.table, row, words), words, title)),
    part(table.table, "Deleted", table.deleted, of("deleted"), (rows, title) => whole(rows, "before", system, words.name, words, title)),
  ];
  return h("div", null, all);
}

/**
 * @param {string} table
 * @param {string} name
 * @param {number} count of all rows that were changed in that way
 * @param {Api["ChangedRow"][]} rows those whose values are known
 * @param {(rows: Api["ChangedRow"][], title: string) => HTMLElement} draw
 */
function part(table, name, count, rows, draw) {
  if (count === 0) {
    return null;
  }
  const rest = count > rows.length ? `${rows.length} of ${count} rows: ${reason(name, rows.length)}` : null;
  return h(
    "section",
    null,
    h("h3", null, name),
    rows.length > 0 ? draw(rows, `${name} rows of ${table}`) : null,
    rest ? h("p", { class: "quiet" }, rest) : null,
  );
}

/**
 * Why not all rows are shown.
 * @param {string} name
 * @param {number} count of the rows that are shown
 */
function reason(name, count) {
  if (count >= SHOWN) {
    return "the first ones.";
  }
  return name === "Created" ? "the others are gone." : "of each write the first ones are kept.";
}

/**
 * A line for each value that an update changed.
 * @param {string} table
 * @param {Api["ChangedRow"][]} rows
 * @param {Set<string>} system
 * @param {Words} words
 * @param {string} title
 */
function updates(table, rows, system, words, title) {
  const lines = rows.flatMap((row) => {
    const { before, after } = row;
    if (!before || !after) {
      return [[link(table, row, words), "", h("span", { class: "quiet" }, "too long to be kept"), ""]];
    }
    const columns = Object.keys(after).filter((name) => !system.has(name) && !same(before[name], after[name]));
    const values = (/** @type {string} */ name) => [
      link(table, row, words),
      name,
      h("del", { class: "taken" }, words.cell(name, before[name])),
      h("ins", { class: "added" }, words.cell(name, after[name])),
    ];
    return columns.length > 0 ? columns.map(values) : [[link(table, row, words), "", "as it was", ""]];
  });
  return grid(["Row", "Column", "Before", "After"], lines, "", title);
}

/**
 * Rows with all their values on one side of the change.
 * @param {Api["ChangedRow"][]} rows
 * @param {"before" | "after"} side
 * @param {Set<string>} system
 * @param {(row: Api["ChangedRow"]) => Node | string} name
 * @param {Words} words
 * @param {string} title
 */
function whole(rows, side, system, name, words, title) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row[side] ?? {})))].filter((it) => !system.has(it));
  const line = (/** @type {Api["ChangedRow"]} */ row) => {
    const values = /** @type {Values} */ (row[side] ?? {});
    return [name(row), ...columns.map((column) => words.cell(column, values[column]))];
  };
  return grid(["Row", ...columns], rows.map(line), "", title);
}

/**
 * @param {string} table
 * @param {Api["ChangedRow"]} row
 * @param {Words} words
 */
function link(table, row, words) {
  return h("a", { href: rowLink(table, row.id), title: row.id }, words.name(row));
}

/**
 * @param {unknown} a
 * @param {unknown} b
 */
function same(a, b) {
  return stringify(a) === stringify(b);
}
