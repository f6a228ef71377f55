// The curves of plates: over each other, at their wells, as means of conditions, or as colors.

import { axes, axisType, series } from "../curves.js";
import { failure, h, load, show } from "../dom.js";
import { filterBar, filters } from "../filters.js";
import { counted, instant, naturally, number, text } from "../format.js";
import { heatMap, scale } from "../heat.js";
import { plot, plotTools, saveValues } from "../plot.js";
import { MEASURES, extent, letters, meanCurve, measured, plateOf, sequential, wellOf, withoutBlank } from "../science.js";
import { address, change, values } from "../state.js";
import { isNumeric, keyOf, labelOf, named, names as namesOf, read, references, rowLink, title, written } from "../tables.js";
import { wellColumn } from "./plates.js";

/**
 * @typedef {import("../tables.js").Table} Table
 * @typedef {import("../tables.js").Column} Column
 * @typedef {{table: Table, owner: Column, owners: Column[], wells: Table, plate: Column | null, all: Table[]}} Subject
 * @typedef {{x: any[], y: any[], key: any, row: any, name: string, well: {row: number, column: number} | null, wellName: string,
 *   plate: string, condition: string, order: any[], isBlank: boolean}} Well a curve with what is known of its well
 */

/** Most curves of a view: a plate of 1,536 wells, and some. */
const MOST = 1600;

/** Rows of a request. */
const ROWS = 400;

/** Most requests for rows that are looked through for curves. */
const PAGES = 10;

/** Part of a well that its curve fills. */
const FILLED = 0.88;

/** Names that a legend lists; a plot of more has none. */
const LEGEND = 24;

const LAYOUTS = ["overlaid", "as a plate", "means by condition", "heat map"];

/**
 * A choice that stands in the address.
 * @param {string} label
 * @param {string} name in the address
 * @param {string[]} options
 * @param {string} usual what stands there unless something was chosen
 * @param {() => void} changed
 */
function choice(label, name, options, usual, changed) {
  const chosen = values().get(name) ?? usual;
  const select = /** @type {HTMLSelectElement} */ (h("select", null, options.map((it) => h("option", { value: it, selected: it === chosen }, it || "–"))));
  select.addEventListener("change", () => {
    change({ [name]: select.value === usual ? null : select.value || "-" });
    changed();
  });
  return { select, field: h("label", null, label, select), value: () => (select.value === "-" ? "" : select.value) };
}

/**
 * @param {string} label
 * @param {string} name in the address
 * @param {() => void} changed
 */
function check(label, name, changed) {
  const box = /** @type {HTMLInputElement} */ (h("input", { type: "checkbox", checked: values().has(name) }));
  box.addEventListener("change", () => {
    change({ [name]: box.checked && "1" });
    changed();
  });
  return { box, field: h("label", { class: "check" }, box, label) };
}

/**
 * A choice of several, in the address.
 * @param {string} label
 * @param {string} name
 * @param {[string, string][]} options values and their texts
 * @param {() => void} changed
 */
function several(label, name, options, changed) {
  const chosen = new Set(values().getAll(name));
  const box = (/** @type {[string, string]} */ [value, words]) => {
    const input = /** @type {HTMLInputElement} */ (h("input", { type: "checkbox", checked: chosen.has(value) }));
    input.addEventListener("change", () => {
      chosen[input.checked ? "add" : "delete"](value);
      change({ [name]: options.map(([it]) => it).filter((it) => chosen.has(it)) });
      changed();
    });
    return h("label", { class: "check" }, input, words);
  };
  return { value: () => [...chosen], field: h("fieldset", null, h("legend", null, label), options.map(box)) };
}

/**
 * The view of the curves of rows.
 * @param {Subject} subject
 */
