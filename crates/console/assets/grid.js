// A table of values.

import { h } from "./dom.js";
import { isNumber, stringify } from "./exact.js";

/**
 * The text of a value; numbers and ids stay as they are.
 * @param {unknown} value
 */
export function shown(value) {
  if (value === null || value === undefined) {
    return h("span", { class: "quiet" }, "null");
  }
  return typeof value === "object" ? stringify(value) : String(value);
}

/**
 * @param {(string | HTMLElement)[]} columns
 * @param {any[][]} rows values, or elements
 * @param {string} empty what stands there without rows
 */
export function grid(columns, rows, empty) {
  if (rows.length === 0) {
    return h("p", { class: "empty" }, empty);
  }
  const isEmpty = (/** @type {any} */ value) => value === null || value === undefined;
  const areNumbers = columns.map((_, index) => {
    const values = rows.map((row) => row[index]).filter((value) => !isEmpty(value));
    return values.length > 0 && values.every(isNumber);
  });
  const kind = (/** @type {number} */ index) => (areNumbers[index] ? "number" : false);
  const cell = (/** @type {any} */ value, /** @type {number} */ index) =>
    h("td", { class: kind(index) }, value instanceof Node ? value : shown(value));
  const head = (/** @type {string | HTMLElement} */ name, /** @type {number} */ index) =>
    h("th", { scope: "col", class: kind(index) }, name);
  // Pages with several tables need a name for each.
  const names = columns.map((column) => (typeof column === "string" ? column : column.textContent)).filter(Boolean);
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table of ${names.join(", ")}` },
    h(
      "table",
      null,
      h("thead", null, h("tr", null, columns.map(head))),
      h("tbody", null, rows.map((row) => h("tr", null, row.map(cell)))),
    ),
  );
}
