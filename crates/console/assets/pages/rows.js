// A row: its values, its curves, and everything that refers to it.

import { every, post } from "../api.js";
import { axes, axisOf, series } from "../curves.js";
import { destroy, failure, folded, h, load, show, titled, toast } from "../dom.js";
import { isNumber } from "../exact.js";
import { counted, time } from "../format.js";
import { grid } from "../grid.js";
import { watched, watching, writesTo } from "../list.js";
import { plot, plotTools } from "../plot.js";
import { mayLeave } from "../guard.js";
import { mayWrite } from "../rights.js";
import { rowForm } from "../row_form.js";
import { saveValues } from "../saving.js";
import { address } from "../state.js";
import { alsoDeleted, cellOf, hasRows, identity, keyOf, labelOf, named, names, nonempty, parsed, plateColumn, read, references, rowLink, schema, title as nameOf, undoable, writeRows, written } from "../tables.js";
import { executionNames } from "./executions.js";

/** Rows shown of each table that refers to the row. */
const REFERRING = 20;

/**
 * The page of a row.
 * @param {string} tableName
 * @param {string} id
 */
export function row(tableName, id) {
  const title = h("h1", null, id);
  const more = h("div", null);
  const place = watched("Reading the row", writesTo(tableName), async (again) => {
    const all = await schema();
    const table = named(all, tableName);
    const key = /** @type {Column} */ (table.columns.find((it) => it.name === keyOf(table)));
    const wanted = parsed(key, id);
    const { body } = await read(table, { filters: { [key.name]: wanted } });
    if (body.length === 0) {
      throw new Error(`There is no row ${id} in ${tableName}.`);
    }
    const name = String(nonempty(body[0][labelOf(table)] ?? id));
    show(title, name);
    titled(name);
    if (!more.hasChildNodes()) {
      show(more, ...referring(table, all, body[0][key.name]));
    }
    return one(table, all, body[0], await names(table, all, body), again);
  });
  const list = h("a", { href: `#/tables/${encodeURIComponent(tableName)}` }, `← ${tableName}`);
  return [h("p", { class: "crumbs" }, list), title, place, more];
}

/**
 * @param {Table} table
 * @param {Table[]} all
 * @param {any} found
 * @param {Map<string, Map<any, string>>} known
 * @param {() => void} again
 */
function one(table, all, found, known, again) {
  const shown = (/** @type {Column} */ column) => {
    const value = found[column.name];
    if (value === null || value === undefined) {
      return h("span", { class: "quiet" }, "–");
    }
    return exact(column, value, known);
  };
  const values = written(table).map((column) => h("div", null, h("dt", null, nameOf(table, column.name)), h("dd", null, shown(column))));
  const isChanged = hasRows(table) && mayWrite(table);
  return h("div", null, h("dl", null, values), origin(found), asPlate(table, all, found[keyOf(table)]), isChanged ? changes(table, all, found, known, again) : null);
}

/**
 * The curves of a row, the rows that refer to it, and its history, each of which follows events by itself.
 * @param {Table} table
 * @param {Table[]} all
 * @param {any} key
 */
function referring(table, all, key) {
  const from = all.flatMap((other) => references(other).flatMap((column) => (column.foreign_key_table_name === table.name ? [{ other, column }] : [])));
  const curves = from.filter(({ other }) => other.semantic_category === "raw");
  const rows = from.filter(({ other }) => other.semantic_category !== "raw");
  return [
    ...curves.map(({ other, column }) => curve(other, column, key)),
    ...rows.map(({ other, column }) => referringRows(other, all, column, key)),
    hasRows(table) ? history(table, all, key) : null,
  ];
}

/** Leads to the curves of a row that wells refer to as their plate. @param {Table} table @param {Table[]} all @param {any} key */
function asPlate(table, all, key) {
  const links = all.flatMap((curves) =>
    references(curves).flatMap((owner) => {
      const wells = curves.semantic_category === "raw" ? all.find((it) => it.name === owner.foreign_key_table_name) : undefined;
      const isPlate = wells && plateColumn(wells)?.foreign_key_table_name === table.name;
      return isPlate ? [" ", h("a", { href: address("plates", curves.name, { _of: owner.name, _plate: String(key) }) }, curves.name)] : [];
    }),
  );
  return links.length ? h("p", null, "The curves of its wells:", links) : null;
}

