// Further tables that the lines of an imported file fill: those to whose rows the rows of its own table refer.

import { checks, h, load, select } from "../dom.js";
import { mayWrite } from "../rights.js";
import { references, written } from "../tables.js";

/**
 * Tables that a table refers to, also through others; each comes after those that refer to it.
 * @param {Table} table
 * @param {Table[]} all
 */
function reachable(table, all) {
  const seen = new Set([table.name]);
  /** @type {Table[]} */
  const found = [];
  const visit = (/** @type {Table} */ from) => {
    for (const { foreign_key_table_name: name } of references(from)) {
      const other = all.find((it) => it.name === name && it.id !== null && it.semantic_category === "curated" && mayWrite(it));
      if (other && !seen.has(other.name)) {
        seen.add(other.name);
        visit(other);
        found.unshift(other);
      }
    }
  };
  visit(table);
  return found;
}

/** @typedef {Map<string, Record<string, string>>} Fields columns of the fields of the header, by table */

/**
 * What a person has chosen for the linked tables, and what follows from it.
 * @param {Table} table of the import
 * @param {Table[]} known
 */
function linking(table, known) {
  /** Columns by which rows are told apart, once a person chose them. @type {Map<string, string[]>} */
  const keys = new Map();
  /** References to tables, where a person chose one of several. @type {Map<string, string>} */
  const ways = new Map();
  /** Tables whose stored values win over those of the file. @type {Set<string>} */
  const filled = new Set();

  /** References to a table by those that are filled: the nearest one is last. @param {Table} other @param {Fields} fields */
  const waysTo = (other, fields) =>
    [table, ...known.slice(0, known.indexOf(other))]
      .filter((it) => it === table || fields.has(it.name))
      .flatMap((it) => references(it).filter((column) => column.foreign_key_table_name === other.name).map((column) => ({ of: it.name, reference: column.name, name: `${it.name} → ${column.name}` })));

  /** @param {Table} other @param {Fields} fields */
  const wayTo = (other, fields) => {
    const found = waysTo(other, fields);
    return found.find((it) => it.name === ways.get(other.name)) ?? found.at(-1);
  };

  /** Columns that may tell rows of a table apart, and those that do. @param {Table} other @param {Fields} fields */
  const keyOf = (other, fields) => {
    const linked = known.filter((it) => fields.has(it.name)).map((it) => wayTo(it, fields));
    const may = [...Object.values(fields.get(other.name) ?? {}), ...linked.filter((it) => it?.of === other.name).map((it) => String(it?.reference))];
    const own = other.columns.filter((it) => may.includes(it.name));
    const unique = own.find((it) => it.is_primary_key || it.is_unique);
    const usual = unique ? [unique] : own.filter((it) => it.data_type === "string" || it.is_foreign_key);
    const names = keys.get(other.name) ?? usual.map((it) => it.name);
    return { may, key: names.filter((it) => may.includes(it)) };
  };
  return { keys, ways, filled, waysTo, wayTo, keyOf };
}

/**
 * The choices of one linked table.
 * @param {ReturnType<typeof linking>} links
 * @param {Table} other
 * @param {Fields} fields
 * @param {() => void} draw draws the choices of all again
 */
function choicesOf({ keys, ways, filled, waysTo, wayTo, keyOf }, other, fields, draw) {
  const { may, key } = keyOf(other, fields);
  const same = checks(`Lines are one row of ${other.name} if they have the same`, may.map((it) => [it, it]), key, () => keys.set(other.name, same.value()));
  const turn = () => {
    ways.set(other.name, way.value);
    draw();
  };
  const way = select(waysTo(other, fields).map((it) => [it.name, it.name]), wayTo(other, fields)?.name, { change: turn });
  const fill = () => filled[match.value === "overwrite" ? "delete" : "add"](other.name);
  const match = select([["overwrite", "take the values of the file"], ["fill_missing", "fill what is empty"]], filled.has(other.name) ? "fill_missing" : "overwrite", { change: fill });
  same.field.append(way.length > 1 ? h("label", null, "Referred to by ", way) : "", h("label", null, "Rows that exist: ", match));
  return same.field;
}

/**
 * Choices of the linked tables of an import.
 * @param {Table} table of the import
 * @param {Table[]} all
 * @param {() => [string, string][]} chosen fields of the header, each with the value that was chosen for it
 */
export function linkedTables(table, all, chosen) {
  const known = reachable(table, all);
  const links = linking(table, known);
  const columns = known.flatMap((other) => written(other).map(({ name }) => ({ table: other.name, column: name })));
  const targets = new Map(columns.map((it) => [`${it.table}.${it.column}`, it]));
  /** Choices for a field of the header. */
  const choices = columns.map((it) => /** @type {[string, string]} */ ([`${it.table}.${it.column}`, `${it.table} → ${it.column}`]));
  const place = h("div", null);
  const given = () => {
    /** @type {Fields} */
    const found = new Map();
    for (const [header, value] of chosen()) {
      const target = targets.get(value);
      if (target) {
        found.set(target.table, { ...found.get(target.table), [header]: target.column });
      }
    }
    return found;
  };
  const draw = () =>
    load(place, "Looking at the tables", async () => {
      const fields = given();
      return h("div", null, known.filter((it) => fields.has(it.name)).map((it) => choicesOf(links, it, fields, draw)));
    });

  /** The linked tables as the import takes them: a referenced one before the one that refers to it. */
  const list = () => {
    const fields = given();
    const filled = known.filter((it) => fields.has(it.name)).reverse();
    return filled.map((other) => {
      const way = links.wayTo(other, fields);
      const { key } = links.keyOf(other, fields);
      if (!way) {
        throw new Error(`Neither ${table.name} nor another table of this import refers to ${other.name}: choose a column of a table that does.`);
      }
      if (key.length === 0) {
        throw new Error(`Choose what tells rows of ${other.name} apart.`);
      }
      return { table: other.name, columns: fields.get(other.name), key, of: way.of, reference: way.reference, on_match: links.filled.has(other.name) ? "fill_missing" : "overwrite" };
    });
  };
  return { choices, place, draw, list };
}
