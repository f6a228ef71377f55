// Plates: tables of curves, the plates of one, and what leads to their curves.

import { failure, h, loaded, show, titled } from "../dom.js";
import { axes } from "../curves.js";
import { drawable } from "../exact.js";
import { counted, time } from "../format.js";
import { grid } from "../grid.js";
import { heatMap, scale } from "../heat.js";
import { watched } from "../list.js";
import { extent, plateOf, wellOf } from "../science.js";
import { address, isFiltered, values } from "../state.js";
import { keyOf, labelOf, named, nonempty, plateColumn, quoted, read, references, schema, sql, written } from "../tables.js";
import { saveView } from "../views.js";
import { curveView } from "./curves.js";

/** Plates that are listed; a filter of the table finds the others. */
const LISTED = 24;

/** Wells whose values thumbnails show. */
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
    return grid(["Table", "Curves of", "Points", "Description"], raw.map(row), "No curves yet. They are kept in tables of the kind raw, which a script or an import of the instrument's files fills.");
  });
  return [h("h1", null, "Plates and curves"), place];
}

/**
 * The plates of one table, or the curves of those that the address names.
 * @param {string} name
 */
export function plate(name) {
  titled(name);
  const place = loaded("Reading the tables", async () => {
    const all = await schema();
    return view(named(all, name), all);
  });
  return [h("p", { class: "crumbs" }, h("a", { href: "#/plates" }, "← Plates and curves")), h("h1", null, name), place];
}

/**
 * The column that says where on its plate a well is, if there is one.
 * @param {Table} wells
 */
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
    return h("div", null, curveView({ table, owner, owners, wells, plate: column, all }), saveView());
  }
  return listOf(table, owner, wells, column, all);
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
  /** @type {Set<string>} */
  const chosen = new Set();
  const open = h("button", { type: "button", class: "primary", disabled: true }, "Compare the chosen plates");
  open.addEventListener("click", () => (location.hash = address("plates", table.name, { _plate: [...chosen] })));
  const every = h("a", { href: address("plates", table.name, { _all: "1" }) }, "All curves together");
  const head = h("p", { class: "actions" }, open, every);
  const place = loaded("Reading the plates", async () => {
    const at = quoted(column.sql_column_name);
    const { data } = await sql(
      `select ${at}, count(*), max(created_at) from ${quoted(wells.name)} where ${at} is not null group by 1 order by 3 desc, 1 limit ${LISTED + 1}`,
    );
    if (data.length < 2) {
      show(head);
      return h("div", null, curveView({ table, owner, owners: references(table), wells, plate: column, all }), saveView());
    }
    const listed = data.slice(0, LISTED);
    const names = await namesOf(column, listed.map(([key]) => key), all);
    const pictures = new Map(listed.map(([key]) => [key, h("div", null)]));
    const told = h("div", null);
    const item = (/** @type {any[]} */ [key, count, added]) => {
      const box = h("input", { type: "checkbox", "aria-label": `Choose ${names.get(key)}` });
      box.addEventListener("change", () => {
        chosen[box.checked ? "add" : "delete"](String(key));
        open.toggleAttribute("disabled", chosen.size === 0);
      });
      return h(
        "li",
        null,
        h("a", { class: "name", href: address("plates", table.name, { _plate: String(key) }) }, names.get(key)),
        pictures.get(key),
        h("div", { class: "quiet" }, counted(Number(count), "well"), ", ", time(added)),
        h("label", null, box, "Compare"),
      );
    };
    thumbnails(table, owner, wells, column, pictures, told).catch((error) => show(told, failure(error)));
    return h("div", null, h("ul", { class: "thumbs" }, listed.map(item)), told, data.length > LISTED ? h("p", { class: "quiet" }, `The ${LISTED} newest plates. The others are found by a filter: `, h("a", { href: address("tables", wells.name) }, wells.name), ".") : null);
  });
  return h("div", null, head, place);
}

/**
 * What people call plates.
 * @param {Column} column
 * @param {any[]} keys
 * @param {Table[]} all
 * @returns {Promise<Map<any, string>>}
 */
export async function namesOf(column, keys, all) {
  /** @type {Map<any, string>} */
  const names = new Map(keys.map((key) => [key, String(key)]));
  if (column.is_foreign_key && keys.length > 0) {
    const other = named(all, column.foreign_key_table_name);
    const [key, label] = [keyOf(other), labelOf(other)];
    const { body } = await read(other, { filters: { [`${key}__in`]: keys }, columns: [...new Set([key, label])], limit: keys.length });
    for (const row of body) {
      names.set(row[key], String(nonempty(row[label] ?? row[key])));
    }
  }
  return names;
}

/**
 * Draws the greatest value of each well, on one scale.
 * @param {Table} table
 * @param {Column} owner
 * @param {Table} wells
 * @param {Column} column
 * @param {Map<any, HTMLElement>} pictures
 * @param {HTMLElement} told
 */
async function thumbnails(table, owner, wells, column, pictures, told) {
  const { y } = axes(table);
  const well = wellColumn(wells);
  const of = (/** @type {Table} */ it, /** @type {string} */ name) => quoted(it.columns.find((each) => each.name === name)?.sql_column_name ?? name);
  const keys = [...pictures.keys()];
  const places = keys.map((_, index) => `$${index + 1}`).join(", ");
  const { data } = await sql(
    `select w.${quoted(column.sql_column_name)}, w.${of(wells, well)}, max(c.${of(table, y)}) from ${quoted(table.name)} c
     join ${quoted(wells.name)} w on w.${of(wells, keyOf(wells))} = c.${quoted(owner.sql_column_name)}
     where w.${quoted(column.sql_column_name)} in (${places}) group by 1, 2 limit ${THUMBED}`,
    keys,
  );
  const range = extent(data.map((row) => drawable(row[2])));
  for (const [key, place] of pictures) {
    const spots = data.flatMap(([plate, name, value]) => {
      const at = plate === key ? wellOf(String(name)) : null;
      return at ? [{ well: at, name: `${y} ${value}`, value: drawable(value) }] : [];
    });
    if (spots.length > 0) {
      show(place, heatMap(plateOf(spots.map((it) => it.well)), spots, range, { label: `Greatest ${y} of each well`, isSmall: true }));
    }
  }
  show(told, range ? scale(range, `greatest ${y} of a well`) : null);
}

