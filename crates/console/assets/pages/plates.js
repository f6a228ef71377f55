// Plates: tables of curves, the plates of one, and what leads to their curves.

import { failure, h, loaded, show, titled } from "../dom.js";
import { axes } from "../curves.js";
import { drawable } from "../exact.js";
import { counted, time } from "../format.js";
import { grid } from "../grid.js";
import { heatMap, scale } from "../heat.js";
import { list, watched, writesTo } from "../list.js";
import { extent, plateOf, wellOf } from "../science.js";
import { address, change, isFiltered, values } from "../state.js";
import { keyOf, labelOf, named, nonempty, plateColumn, quoted, references, schema, sql, title, written } from "../tables.js";
import { saveView } from "../views.js";
import { CurveView } from "./curves.js";

/** Plates of a page of the list. */
const LISTED = 24;

/** Rows of a result of SQL. */
const THUMBED = 10_000;

/** Tables of curves. */
export function plates() {
  const place = watched("Reading the tables", (type) => ["table.changed", "data.written"].includes(type), async () => {
    const all = await schema();
    const raw = all.filter((table) => table.semantic_category === "raw");
    const row = (/** @type {Table} */ table) => [
      h("a", { href: address("plates", table.name) }, table.name),
      references(table).map((it) => it.foreign_key_table_name).join(", "),
      table.row_count_estimate,
      table.description ?? "",
    ];
    return grid(["Table", "Curves of", "Points (about)", "Description"], raw.map(row), "No curves yet. They are kept in tables of the kind raw, which a script or an import of the instrument's files fills.");
  });
  return [h("h1", null, "Plates and curves"), place];
}

/** The plates of one table, or the curves of those that the address names. @param {string} name */
export function plate(name) {
  titled(name);
  const place = loaded("Reading the tables", async () => {
    const all = await schema();
    return view(named(all, name), all);
  });
  return [h("p", { class: "crumbs" }, h("a", { href: "#/plates" }, "← Plates and curves")), h("h1", null, name), place];
}

/** The column that says where on its plate a well is, if there is one. @param {Table} wells */
export function wellColumn(wells) {
  const texts = written(wells).filter((it) => it.data_type === "string" && !it.is_foreign_key);
  return texts.find((it) => /well|position/i.test(it.name))?.name ?? labelOf(wells);
}

/**
 * @param {Table} table
 * @param {Table[]} all
 */
function view(table, all) {
  const owners = references(table);
  if (axes(table).y === "") {
    return h("p", { class: "empty" }, "This table has no column of numbers to draw.");
  }
  const wanted = values().get("_of");
  const owner = /** @type {Column} */ (owners.find((it) => it.name === wanted) ?? owners[0]);
  const wells = named(all, owner.foreign_key_table_name);
  const column = plateColumn(wells);
  const isChosen = isFiltered() || ["_plate", "_all", "_run"].some((it) => values().has(it));
  if (!column || isChosen) {
    return h("div", null, new CurveView({ table, owner, owners, wells, plate: column, all }).element(), saveView());
  }
  return listOf(table, owner, wells, column, all);
}

/** A column's name in SQL. @param {Table} table @param {string} name */
function inSql(table, name) {
  return quoted(table.columns.find((it) => it.name === name)?.sql_column_name ?? name);
}

/**
 * @typedef {object} Listed a plate of the list
 * @property {any} key
 * @property {string} name
 * @property {number} wells
 * @property {string} added time of its newest well
 */

/**
 * Plates that have wells, by pages, the newest first.
 * @param {Table} wells
 * @param {Column} column
 * @param {Table | null} other the table of the plates, where they are rows
 */
function plateReader(wells, column, other) {
  const at = `w.${quoted(column.sql_column_name)}`;
  const name = other ? `coalesce(p.${inSql(other, labelOf(other))}::text, ${at}::text)` : `${at}::text`;
  const join = other ? `join ${quoted(other.name)} p on p.${inSql(other, keyOf(other))} = ${at}` : "";
  let total = 0;
  const read = async (/** @type {string | null} */ cursor) => {
    const from = Number(cursor ?? 0) || 0;
    const { data } = await sql(
      `select ${at}, max(${name}), count(*), max(w.created_at), count(*) over () from ${quoted(wells.name)} w ${join}
       where ${at} is not null and position(lower($1) in lower(${name})) > 0 group by 1 order by 4 desc, 1 limit ${LISTED} offset ${from}`,
      [values().get("_find") ?? ""],
    );
    total = Number(data[0]?.[4] ?? 0);
    const body = data.map(([key, name, wells, added]) => ({ key, name: String(nonempty(name)), wells: Number(wells), added }));
    return { body, next: total > from + LISTED ? `?cursor=${from + LISTED}` : null };
  };
  const areSeveral = async () => (await sql(`select distinct ${at} from ${quoted(wells.name)} w where ${at} is not null limit 2`)).data.length > 1;
  return { read, areSeveral, total: () => total };
}

/**
 * Plates with a picture of each.
 * @param {Table} table
 * @param {Column} owner
 * @param {Table} wells
 * @param {Column} column
 * @param {Listed[]} plates
 * @param {{has: (key: string) => boolean, set: (key: string, isChosen: boolean) => void}} chosen
 */
