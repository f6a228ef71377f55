// Files that the browser saves.

import { h } from "./dom.js";
import { stringify } from "./exact.js";

/**
 * Saves values as CSV for spreadsheets, which would compute a text that begins as a formula: it gets an apostrophe, as
 * with the API's `neutralize_formulas`. Without a mark at its start Excel would not read it as UTF-8.
 * @param {string[]} header
 * @param {any[][]} rows
 * @param {string} name
 */
export function saveValues(header, rows, name) {
  const cell = (/** @type {any} */ value) => {
    const text = value === null || value === undefined ? "" : typeof value === "object" ? stringify(value) : neutralized(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [header, ...rows].map((row) => row.map(cell).join(","));
  save(new Blob(["\ufeff", lines.join("\r\n"), "\r\n"], { type: "text/csv" }), name);
}

/** @param {any} value */
function neutralized(value) {
  const isFormula = typeof value === "string" && /^[=+\-@\t\r]/.test(value);
  return isFormula ? `'${value}` : String(value);
}

/**
 * @param {Blob} blob
 * @param {string} name
 */
export function save(blob, name) {
  const address = URL.createObjectURL(blob);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
