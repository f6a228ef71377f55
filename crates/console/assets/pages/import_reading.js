// How a file of rows is read: its lines, the options of the reading, and its problems in words.

import { call } from "../api.js";
import { h } from "../dom.js";
import { counted } from "../format.js";
import { grid } from "../grid.js";

/** Most problems that are listed. */
const LISTED = 200;

/** Bytes of a text file that are looked through for the lines with problems. */
const LOOKED_THROUGH = 5_000_000;

/**
 * The lines of a text file by number, for the problems' sake; none of workbooks and Parquet files.
 * @param {File} file
 */
export async function linesOf(file) {
  if (!/\.(csv|tsv|txt)$/i.test(file.name)) {
    return [];
  }
  return (await file.slice(0, LOOKED_THROUGH).text()).split(/\r\n|\n|\r/);
}

/**
 * The problems as a table: the line, the column, what is wrong, and the line as the file has it.
 * @param {{path: string | null, message: string}[]} problems
 * @param {string[]} lines
 * @param {number | null} headerRow
 */
export function problemGrid(problems, lines, headerRow) {
  const row = (/** @type {{path: string | null, message: string}} */ problem) => {
    const [, line, column] = /^rows\[(\d+)\](?:\.(.*))?$/.exec(problem.path ?? "") ?? [];
    const header = /^columns\.(.*)$/s.exec(problem.path ?? "")?.[1];
    const where = line ? Number(line) : header === undefined ? "file" : "header";
    const text = line ? lines[Number(line) - 1] : header === undefined || headerRow === null ? undefined : lines[headerRow - 1];
    return [where, column ?? header ?? "", h("span", { class: "failure" }, problem.message), text === undefined ? "" : h("code", null, text)];
  };
  const count = `${counted(problems.length, "problem")}. Nothing was written.`;
  return h(
    "div",
    null,
    h("p", { class: "failure", role: "alert" }, problems.length > LISTED ? `${count} The first ${LISTED}:` : count),
    kinds(problems),
    grid(["Line", "Column", "Problem", "As in the file"], problems.slice(0, LISTED).map(row), "", "Problems of the file"),
  );
}

/**
 * How many problems there are of each kind, where there are many.
 * @param {{path: string | null, message: string, code?: string}[]} problems
 */
