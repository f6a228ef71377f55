// Tables: what there is, and the rows of one.

import { cells } from "../cells.js";
import { check, failure, folded, form, h, input, loaded, opens, show, titled } from "../dom.js";
import { isNumber } from "../exact.js";
import { filterBar, filters } from "../filters.js";
import { instant, text } from "../format.js";
import { grid } from "../grid.js";
import { PAGE, list, watched, writesTo } from "../list.js";
import { picture } from "../picture.js";
import { may, mayWrite } from "../rights.js";
import { rowForm } from "../row_form.js";
import { selection } from "../selection.js";
import { address, change, isFiltered, parts, values } from "../state.js";
import { saveView } from "../views.js";
import { cellOf, hasRows, isNumeric, keyOf, labelOf, named, names, nonempty, read, rowLink, schema, title, written } from "../tables.js";
import { alterTable } from "./alter.js";
import { importForm } from "./imports.js";
import { definition } from "./definition.js";
import { row } from "./rows.js";

/** The tables, as a picture and as lists. */
export function tables() {
  const define = may("admin") ? folded("Define a table", () => loaded("Reading the tables", async () => definition(await schema()))) : null;
  const place = watched("Reading the tables", (type) => ["table.changed", "data.written"].includes(type), async () => {
    const all = await schema();
    const line = (/** @type {Table} */ table) => [
      h("a", { href: `#/tables/${encodeURIComponent(table.name)}` }, table.name),
      table.semantic_category,
      table.row_count_estimate,
      written(table).length,
      table.description ?? "",
    ];
    const own = all.filter((table) => table.id !== null);
    const core = all.filter((table) => table.id === null);
    const hint = define ? ["No table yet. A script can define them, too. ", opens("Define the first table", define)] : "No table yet. An administrator defines them.";
    return h(
      "div",
      null,
      own.length ? picture(all) : null,
      grid(["Table", "Kind", "Rows or points (about)", "Columns", "Description"], own.map(line), hint),
      h("h2", null, "Core tables"),
      grid(["Table", "Kind", "Rows (about)", "Columns", "Description"], core.map(line), "None.", "Core tables"),
    );
  });
  return [h("h1", null, "Tables"), define ?? "", place];
}

/** The rows of a table, or one of them: `name`, or `name/key`. @param {string} address */
export function table(address) {
  const at = address.indexOf("/");
  if (at >= 0) {
    return row(address.slice(0, at), address.slice(at + 1));
  }
  titled(address);
  const place = loaded("Reading the table", async (draw) => {
    const all = await schema();
    return rows(named(all, address), all, draw);
  });
  return [h("p", { class: "crumbs" }, h("a", { href: "#/tables" }, "← Tables")), h("h1", null, address), place];
}

/** Columns that are shown unless others were chosen. @param {Table} found */
function usual(found) {
  const names = written(found).map((it) => it.name);
  const key = keyOf(found);
  return key === "id" && labelOf(found) !== key ? names.filter((it) => it !== key) : names;
}

/** The moment whose rows are shown; null for now. */
function asOf() {
  return values().get("_as_of");
}

/** @typedef {ReturnType<typeof sheetOf>} Sheet */

/**
 * The cells of the rows: which columns are shown, what stands in each, what can be chosen and changed.
 * @param {Table} found
 * @param {Table[]} all
 * @param {() => void} again reads the rows once more
 */
