// Parts of the view of plates and curves that stand by themselves.

import { failure, h, load, show } from "../dom.js";
import { counted, naturally, number, text } from "../format.js";
import { reference } from "../row_form.js";
import { extent, letters, meanCurve, thinned, wellOf, withoutBlank } from "../science.js";
import { change, values } from "../state.js";
import { isNumeric, keyOf, labelOf, named, nonempty, quoted, read, references, rowLink, sql, written } from "../tables.js";

/**
 * @typedef {import("./curves.js").Subject} Subject
 * @typedef {import("./curves.js").Well} Well
 */

/** Part of a well that its curve fills. */
const FILLED = 0.88;

/** Newest plates that are offered in a list. */
const OFFERED = 200;

/** Most rows of an execution whose curves are drawn. */
const WRITTEN = 400;

/** @param {string} color */
export function swatch(color) {
  const element = h("span", { class: "swatch", "aria-hidden": "true" });
  element.style.background = color;
  return element;
}

/**
 * A plate's name, which leads to its row where it has one.
 * @param {Column | null} column of the wells
 * @param {any} key
 * @param {string} name
 */
export function plateLink(column, key, name) {
  return column?.foreign_key_table_name ? h("a", { href: rowLink(column.foreign_key_table_name, key) }, name) : name;
}

/**
 * The plates of the address, each with a button that takes it out, and a field that adds one.
 * @param {Subject} subject
 * @param {() => void} changed
 */
export function plateChips({ plate, wells, all }, changed) {
  const place = h("div", null);
  const column = /** @type {Column} */ (plate);
  const draw = () =>
    load(place, "Reading the plates", async () => {
      const chosen = values().getAll("_plate");
      const other = column.is_foreign_key ? named(all, column.foreign_key_table_name) : null;
      const [key, label] = other ? [keyOf(other), labelOf(other)] : ["", ""];
      const page = (/** @type {any} */ body) => (other ? read(other, { columns: [...new Set([key, label])], limit: OFFERED, ...body }) : { body: [], next: null });
      const [own, { body: known, next }] = await Promise.all([chosen.length ? page({ filters: { [`${key}__in`]: chosen }, limit: chosen.length }) : { body: [] }, page({ order_by: ["-created_at"] })]);
      const set = (/** @type {string[]} */ next) => {
        change({ _plate: next }, true);
        draw();
        changed();
      };
      const nameOf = (/** @type {string} */ id) => String(nonempty(own.body.find((/** @type {any} */ it) => String(it[key]) === id)?.[label] ?? id));
      const chip = (/** @type {string} */ id) =>
        h("li", { class: "chip" }, plateLink(column, id, nameOf(id)), h("button", { type: "button", "aria-label": `Take out ${nameOf(id)}`, click: () => set(chosen.filter((it) => it !== id)) }, "×"));
      const rest = known.filter((/** @type {any} */ it) => !chosen.includes(String(it[key])));
      const more = h("select", { "aria-label": `Add a ${column.name}` }, h("option", { value: "" }, `Add a ${column.name}…`), rest.map((/** @type {any} */ it) => h("option", { value: String(it[key]) }, nonempty(it[label] ?? it[key]))));
      more.addEventListener("change", () => more.value && set([...chosen, more.value]));
      // Older ones are found by their names.
      const older = next && other ? reference(other, null, "") : null;
      const said = h("span", { "aria-live": "polite" });
      older?.input.setAttribute("aria-label", `Add an older ${column.name} by its name`);
      older?.input.setAttribute("placeholder", `older than those ${OFFERED}: its name`);
      older?.input.addEventListener("change", async () => {
        try {
          set([...chosen, String(await older.value())]);
        } catch (error) {
          show(said, failure(error));
        }
      });
      return h("ul", { class: "chips", "aria-label": `Plates, by ${column.name} of ${wells.name}` }, chosen.map(chip), rest.length ? h("li", null, more) : null, older ? h("li", null, older.input, older.list, said) : null);
    });
  draw();
  return place;
}

/**
 * Columns that may tell conditions apart: those of the rows, and of the rows that they refer to.
 * @param {Table} wells
 * @param {Table[]} all
 * @returns {{name: string, column: Column, reference: Column | null}[]}
 */
