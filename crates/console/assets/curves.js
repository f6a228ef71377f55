// Curves: the columns of their tables, and their points.

import { post } from "./api.js";
import { isNumeric } from "./tables.js";

/** @typedef {import("./tables.js").Table} Table */

/** Name of the axis of points without a column of their own for it. */
export const NUMBER = "point";

/** Curves of one request: their points have to fit into its answer. */
const AT_ONCE = 400;

/** @param {Table} table @param {string} name */
function typeOf(table, name) {
  return table.columns.find((column) => column.name === name)?.data_type ?? "";
}

/** @param {string} type */
function isTime(type) {
  return type === "datetime" || type === "date";
}

/**
 * Columns for the axes: x is the first one of times or numbers, y the next of numbers.
 * @param {Table} table
 */
export function axes(table) {
  const own = table.columns.filter((column) => column.name !== "order" && (isNumeric(column) || isTime(column.data_type)));
  const y = own.filter(isNumeric);
  const x = own.length > 1 ? own[0].name : NUMBER;
  return { x, y: (y.find((column) => column.name !== x) ?? y[0])?.name ?? "", xs: [NUMBER, ...own.map((it) => it.name)], ys: y.map((it) => it.name) };
}

/**
 * @param {Table} table
 * @param {string} name
 * @returns {"date" | "linear"}
 */
export function axisType(table, name) {
  return isTime(typeOf(table, name)) ? "date" : "linear";
}

/**
 * Reads the curves of some rows, in the order of their keys.
 * @param {Table} table
 * @param {string} parentColumn
 * @param {unknown[]} parents
 * @param {string} x
 * @param {string} y
 * @param {string} [second] a further column
 * @returns {Promise<{key: any, x: any[], y: any[], second: any[]}[]>}
 */
export async function series(table, parentColumn, parents, x, y, second = "") {
  const columns = [...new Set([x, y, second])].filter((it) => it !== NUMBER && it !== "");
  const isDate = isTime(typeOf(table, x));
  const all = [];
  for (let from = 0; from < parents.length; from += AT_ONCE) {
    all.push(...(await post("/tools/series", { table: table.name, parent_column: parentColumn, parents: parents.slice(from, from + AT_ONCE), columns })));
  }
  return all.map((/** @type {any} */ one) => {
    const values = one.columns[y];
    const at = x === NUMBER ? values.map((/** @type {any} */ _, /** @type {number} */ index) => index) : one.columns[x];
    return { key: one.parent, x: isDate ? at.map((/** @type {any} */ it) => it && Date.parse(it)) : at, y: values, second: one.columns[second] ?? [] };
  });
}