function kinds(problems) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { path, code, message } of problems) {
    const column = /\.(.*)$/s.exec(path ?? "")?.[1];
    const name = `${(code ?? message).replaceAll("_", " ")}${column ? ` in ${column}` : ""}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  if (problems.length < 6) {
    return null;
  }
  return h("ul", { class: "chips" }, [...counts].sort(([, a], [, b]) => b - a).slice(0, 12).map(([name, count]) => h("li", { class: "chip" }, `${name}: ${count}`)));
}

/** How a file is read, as people choose it: the option, its label, and its values if they are few. @type {[string, string, string[] | null][]} */
export const READING = [
  ["format", "Format", ["csv", "xlsx", "parquet"]],
  ["sheet", "Sheet", null],
  ["header_row", "Header in line", null],
  ["last_row", "Last line", null],
  ["delimiter", "Columns end at", [",", ";", "\t", "|"]],
  ["quote", "Quotation mark", ["", '"', "'"]],
  ["decimal", "Decimal sign", [".", ","]],
  ["thousands", "Thousands", ["", ".", ",", "'", " "]],
  ["encoding", "Encoding", null],
  ["timezone", "Time zone", null],
  ["date_format", "Date format", null],
  ["text_numbers", "Texts in number columns", ["refuse", "null"]],
  ["error_cells", "Error cells", ["refuse", "null"]],
  ["invalid_bytes", "Bytes of another encoding", ["refuse", "replace"]],
  ["duplicate_headers", "Headers that repeat", ["refuse", "number"]],
];

/**
 * The first rows of a file that may be its header. Those of a workbook come without its blank rows.
 * @typedef {{texts: string[], cells: any[][] | null, blank: number}} Top
 */

/**
 * @param {File} file
 * @param {Record<string, any>} options how it is read
 * @returns {Promise<Top>}
 */
export async function topOf(file, { sheet }) {
  if (!/\.xlsx$/i.test(file.name)) {
    return { texts: (await linesOf(file)).slice(0, HEADERS), cells: null, blank: 0 };
  }
  const body = await previewed(file, { sheet, header_row: 0, last_row: HEADERS }).catch(() => null);
  const cells = body?.rows ?? [];
  return { texts: cells.map((/** @type {any[]} */ row) => row.map((it) => it ?? "").join(" | ")), cells, blank: body?.reading.blank_lines ?? 0 };
}

/**
 * The number of a workbook's row in its sheet, by the headers that it gives.
 * @param {File} file
 * @param {Record<string, any>} options how it is read
 * @param {Top} top
 * @param {number} index
 */
export async function rowOf(file, options, { cells, blank }, index) {
  const wanted = (cells?.[index] ?? []).filter((it) => it !== null).map(String).join("\n");
  for (let row = index + 1; row < index + 1 + blank; row++) {
    const body = await previewed(file, { ...options, header_row: row, duplicate_headers: "number" }).catch(() => null);
    const at = body?.reading.header_row;
    if (at === row && body.columns.map((/** @type {any} */ it) => it.header).join("\n") === wanted) {
      return row;
    }
  }
  return index + 1 + blank;
}

/**
 * A reading of a file.
 * @param {File} file
 * @param {Record<string, any>} options
 */
export async function previewed(file, options) {
  const form = new FormData();
  put(form, options);
  form.append("file", file, file.name);
  return (await call("POST", "/tools/preview-table", form)).body;
}

/** A choice that is left to the platform. */
export const FOUND = "?";

export const WORDS = /** @type {Record<string, string>} */ ({ [FOUND]: "as found", null: "leave them empty", replace: "mark them as unreadable", number: "number them", "\t": "tab", " ": "blank", "": "none", ",": "comma ,", ";": "semicolon ;", ".": "point .", "'": "apostrophe '", "|": "bar |" });

/** Lines of a text that are offered as the header. */
const HEADERS = 12;

/** A header as it finds its column: without a unit in brackets, case, blanks and punctuation. @param {string} text */
export function bare(text) {
  return text.normalize("NFKC").replace(/[([][^()[\]]*[)\]]\s*$/, "").toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
}

/**
 * Adds options to a form.
 * @param {FormData} form
 * @param {Record<string, any>} options
 */
export function put(form, options) {
  for (const [name, value] of Object.entries(options)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== null && each !== undefined) {
        form.append(name, String(each));
      }
    }
  }
}

/** An option and its value in words. @param {string} name @param {any} value */
export function worded(name, value) {
  const label = READING.find(([it]) => it === name)?.[1] ?? name.replaceAll("_", " ");
  return `${label}: ${WORDS[String(value)] ?? value}`;
}

/** How a file was read, in words. @param {any} reading */
export function readingWords({ format, encoding, delimiter, decimal, sheet, header_row: header }) {
  const sign = (/** @type {any} */ it) => (WORDS[it] ?? it).split(" ")[0];
  const found = [
    encoding,
    (delimiter ?? null) === null ? "" : `columns end at a ${sign(delimiter)}, decimal ${sign(decimal)}`,
    sheet ? `sheet ${sheet}` : "",
    header === null ? "" : `header in line ${header}`,
  ].filter(Boolean).join(", ");
  return `Read as ${format}${found ? `: ${found}` : ""}`;
}

/** What of the file is no part of the table, in words. @param {any} reading */
export function skippedWords({ lines_above: above, lines_below: below, blank_lines: blank }) {
  const skipped = [above ? `${counted(above, "line")} above the header` : "", below ? `${counted(below, "line")} below the table` : "", blank ? counted(blank, "blank line") : ""].filter(Boolean);
  return skipped.length ? `Skipped: ${skipped.join(", ")}.` : null;
}