export function pathsOf(wells, all) {
  const own = written(wells).filter((it) => !it.is_primary_key && it.data_type !== "json").map((column) => ({ name: column.name, column, reference: null }));
  const through = references(wells).flatMap((reference) => {
    const other = all.find((it) => it.name === reference.foreign_key_table_name);
    const columns = other ? written(other).filter((it) => !it.is_primary_key && it.name !== labelOf(other) && (isNumeric(it) || ["string", "text", "boolean"].includes(it.data_type)) && !it.is_foreign_key) : [];
    return columns.map((column) => ({ name: `${reference.name}__${column.name}`, column, reference }));
  });
  return [...own, ...through];
}

/**
 * A condition's value with the unit of its column.
 * @param {{name: string, column: Column}[]} paths
 * @param {string} path
 * @param {any} value
 */
export function worded(paths, path, value) {
  const column = paths.find((it) => it.name === path)?.column;
  if (value === null || value === undefined) {
    return `no ${path.replace("__", " ")}`;
  }
  const unit = column?.unit ? ` ${column.unit}` : "";
  return column?.data_type === "boolean" ? (value ? path : `not ${path}`) : `${text(value, column?.data_type) || '""'}${unit}`;
}

/**
 * Draws curves at their wells: each one in a square of its own, all to one scale, on one pair of axes, so that a plate of
 * 384 wells is one plot. Until somebody zooms, it has the points alone that the screen can show.
 * @param {import("../plot.js").Plot} place
 * @param {[number, number]} size
 * @param {(import("../plot.js").Curve & Well)[]} curves
 * @param {{x: string, y: string, isTime: boolean, placed: (x: any) => string}} names
 * @param {{across: (value: number) => number, up: (value: number) => number, height: (value: any) => number | null, isLog: boolean}} scales
 */
export async function drawPlate(place, [rows, columns], curves, names, { across, up, height, isLog }) {
  const pixels = Math.max(1, Math.ceil(((FILLED * place.clientWidth) / columns) * devicePixelRatio));
  const moved = (/** @type {boolean} */ isWhole) =>
    curves.flatMap((curve) => {
      if (!curve.well) {
        return [];
      }
      const left = curve.well.column + 1 - FILLED / 2;
      const bottom = curve.well.row + 1 + FILLED / 2;
      const heights = curve.y.map(height);
      const points = isWhole ? [...heights.keys()] : thinned(curve.x, heights, pixels);
      const y = (/** @type {number | null} */ placed) => (placed === null ? null : bottom - FILLED * up(placed));
      return [
        {
          ...curve,
          x: points.map((it) => left + FILLED * across(curve.x[it])),
          y: points.map((it) => y(heights[it])),
          group: curve.group ?? names.y,
          values: points.map((it) => [names.isTime && curve.x[it] !== null ? names.placed(curve.x[it]) : curve.x[it], curve.y[it]]),
        },
      ];
    });
  const numbers = (/** @type {number} */ count) => Array.from({ length: count }, (_, index) => index + 1);
  await place.draw(
    moved(false),
    { title: `${names.y} over ${names.x}${isLog ? ", logarithmic" : ""}`, type: "linear", range: [0.5, columns + 0.5], ticks: { at: numbers(columns), text: numbers(columns).map(String) } },
    { title: "", type: "linear", range: [rows + 0.5, 0.5], ticks: { at: numbers(rows), text: numbers(rows).map((it) => letters(it - 1)) } },
    { kind: "lines", plate: { ...names, whole: () => moved(true) } },
  );
}

/** A function from values to their place in the range of all of them, 0 to 1. @param {any[][]} lists */
export function range(lists) {
  const [low, high] = extent(lists.flat()) ?? [0, 0];
  return (/** @type {number} */ value) => (high > low ? (value - low) / (high - low) : 0.5);
}

/**
 * Numbers of points with a place on both axes, and of the curves that have any.
 * @param {Well[]} list
 * @param {boolean} isLogX
 * @param {boolean} isLogY
 */
export function countOf(list, isLogX, isLogY) {
  const isPlaced = (/** @type {any} */ value, /** @type {boolean} */ isLog) => typeof value === "number" && (!isLog || value > 0);
  const points = list.map(({ x, y }) => y.reduce((sum, value, index) => sum + Number(isPlaced(value, isLogY) && isPlaced(x[index], isLogX)), 0));
  return `${counted(points.filter((it) => it > 0).length, "curve")}, ${counted(points.reduce((sum, it) => sum + it, 0), "point")}.`;
}

/**
 * Curves without the mean of their plate's blanks.
 * @param {Well[]} curves
 * @param {string} x name of their x
 * @param {string[]} said
 */