function sheetOf(found, all, again) {
  const given = values().get("_columns")?.split(",").filter((name) => found.columns.some((it) => it.name === name));
  const chosen = new Set(given?.length ? given : usual(found));
  const [key, label] = [keyOf(found), labelOf(found)];
  const isRaw = found.semantic_category === "raw";
  const isWritable = hasRows(found) && mayWrite(found) && !asOf();
  const shown = () => found.columns.filter((it) => chosen.has(it.name));
  /** @type {Map<string, Map<any, string>>} */
  let known = new Map();
  const picked = isRaw || !hasRows(found) ? null : selection({ table: found, all, isWritable, asOf, changed: again });
  const valueOf = (/** @type {any} */ it, /** @type {Column} */ column) => {
    const value = it[column.name];
    if (!isRaw && value !== null && (column.name === label || column.name === key)) {
      return h("a", { href: rowLink(found.name, it[key]) }, nonempty(value));
    }
    const cell = cellOf(column, value, known);
    return isNumber(cell) ? text(cell) : cell;
  };
  const content = (/** @type {any} */ it, /** @type {Column} */ column) =>
    picked && column === shown()[0] ? h("span", { class: "picked" }, picked.box(it), valueOf(it, column)) : valueOf(it, column);
  const sheet = isWritable ? cells({ table: found, all, content, name: (it, column) => known.get(column)?.get(it[column]), changed: again }) : null;
  return {
    chosen,
    isRaw,
    isWritable,
    picked,
    /** Names of the columns that are read. */
    needed: () => (isRaw ? shown().map((it) => it.name) : [...new Set([key, ...(picked ? ["updated_at", label] : []), ...shown().map((it) => it.name)])]),
    columns: () => shown().map((it, index) => (picked && index === 0 ? h("span", { class: "picked" }, picked.every, header(found, it.name, again)) : header(found, it.name, again))),
    row: (/** @type {any} */ it) => shown().map((column) => (sheet ? sheet.cell(it, column) : shownCell(content(it, column), it[column.name], column))),
    prepare: async (/** @type {any[]} */ lines) => {
      known = await names({ ...found, columns: shown() }, all, lines, asOf());
      sheet?.begin(lines, shown());
      picked?.begin(lines);
    },
  };
}

/** The head of a column, which sorts by it. @param {Table} found @param {string} name @param {() => void} again */
function header(found, name, again) {
  const order = values().get("_sort") ?? "";
  const mark = order === name ? " ↑" : order === `-${name}` ? " ↓" : "";
  const sort = () => {
    // The address is ahead of what is shown while rows are read.
    const order = values().get("_sort") ?? "";
    change({ _sort: order === name ? `-${name}` : order === `-${name}` ? null : name, _page: null }, true);
    again();
  };
  return h("button", { type: "button", class: "plain", click: sort, title: "Sort" }, title(found, name) + mark);
}

/**
 * A page of the rows.
 * @param {Table} found
 * @param {Table[]} all
 * @param {string[]} needed
 * @param {string | null} cursor
 */
async function page(found, all, needed, cursor) {
  const isColumn = (/** @type {string | undefined} */ name) => found.columns.some((it) => it.name === name);
  const sort = values().get("_sort");
  // A column of the address may be deleted in the meantime.
  const order = isColumn(sort?.replace(/^-/, "")) ? { order_by: [sort] } : {};
  return read(found, { filters: await filters(found, all), limit: PAGE, columns: needed.filter(isColumn), ...order, ...(cursor ? { cursor } : {}), ...(asOf() ? { as_of: asOf() } : {}) });
}

/**
 * A filter, an order, chosen columns, and pages; all of them in the address.
 * @param {Table} found
 * @param {Table[]} all
 * @param {() => void} draw draws the page again
 */
function rows(found, all, draw) {
  const sheet = sheetOf(found, all, () => listed.again());
  const { isRaw, isWritable } = sheet;
  const added = (/** @type {any} */ id) => (location.hash = rowLink(found.name, id));
  const adding = isWritable ? folded("Add a row", () => rowForm(found, all, null, new Map(), added)) : null;
  /** @returns {Node} */
  const importer = () =>
    importForm(found, all, () => {
      change({ _import: null });
      listed.first();
    });
  const importing = isWritable ? folded("Import a file", importer) : null;
  // A file's page leads here with the file.
  importing?.toggleAttribute("open", values().has("_import"));
  // Cells show names of the rows that are referred to.
  const writes = writesTo(found.name, ...found.columns.map((it) => it.foreign_key_table_name));
  const listed = list({
    reason: "Reading rows",
    one: isRaw ? "point" : "row",
    total: () => (asOf() ? null : found.row_count_estimate),
    columns: sheet.columns,
    read: (cursor) => page(found, all, sheet.needed(), cursor),
    prepare: sheet.prepare,
    row: sheet.row,
    empty: () => (isFiltered() ? "No row meets the condition." : adding && importing ? ["No rows yet. ", opens("Add the first row", adding), " ", opens("Fill it from a file", importing)] : isRaw ? "No points yet. Scripts and readers of instruments' files write them." : "No rows yet."),
    // What was then does not change.
    live: (type, data) => !asOf() && writes(type, data),
    retry: draw,
  });
  return h(
    "div",
    null,
    found.description ? h("p", null, found.description) : null,
    isRaw ? h("p", null, h("a", { href: `#/plates/${encodeURIComponent(found.name)}` }, "Draw the curves")) : null,
    moment(found),
    filterBar(found, all, listed.again),
    h("div", { class: "tools" }, columnChoice(found, sheet.chosen, listed.again), adding, importing, ...toolsOf(found, all, draw)),
    isWritable ? h("p", { class: "quiet" }, "Double-click a cell, or press Enter in it, to change it. A block copied from a spreadsheet is pasted from the cell that has the focus.") : null,
    sheet.picked?.bar,
    listed.place,
  );
}