function cardsOf(table, owner, wells, column, plates, chosen) {
  const told = h("div", null);
  const places = new Map(plates.map((it) => [it.key, { picture: h("div", null), measures: h("span", null) }]));
  const item = (/** @type {Listed} */ it) => {
    const key = String(it.key);
    const box = h("input", { type: "checkbox", checked: chosen.has(key), "aria-label": `Choose ${it.name}` });
    box.addEventListener("change", () => chosen.set(key, box.checked));
    return h(
      "li",
      null,
      h("a", { class: "name", href: address("plates", table.name, { _plate: key }) }, it.name),
      places.get(it.key)?.picture,
      h("div", { class: "quiet" }, counted(it.wells, "well"), places.get(it.key)?.measures, ", added ", time(it.added)),
      h("label", null, box, "Compare"),
    );
  };
  thumbnails(table, owner, wells, column, plates, places, told).catch((error) => show(told, failure(error)));
  return h("div", null, h("ul", { class: "thumbs" }, plates.map(item)), told);
}

/**
 * The plates that have wells, the newest first, with a picture of each.
 * @param {Table} table
 * @param {Column} owner
 * @param {Table} wells
 * @param {Column} column
 * @param {Table[]} all
 */
function listOf(table, owner, wells, column, all) {
  const other = column.is_foreign_key ? named(all, column.foreign_key_table_name) : null;
  const { read, areSeveral, total } = plateReader(wells, column, other);
  /** @type {Set<string>} */
  const chosen = new Set();
  const choose = (/** @type {string} */ key, /** @type {boolean} */ isChosen) => {
    chosen[isChosen ? "add" : "delete"](key);
    open.toggleAttribute("disabled", chosen.size === 0);
  };
  const open = h("button", { type: "button", class: "primary", disabled: true }, "Compare the chosen plates");
  open.addEventListener("click", () => (location.hash = address("plates", table.name, { _plate: [...chosen] })));
  const every = h("a", { href: address("plates", table.name, { _all: "1" }) }, "All curves together");
  return loaded("Reading the plates", async () => {
    if (!(await areSeveral())) {
      return h("div", null, new CurveView({ table, owner, owners: references(table), wells, plate: column, all }).element(), saveView());
    }
    const listed = list({
      reason: "Reading the plates",
      one: "plate",
      total,
      cards: (/** @type {Listed[]} */ plates) => cardsOf(table, owner, wells, column, plates, { has: (key) => chosen.has(key), set: choose }),
      empty: () => "No plate has that in its name.",
      read,
      live: writesTo(table.name, wells.name, other?.name),
    });
    const search = h("input", { type: "search", "aria-label": "Part of a plate's name", placeholder: "part of the name", value: values().get("_find") ?? "" });
    const find = (/** @type {Event} */ event) => {
      event.preventDefault();
      change({ _find: search.value.trim(), _page: null }, true);
      listed.again();
    };
    return h("div", null, h("p", { class: "actions" }, open, every), h("form", { class: "bar", submit: find }, search, h("button", null, "Find")), listed.place);
  });
}

/**
 * Draws the greatest value of each well, on one scale, and says what was measured.
 * @param {Table} table
 * @param {Column} owner
 * @param {Table} wells
 * @param {Column} column
 * @param {Listed[]} plates
 * @param {Map<any, {picture: HTMLElement, measures: HTMLElement}>} places
 * @param {HTMLElement} told
 */
async function thumbnails(table, owner, wells, column, plates, places, told) {
  const { x, y, ys } = axes(table);
  const measures = [y, ...ys.filter((it) => it !== x && it !== y)];
  // A result has no more rows than these: plates are read together as far as their wells fit.
  /** @type {Listed[][]} */
  const batches = [[]];
  for (const it of plates) {
    const last = /** @type {Listed[]} */ (batches.at(-1));
    last.length > 0 && last.reduce((sum, { wells }) => sum + wells, it.wells) > THUMBED ? batches.push([it]) : last.push(it);
  }
  const readWells = (/** @type {Listed[]} */ batch) =>
    sql(
      `select w.${quoted(column.sql_column_name)}, w.${inSql(wells, wellColumn(wells))}, ${measures.map((it) => `max(c.${inSql(table, it)})`).join(", ")} from ${quoted(table.name)} c
       join ${quoted(wells.name)} w on w.${inSql(wells, keyOf(wells))} = c.${quoted(owner.sql_column_name)}
       where w.${quoted(column.sql_column_name)} in (${batch.map((_, index) => `$${index + 1}`).join(", ")}) group by 1, 2 limit ${THUMBED}`,
      batch.map((it) => it.key),
    );
  const results = await Promise.all(batches.map(readWells));
  const data = results.flatMap((it) => it.data);
  const range = extent(data.map((row) => drawable(row[2])));
  for (const { key } of plates) {
    const own = data.filter(([plate]) => plate === key);
    const spots = own.flatMap(([, name, value]) => {
      const well = wellOf(String(name));
      return well ? [{ well, name: `${y} ${value}`, value: drawable(value) }] : [];
    });
    const found = measures.filter((_, index) => own.some((row) => row[2 + index] !== null));
    const place = places.get(key);
    place?.measures.append(found.length ? `: ${found.map((it) => title(table, it)).join(", ")}` : " without a curve");
    if (spots.length > 0) {
      place?.picture.append(heatMap(plateOf(spots.map((it) => it.well)), spots, range, { label: `Greatest ${y} of each well`, isSmall: true }));
    }
  }
  const isCut = results.some((it) => it.data.length === THUMBED);
  show(told, range ? scale(range, `greatest ${y} of a well`) : null, isCut ? h("p", { class: "note warns" }, `Of a plate the first ${THUMBED} wells are drawn.`) : null);
}