/** A value with all its digits. @param {Column | undefined} column @param {any} value @param {Map<string, Map<any, string>>} known */
function exact(column, value, known) {
  const cell = cellOf(column, value, known);
  return isNumber(cell) ? String(cell) : cell;
}

/** When a row was made and changed, and by what. @param {any} found */
function origin(found) {
  if (!found.created_at) {
    return null;
  }
  const place = h("span", null);
  const runs = [found.created_by_execution_id, found.updated_by_execution_id];
  const words = (/** @type {Map<string, string>} */ names) => {
    const by = (/** @type {string | null} */ run) => (run ? [" by ", h("a", { href: `#/executions/${run}` }, names.get(run) ?? "an execution")] : []);
    const changed = found.updated_at === found.created_at ? [] : [", changed ", time(found.updated_at), ...by(runs[1])];
    show(place, "Created ", time(found.created_at), ...by(runs[0]), ...changed, ".");
  };
  words(new Map());
  executionNames(runs).then(words, () => {});
  return h("p", { class: "quiet" }, place);
}

/**
 * Earlier versions of the row, read when they are asked for.
 * @param {Table} table
 * @param {Table[]} all
 * @param {any} key
 */
function history(table, all, key) {
  const path = `/tables/${encodeURIComponent(table.name)}/rows/${encodeURIComponent(String(key))}`;
  return folded("History", () =>
    watched("Reading the history", writesTo(table.name), async (again) => {
      const body = await every(`${path}/history`);
      const sides = body.flatMap((/** @type {any} */ it) => ["before", "after"].map((side) => Object.fromEntries(Object.entries(it.changed ?? {}).map(([name, change]) => [name, change[side]]))));
      const known = await names(table, all, sides).catch(() => new Map());
      const cell = (/** @type {string} */ name, /** @type {any} */ value) => (value === null || value === undefined ? h("span", { class: "quiet" }, "no value") : exact(table.columns.find((it) => it.name === name), value, known));
      const change = (/** @type {any} */ { operation }, /** @type {[string, any]} */ [name, { before, after }]) =>
        operation === "created" ? (after === null ? null : h("div", null, `${name}: `, cell(name, after))) : h("div", null, `${name}: `, h("del", { class: "taken" }, cell(name, before)), " → ", h("ins", { class: "added" }, cell(name, after)));
      const restoring = (/** @type {any} */ it) => {
        const set = async () => {
          await post(`${path}/restore`, { version: it.version });
          toast(`The row is as it was in version ${it.version}.`);
          again();
        };
        return it.version === body[0].version || it.operation === "deleted" ? "" : destroy("Restore", `Set the row back to version ${it.version}`, set);
      };
      const line = (/** @type {any} */ it) => [
        it.version,
        it.operation,
        time(it.at),
        h("span", null, Object.entries(it.changed ?? {}).map((each) => change(it, each))),
        it.execution ? h("a", { href: `#/executions/${it.execution.id}` }, it.execution.job_name) : "",
        it.started_by?.user?.name ?? "",
        ...(mayWrite(table) ? [restoring(it)] : []),
      ];
      return grid(["Version", "What", "When", "Values", "Execution", "By", ...(mayWrite(table) ? ["Restore"] : [])], body.map(line), "No earlier version is kept.", "History");
    }),
  );
}

/**
 * @param {Table} table
 * @param {Table[]} all
 * @param {any} found
 * @param {Map<string, Map<any, string>>} known
 * @param {() => void} again
 */
