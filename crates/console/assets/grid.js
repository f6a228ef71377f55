// A table of values.

import { h } from "./dom.js";
import { isNumber } from "./exact.js";
import { shown } from "./format.js";

/** Rows of data for a grid: an empty text is seen, as null is not. @param {any[][]} rows */
export function data(rows) {
  return rows.map((row) => row.map((value) => (value === "" ? shown(value) : value)));
}

/**
 * @param {(string | HTMLElement)[]} columns
 * @param {any[][]} rows values, elements, or whole cells
 * @param {import("./dom.js").Child | import("./dom.js").Child[]} empty what stands there without rows
 * @param {string} [name] where a page has several with the same columns
 */
export function grid(columns, rows, empty, name) {
  if (rows.length === 0) {
    return h("p", { class: "empty" }, empty);
  }
  const isEmpty = (/** @type {any} */ value) => value === null || value === undefined;
  const areNumbers = columns.map((_, index) => {
    const values = rows.map((row) => row[index]).filter((value) => !isEmpty(value));
    return values.length > 0 && values.every((value) => isNumber(value) || (value instanceof HTMLTableCellElement && value.classList.contains("number")));
  });
  // The first column names the rows, and stays in sight.
  const kind = (/** @type {number} */ index) => [areNumbers[index] ? "number" : "", index === 0 && columns.length > 3 ? "first" : ""].filter(Boolean).join(" ") || false;
  const cell = (/** @type {any} */ value, /** @type {number} */ index) =>
    value instanceof HTMLTableCellElement ? placed(value, index) : h("td", { class: kind(index) }, value instanceof Node || value === "" ? value : shown(value));
  const placed = (/** @type {HTMLTableCellElement} */ element, /** @type {number} */ index) => {
    element.classList.toggle("first", index === 0 && columns.length > 3);
    return element;
  };
  const head = (/** @type {string | HTMLElement} */ name, /** @type {number} */ index) =>
    h("th", { scope: "col", class: kind(index) }, name);
  // Pages with several tables need a name for each.
  const names = columns.map((column) => (typeof column === "string" ? column : column.textContent)).filter(Boolean);
  // What a cell has no room for is said under the pointer.
  const whole = (/** @type {any} */ { target }) => {
    const cut = target.closest("td, th");
    if (cut && !cut.title && cut.scrollWidth > cut.clientWidth) {
      cut.title = cut.textContent;
    }
  };
  return h(
    "div",
    { class: "scroll", pointerover: whole, tabindex: "0", role: "region", "aria-label": name ?? `Table of ${names.join(", ")}` },
    h(
      "table",
      null,
      h("thead", null, h("tr", null, columns.map(head))),
      h("tbody", null, rows.map((row) => h("tr", null, row.map(cell)))),
    ),
  );
}