export function withoutBlanks(curves, x, said) {
  /** @type {Map<string, import("../science.js").Points>} */
  const blankOf = new Map();
  /** @type {Set<import("../science.js").Matching>} */
  const ways = new Set();
  for (const name of new Set(curves.map((it) => it.plate))) {
    const mean = meanCurve(curves.filter((it) => it.plate === name && it.isBlank), true);
    ways.add(mean.how);
    blankOf.set(name, { x: mean.x, y: mean.mean });
  }
  let left = 0;
  const result = curves
    .filter((it) => !it.isBlank)
    .map((it) => {
      const found = withoutBlank(it, /** @type {any} */ (blankOf.get(it.plate)));
      left += found.left;
      ways.add(found.how);
      return found.curve;
    });
  const words = [
    `The mean of its plate's blanks is subtracted from each curve (${counted(curves.length - result.length, "blank")} in all).`,
    ways.has("cycle") ? "It is that of the same read cycle." : "",
    ways.has("interpolated") ? "Between two readings of the blank it is interpolated linearly." : "",
    left ? `${counted(left, "value")} without a blank at their ${x} are left out.` : "",
  ];
  said.push(words.filter(Boolean).join(" "));
  return result;
}

/**
 * How readings at different x were put together, in words.
 * @param {{how: import("../science.js").Matching, apart: number}[]} means
 * @param {string} x name of their x
 * @param {(apart: number) => string} distance in words
 */
export function matchings(means, x, distance) {
  const ways = new Set(means.map((it) => it.how));
  const apart = distance(Math.max(0, ...means.map((it) => it.apart)));
  return [
    ...(ways.has("cycle") ? [`Wells that are read one after the other are matched by read cycle, whose readings are up to ${apart} apart: its ${x} is their mean.`] : []),
    ...(ways.has("interpolated") ? [`Curves have different ${x}: between two readings of a curve its value is interpolated linearly.`] : []),
  ];
}

/**
 * Means as curves with their bands.
 * @param {{name: string, own: Well[], mean: ReturnType<typeof meanCurve>}[]} found
 * @param {string} band
 * @param {Map<string, number | null | undefined>} shades
 * @param {(x: any) => string} placed
 */
export function meanCurves(found, band, shades, placed) {
  return found.map(({ name, own, mean }) => {
    const spread = band === "SEM" ? mean.sem : mean.sd;
    const label = `${name} (n = ${own.length})`;
    const side = (/** @type {number} */ sign) => mean.mean.map((it, index) => (spread[index] === null ? null : it + sign * /** @type {number} */ (spread[index])));
    return {
      name: label,
      group: label,
      shade: shades.get(name),
      x: mean.x,
      y: mean.mean,
      kind: /** @type {const} */ ("lines"),
      ...(band === "none" ? {} : { band: { low: side(-1), high: side(1) } }),
      text: mean.mean.map((it, index) => {
        const more = spread[index] === null ? "" : `, ${band === "none" ? "SD" : band} ${number(/** @type {number} */ (spread[index]))}`;
        return `${name}\u2003${placed(mean.x[index])}\u2003mean ${number(it)}${more}, n ${mean.n[index]}`;
      }),
    };
  });
}

/**
 * Numbers of the rows that a filter leaves out, and of those without a curve, in words.
 * @param {Table} wells
 * @param {Table} table
 * @param {number} looked rows that were looked through
 * @param {number} found curves among them
 */
export function passedOver(wells, table, looked, found) {
  const total = wells.row_count_estimate ?? 0;
  const bare = looked - found;
  const words = [
    total > looked ? `${looked} of about ${counted(total, "row")} of ${wells.name}.` : "",
    bare > 0 ? `${bare} of ${counted(looked, "row")} ${bare === 1 ? "has" : "have"} no curve in ${table.name}.` : "",
  ];
  return words.filter(Boolean).join(" ");
}

/** Says what a logarithmic scale cannot show. @param {Well[]} shown @param {"x" | "y"} axis @param {string[]} said */
export function leftOut(shown, axis, said) {
  let left = 0;
  let whole = 0;
  for (const it of shown) {
    const own = it[axis].reduce((sum, value) => sum + (value !== null && value <= 0 ? 1 : 0), 0);
    left += own;
    whole += own > 0 && it[axis].every((value) => value === null || value <= 0) ? 1 : 0;
  }
  if (left > 0) {
    said.push(`A log ${axis === "x" ? "X" : "scale"} has no place for ${counted(left, "value")} that ${left === 1 ? "is" : "are"} zero or negative${whole ? `: ${counted(whole, "curve")} cannot be seen at all` : ""}.`);
  }
}

