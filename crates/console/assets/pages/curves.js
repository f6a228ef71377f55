// The curves of plates: over each other, at their wells, as means of conditions, or as colors.

import { choice, flag, several } from "../choices.js";
import { axes, axisOf, placeOn, series, storedPlace } from "../curves.js";
import { button, failure, h, show } from "../dom.js";
import { numberOf } from "../exact.js";
import { filterBar, filters } from "../filters.js";
import { CALENDAR, clockAt, counted, distinctly, naturally, number, text } from "../format.js";
import { WRITTEN, heatMap, scale, short } from "../heat.js";
import { watching, writesTo } from "../list.js";
import { LEGEND, plot, plotTools } from "../plot.js";
import { savePicture, saveValues } from "../saving.js";
import { MEASURES, NO_VALUE, extent, lastCommon, meanCurve, measured, plateOf, sequential, wellOf } from "../science.js";
import { address, change, values } from "../state.js";
import { keyOf, labelOf, named, names as namesOf, read, rowLink, title, written } from "../tables.js";
import { byPlate, colorsOf, countOf, crowded, drawPlate, leftOut, matchings, meanCurves, passedOver, pathsOf, pinField, plateChips, plateLink, range, runChip, swatch, withoutBlanks, worded, writtenBy } from "./plate_parts.js";
import { wellColumn } from "./plates.js";

/**
 * @typedef {{table: Table, owner: Column, owners: Column[], wells: Table, plate: Column | null, all: Table[]}} Subject
 * @typedef {{x: any[], y: any[], key: any, row: any, name: string, well: {row: number, column: number} | null, wellName: string,
 *   second: any[], plate: string, condition: string, order: any[], isBlank: boolean,
 *   given: {x: any[], y: any[]}}} Well a curve with what is known of its well
 */

/** Most curves of a view: a plate of 1,536 wells, and some. */
const MOST = 1600;

/** Rows of a request. */
const ROWS = 400;

/** Most requests for rows that are looked through for curves. */
const PAGES = 10;

