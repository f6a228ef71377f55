// Cells of rows that are changed in place: one by hand, or a block from a spreadsheet.

import { failure, h, show, toast } from "./dom.js";
import { counted } from "./format.js";
import { field } from "./row_form.js";
import { identity, isNumeric, keyFor, keyOf, labelOf, parsed, title, undoable, writeRows } from "./tables.js";

/** A value within a message. @param {string} text */
export function short(text) {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text || "empty";
}

/**
 * The cells of a block as spreadsheets copy it: those that hold tabs or line breaks stand in quotes, with quotes doubled.
 * @param {string} block
 */
export function cellsOf(block) {
  const text = block.replace(/\r\n?/g, "\n").replace(/\n$/, "");
  const rows = [[]];
  // Quotes without a tab or a line break between them belong to the text.
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*[\t\n](?:[^"]|"")*)"(?=[\t\n]|$)|([^\t\n]*))([\t\n]|$)/g)) {
    /** @type {string[]} */ (rows.at(-1)).push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === "\n") {
      rows.push([]);
    } else if (end === "") {
      break;
    }
  }
  return /** @type {string[][]} */ (rows);
}

/** Whether a column is not changed by hand. @param {Table} table @param {Column} column */
export function isFixed(table, column) {
  return column.is_system || column.name === keyOf(table) || column.data_type === "json";
}

/** @typedef {{table: Table, all: Table[], content: (row: any, column: Column) => Node | string, name: (row: any, column: string) => string | undefined, changed: () => void}} Given */
/** @typedef {Given & {rows: any[], columns: Column[]}} Sheet what is given, and what is shown at present */
/** @typedef {{row: any, column: Column}} At */

/**
 * The cells of a table's rows.
 * @param {Given} given
 */
export function cells(given) {
  /** @type {Sheet} */
  const sheet = { ...given, rows: [], columns: [] };
  return {
    /** @param {any} row @param {Column} column */
    cell: (row, column) => cell(sheet, { row, column }),
    /** @param {any[]} rows @param {Column[]} columns */
    begin: (rows, columns) => Object.assign(sheet, { rows, columns }),
  };
}

/** @param {Sheet} sheet @param {At} at */
function cell(sheet, { row, column }) {
  const { table, rows, columns, content } = sheet;
  const value = row[column.name];
  const hint = typeof value === "number" || column.data_type === "datetime" ? String(value ?? "") : false;
  const kind = isNumeric(column) ? "number" : "";
  if (isFixed(table, column)) {
    return h("td", { class: kind || false, title: hint }, content(row, column));
  }
  // One cell of the table is on the way of the Tab key; the arrows lead to the others.
  const isFirst = row === rows[0] && column === columns.find((it) => !isFixed(table, it));
  const place = `${row[keyOf(table)]} ${column.name}`;
  const element = h("td", { class: `${kind} editable`.trim(), tabindex: isFirst ? "0" : "-1", title: hint, "data-name": place }, content(row, column));
  listen(sheet, element, { row, column });
  return element;
}

/** @param {Sheet} sheet @param {HTMLElement} element @param {At} at */
function listen(sheet, element, at) {
  element.addEventListener("focus", () => {
    element.closest("table")?.querySelector("td[tabindex='0']")?.setAttribute("tabindex", "-1");
    element.setAttribute("tabindex", "0");
  });
  element.addEventListener("dblclick", () => edit(sheet, element, at));
  element.addEventListener("keydown", (event) => {
    if (event.target !== element) {
      return;
    }
    if (event.key === "Enter" || event.key === "F2") {
      event.preventDefault();
      edit(sheet, element, at);
    } else if (event.key.startsWith("Arrow")) {
      event.preventDefault();
      neighbour(element, event.key)?.focus();
    }
  });
  element.addEventListener("paste", (event) => {
    if (event.target === element) {
      event.preventDefault();
      paste(sheet, element, at, event.clipboardData?.getData("text/plain") ?? "");
    }
  });
}

/** The cell beside one. @param {HTMLElement} element @param {string} key @returns {HTMLElement | null} */
function neighbour(element, key) {
  const row = /** @type {HTMLTableRowElement} */ (element.parentElement);
  const index = [...row.children].indexOf(element);
  const sideways = { ArrowLeft: element.previousElementSibling, ArrowRight: element.nextElementSibling };
  const other = { ArrowUp: row.previousElementSibling, ArrowDown: row.nextElementSibling }[key]?.children[index];
  return /** @type {HTMLElement | null} */ (sideways[/** @type {keyof typeof sideways} */ (key)] ?? other ?? null);
}

