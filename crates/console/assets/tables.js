// What pages know of tables: the schema, references, keys, values of columns.

import { call, get, post } from "./api.js";
import { h, toast } from "./dom.js";
import { isNumber, numberOf, parse } from "./exact.js";
import { shown } from "./format.js";

/** @returns {Promise<Table[]>} */
export function schema() {
  return get("/tools/schema");
}

/**
 * @param {Table[]} all
 * @param {string | null} name
 */
export function named(all, name) {
  const found = all.find((table) => table.name === name);
  if (!found) {
    throw new Error(`There is no table "${name}".`);
  }
  return found;
}

/** The columns that people write; the server sets the others. @param {Table} table */
export function written(table) {
  return table.columns.filter((column) => !column.is_system);
}

/**
 * What people call a column, with its unit.
 * @param {Table} table
 * @param {string} name
 */
export function title(table, name) {
  const column = table.columns.find((it) => it.name === name);
  const unit = column?.unit ? ` (${column.unit})` : "";
  return (column?.label ?? name) + unit;
}

/** @param {Table} table */
export function keyOf(table) {
  return table.columns.find((column) => column.is_primary_key)?.name ?? "id";
}

/** The column by which people know the rows: a unique text, else one called name, else the key. @param {Table} table */
export function labelOf(table) {
  const texts = written(table).filter((column) => column.data_type === "string" && !column.is_foreign_key);
  const own = texts.filter((column) => !column.is_primary_key);
  const best = own.find((column) => column.is_unique) ?? own.find((column) => column.name === "name");
  return best?.name ?? keyOf(table);
}

/** References to tables that the person sees. @param {Table} table */
export function references(table) {
  return table.columns.filter((column) => column.foreign_key_table_name !== null);
}

/** The column of a table of wells that says on which plate a well is. @param {Table} wells */
export function plateColumn(wells) {
  const isPlate = (/** @type {string | null} */ text) => /plate|carrier/i.test(text ?? "");
  const own = written(wells).filter((it) => !it.is_primary_key && !it.is_unique);
  return own.find((it) => isPlate(it.foreign_key_table_name)) ?? own.find((it) => isPlate(it.name) && ["string", "integer", "text"].includes(it.data_type)) ?? null;
}

/**
 * Whether a table's rows are written one by one: those of curves are not, and most core tables are views of what the platform keeps.
 * @param {Table} table
 */
export function hasRows({ semantic_category: kind, name }) {
  return kind === "curated" || ["experiment", "carrier", "operation"].includes(name);
}

/** Most rows of one name that are told apart. */
const NAMESAKES = 1000;

/**
 * The rows that a person means by what cells show of them, or by their key.
 * @param {Table} table
 * @param {string} text
 * @returns {Promise<any[]>} their keys
 */
export async function keysOf(table, text) {
  const [key, label] = [keyOf(table), labelOf(table)];
  const find = async (/** @type {string} */ name) => {
    const column = /** @type {Column} */ (table.columns.find((it) => it.name === name));
    const { body } = await read(table, { filters: { [name]: parsed(column, text) }, columns: [key], limit: NAMESAKES });
    return body.map((/** @type {any} */ row) => row[key]);
  };
  const found = await find(label);
  if (found.length > 0 || label === key) {
    return found;
  }
  return find(key).catch((error) => {
    // A text that cannot be a key is none.
    if ([undefined, 400, 422].includes(error.status)) {
      return [];
    }
    throw error;
  });
}

/**
 * The key of the one row that a person means.
 * @param {Table} table
 * @param {string} text
 */
export async function keyFor(table, text) {
  const found = await keysOf(table, text);
  if (found.length !== 1) {
    throw new Error(found.length ? `Several rows of ${table.name} are called "${text}": choose one of those proposed, or write its key.` : `No row of ${table.name} is called "${text}", or has that key.`);
  }
  return found[0];
}

/** What a link to a row is called, which needs a text. @param {any} name */
export function nonempty(name) {
  return String(name).trim() === "" ? "(empty)" : name;
}

/** @param {Column} column */
export function isNumeric(column) {
  return ["integer", "float"].includes(column.data_type) && !column.is_foreign_key;
}

/**
 * Address of a row's page.
 * @param {string} table
 * @param {unknown} key
 */
export function rowLink(table, key) {
  return `#/tables/${encodeURIComponent(`${table}/${key}`)}`;
}

/**
 * A page of rows.
 * @param {Table} table
 * @param {Record<string, any>} body
 * @param {string} [address] of a further page
 */
export function read(table, body, address = "/tools/read") {
  const type = table.semantic_category === "core" ? "core-table" : "table";
  return call("POST", address, { target_name: table.name, target_type: type, ...body });
}

/**
 * What a change of a row says of it: its key, and since when it is as the person saw it.
 * @param {Table} table
 * @param {any} row
 */
export function identity(table, row) {
  const key = keyOf(table);
  return { [key]: row[key], ...(row.updated_at ? { _if_updated_at: row.updated_at } : {}) };
}

/**
 * Writes rows of a table as a change made here. Deletions include the rows that refer to them.
 * @param {Table} table
 * @param {"insert" | "update" | "delete"} mode
 * @param {any[]} rows
 * @param {{dry_run?: boolean, return_rows?: boolean}} [options]
 */