/**
 * What concerns the whole table: an earlier moment, its definition, the view, and files of it.
 * @param {Table} found
 * @param {Table[]} all
 * @param {() => void} draw draws the page again
 */
function toolsOf(found, all, draw) {
  const altered = (/** @type {string} */ now) => {
    if (now === found.name) {
      draw();
    } else {
      location.hash = address("tables", now);
    }
  };
  const exported = (/** @type {string} */ format, label = format.toUpperCase()) =>
    h("a", { href: `api/v1/tables/${encodeURIComponent(found.name)}/export?format=${format}${asOf() ? `&as_of=${encodeURIComponent(String(asOf()))}` : ""}`, download: true }, label);
  return [
    found.history && hasRows(found) ? folded("As it was at…", momentForm) : null,
    found.id !== null && may("admin") && !asOf() ? folded("Change the table", () => alterTable(found, all, altered)) : null,
    saveView(),
    h("p", { class: "quiet" }, found.id === null ? null : ["The whole table as ", exported("csv"), " ", exported("csv&neutralize_formulas=true", "CSV for spreadsheets"), " ", exported("parquet"), " ", exported("arrow")]),
  ];
}

/** Says that the rows are those of an earlier moment. @param {Table} found */
function moment(found) {
  const at = asOf();
  if (!at) {
    return null;
  }
  const now = address("tables", found.name, { ...Object.fromEntries([...values()].filter(([name]) => name !== "_as_of" && name !== "_page")) });
  return h("p", { class: "note warns", role: "status" }, `The rows as they stood at ${instant(at)}, with the columns of today. `, h("a", { href: now }, "The rows of now"));
}

/** A form for an earlier moment, in the browser's time zone. */
function momentForm() {
  const at = input({ type: "datetime-local", step: "1", required: true });
  const show_ = async () => {
    const { one, values: all } = parts();
    location.hash = address("tables", one, { ...Object.fromEntries([...all].filter(([name]) => name !== "_page")), _as_of: new Date(at.value).toISOString() });
  };
  return form([["Moment", at]], "Show the rows of then", show_);
}

/**
 * A cell that nobody changes.
 * @param {Node | string} content
 * @param {any} value
 * @param {Column} column
 */
function shownCell(content, value, column) {
  return h("td", { class: isNumeric(column) ? "number" : false, title: typeof value === "number" || column.data_type === "datetime" ? String(value ?? "") : false }, content);
}

/**
 * @param {Table} found
 * @param {Set<string>} chosen
 * @param {() => void} changed
 */
function columnChoice(found, chosen, changed) {
  const told = h("div", { "aria-live": "polite" });
  const box = (/** @type {string} */ name) => {
    const { box: input, field } = check(name, { checked: chosen.has(name) });
    input.addEventListener("change", () => {
      if (!input.checked && chosen.size === 1) {
        input.checked = true;
        show(told, failure("One column has to stay."));
        return;
      }
      show(told);
      chosen[input.checked ? "add" : "delete"](name);
      const order = found.columns.map((it) => it.name).filter((it) => chosen.has(it));
      change({ _columns: order.join() === usual(found).join() ? null : order.join() });
      changed();
    });
    return field;
  };
  return h("details", null, h("summary", null, "Columns"), h("div", { class: "fields" }, found.columns.map((it) => box(it.name))), told);
}