const LAYOUTS = ["overlaid", "as a plate", "means by condition", "heat map"];

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
  /** Ends of the x of all curves, once they are known. @type {number[] | null} */
  let rangeOfX = null;
  /** The x axis of what is shown. @type {import("../plot.js").Axis} */
  let axis = { title: "", type: "linear" };
  /** @type {Map<string, Map<any, string>>} words of the values at the chosen paths */
  let labels = new Map();
  /** @type {Map<string, Map<any, any>>} values of the referenced rows, by path and then the key */
  let known = new Map();
  let isCut = false;
  /** What a filter leaves out, and how many rows have no curve, in words. */
  let rest = "";
  let rounded = 0;

  const of = choice("Curves of", "_of", owners.map((it) => it.name), owner.name, () => (location.hash = address("plates", table.name, { _of: of.value(), _all: "1" })));
  const across = choice("X axis", "_x", first.xs, first.x, readCurves);
  const up = choice("Y axis", "_y", first.ys, first.y, readCurves);
  const second = choice("Second axis", "_y2", ["", ...first.ys.filter((it) => it !== first.x)], "", readCurves);
  const layout = choice("Layout", "_layout", LAYOUTS, plate && values().has("_plate") ? "as a plate" : "overlaid", drawCurves);
  const texts = own.filter((it) => it.data_type === "string" && !it.is_foreign_key).map((it) => it.name);
  const well = choice("Well column", "_well", texts, wellColumn(wells), drawCurves);
  const color = choice("Color by", "_color", ["", ...own.map((it) => it.name)], "", drawCurves);
  const logY = flag("Log scale", "_log", drawCurves);
  const logX = flag("Log X", "_logx", drawCurves);
  const paths = pathsOf(wells, all);
  const by = several("Conditions", "_by", paths.filter((it) => it.name !== labelOf(wells)).map((it) => [it.name, it.name.replace("__", " → ")]), readCurves);
  const band = choice("Band", "_band", ["SD", "SEM", "none"], "SD", drawCurves);
  const blanks = own.filter((it) => it.data_type === "boolean").map((it) => it.name);
  const blank = choice("Subtract blanks", "_blank", ["", ...blanks], "", drawCurves);
  const measure = choice("Color shows", "_measure", [...MEASURES], "maximum", drawCurves);
  const at = h("input", { type: "range", "aria-label": "X of the value" });
  const atWords = h("output", null);
  /** Place of the slider, which the address has once it is let go. @type {number | null} */
  let placeAt = values().has("_at") ? Number(values().get("_at")) : null;
  let isDue = false;
  at.addEventListener("input", () => {
    placeAt = Number(at.value);
    if (!isDue) {
      isDue = true;
      requestAnimationFrame(() => {
        isDue = false;
        drawCurves();
      });
    }
  });
  at.addEventListener("change", () => change({ _at: at.value }));
  const step = h("div", { class: "step", hidden: true }, at, atWords);
  const pins = h("div", null);
  const filter = filterBar(wells, all, readCurves);

  let reading = 0;
  async function readCurves() {
    const mine = ++reading;
    const waiting = setTimeout(() => show(told, "Reading the curves…"), 300);
    try {
      const got = await readPages();
      const others = await readKnown(got.map((it) => it.row));
      if (mine === reading) {
        known = others;
        rangeOfX = null;
        curves = got.map(({ row, curve }) => ({ ...curve, row, ...described(row) }));
        rounded = curves.reduce((sum, { given }) => sum + [...given.x, ...given.y].filter((value) => typeof value === "bigint").length, 0);
        drawCurves();
      }
    } catch (error) {
      show(told, failure(error));
    } finally {
      clearTimeout(waiting);
    }
  }

  /** Rows that have curves. Those without are passed over, as far as some pages reach. */
  async function readPages() {
    const wanted = await filters(wells, all);
    const chosen = values().getAll("_plate");
    if (plate && chosen.length > 0) {
      wanted[`${plate.name}__in`] = plate.data_type === "integer" ? chosen.map((it) => numberOf(it, true)) : chosen;
    }
    const run = values().get("_run");
    const ofRun = run ? await writtenBy(subject, run) : null;
    if (ofRun) {
      wanted[`${keyOf(wells)}__in`] = ofRun.keys;
    }
    const got = [];
    let count = 0;
    /** @type {string | null | undefined} */
    let next = undefined;
    for (let page = 0; page < PAGES && next !== null && got.length < MOST; page++) {
      const rows = await read(wells, { filters: wanted, limit: ROWS }, next);
      const keys = rows.body.map((/** @type {any} */ row) => row[keyOf(wells)]);
      const found = keys.length ? await series(table, owner.name, keys, across.value(), up.value(), second.value()) : [];
      got.push(...found.map((curve, index) => ({ row: rows.body[index], curve })).filter((it) => it.curve.y.length > 0));
      next = rows.next;
      count += keys.length;
    }
    rest = passedOver(wells, table, count, got.length);
    isCut = next !== null || got.length > MOST || ofRun?.isMore === true;
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

  /** The value of a row at a path; of a reference, the key. @param {any} row @param {string} path */
  function keyAt(row, path) {
    const reference = paths.find((it) => it.name === path)?.reference;
    const value = (reference ? known.get(path)?.get(row[reference.name]) : row[path]) ?? null;
    return value !== null && typeof value === "object" ? text(value) : value;
  }

  /** The value of a row at a path, as people see it. @param {any} row @param {string} path */
  function valueAt(row, path) {
    const key = keyAt(row, path);
    return paths.some((it) => it.name === path && it.reference) ? key : (known.get(path)?.get(key) ?? key);
  }

  /** @param {any} row */
  function described(row) {
    return { name: String(row[labelOf(wells)] ?? row[keyOf(wells)]), well: null, wellName: "", plate: "", condition: "", order: [], isBlank: false };
  }

  /** Puts what the choices say into the curves. */
  function describe() {
    const flag = blank.value();
    const conditions = by.value();
    const words = (/** @type {string} */ path) => {
      const valueOf = new Map(curves.map((it) => [keyAt(it.row, path), valueAt(it.row, path)]));
      return distinctly(valueOf.keys(), (key) => worded(paths, path, valueOf.get(key)));
    };
    labels = new Map([...conditions, color.value(), plate?.name ?? ""].filter(Boolean).map((path) => [path, words(path)]));
    for (const it of curves) {
      it.wellName = String(it.row[well.value()] ?? "");
      it.well = wellOf(it.wellName);
      it.plate = plate ? labelAt(it.row, plate.name) : "";
      it.order = conditions.map((path) => valueAt(it.row, path));
      it.condition = conditions.map((path) => labelAt(it.row, path)).join(", ");
      it.isBlank = flag !== "" && it.row[flag] === true;
    }
  }

  /** Words of a row's value at a chosen path, others for each value. @param {any} row @param {string} path */
  function labelAt(row, path) {
    return labels.get(path)?.get(keyAt(row, path)) ?? "";
  }

  /** Lines that say what a curve is of. @param {Well} it */
  function about(it) {
    const more = color.value() ? `${color.value()}: ${labelAt(it.row, color.value())}` : "";
    return [[it.name, it.plate, it.wellName === it.name ? "" : it.wellName].filter(Boolean).join(" · "), it.condition, more].filter(Boolean);
  }

  /** Shows the choices that the layout has, and returns it. */
  function arrange() {
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
    axis = axisOf(table, across.value(), curves);
    logX.field.hidden = isHeat || kind === "as a plate" || axis.type === "date";
    axis.type = isLogX() ? "log" : axis.type;
    second.field.hidden = kind !== "overlaid" || second.select.length < 3;
    pins.hidden = kind !== "overlaid";
    return kind;
  }

  async function drawCurves() {
    describe();
    const kind = arrange();
    /** @type {string[]} */
    const said = [];
    const shown = subtracted(said);
    if (rounded > 0) {
      said.push(`${counted(rounded, "value")} beyond 2^53: drawn and computed without the last digits, which the CSV of the curves has.`);
    }
    if (isCut) {
      said.push(`These are the first ${counted(curves.length, "curve")}; a filter chooses others.`);
    }
    if (logY.box.checked && kind !== "heat map") {
      leftOut(shown, "y", said);
    }
    if (isLogX()) {
      leftOut(shown, "x", said);
    }
    try {
      const began = performance.now();
      let words = "0 curves.";
      if (curves.length === 0) {
        show(place, h("p", { class: "empty" }, "No row with a curve meets the condition."));
      } else if (kind === "heat map") {
        words = heat(shown, said);
      } else if (kind === "means by condition") {
        words = await means(shown, said);
      } else if (kind === "as a plate") {
        await atWells(shown, said);
        words = countOf(shown.filter((it) => it.well), false, logY.box.checked);
      } else {
        await overlaid(shown, said);
        words = countOf(shown, isLogX(), logY.box.checked);
      }
      performance.measure("plot", { start: began });
      show(told, words);
      show(notes, ...said.map((it) => h("p", { class: "note warns" }, it)), h("p", { class: "quiet" }, rest));
    } catch (error) {
      show(told, failure(error));
    }
  }

  /** The curves without the blanks of their plates, if asked. @param {string[]} said */
  function subtracted(said) {
    return blank.value() === "" ? curves : withoutBlanks(curves, across.value(), said);
  }

  /** Whether x is logarithmic: times are not. */
  function isLogX() {
    return logX.box.checked && !logX.field.hidden;
  }

  const placed = (/** @type {any} */ it) => placeOn(axis, it);
  const stored = (/** @type {any} */ it) => storedPlace(axis, it);
  const minusBlank = () => (blank.value() ? " minus blank" : "");
  const fileName = () => table.name + (blank.value() ? "-minus-blank" : "");
  const upTitle = () => title(table, up.value()) + minusBlank();

  /** @param {Well[]} shown */
  function colored(shown) {
    const name = color.value();
    const grouped = shown.map((it) => {
      const value = name ? valueAt(it.row, name) : it.plate;
      return { it, value, isNone: name !== "" && value === null, name: name ? labelAt(it.row, name) : it.plate };
    });
    const colors = colorsOf(grouped);
    const order = [...colors.keys()];
    return grouped
      .sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name))
      .map(({ it, isNone, name: group }) => ({ ...it, isNone, group: name || plate ? group : undefined, shade: colors.get(group), about: about(it), link: rowLink(wells.name, it.key) }));
  }

  /** Shows plots side by side below their tools. @param {import("../plot.js").Plot[]} plots @param {() => void} [save] @param {(HTMLElement | null)[]} [captions] */
  function frame(plots, save = saveCurves, captions = []) {
    show(place, plotTools(plots, fileName(), save), h("div", { class: `plates${plots.length === 1 ? " one" : ""}` }, plots.map((it, index) => h("figure", null, captions[index], it))));
  }

  /** A plate's name, which leads to its row. @param {string} name @param {Well[]} own */
  function caption(name, own) {
    return name ? h("figcaption", null, plateLink(plate, own[0].row[plate?.name ?? ""], name)) : null;
  }

  /** @param {Well[]} shown @param {string[]} said */
  async function overlaid(shown, said) {
    const drawn = colored(shown);
    const groups = new Set(drawn.map((it) => it.group ?? it.name)).size;
    if (groups > LEGEND && color.value()) {
      said.push(`${counted(groups, "group")}: a legend lists no more than ${LEGEND}. Hover a curve for its group.`);
    }
    const pinned = new Set(values().getAll("_pin"));
    const lost = [...pinned].filter((key) => !drawn.some((it) => String(it.key) === key)).length;
    if (lost > 0) {
      said.push(`${counted(lost, "pinned curve")} ${lost === 1 ? "is" : "are"} not among those that are shown.`);
    }
    // What is drawn last lies above the rest.
    const ordered = drawn.map((it) => ({ ...it, isPinned: pinned.has(String(it.key)) })).sort((a, b) => Number(a.isPinned) - Number(b.isPinned));
    const name = second.value();
    const others = name ? ordered.map((it) => ({ ...it, y: it.second, isSecond: true, group: `${it.group ?? it.name}: ${name}` })) : [];
    if (name && blank.value()) {
      said.push(`${name} at the second axis is as it was measured: blanks are subtracted from ${up.value()} only.`);
    }
    show(pins, pinField(wells.name, shown, pin));
    const figure = plot(`${curves.length} curves of ${up.value()}${name ? ` and ${name}` : ""} over ${across.value()}`);
    frame([figure]);
    await figure.draw([...ordered, ...others], axis, { title: upTitle(), type: logY.box.checked ? "log" : "linear" }, {
      pin: (curve) => pin(String(/** @type {any} */ (curve).key)),
      ...(name ? { second: { title: `${title(table, name)} (dotted)`, type: /** @type {const} */ ("linear") } } : {}),
    });
  }

  /** Pins a curve, or frees it. @param {string} key */
  function pin(key) {
    const now = values().getAll("_pin");
    change({ _pin: now.includes(key) ? now.filter((it) => it !== key) : [...now, key] });
    drawCurves();
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
      crowded(own, name, well.value(), plate !== null, said);
      return plot(`${name} ${own.length} curves of ${up.value()} over ${across.value()}`);
    });
    frame(figures, saveCurves, groups.map(([name, own]) => caption(name, own)));
    await Promise.all(
      groups.map(([name], index) => drawPlate(figures[index], size, drawn.filter((it) => it.plate === name), { x: axis.title, y: upTitle(), isTime: axis.zone !== undefined, placed }, { across: across_, up: up_, height, isLog: logY.box.checked })),
    );
  }

  /** @param {Well[]} curves_ @param {string[]} said */
  async function means(curves_, said) {
    const shown = curves_.filter((it) => it.y.some((value) => typeof value === "number"));
    if (by.value().length === 0) {
      said.push("Choose the columns that tell the conditions apart: until then this is the mean of all curves.");
    }
    const plates = new Set(shown.map((it) => it.plate)).size;
    if (plates > 1 && plate && !by.value().includes(plate.name)) {
      said.push(`Curves of ${plates} plates are taken together. To compare the plates, choose ${plate.name} among the conditions.`);
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
    const unit = table.columns.find((it) => it.name === across.value())?.unit ?? "";
    const distance = (/** @type {number} */ it) => (axis.zone ? `${number(it / 1000)} s` : `${number(it)} ${unit}`.trim());
    said.push(...matchings(found.map(({ mean }) => mean), across.value(), distance));
    const single = found.filter(({ own }) => own.length === 1).length;
    if (single > 0 && band.value() !== "none") {
      said.push(`${counted(single, "condition")} of one curve ${single === 1 ? "has" : "have"} no ${band.value()}.`);
    }
    const drawn = meanCurves(found, band.value(), colors, (it) => `${title(table, across.value())} ${placed(it)}`);
    const figure = plot(`Means of ${up.value()} over ${across.value()} by condition`);
    const save = () =>
      saveValues(
        ["condition", across.value(), "n", "mean", "sd", "sem"],
        found.flatMap(({ name, mean }) => mean.x.map((it, index) => [name, stored(it), mean.n[index], mean.mean[index], mean.sd[index], mean.sem[index]])),
        `${fileName()}-means.csv`,
      );
    frame([figure], save);
    const words = { SD: "mean ± SD", SEM: "mean ± SEM", none: "mean" }[band.value()];
    await figure.draw(drawn, axis, { title: `${upTitle()}, ${words}`, type: logY.box.checked ? "log" : "linear" });
    return `${counted(found.length, "mean")} of ${counted(shown.length, "curve")}, ${counted(found.reduce((sum, { mean }) => sum + mean.x.length, 0), "point")}.`;
  }

  /** @param {Well[]} shown @param {string[]} said */
  function heat(shown, said) {
    const name = color.value();
    const ends = rangeOfX ?? extent(shown.flatMap((it) => it.x)) ?? [0, 0];
    rangeOfX = ends;
    at.min = String(ends[0]);
    at.max = String(ends[1]);
    at.step = "any";
    const place_ = placeAt ?? lastCommon(shown.map((it) => it.x)) ?? ends[1];
    at.value = String(place_);
    show(atWords, `${axis.title} ${placed(place_)}; between readings interpolated linearly, outside of them none`);
    const isPlace = measure.value() === "X of the maximum";
    const isSlope = measure.value() === "greatest slope" && axis.zone;
    const unit = axis.zone ? "" : table.columns.find((it) => it.name === across.value())?.unit ?? "";
    const slopeUnit = isSlope ? " per hour" : unit && measure.value() === "greatest slope" ? ` per ${unit}` : "";
    const what = measure.value() === "value at" ? `${upTitle()} at ${placed(place_)}${unit && ` ${unit}`}` : `${measure.value()} of ${upTitle()}${slopeUnit}${isPlace && unit ? `, in ${unit}` : ""}`;
    const found = shown.map((it) => {
      const value = measured(it, measure.value(), place_);
      return { it, value: value !== null && isSlope ? value * 3_600_000 : value };
    });
    const range_ = extent(found.map((each) => each.value));
    const seen = name ? `${name} of each well` : what;
    const groups = name ? colored(shown) : [];
    const colors = new Map(groups.map((it) => [it.key, it]));
    const distinct = new Map(groups.map((it) => [it.group ?? "", it.isNone]));
    const valued = [...distinct].flatMap(([group, isNone]) => (isNone ? [] : [group]));
    const colorOf = (/** @type {string} */ group) => (distinct.get(group) ? NO_VALUE : sequential(valued.length > 1 ? valued.indexOf(group) / (valued.length - 1) : 0.5));
    const size = plateOf(shown.map((it) => it.well));
    const isOneDay = range_ !== null && axis.zone !== undefined && clockAt(range_[0], axis.zone).slice(0, 10) === clockAt(range_[1], axis.zone).slice(0, 10);
    const brief = (/** @type {number} */ it) => clockAt(it, axis.zone ?? CALENDAR).slice(...(isOneDay ? [11, 16] : [5, 10]));
    const isRounded = size[1] <= WRITTEN && !(isPlace && axis.zone) && found.some(({ value }) => value !== null && Number(short(value)) !== value);
    const parts = byPlate(shown).map(([plateName, own]) => {
      crowded(own, plateName, well.value(), plate !== null, said);
      const spots = found
        .filter(({ it }) => it.plate === plateName && it.well)
        .map(({ it, value }) => {
          const group = colors.get(it.key);
          return {
            well: /** @type {any} */ (it.well),
            name: [...about(it), value === null ? "no value" : `${what}: ${isPlace ? placed(value) : number(value)}`].join(", "),
            value,
            link: rowLink(wells.name, it.key),
            ...(group ? { color: colorOf(group.group ?? "") } : {}),
          };
        });
      return h("figure", null, caption(plateName, own), heatMap(size, spots, range_, { ...(isPlace && axis.zone ? { brief } : {}), label: `${plateName} ${seen}` }));
    });
    const legend = name
      ? h("ul", { class: "chips" }, [...distinct.keys()].map((it) => h("li", { class: "chip" }, swatch(colorOf(it)), it)))
      : scale(range_, isRounded ? `${what}; in the wells rounded, exact in the CSV` : what, isPlace ? placed : number);
    const save = () =>
      saveValues(["plate", "well", labelOf(wells), what], found.map(({ it, value }) => [it.plate, it.wellName, it.name, isPlace && value !== null ? stored(value) : value]), `${fileName()}-wells.csv`);
    const drawn = h("div", null, legend, h("div", { class: `plates${parts.length === 1 ? " one" : ""}` }, parts));
    const picture = () => savePicture(drawn, `${fileName()}-wells.png`, `${table.name}: ${seen}`);
    show(place, drawn, h("p", { class: "plot-tools" }, button("PNG", picture), h("button", { type: "button", click: save }, "CSV")));
    const placedWells = found.filter(({ it }) => it.well);
    return name ? `${counted(placedWells.length, "well")}.` : `${counted(placedWells.filter(({ value }) => value !== null).length, "value")} of ${counted(placedWells.length, "well")}.`;
  }

  function saveCurves() {
    const header = [keyOf(wells), labelOf(wells), ...(plate ? [plate.name] : []), ...by.value(), across.value(), up.value() + minusBlank()];
    const lines = subtracted([]).flatMap((it) =>
      it.given.x.map((x, index) => [it.key, it.row[labelOf(wells)], ...(plate ? [it.plate] : []), ...it.order, x, (blank.value() ? it.y : it.given.y)[index]]),
    );
    saveValues(header, lines, `${fileName()}.csv`);
  }

  arrange();
  const drawing = h("div", null, pins, told, notes, place);
  watching(drawing, readCurves, writesTo(table.name, wells.name, plate?.foreign_key_table_name));
  const chosen = plate ? plateChips(subject, readCurves) : null;
  return h(
    "div",
    null,
    plate ? h("p", { class: "crumbs" }, h("a", { href: address("plates", table.name) }, "All plates")) : null,
    chosen,
    runChip(readCurves),
    filter,
    h("div", { class: "fields" }, owners.length > 1 ? of.field : null, across.field, up.field, second.field, layout.field, well.field, color.field, measure.field, band.field, blank.field, logY.field, logX.field),
    h("details", { open: by.value().length > 0 }, h("summary", null, "Conditions"), by.field),
    step,
    drawing,
    h("p", { class: "quiet" }, "Drag over a part of a plot to zoom in, double-click to reset, click a curve or a well to open its row, with Shift to highlight a curve."),
  );
}