function changes(table, all, found, known, again) {
  const place = h("div", null);
  // What is typed into the form is asked about before it is replaced.
  const change = async () => (await mayLeave(place)) && show(place, rowForm(table, all, found, known, again));
  const key = found[keyOf(table)];
  const name = String(nonempty(found[labelOf(table)] ?? key));
  const rows = [identity(table, found)];
  const ask = async () => {
    if (!(await mayLeave(place))) {
      return;
    }
    try {
      const what = `Delete ${name}${await alsoDeleted(table, rows, "it")}`;
      const kept = h("p", { class: "asking" }, "The row's history keeps its values: a revert of the deletion that restores brings it back.");
      show(place, kept, h("button", { type: "button", class: "danger", click: remove }, what));
    } catch (error) {
      show(place, failure(error));
    }
  };
  const remove = async () => {
    try {
      const { job_execution_id: execution } = await writeRows(table, "delete", rows);
      undoable(`${name} is deleted.`, execution, () => (location.hash = rowLink(table.name, key)));
      location.hash = address("tables", table.name);
    } catch (error) {
      show(place, failure(error));
    }
  };
  return h(
    "div",
    null,
    h("p", { class: "pages" }, h("button", { type: "button", click: change }, "Change"), h("button", { type: "button", click: ask }, "Delete…")),
    place,
  );
}

/**
 * The row's curve in one table.
 * @param {Table} table
 * @param {Column} column
 * @param {any} key
 */
function curve(table, column, key) {
  const place = h("div", null);
  const { x, y, ys } = axes(table);
  const figure = plot(undefined, "small");
  const told = h("span", { class: "quiet told" });
  const shown = h("select", { "aria-label": "Column to draw", change: () => again() }, ys.map((it) => h("option", { selected: it === y }, it)));
  /** @type {{x: any[], y: any[], given: {x: any[], y: any[]}}} */
  let one = { x: [], y: [], given: { x: [], y: [] } };
  const again = () =>
    load(place, "Reading the curve", async () => {
      const wanted = shown.value;
      const [found] = await series(table, column.name, [key], x, wanted);
      if (wanted !== shown.value) {
        return null;
      }
      one = found;
      if (one.y.length === 0) {
        return h("p", { class: "empty" }, `No curve in ${table.name}.`);
      }
      figure.setAttribute("aria-label", `${shown.value} over ${x}`);
      const count = one.y.filter((value, index) => value !== null && one.x[index] !== null).length;
      const isRounded = [...one.given.x, ...one.given.y].some((value) => typeof value === "bigint");
      show(told, `${counted(count, "point")}${isRounded ? ", drawn without the last digits of long whole numbers" : ""}`);
      drawn();
      const values = () => saveValues([x, shown.value], one.given.x.map((at, index) => [at, one.given.y[index]]), `${table.name}.csv`);
      return h("div", null, plotTools([figure], table.name, values, told, ys.length > 1 ? shown : null), figure);
    });
  const drawn = () => {
    const axis = { title: nameOf(table, shown.value), type: /** @type {const} */ ("linear") };
    figure.draw([{ ...one, name: shown.value }], axisOf(table, x, [one]), axis).catch((error) => show(told, failure(error)));
  };
  if (y) {
    watching(place, again, writesTo(table.name));
  }
  return h("section", null, h("h2", null, h("a", { href: `#/plates/${table.name}` }, table.name)), place);
}

/**
 * Rows of a table that refer to the row.
 * @param {Table} table
 * @param {Table[]} all
 * @param {Column} column
 * @param {any} key
 */
function referringRows(table, all, column, key) {
  const place = watched("Reading rows", writesTo(table.name), async () => {
    const filters = { [column.name]: key };
    const { body } = await read(table, { filters, limit: REFERRING + 1 });
    const own = keyOf(table);
    const label = labelOf(table);
    const rest = written(table).filter((it) => ![own, label, column.name].includes(it.name));
    const known = await names({ ...table, columns: rest }, all, body).catch(() => new Map());
    const link = (/** @type {any} */ it) => h("a", { href: rowLink(table.name, it[own]) }, nonempty(it[label] ?? it[own]));
    const lines = body.slice(0, REFERRING).map((/** @type {any} */ it) => [link(it), ...rest.map((each) => cellOf(each, it[each.name], known))]);
    const shownAll = address("tables", table.name, { [column.name]: String(key) });
    return h(
      "div",
      null,
      grid([label, ...rest.map((it) => nameOf(table, it.name))], lines, `No row of ${table.name} refers to it.`, table.name),
      body.length > REFERRING ? h("p", null, h("a", { href: shownAll }, "All of them")) : null,
    );
  });
  return h("section", null, h("h2", null, `${table.name}, by ${column.name}`), place);
}