export function curveView(subject) {
  const { table, owner, owners, wells, plate, all } = subject;
  const first = axes(table);
  const own = written(wells);
  const told = h("span", { class: "quiet told", role: "status" });
  const notes = h("div", { "aria-live": "polite" });
  const place = h("div", null);
  /** @type {Well[]} */
  let curves = [];
  /** @type {Map<string, Map<any, any>>} values of the referenced rows, by path and then the key */
  let known = new Map();
  let isCut = false;

  const again = () => readCurves();
  const redraw = () => drawCurves();
  const of = choice("Curves of", "_of", owners.map((it) => it.name), owner.name, () => (location.hash = address("plates", table.name, { _of: of.value(), _all: "1" })));
  const across = choice("X axis", "_x", first.xs, first.x, again);
  const up = choice("Y axis", "_y", first.ys, first.y, again);
  const layout = choice("Layout", "_layout", LAYOUTS, plate && values().has("_plate") ? "as a plate" : "overlaid", redraw);
  const texts = own.filter((it) => it.data_type === "string" && !it.is_foreign_key).map((it) => it.name);
  const well = choice("Well column", "_well", texts, wellColumn(wells), redraw);
  const color = choice("Color by", "_color", ["", ...own.map((it) => it.name)], "", redraw);
  const logY = check("Log scale", "_log", redraw);
  const logX = check("Log X", "_logx", redraw);
  const paths = pathsOf(wells, all);
  const by = several("Conditions", "_by", paths.filter((it) => it.name !== labelOf(wells) && it.name !== plate?.name).map((it) => [it.name, it.name.replace("__", " → ")]), again);
  const band = choice("Band", "_band", ["SD", "SEM", "none"], "SD", redraw);
  const blanks = own.filter((it) => it.data_type === "boolean").map((it) => it.name);
  const blank = choice("Subtract blanks", "_blank", ["", ...blanks], "", redraw);
  const measure = choice("Color shows", "_measure", [...MEASURES], "maximum", redraw);
  const at = /** @type {HTMLInputElement} */ (h("input", { type: "range", "aria-label": "X of the value" }));
  const atWords = h("output", null);
  at.addEventListener("input", () => {
    change({ _at: at.value });
    redraw();
  });
  const step = h("div", { class: "step", hidden: true }, at, atWords);
  const filter = filterBar(wells, all, again);

  let reading = 0;
  async function readCurves() {
    const mine = ++reading;
    const waiting = setTimeout(() => show(told, "Reading the curves…"), 300);
    try {
      const got = await readPages();
      const others = await readKnown(got.map((it) => it.row));
      if (mine === reading) {
        known = others;
        curves = got.map(({ row, curve }) => ({ ...curve, row, ...described(row) }));
        draw();
      }
    } catch (error) {
      show(told, failure(error));
    } finally {
      clearTimeout(waiting);
    }
  }

  /** Rows that have curves. Those without are passed over, as far as some pages reach. */
  async function readPages() {
    const wanted = filters(wells, all);
    const chosen = values().getAll("_plate");
    if (plate && chosen.length > 0) {
      wanted[`${plate.name}__in`] = plate.data_type === "integer" ? chosen.map(Number) : chosen;
    }
    const got = [];
    /** @type {string | null | undefined} */
    let next = undefined;
    for (let page = 0; page < PAGES && next !== null && got.length < MOST; page++) {
      const rows = await read(wells, { filters: wanted, limit: ROWS }, next);
      const keys = rows.body.map((/** @type {any} */ row) => row[keyOf(wells)]);
      const found = keys.length ? await series(table, owner.name, keys, across.value(), up.value()) : [];
      got.push(...found.map((curve, index) => ({ row: rows.body[index], curve })).filter((it) => it.curve.y.length > 0));
      next = rows.next;
    }
    isCut = next !== null || got.length > MOST;
    return got.slice(0, MOST);
  }

  /** @param {any[]} rows */
  async function readKnown(rows) {
    const labels = await namesOf(wells, all, rows);
    /** @type {Map<string, Map<any, any>>} */
    const found = new Map(labels);
    for (const path of paths.filter((it) => it.reference && by.value().includes(it.name))) {
      const reference = /** @type {Column} */ (path.reference);
      const other = named(all, reference.foreign_key_table_name);
      const keys = [...new Set(rows.map((row) => row[reference.name]).filter((it) => it !== null))];
      const { body } = keys.length ? await read(other, { filters: { [`${keyOf(other)}__in`]: keys }, columns: [...new Set([keyOf(other), path.column.name])], limit: keys.length }) : { body: [] };
      found.set(path.name, new Map(body.map((/** @type {any} */ it) => [it[keyOf(other)], it[path.column.name]])));
    }
    return found;
  }

  /** The value of a row at a path, as people see it. @param {any} row @param {string} path */
  function valueAt(row, path) {
    const found = paths.find((it) => it.name === path);
    if (found?.reference) {
      return known.get(path)?.get(row[found.reference.name]) ?? null;
    }
    return known.get(path)?.get(row[path]) ?? row[path] ?? null;
  }

  /** @param {any} row */
  function described(row) {
    return { name: String(row[labelOf(wells)] ?? row[keyOf(wells)]), well: null, wellName: "", plate: "", condition: "", order: [], isBlank: false };
  }

  /** Puts what the choices say into the curves. */
  function describe() {
    const flag = blank.value();
    const conditions = by.value();
    for (const it of curves) {
      it.wellName = String(it.row[well.value()] ?? "");
      it.well = wellOf(it.wellName);
      it.plate = plate ? String(known.get(plate.name)?.get(it.row[plate.name]) ?? it.row[plate.name] ?? `no ${plate.name}`) : "";
      it.order = conditions.map((path) => valueAt(it.row, path));
      it.condition = conditions.map((path, index) => worded(path, it.order[index])).join(", ");
      it.isBlank = flag !== "" && it.row[flag] === true;
    }
  }

  /** A condition's value with the unit of its column. @param {string} path @param {any} value */
  function worded(path, value) {
    const column = paths.find((it) => it.name === path)?.column;
    if (value === null) {
      return `no ${path.replace("__", " ")}`;
    }
    const unit = column?.unit ? ` ${column.unit}` : "";
    return column?.data_type === "boolean" ? (value ? path : `not ${path}`) : `${text(value, column?.data_type)}${unit}`;
  }

  function draw() {
    drawCurves();
  }

  /** Lines that say what a curve is of. @param {Well} it */
  function about(it) {
    const more = color.value() ? `${color.value()}: ${worded(color.value(), valueAt(it.row, color.value()))}` : "";
    return [[it.name, it.plate, it.wellName === it.name ? "" : it.wellName].filter(Boolean).join(" · "), it.condition, more].filter(Boolean);
  }

  async function drawCurves() {
    describe();
    const kind = layout.value();
    const isMeans = kind === "means by condition";
    const isHeat = kind === "heat map";
    well.field.hidden = isMeans || kind === "overlaid";
    color.field.hidden = isMeans;
    band.field.hidden = !isMeans;
    blank.field.hidden = blanks.length === 0;
    measure.field.hidden = !isHeat || color.value() !== "";
    step.hidden = !isHeat || measure.value() !== "value at" || color.value() !== "";
    logY.field.hidden = isHeat;
    logX.field.hidden = isHeat || kind === "as a plate";
    /** @type {string[]} */
    const said = [];
    const shown = subtracted(said);
    const points = curves.reduce((sum, it) => sum + it.y.length, 0);
    if (isCut) {
      said.push(`These are the first ${counted(curves.length, "curve")}; a filter chooses others.`);
    }
    if (logY.box.checked && !isHeat) {
      leftOut(shown, said);
    }
    try {
      const began = performance.now();
      if (curves.length === 0) {
        show(place, h("p", { class: "empty" }, "No row with a curve meets the condition."));
      } else if (isHeat) {
        heat(shown, said);
      } else if (isMeans) {
        await means(shown, said);
      } else if (kind === "as a plate") {
        await atWells(shown, said);
      } else {
        await overlaid(shown, said);
      }
      performance.measure("plot", { start: began });
      show(told, `${counted(curves.length, "curve")}, ${counted(points, "point")}.`);
      show(notes, ...said.map((it) => h("p", { class: "note warns" }, it)));
    } catch (error) {
      show(told, failure(error));
    }
  }

  /** The curves without the blanks of their plates, if asked. @param {string[]} said */
  function subtracted(said) {
    if (blank.value() === "") {
      return curves;
    }
    /** @type {Map<string, import("../science.js").Points>} */
    const blankOf = new Map();
    for (const name of new Set(curves.map((it) => it.plate))) {
      const own = curves.filter((it) => it.plate === name && it.isBlank);
      const mean = meanCurve(own);
      blankOf.set(name, { x: mean.x, y: mean.mean });
    }
    let left = 0;
    const result = curves
      .filter((it) => !it.isBlank)
      .map((it) => {
        const found = withoutBlank(it, /** @type {any} */ (blankOf.get(it.plate)));
        left += found.left;
        return found.curve;
      });
    const count = curves.length - result.length;
    said.push(`The mean of its plate's blanks is subtracted from each curve (${counted(count, "blank")} in all).${left ? ` ${counted(left, "value")} without a blank at the same ${across.value()} are left out.` : ""}`);
    return result;
  }

  /** Says what a logarithmic scale cannot show. @param {Well[]} shown @param {string[]} said */
  function leftOut(shown, said) {
    let left = 0;
    let whole = 0;
    for (const { y } of shown) {
      const own = y.reduce((sum, value) => sum + (value !== null && value <= 0 ? 1 : 0), 0);
      left += own;
      whole += own > 0 && y.every((value) => value === null || value <= 0) ? 1 : 0;
    }
    if (left > 0) {
      said.push(`A log scale has no place for ${counted(left, "value")} that ${left === 1 ? "is" : "are"} zero or negative${whole ? `: ${counted(whole, "curve")} cannot be seen at all` : ""}.`);
    }
  }

  /** Names of the groups in their natural order, with their places on the scale of colors if they are numbers. @param {{name: string, value: any}[]} all_ @returns {Map<string, number | undefined>} */
  function colorsOf(all_) {
    const groups = [...new Map(all_.map((it) => [it.name, it.value]))].sort(([, a], [, b]) => naturally(a, b));
    const areNumbers = groups.length > 2 && groups.every(([, value]) => value === null || typeof value === "number");
    return new Map(groups.map(([name], index) => [name, areNumbers ? index / (groups.length - 1) : undefined]));
  }

  const axisX = () => ({ title: title(table, across.value()), type: /** @type {"date" | "linear" | "log"} */ (logX.box.checked ? "log" : axisType(table, across.value())) });

  /** @param {Well[]} shown */
  function colored(shown) {
    const name = color.value();
    const grouped = shown.map((it) => {
      const value = name ? valueAt(it.row, name) : it.plate;
      return { it, value, name: name ? worded(name, value) : it.plate };
    });
    const colors = colorsOf(grouped);
    const order = [...colors.keys()];
    return grouped
      .sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name))
      .map(({ it, name: group }) => ({ ...it, group: name || plate ? group : undefined, shade: colors.get(group), about: about(it), link: rowLink(wells.name, it.key) }));
  }

  /** @param {string} label */
  function onePlot(label) {
    const figure = plot(label);
    show(place, h("div", { class: "plates one" }, h("figure", null, tools(figure), figure)));
    return figure;
  }

  /** @param {import("../plot.js").Plot} figure */
  function tools(figure) {
    return h("div", { class: "plot-tools" }, plotTools(figure, table.name, saveCurves));
  }

  /** @param {Well[]} shown @param {string[]} said */
  async function overlaid(shown, said) {
    const drawn = colored(shown);
    const groups = new Set(drawn.map((it) => it.group ?? it.name)).size;
    if (groups > LEGEND && color.value()) {
      said.push(`${counted(groups, "group")}: a legend lists no more than ${LEGEND}. Hover a curve for its group.`);
    }
    const figure = onePlot(`${curves.length} curves of ${up.value()} over ${across.value()}`);
    await figure.draw(drawn, axisX(), { title: title(table, up.value()), type: logY.box.checked ? "log" : "linear" });
  }

  /** The curves by plates, in natural order. @param {Well[]} shown */
  function byPlate(shown) {
    /** @type {Map<string, Well[]>} */
    const groups = new Map();
    for (const it of shown) {
      groups.set(it.plate, [...(groups.get(it.plate) ?? []), it]);
    }
    return [...groups].sort(([a], [b]) => naturally(a, b));
  }

  /** Says which curves have no place of their own. @param {Well[]} own @param {string} name @param {string[]} said */
  function crowded(own, name, said) {
    const seen = new Map();
    for (const it of own) {
      seen.set(it.wellName, (seen.get(it.wellName) ?? 0) + 1);
    }
    const shared = [...seen].filter(([it, count]) => count > 1 && wellOf(it));
    if (shared.length > 0) {
      const [[first_, count]] = shared;
      said.push(`${name ? `${name}: ` : ""}${counted(shared.length, "well")} ${shared.length === 1 ? "holds" : "hold"} several curves, such as ${first_} with ${count}${plate ? "" : ". No column says on which plate a row is; a filter shows one plate at a time"}.`);
    }
    const without = own.filter((it) => !it.well).length;
    if (without > 0) {
      said.push(`${name ? `${name}: ` : ""}${without} of them have no well in ${well.value()}.`);
    }
  }

  /** @param {Well[]} shown @param {string[]} said */
  async function atWells(shown, said) {
    const groups = byPlate(shown);
    const size = plateOf(shown.map((it) => it.well));
    const height = (/** @type {any} */ value) => (value === null || (logY.box.checked && value <= 0) ? null : logY.box.checked ? Math.log10(value) : value);
    const across_ = range(shown.map((it) => it.x));
    const up_ = range(shown.map((it) => it.y.map(height)));
    const drawn = colored(shown);
    const figures = groups.map(([name, own]) => {
      crowded(own, name, said);
      const figure = plot(`${name} ${own.length} curves of ${up.value()} over ${across.value()}`);
      return { name, figure, element: h("figure", null, name ? h("figcaption", null, name) : null, groups.length > 1 ? null : tools(figure), figure) };
    });
    show(place, h("div", { class: `plates${groups.length === 1 ? " one" : ""}` }, figures.map((it) => it.element)));
    await Promise.all(
      figures.map(({ name, figure }) => drawPlate(figure, size, drawn.filter((it) => it.plate === name), { x: title(table, across.value()), y: title(table, up.value()) }, { across: across_, up: up_, height, isLog: logY.box.checked })),
    );
  }

  /** @param {Well[]} shown @param {string[]} said */
  async function means(shown, said) {
    if (by.value().length === 0) {
      said.push("Choose the columns that tell the conditions apart: until then this is the mean of all curves.");
    }
    /** @type {Map<string, Well[]>} */
    const groups = new Map();
    for (const it of shown) {
      const name = it.condition || "all curves";
      groups.set(name, [...(groups.get(name) ?? []), it]);
    }
    const list = [...groups].sort(([, [a]], [, [b]]) => a.order.map((value, index) => naturally(value, b.order[index])).find((it) => it !== 0) ?? 0);
    const colors = by.value().length === 1 ? colorsOf(list.map(([name, [first_]]) => ({ name, value: first_.order[0] }))) : new Map();
    const found = list.map(([name, own]) => ({ name, own, mean: meanCurve(own) }));
    const uneven = found.filter(({ own, mean }) => mean.n.some((n) => n !== own.length));
    if (uneven.length > 0) {
      said.push(`${uneven.map((it) => it.name).slice(0, 3).join("; ")}${uneven.length > 3 ? " and others" : ""}: not every curve has a value at each ${across.value()}. n is that of each point; hover to see it.`);
    }
    const single = found.filter(({ own }) => own.length === 1).length;
    if (single > 0 && band.value() !== "none") {
      said.push(`${counted(single, "condition")} of one curve ${single === 1 ? "has" : "have"} no ${band.value()}.`);
    }
    const drawn = found.map(({ name, own, mean }) => {
      const spread = band.value() === "SEM" ? mean.sem : mean.sd;
      const label = `${name} (n = ${own.length})`;
      const side = (/** @type {number} */ sign) => mean.mean.map((it, index) => (spread[index] === null ? null : it + sign * /** @type {number} */ (spread[index])));
      return {
        name: label,
        group: label,
        shade: colors.get(name),
        x: mean.x,
        y: mean.mean,
        kind: /** @type {const} */ ("lines"),
        ...(band.value() === "none" ? {} : { band: { low: side(-1), high: side(1) } }),
        text: mean.mean.map((it, index) => {
          const more = spread[index] === null ? "" : `, ${band.value() === "none" ? "SD" : band.value()} ${number(/** @type {number} */ (spread[index]))}`;
          return `${name}\u2003${title(table, across.value())} ${placed(mean.x[index])}\u2003mean ${number(it)}${more}, n ${mean.n[index]}`;
        }),
      };
    });
    const figure = plot(`Means of ${up.value()} over ${across.value()} by condition`);
    const save = () =>
      saveValues(
        ["condition", across.value(), "n", "mean", "sd", "sem"],
        found.flatMap(({ name, mean }) => mean.x.map((it, index) => [name, it, mean.n[index], mean.mean[index], mean.sd[index], mean.sem[index]])),
        `${table.name}-means.csv`,
      );
    show(place, h("div", { class: "plates one" }, h("figure", null, h("div", { class: "plot-tools" }, plotTools(figure, table.name, save)), figure)));
    const words = { SD: "mean ± SD", SEM: "mean ± SEM", none: "mean" }[band.value()];
    await figure.draw(drawn, axisX(), { title: `${title(table, up.value())}, ${words}`, type: logY.box.checked ? "log" : "linear" });
  }

  /** A place on the x axis in words. @param {any} it */
  function placed(it) {
    return axisType(table, across.value()) === "date" ? instant(it) : number(it);
  }

  /** @param {Well[]} shown @param {string[]} said */
  function heat(shown, said) {
    const name = color.value();
    const ends = extent(shown.flatMap((it) => it.x)) ?? [0, 0];
    at.min = String(ends[0]);
    at.max = String(ends[1]);
    at.step = "any";
    const place_ = Number(values().get("_at") ?? ends[1]);
    at.value = String(place_);
    show(atWords, `${title(table, across.value())} ${placed(place_)}`);
    const what = measure.value() === "value at" ? `${title(table, up.value())} at ${placed(place_)}` : `${measure.value()} of ${title(table, up.value())}`;
    const found = shown.map((it) => ({ it, value: measured(it, measure.value(), place_) }));
    const range_ = extent(found.map((each) => each.value));
    const groups = name ? colored(shown) : [];
    const colors = new Map(groups.map((it) => [it.key, it]));
    const distinct = [...new Set(groups.map((it) => it.group ?? ""))];
    const placeOf = (/** @type {string | undefined} */ group) => (distinct.length > 1 ? distinct.indexOf(group ?? "") / (distinct.length - 1) : 0.5);
    const size = plateOf(shown.map((it) => it.well));
    const parts = byPlate(shown).map(([plateName, own]) => {
      crowded(own, plateName, said);
      const spots = found
        .filter(({ it }) => it.plate === plateName && it.well)
        .map(({ it, value }) => {
          const group = colors.get(it.key);
          return {
            well: /** @type {any} */ (it.well),
            name: [...about(it), value === null ? "no value" : `${what}: ${number(value)}`].join(", "),
            value,
            link: rowLink(wells.name, it.key),
            ...(group ? { color: sequential(placeOf(group.group)) } : {}),
          };
        });
      return h("figure", null, plateName ? h("figcaption", null, plateName) : null, heatMap(size, spots, range_, { label: `${plateName} ${name ? `${name} of each well` : what}` }));
    });
    const legend = name
      ? h("ul", { class: "chips" }, distinct.map((it) => h("li", { class: "chip" }, swatch(sequential(placeOf(it))), it)))
      : scale(range_, what, measure.value() === "X of the maximum" ? placed : number);
    const save = () =>
      saveValues(["plate", "well", labelOf(wells), what], found.map(({ it, value }) => [it.plate, it.wellName, it.name, value]), `${table.name}-wells.csv`);
    show(place, legend, h("div", { class: `plates${parts.length === 1 ? " one" : ""}` }, parts), h("p", null, h("button", { type: "button", click: save }, "CSV")));
  }

  function saveCurves() {
    const header = [keyOf(wells), labelOf(wells), ...(plate ? [plate.name] : []), ...by.value(), across.value(), up.value()];
    const lines = subtracted([]).flatMap((it) =>
      it.x.map((x, index) => [it.key, it.row[labelOf(wells)], ...(plate ? [it.plate] : []), ...it.order, x, it.y[index]]),
    );
    saveValues(header, lines, `${table.name}.csv`);
  }

  readCurves();
  const chosen = plate ? plateChips(subject, again) : null;
  return h(
    "div",
    null,
    plate ? h("p", { class: "crumbs" }, h("a", { href: address("plates", table.name) }, "All plates")) : null,
    chosen,
    filter,
    h("div", { class: "fields" }, owners.length > 1 ? of.field : null, across.field, up.field, layout.field, well.field, color.field, measure.field, band.field, blank.field, logY.field, logX.field),
    h("details", { open: by.value().length > 0 }, h("summary", null, "Conditions"), by.field),
    step,
    told,
    notes,
    place,
    h("p", { class: "quiet" }, "Drag over a part of a plot to zoom in, double-click to reset, click a curve or a well to open its row."),
  );
}

