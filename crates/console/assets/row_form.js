// A form for one row: a field for each column, problems beside the fields that they concern.

import { failure, h, once, paused, show } from "./dom.js";
import { stringify } from "./exact.js";
import { address } from "./state.js";
import { edited, identity, keyFor, keyOf, labelOf, parsed, read, title, undoable, writeRows, written } from "./tables.js";

/** Most rows of another table that a field proposes. */
const PROPOSED = 50;

/** Pause after a letter before rows are looked for, in ms. */
const PAUSE = 150;

/** What to say of a row that somebody else changed since it was shown, by the code of the problem. */
const IN_THE_MEANTIME = new Map([
  ["changed_since", "The row has been changed in the meantime. Load the page again to see it, then change it."],
  ["row_not_found", "The row has been deleted in the meantime."],
]);

/** Numbers the lists that fields propose from. */
let lists = 0;

/**
 * The text of a value in a field.
 * @param {Column} column
 * @param {any} value
 */
function textOf(column, value) {
  if (value === null || value === undefined) {
    return "";
  }
  return column.data_type === "json" ? stringify(value) : String(value);
}

/**
 * A field, and what it holds; rows are looked up by their names.
 * @param {Column} column
 * @param {Table[]} all
 * @param {any} value
 * @param {string | undefined} name of the row that the value refers to
 */
export function field(column, all, value, name) {
  const text = name ?? textOf(column, value);
  const other = all.find((it) => it.name === column.foreign_key_table_name);
  if (other) {
    return reference(other, value, text);
  }
  if (column.data_type === "boolean") {
    const options = ["", "true", "false"].map((it) => h("option", { value: it, selected: it === text }, it || "–"));
    const input = h("select", null, options);
    return { input, list: null, value: async () => parsed(column, input.value) };
  }
  // A field of one line would drop the line breaks.
  const isLong = column.data_type === "text" || column.data_type === "json" || /[\r\n]/.test(text);
  const kind = column.data_type === "date" ? { type: "date" } : {};
  const hint = column.data_type === "datetime" ? { placeholder: "2026-03-01T12:00:00Z" } : {};
  const mode = ["integer", "float"].includes(column.data_type) ? { inputmode: "decimal" } : {};
  const input = /** @type {HTMLInputElement | HTMLTextAreaElement} */ (
    h(isLong ? "textarea" : "input", { ...(isLong ? { rows: "2" } : kind), ...hint, ...mode })
  );
  input.defaultValue = text;
  return { input, list: null, value: async () => parsed(column, isLong ? edited(text, input.value) : input.value) };
}

/**
 * A field for the name of a row of another table.
 * @param {Table} other
 * @param {any} value
 * @param {string} text
 */
export function reference(other, value, text) {
  const [key, label] = [keyOf(other), labelOf(other)];
  const list = h("datalist", { id: `proposed-${++lists}` });
  const input = h("input", { list: list.id, autocomplete: "off", placeholder: `${label} of the ${other.name}` });
  input.defaultValue = text;
  // Namesakes are told apart by their first values, and chosen by their keys.
  const more = written(other).map((it) => it.name).filter((it) => it !== key && it !== label).slice(0, 3);
  const isText = ["string", "text"].includes(other.columns.find((it) => it.name === label)?.data_type ?? "");
  const propose = async () => {
    const filters = isText && input.value && input.value !== text ? { [`${label}__contains`]: input.value } : {};
    const { body } = await read(other, { filters, columns: [...new Set([key, label, ...more])], limit: PROPOSED, order_by: [label] });
    const names = body.map((/** @type {any} */ row) => String(row[label] ?? ""));
    const option = (/** @type {any} */ row) => {
      const isOnly = names.filter((/** @type {string} */ it) => it === String(row[label] ?? "")).length === 1;
      return h("option", { value: isOnly ? row[label] : row[key] }, isOnly ? null : [label, ...more].map((it) => row[it]).filter((it) => it !== null && typeof it !== "object").join(" · "));
    };
    show(list, ...body.map(option));
  };
  // Without proposals the name can still be written.
  const look = () => propose().catch(() => {});
  input.addEventListener("input", paused(PAUSE, look));
  look();
  const held = async () => {
    if (input.value === "") {
      return null;
    }
    return input.value === text && value !== undefined && value !== null ? value : keyFor(other, input.value);
  };
  return { input, list, value: held };
}