export function writeRows(table, mode, rows, options = {}) {
  const cascade = mode === "delete" ? { cascade: true } : {};
  return post("/data/write", { job_name: "Console", ...options, tables: [{ table: table.name, mode, rows, ...cascade }] });
}

/**
 * What a deletion deletes besides its rows, in words.
 * @param {Table} table
 * @param {any[]} rows
 * @param {string} them what is referred to
 */
export async function alsoDeleted(table, rows, them) {
  const { cascade_deleted: others = {} } = (await writeRows(table, "delete", rows, { dry_run: true })).tables[0];
  const more = Object.entries(others).map(([other, count]) => `${count} of ${other}`);
  return more.length ? ` and what refers to ${them}: ${more.join(", ")}` : "";
}

/** Undoes an execution, updates included. @param {string} execution */
export function restore(execution) {
  return post(`/job-executions/${execution}/revert`, { restore: true });
}

/**
 * Says what a write did, and offers to undo it.
 * @param {string} words
 * @param {string} execution
 * @param {() => void} done
 */
export function undoable(words, execution, done) {
  toast(words, async () => {
    await restore(execution);
    done();
  });
}

/**
 * The result of a statement.
 * @param {string} query
 * @param {any[]} [params]
 * @returns {Promise<{columns: string[], data: any[][]}>}
 */
export function sql(query, params = []) {
  return post("/tools/query", { query, params });
}

/** A name as SQL has it. @param {string} name */
export function quoted(name) {
  return `"${name.replaceAll('"', '""')}"`;
}

/**
 * Names of the rows that rows refer to, by the column and then the key.
 * @param {Table} table
 * @param {Table[]} all
 * @param {any[]} rows
 * @param {string | null} [asOf] moment of which the names are
 * @returns {Promise<Map<string, Map<any, string>>>}
 */
export async function names(table, all, rows, asOf = null) {
  const found = references(table).map(async (column) => {
    const other = named(all, column.foreign_key_table_name);
    const [key, label] = [keyOf(other), labelOf(other)];
    const keys = [...new Set(rows.map((row) => row[column.name]).filter((it) => it !== null && it !== undefined))];
    /** @type {Map<any, string>} */
    const known = new Map();
    if (keys.length > 0 && label !== key) {
      const { body } = await read(other, { filters: { [`${key}__in`]: keys }, columns: [key, label], limit: keys.length, ...(asOf && other.history ? { as_of: asOf } : {}) });
      for (const row of body) {
        known.set(row[key], row[label] ?? row[key]);
      }
    }
    return /** @type {const} */ ([column.name, known]);
  });
  return new Map(await Promise.all(found));
}

/**
 * A text that was edited in a field, which gives every line break as \n: what was not changed keeps its own.
 * @param {string} before
 * @param {string} after
 */
export function edited(before, after) {
  // The length of the text before each letter that the field shows.
  const starts = [...before.matchAll(/\r\n|[^]/g)].map((it) => it.index);
  const shown = before.replace(/\r\n?/g, "\n");
  let [from, to] = [0, 0];
  while (from < Math.min(shown.length, after.length) && shown[from] === after[from]) {
    from += 1;
  }
  while (to < Math.min(shown.length, after.length) - from && shown.at(-1 - to) === after.at(-1 - to)) {
    to += 1;
  }
  const at = (/** @type {number} */ index) => starts[index] ?? before.length;
  return before.slice(0, at(from)) + after.slice(from, after.length - to) + before.slice(at(shown.length - to));
}

/**
 * A value of a row as a page lists it: a reference by the name of its row, a number as it is.
 * @param {Column | undefined} column
 * @param {any} value
 * @param {Map<string, Map<any, string>>} known names of the rows that are referred to
 */
export function cellOf(column, value, known) {
  if (column && column.foreign_key_table_name !== null && value !== null && value !== undefined) {
    return h("a", { href: rowLink(column.foreign_key_table_name, value) }, nonempty(known.get(column.name)?.get(value) ?? value));
  }
  return isNumber(value) ? value : shown(value, column?.data_type);
}

/**
 * A value as the column has it, from what a person wrote. Nothing written is null.
 * @param {{name: string, data_type: string}} column
 * @param {string} text
 */
export function parsed(column, text) {
  const isText = ["string", "text"].includes(column.data_type);
  if (text === "" || (!isText && text.trim() === "")) {
    return null;
  }
  switch (column.data_type) {
    case "integer":
    case "float": {
      const isWhole = column.data_type === "integer";
      const number = numberOf(text, isWhole);
      if (Number.isNaN(number)) {
        const kind = isWhole ? "whole numbers" : "numbers whose size is 0 or from 5e-324 to 1.7e308";
        throw new Error(`The column ${column.name} holds ${kind}, and "${text}" is none. Numbers have a decimal point.`);
      }
      return number;
    }
    case "boolean":
      if (text !== "true" && text !== "false") {
        throw new Error(`The column ${column.name} holds true or false.`);
      }
      return text === "true";
    case "json":
      try {
        return parse(text);
      } catch {
        throw new Error(`The column ${column.name} holds JSON; a text needs quotes: "…".`);
      }
    default:
      return text;
  }
}