/** Writes rows, and offers to undo it. @param {Sheet} sheet @param {any[]} changes @param {string} words @param {() => void} [done] */
async function write({ table, changed }, changes, words, done) {
  const { job_execution_id: execution } = await writeRows(table, "update", changes);
  undoable(words, execution, changed);
  done?.();
  changed();
}

/** @param {any} error */
function words(error) {
  return (error.problems ?? []).some((/** @type {any} */ it) => it.code === "changed_since") ? new Error("Somebody else has changed the row. Press Escape, and load the page again.") : error;
}

/**
 * Shows a field in a cell.
 * @param {Sheet} sheet
 * @param {HTMLElement} element
 * @param {At} at
 */
function edit(sheet, element, { row, column }) {
  const { table, all, content, name } = sheet;
  const called = `${title(table, column.name)} of ${row[labelOf(table)] ?? row[keyOf(table)]}`;
  const made = field(column, all, row[column.name], name(row, column.name));
  const before = made.input.value;
  const problem = h("div", { "aria-live": "polite" });
  let isDone = false;
  const close = () => {
    isDone = true;
    element.classList.remove("editing");
    show(element, content(row, column));
    element.focus();
  };
  const save = async () => {
    if (isDone) {
      return;
    }
    if (made.input.value === before) {
      close();
      return;
    }
    isDone = true;
    try {
      const change = { ...identity(table, row), [column.name]: await made.value() };
      await write(sheet, [change], `${called}: ${short(before)} → ${short(made.input.value)}`, () => element.classList.remove("editing"));
    } catch (error) {
      isDone = false;
      made.input.setAttribute("aria-invalid", "true");
      show(problem, failure(words(error)));
      made.input.focus();
    }
  };
  made.input.setAttribute("aria-label", called);
  made.input.addEventListener("keydown", (/** @type {any} */ event) => keyOfField(event, save, close));
  made.input.addEventListener("blur", () => setTimeout(() => document.activeElement !== made.input && element.isConnected && element.contains(made.input) && save(), 0));
  element.classList.add("editing");
  show(element, made.input, made.list, problem);
  made.input.focus();
  /** @type {HTMLInputElement} */ (made.input).select?.();
}

/** @param {KeyboardEvent} event @param {() => void} save @param {() => void} close */
function keyOfField(event, save, close) {
  if (event.key === "Escape") {
    close();
  } else if (event.key === "Enter" && !event.shiftKey) {
    event.preventDefault();
    save();
  }
  event.stopPropagation();
}

/**
 * Writes a block of a spreadsheet over cells, from one on to the right and below.
 * @param {Sheet} sheet
 * @param {HTMLElement} element
 * @param {At} at
 * @param {string} block
 */
async function paste(sheet, element, at, block) {
  const lines = cellsOf(block);
  try {
    const { top, targets } = targetsOf(sheet, at, lines);
    /** @type {Record<string, Promise<any>>} */
    const found = {};
    const changes = await Promise.all(
      lines.map(async (line, index) => {
        const of = sheet.rows[top + index];
        const set = await Promise.all(line.map(async (text, column) => [targets[column].name, await pasted(sheet, targets[column], text, found)]));
        return { ...identity(sheet.table, of), ...Object.fromEntries(set) };
      }),
    );
    await write(sheet, changes, `${counted(lines.flat().length, "cell")} pasted.`);
  } catch (error) {
    toast(words(error).message);
    element.focus();
  }
}

/**
 * Returns the first row and the columns over which a block is pasted.
 * @param {Sheet} sheet
 * @param {At} at
 * @param {string[][]} lines
 */
function targetsOf({ table, rows, columns }, { row, column }, lines) {
  const key = keyOf(table);
  // The rows may have been read again since the cell was drawn.
  const [top, left] = [rows.findIndex((it) => it[key] === row[key]), columns.indexOf(column)];
  if (top < 0 || left < 0) {
    throw new Error("The cell is no longer on this page. Nothing was written.");
  }
  const width = Math.max(...lines.map((line) => line.length));
  if (top + lines.length > rows.length || left + width > columns.length) {
    throw new Error(`The block has ${lines.length} × ${width} cells, which is more than there are below and right of this one. Nothing was written.`);
  }
  const targets = columns.slice(left, left + width);
  const fixed = targets.find((it) => isFixed(table, it));
  if (fixed) {
    throw new Error(`The column ${fixed.name} is not changed by hand. Nothing was written.`);
  }
  return { top, targets };
}

/** @param {Sheet} sheet @param {Column} column @param {string} text @param {Record<string, Promise<any>>} found keys, by what was pasted for them */
async function pasted({ all }, column, text, found) {
  const other = all.find((it) => it.name === column.foreign_key_table_name);
  return other && text !== "" ? (found[`${other.name} ${text}`] ??= keyFor(other, text)) : parsed(column, text);
}