/**
 * Names of the groups in their natural order, with their places on the scale of colors if they are numbers: null of a group without a value.
 * @param {{name: string, value: any}[]} all_
 * @returns {Map<string, number | null | undefined>}
 */
export function colorsOf(all_) {
  const groups = [...new Map(all_.map((it) => [it.name, it.value]))].sort(([, a], [, b]) => naturally(a, b));
  const areNumbers = groups.length > 2 && groups.every(([, value]) => value === null || typeof value === "number");
  const last = groups.filter(([, value]) => value !== null).length - 1;
  return new Map(groups.map(([name, value], index) => [name, !areNumbers ? undefined : value === null ? null : index / Math.max(last, 1)]));
}

/** The curves by plates, in natural order. @param {Well[]} shown */
export function byPlate(shown) {
  /** @type {Map<string, Well[]>} */
  const groups = new Map();
  for (const it of shown) {
    groups.set(it.plate, [...(groups.get(it.plate) ?? []), it]);
  }
  return [...groups].sort(([a], [b]) => naturally(a, b));
}

/**
 * The pinned curves, and a field that pins one by its name.
 * @param {string} table of the wells
 * @param {Well[]} shown
 * @param {(key: string) => void} pin pins a curve, or frees it
 */
export function pinField(table, shown, pin) {
  const pinned = values().getAll("_pin");
  const words = (/** @type {Well} */ it) => [it.name, it.plate, it.wellName === it.name ? "" : it.wellName].filter(Boolean).join(" · ");
  const known = new Map(shown.map((it) => [String(it.key), words(it)]));
  const chips = pinned.map((key) => {
    const label = known.get(key) ?? key;
    return h("li", { class: "chip" }, h("a", { href: rowLink(table, key) }, label), h("button", { type: "button", "aria-label": `Unpin ${label}`, click: () => pin(key) }, "×"));
  });
  const rest = shown.filter((it) => !pinned.includes(String(it.key))).sort((a, b) => naturally(words(a), words(b)));
  const list = h("datalist", { id: "curves-to-pin" }, rest.map((it) => h("option", { value: words(it) })));
  const box = h("input", { list: list.id, "aria-label": "Highlight a curve", placeholder: "Highlight a curve…", autocomplete: "off" });
  box.addEventListener("change", () => {
    const found = rest.find((it) => words(it) === box.value);
    if (found) {
      pin(String(found.key));
    }
  });
  return h("ul", { class: "chips", "aria-label": "Highlighted curves" }, chips, h("li", null, box, list));
}

/**
 * Says which curves have no place of their own.
 * @param {Well[]} own
 * @param {string} name of the plate
 * @param {string} column of the wells
 * @param {boolean} hasPlates
 * @param {string[]} said
 */
export function crowded(own, name, column, hasPlates, said) {
  const seen = new Map();
  for (const it of own) {
    seen.set(it.wellName, (seen.get(it.wellName) ?? 0) + 1);
  }
  const shared = [...seen].filter(([it, count]) => count > 1 && wellOf(it));
  if (shared.length > 0) {
    const [[first_, count]] = shared;
    said.push(`${name ? `${name}: ` : ""}${counted(shared.length, "well")} ${shared.length === 1 ? "holds" : "hold"} several curves, such as ${first_} with ${count}${hasPlates ? "" : ". No column says on which plate a row is; a filter shows one plate at a time"}.`);
  }
  const without = own.filter((it) => !it.well).length;
  if (without > 0) {
    said.push(`${name ? `${name}: ` : ""}${without} of them have no well in ${column}.`);
  }
}

/**
 * Keys of the rows whose curves an execution wrote, and whether there are more of them.
 * @param {Subject} subject
 * @param {string} run
 */
export async function writtenBy({ table, owner }, run) {
  const { data } = await sql(`select distinct ${quoted(owner.sql_column_name)} from ${quoted(table.name)} where created_by_execution_id = $1 limit ${WRITTEN + 1}`, [run]);
  return { keys: data.flat().slice(0, WRITTEN), isMore: data.length > WRITTEN };
}

/** Says that the curves are those of one execution, and leads to all of them. @param {() => void} changed */
export function runChip(changed) {
  const run = values().get("_run");
  const all = () => {
    change({ _run: null, _all: "1" }, true);
    chip.remove();
    changed();
  };
  const chip = h("p", null, h("span", { class: "chip" }, "written by ", h("a", { href: `#/executions/${run}` }, "one execution"), h("button", { type: "button", "aria-label": "Show the curves of all executions", click: all }, "×")));
  return run ? chip : null;
}
