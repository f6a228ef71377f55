// Curves: the columns of their tables, and their points.

import { post } from "./api.js";
import { drawable } from "./exact.js";
import { CALENDAR, clockAt, milliseconds, moment, number, zoneAt } from "./format.js";
import { extent } from "./science.js";
import { isNumeric, title } from "./tables.js";

/** Name of the axis of points without a column of their own for it. */
const NUMBER = "point";

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

/** Columns for the axes: x is the first one of times or numbers, y the next of numbers. @param {Table} table */
export function axes(table) {
  const own = table.columns.filter((column) => column.name !== "order" && (isNumeric(column) || isTime(column.data_type)));
  const y = own.filter(isNumeric);
  const x = own.length > 1 ? own[0].name : NUMBER;
  return { x, y: (y.find((column) => column.name !== x) ?? y[0])?.name ?? "", xs: [NUMBER, ...own.map((it) => it.name)], ys: y.map((it) => it.name) };
}

/**
 * An axis of times. Instants are on the browser's clock as it stands at the first of them, which the title names.
 * @param {string} title
 * @param {{x: any[]}[]} curves
 * @param {boolean} areInstants not dates or times without a zone
 * @returns {import("./plot.js").Axis & {zone: import("./format.js").Zone}}
 */
export function timeAxis(title, curves, areInstants) {
  const first = areInstants ? extent(curves.map((it) => extent(it.x)?.[0])) : null;
  const zone = first ? zoneAt(first[0]) : CALENDAR;
  return { title: zone.name ? `${title}, ${zone.name}` : title, type: "date", zone };
}

/**
 * The x axis of curves.
 * @param {Table} table
 * @param {string} name
 * @param {{x: any[]}[]} curves
 * @returns {import("./plot.js").Axis}
 */
export function axisOf(table, name, curves) {
  const type = typeOf(table, name);
  return isTime(type) ? timeAxis(title(table, name), curves, type === "datetime") : { title: title(table, name), type: "linear" };
}

/**
 * A place on an axis in words.
 * @param {import("./plot.js").Axis} axis
 * @param {any} at
 */
export function placeOn(axis, at) {
  return axis.zone ? moment(at, axis.zone) : number(at);
}

/**
 * A place on an axis as files have it: instants in UTC.
 * @param {import("./plot.js").Axis} axis
 * @param {any} at
 */
export function storedPlace({ zone }, at) {
  return !zone ? at : zone.name ? `${clockAt(at, CALENDAR)}Z` : moment(at, CALENDAR);
}

/**
 * Reads the curves of some rows, in the order of their keys. Their x and y are numbers; `given` has them as they are stored.
 * @param {Table} table
 * @param {string} parentColumn
 * @param {unknown[]} parents
 * @param {string} x
 * @param {string} y
 * @param {string} [second] a further column
 * @returns {Promise<{key: any, x: any[], y: any[], second: any[], given: {x: any[], y: any[]}}[]>}
 */
export async function series(table, parentColumn, parents, x, y, second = "") {
  const columns = [...new Set([x, y, second])].filter((it) => it !== NUMBER && it !== "");
  const at = isTime(typeOf(table, x)) ? milliseconds : drawable;
  const all = [];
  for (let from = 0; from < parents.length; from += AT_ONCE) {
    all.push(...(await post("/tools/series", { table: table.name, parent_column: parentColumn, parents: parents.slice(from, from + AT_ONCE), columns })));
  }
  return all.map((/** @type {any} */ one) => {
    const values = one.columns[y];
    const given = { x: x === NUMBER ? [...values.keys()] : one.columns[x], y: values };
    return { key: one.parent, x: given.x.map(at), y: values.map(drawable), second: (one.columns[second] ?? []).map(drawable), given };
  });
}
