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

/**
 * A filter, an order, chosen columns, and pages; all of them in the address.
 * @param {Table} found
 * @param {Table[]} all
 * @param {() => void} draw draws the page again
 */
function rows(found, all, draw) {
  const given = values().get("_columns")?.split(",").filter((name) => found.columns.some((it) => it.name === name));
  const chosen = new Set(given?.length ? given : usual(found));
  const key = keyOf(found);
  const label = labelOf(found);
  const isRaw = found.semantic_category === "raw";
  const isKept = hasRows(found);
  const asOf = () => values().get("_as_of");
  const isWritable = isKept && mayWrite(found) && !asOf();
  const shown = () => found.columns.filter((it) => chosen.has(it.name));
  const header = (/** @type {string} */ name) => {
    const order = values().get("_sort") ?? "";
    const mark = order === name ? " ↑" : order === `-${name}` ? " ↓" : "";
    const sort = () => {
      // The address is ahead of what is shown while rows are read.
      const order = values().get("_sort") ?? "";
      change({ _sort: order === name ? `-${name}` : order === `-${name}` ? null : name, _page: null }, true);
      listed.again();
    };
    return h("button", { type: "button", class: "plain", click: sort, title: "Sort" }, title(found, name) + mark);
  };
  /** @type {Map<string, Map<any, string>>} */
  let known = new Map();
  const picked = isRaw || !isKept ? null : selection({ table: found, all, isWritable, asOf, changed: () => listed.again() });
  const content = (/** @type {any} */ it, /** @type {Column} */ column) =>
    picked && column === shown()[0] ? h("span", { class: "picked" }, picked.box(it), valueOf(it, column)) : valueOf(it, column);
  const valueOf = (/** @type {any} */ it, /** @type {Column} */ column) => {
    const value = it[column.name];
    if (!isRaw && value !== null && (column.name === label || column.name === key)) {
      return h("a", { href: rowLink(found.name, it[key]) }, nonempty(value));
    }
    const cell = cellOf(column, value, known);
    return isNumber(cell) ? text(cell) : cell;
  };
  const sheet = isWritable ? cells({ table: found, all, content, name: (it, column) => known.get(column)?.get(it[column]), changed: () => listed.again() }) : null;
  const then = () => (asOf() ? { as_of: asOf() } : {});
  const read_ = async (/** @type {string | null} */ cursor) => {
    const needed = isRaw ? shown().map((it) => it.name) : [...new Set([key, ...(picked ? ["updated_at", label] : []), ...shown().map((it) => it.name)])];
    // A column of the address may be deleted in the meantime.
    const order = found.columns.some((it) => it.name === values().get("_sort")?.replace(/^-/, "")) && values().get("_sort");
    const body = { filters: await filters(found, all), limit: PAGE, columns: needed.filter((name) => found.columns.some((it) => it.name === name)), ...(order ? { order_by: [order] } : {}), ...(cursor ? { cursor } : {}), ...then() };
    return read(found, body);
  };
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
    columns: () => shown().map((it, index) => (picked && index === 0 ? h("span", { class: "picked" }, picked.every, header(it.name)) : header(it.name))),
    read: read_,
    prepare: async (lines) => {
      known = await names({ ...found, columns: shown() }, all, lines, asOf());
      sheet?.begin(lines, shown());
      picked?.begin(lines);
    },
    row: (/** @type {any} */ it) => shown().map((column) => (sheet ? sheet.cell(it, column) : shownCell(content(it, column), it[column.name], column))),
    empty: () => (isFiltered() ? "No row meets the condition." : adding && importing ? ["No rows yet. ", opens("Add the first row", adding), " ", opens("Fill it from a file", importing)] : isRaw ? "No points yet. Scripts and readers of instruments' files write them." : "No rows yet."),
    // What was then does not change.
    live: (type, data) => !asOf() && writes(type, data),
    retry: draw,
  });
  const name = encodeURIComponent(found.name);
  const exported = (/** @type {string} */ format, label = format.toUpperCase()) =>
    h("a", { href: `api/v1/tables/${name}/export?format=${format}${asOf() ? `&as_of=${encodeURIComponent(String(asOf()))}` : ""}`, download: true }, label);
  const altered = (/** @type {string} */ now) => {
    if (now === found.name) {
      draw();
    } else {
      location.hash = address("tables", now);
    }
  };
  return h(
    "div",
    null,
    found.description ? h("p", null, found.description) : null,
    isRaw ? h("p", null, h("a", { href: `#/plates/${name}` }, "Draw the curves")) : null,
    moment(found),
    filterBar(found, all, listed.again),
    h(
      "div",
      { class: "tools" },
      columnChoice(found, chosen, listed.again),
      adding,
      importing,
      found.history && isKept ? folded("As it was at…", momentForm) : null,
      found.id !== null && may("admin") && !asOf() ? folded("Change the table", () => alterTable(found, all, altered)) : null,
      saveView(),
      h("p", { class: "quiet" }, found.id === null ? null : ["The whole table as ", exported("csv"), " ", exported("csv&neutralize_formulas=true", "CSV for spreadsheets"), " ", exported("parquet"), " ", exported("arrow")]),
    ),
    sheet ? h("p", { class: "quiet" }, "Double-click a cell, or press Enter in it, to change it. A block copied from a spreadsheet is pasted from the cell that has the focus.") : null,
    picked?.bar,
    listed.place,
  );
}

/** Says that the rows are those of an earlier moment. @param {Table} found */
function moment(found) {
  const at = values().get("_as_of");
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