/** @param {string} color */
function swatch(color) {
  const element = h("span", { class: "swatch", "aria-hidden": "true" });
  element.style.background = color;
  return element;
}

/**
 * The plates of the address, each with a button that takes it out, and a field that adds one.
 * @param {Subject} subject
 * @param {() => void} changed
 */
function plateChips({ plate, wells, all }, changed) {
  const place = h("div", null);
  const column = /** @type {Column} */ (plate);
  const draw = () =>
    load(place, "Reading the plates", async () => {
      const chosen = values().getAll("_plate");
      const other = column.is_foreign_key ? named(all, column.foreign_key_table_name) : null;
      const [key, label] = other ? [keyOf(other), labelOf(other)] : ["", ""];
      const known = other ? (await read(other, { columns: [...new Set([key, label])], limit: 200 })).body : [];
      const set = (/** @type {string[]} */ next) => {
        change({ _plate: next }, true);
        draw();
        changed();
      };
      const nameOf = (/** @type {string} */ id) => String(known.find((/** @type {any} */ it) => String(it[key]) === id)?.[label] ?? id);
      const chip = (/** @type {string} */ id) =>
        h("li", { class: "chip" }, nameOf(id), h("button", { type: "button", "aria-label": `Take out ${nameOf(id)}`, click: () => set(chosen.filter((it) => it !== id)) }, "×"));
      const rest = known.filter((/** @type {any} */ it) => !chosen.includes(String(it[key])));
      const more = /** @type {HTMLSelectElement} */ (
        h("select", { "aria-label": `Add a ${column.name}` }, h("option", { value: "" }, `Add a ${column.name}…`), rest.map((/** @type {any} */ it) => h("option", { value: String(it[key]) }, it[label] ?? it[key])))
      );
      more.addEventListener("change", () => more.value && set([...chosen, more.value]));
      return h("ul", { class: "chips", "aria-label": `Plates, by ${column.name} of ${wells.name}` }, chosen.map(chip), rest.length ? h("li", null, more) : null);
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
function pathsOf(wells, all) {
  const own = written(wells).filter((it) => !it.is_primary_key && it.data_type !== "json").map((column) => ({ name: column.name, column, reference: null }));
  const through = references(wells).flatMap((reference) => {
    const other = all.find((it) => it.name === reference.foreign_key_table_name);
    const columns = other ? written(other).filter((it) => !it.is_primary_key && it.name !== labelOf(other) && (isNumeric(it) || ["string", "text", "boolean"].includes(it.data_type)) && !it.is_foreign_key) : [];
    return columns.map((column) => ({ name: `${reference.name}__${column.name}`, column, reference }));
  });
  return [...own, ...through];
}

/**
 * Draws curves at their wells: each one in a square of its own, all to one scale, on one pair of axes, so that a plate of
 * 384 wells is one plot.
 * @param {import("../plot.js").Plot} place
 * @param {[number, number]} size
 * @param {(import("../plot.js").Curve & Well)[]} curves
 * @param {{x: string, y: string}} names
 * @param {{across: (value: number) => number, up: (value: number) => number, height: (value: any) => number | null, isLog: boolean}} scales
 */
async function drawPlate(place, [rows, columns], curves, names, { across, up, height, isLog }) {
  const moved = [];
  for (const curve of curves) {
    const { well } = curve;
    if (!well) {
      continue;
    }
    const left = well.column + 1 - FILLED / 2;
    const bottom = well.row + 1 + FILLED / 2;
    const about = [curve.name, curve.plate, curve.wellName === curve.name ? "" : curve.wellName, ...(curve.about ?? []).slice(1)].filter(Boolean).join("\u2003");
    moved.push({
      ...curve,
      x: curve.x.map((at) => left + FILLED * across(at)),
      y: curve.y.map((value) => {
        const placed = height(value);
        return placed === null ? null : bottom - FILLED * up(placed);
      }),
      group: curve.group ?? names.y,
      text: curve.y.map((value, point) => `${about}\u2003${names.x} ${curve.x[point]}\u2003${names.y} ${value === null ? "no value" : number(value)}`),
    });
  }
  const numbers = (/** @type {number} */ count) => Array.from({ length: count }, (_, index) => index + 1);
  await place.draw(
    moved,
    { title: `${names.y} over ${names.x}${isLog ? ", logarithmic" : ""}`, type: "linear", range: [0.5, columns + 0.5], ticks: { at: numbers(columns), text: numbers(columns).map(String) } },
    { title: "", type: "linear", range: [rows + 0.5, 0.5], ticks: { at: numbers(rows), text: numbers(rows).map((it) => letters(it - 1)) } },
    { kind: "lines", isPlate: true },
  );
}

/**
 * A function from values to their place in the range of all of them, 0 to 1.
 * @param {any[][]} lists
 */
function range(lists) {
  const [low, high] = extent(lists.flat()) ?? [0, 1];
  const span = high - low || 1;
  return (/** @type {number} */ value) => (value - low) / span;
}