/** @typedef {{column: Column, value: () => Promise<any>, before: string, input: HTMLInputElement, problem: HTMLElement, element: HTMLElement}} RowField */

/**
 * @param {Table} table
 * @param {Table[]} all
 * @param {any | null} row the row to change, null for a new one
 * @param {Map<string, Map<any, string>>} names of the rows that it refers to
 * @param {(key: any) => void} done
 */
export function rowForm(table, all, row, names, done) {
  const key = keyOf(table);
  const isGenerated = key === "id" && row === null;
  const columns = written(table).filter((it) => !(it.name === key && (row !== null || isGenerated)));
  const told = h("div", { "aria-live": "polite" });
  /** @type {RowField[]} */
  const fields = columns.map((column) => {
    const value = row ? row[column.name] : column.default;
    const made = field(column, all, value, names.get(column.name)?.get(value));
    const problem = h("small", { class: "failure" });
    const needed = column.is_nullable || column.default !== null ? null : " (required)";
    const element = h("label", null, h("span", null, title(table, column.name), needed), made.input, made.list, problem);
    return { column, value: made.value, before: made.input.value, input: /** @type {HTMLInputElement} */ (made.input), problem, element };
  });
  const go = h("button", { class: "primary" }, row ? "Save the change" : "Add the row");
  const submit = once(go, told, async () => {
    for (const it of fields) {
      show(it.problem);
      it.input.removeAttribute("aria-invalid");
    }
    try {
      const result = await writeRows(table, row ? "update" : "insert", [await valuesOf(table, row, fields)]);
      const leave = () => (location.hash = address("tables", table.name));
      undoable(row ? "The change is saved." : "The row is added.", result.job_execution_id, row ? () => done(row[key]) : leave);
      done(result.tables[0].ids[0]);
    } catch (error) {
      tell(error, row !== null, fields, told);
      return false;
    }
  });
  return h(
    "form",
    { class: "row-form", submit },
    h("div", { class: "fields" }, fields.map((it) => it.element)),
    h("p", { class: "pages" }, go),
    told,
  );
}

/**
 * What is written of a row. A new one takes the default of a column whose field is left empty, a change only what was changed.
 * @param {Table} table
 * @param {any | null} row
 * @param {RowField[]} fields
 */
async function valuesOf(table, row, fields) {
  /** @type {Record<string, any>} */
  const values = row ? identity(table, row) : {};
  const given = fields.filter((it) => (row ? it.input.value !== it.before : it.input.value.trim() !== ""));
  if (row && given.length === 0) {
    throw new Error("Nothing was changed.");
  }
  for (const it of given) {
    values[it.column.name] = await it.value().catch((/** @type {any} */ error) => {
      throw { problems: [{ path: `tables[0].rows[0].${it.column.name}`, message: error.message }] };
    });
  }
  return values;
}

/**
 * Says why nothing was written: beside the fields that the problems concern, or below them all.
 * @param {any} error
 * @param {boolean} isChange
 * @param {RowField[]} fields
 * @param {HTMLElement} told
 */
function tell(error, isChange, fields, told) {
  /** @type {any[]} */
  const problems = error.problems ?? [];
  const changed = problems.map((problem) => IN_THE_MEANTIME.get(problem.code)).find(Boolean);
  if (isChange && changed) {
    show(told, failure(changed));
    return;
  }
  const left = problems.filter((problem) => {
    const of = fields.find((it) => problem.path === `tables[0].rows[0].${it.column.name}`);
    if (of) {
      show(of.problem, problem.message);
      of.input.setAttribute("aria-invalid", "true");
      of.input.focus();
    }
    return !of;
  });
  show(told, problems.length > 0 && left.length === 0 ? failure("Nothing was written. See the fields.") : failure(error));
}
