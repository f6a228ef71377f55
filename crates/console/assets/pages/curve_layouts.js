// The layouts of the view of curves.

import { button, h, show } from "../dom.js";
import { clockAt, counted, naturally, number } from "../format.js";
import { WRITTEN, heatMap, scale, short } from "../heat.js";
import { LEGEND, plot } from "../plot.js";
import { savePicture, saveValues } from "../saving.js";
import { NO_VALUE, extent, lastCommon, meanCurve, measured, plateOf, sequential } from "../science.js";
import { values } from "../state.js";
import { labelOf, rowLink, title } from "../tables.js";
import { byPlate, colorsOf, crowded, drawPlate, matchings, meanCurves, pinField, range, swatch } from "./plate_parts.js";

/**
 * @typedef {import("./curves.js").CurveView} CurveView
 * @typedef {import("./curves.js").Well} Well
 */

/**
 * The curves over each other.
 * @param {CurveView} view
 * @param {Well[]} shown
 * @param {string[]} said
 */
export async function overlaid(view, shown, said) {
  const { table, wells } = view.subject;
  const drawn = view.colored(shown);
  const groups = new Set(drawn.map((it) => it.group ?? it.name)).size;
  if (groups > LEGEND && view.color.value()) {
    said.push(`${counted(groups, "group")}: a legend lists no more than ${LEGEND}. Hover a curve for its group.`);
  }
  const pinned = new Set(values().getAll("_pin"));
  const lost = [...pinned].filter((key) => !drawn.some((it) => String(it.key) === key)).length;
  if (lost > 0) {
    said.push(`${counted(lost, "pinned curve")} ${lost === 1 ? "is" : "are"} not among those that are shown.`);
  }
  // What is drawn last lies above the rest.
  const ordered = drawn.map((it) => ({ ...it, isPinned: pinned.has(String(it.key)) })).sort((a, b) => Number(a.isPinned) - Number(b.isPinned));
  const name = view.second.value();
  const others = name ? ordered.map((it) => ({ ...it, y: it.second, isSecond: true, group: `${it.group ?? it.name}: ${name}` })) : [];
  if (name && view.blank.value()) {
    said.push(`${name} at the second axis is as it was measured: blanks are subtracted from ${view.up.value()} only.`);
  }
  show(view.pins, pinField(wells.name, shown, (key) => view.pin(key)));
  const figure = plot(`${view.curves.length} curves of ${view.up.value()}${name ? ` and ${name}` : ""} over ${view.across.value()}`);
  view.frame([figure]);
  await figure.draw([...ordered, ...others], view.axis, { title: view.upTitle(), type: view.logY.box.checked ? "log" : "linear" }, {
    pin: (curve) => view.pin(String(/** @type {any} */ (curve).key)),
    ...(name ? { second: { title: `${title(table, name)} (dotted)`, type: /** @type {const} */ ("linear") } } : {}),
  });
}

/**
 * The curves at their wells, all to one scale.
 * @param {CurveView} view
 * @param {Well[]} shown
 * @param {string[]} said
 */
export async function atWells(view, shown, said) {
  const { plate } = view.subject;
  const groups = byPlate(shown);
  const size = plateOf(shown.map((it) => it.well));
  const height = (/** @type {any} */ value) => (value === null || (view.logY.box.checked && value <= 0) ? null : view.logY.box.checked ? Math.log10(value) : value);
  const across_ = range(shown.map((it) => it.x));
  const up_ = range(shown.map((it) => it.y.map(height)));
  const drawn = view.colored(shown);
  const figures = groups.map(([name, own]) => {
    crowded(own, name, view.well.value(), plate !== null, said);
    return plot(`${name} ${own.length} curves of ${view.up.value()} over ${view.across.value()}`);
  });
  view.frame(figures, undefined, groups.map(([name, own]) => view.caption(name, own)));
  await Promise.all(
    groups.map(([name], index) => drawPlate(figures[index], size, drawn.filter((it) => it.plate === name), { x: view.axis.title, y: view.upTitle(), isTime: view.axis.zone !== undefined, placed: (it) => view.placed(it) }, { across: across_, up: up_, height, isLog: view.logY.box.checked })),
  );
}

/** The curves of each condition, in their natural order, with their mean. @param {Well[]} shown */
function byCondition(shown) {
  /** @type {Map<string, Well[]>} */
  const groups = new Map();
  for (const it of shown) {
    const name = it.condition || "all curves";
    groups.set(name, [...(groups.get(name) ?? []), it]);
  }
  const list = [...groups].sort(([, [a]], [, [b]]) => a.order.map((value, index) => naturally(value, b.order[index])).find((it) => it !== 0) ?? 0);
  return list.map(([name, own]) => ({ name, own, mean: meanCurve(own) }));
}

/**
 * Says what a person has to know of means to compare them.
 * @param {CurveView} view
 * @param {ReturnType<typeof byCondition>} found
 * @param {string[]} said
 */
function warnOfMeans(view, found, said) {
  const { table, plate } = view.subject;
  if (view.by.value().length === 0) {
    said.push("Choose the columns that tell the conditions apart: until then this is the mean of all curves.");
  }
  const plates = new Set(found.flatMap(({ own }) => own.map((it) => it.plate))).size;
  if (plates > 1 && plate && !view.by.value().includes(plate.name)) {
    said.push(`Curves of ${plates} plates are taken together. To compare the plates, choose ${plate.name} among the conditions.`);
  }
  const uneven = found.filter(({ own, mean }) => mean.n.some((n) => n !== own.length));
  if (uneven.length > 0) {
    said.push(`${uneven.map((it) => it.name).slice(0, 3).join("; ")}${uneven.length > 3 ? " and others" : ""}: not every curve has a value at each ${view.across.value()}. n is that of each point; hover to see it.`);
  }
  const unit = table.columns.find((it) => it.name === view.across.value())?.unit ?? "";
  const distance = (/** @type {number} */ it) => (view.axis.zone ? `${number(it / 1000)} s` : `${number(it)} ${unit}`.trim());
  said.push(...matchings(found.map(({ mean }) => mean), view.across.value(), distance));
  const single = found.filter(({ own }) => own.length === 1).length;
  if (single > 0 && view.band.value() !== "none") {
    said.push(`${counted(single, "condition")} of one curve ${single === 1 ? "has" : "have"} no ${view.band.value()}.`);
  }
}

/**
 * The mean of each condition, with its spread.
 * @param {CurveView} view
 * @param {Well[]} curves
 * @param {string[]} said
 */
export async function means(view, curves, said) {
  const shown = curves.filter((it) => it.y.some((value) => typeof value === "number"));
  const found = byCondition(shown);
  warnOfMeans(view, found, said);
  const colors = view.by.value().length === 1 ? colorsOf(found.map(({ name, own }) => ({ name, value: own[0].order[0] }))) : new Map();
  const drawn = meanCurves(found, view.band.value(), colors, (it) => `${title(view.subject.table, view.across.value())} ${view.placed(it)}`);
  const figure = plot(`Means of ${view.up.value()} over ${view.across.value()} by condition`);
  const save = () =>
    saveValues(
      ["condition", view.across.value(), "n", "mean", "sd", "sem"],
      found.flatMap(({ name, mean }) => mean.x.map((it, index) => [name, view.stored(it), mean.n[index], mean.mean[index], mean.sd[index], mean.sem[index]])),
      `${view.fileName()}-means.csv`,
    );
  view.frame([figure], save);
  const words = { SD: "mean ± SD", SEM: "mean ± SEM", none: "mean" }[view.band.value()];
  await figure.draw(drawn, view.axis, { title: `${view.upTitle()}, ${words}`, type: view.logY.box.checked ? "log" : "linear" });
  return `${counted(found.length, "mean")} of ${counted(shown.length, "curve")}, ${counted(found.reduce((sum, { mean }) => sum + mean.x.length, 0), "point")}.`;
}

/**
 * Moves the slider of `value at` over the x of all curves.
 * @param {CurveView} view
 * @param {Well[]} shown
 * @returns {number} its place
 */
function slide(view, shown) {
  const ends = view.rangeOfX ?? extent(shown.flatMap((it) => it.x)) ?? [0, 0];
  view.rangeOfX = ends;
  view.at.min = String(ends[0]);
  view.at.max = String(ends[1]);
  view.at.step = "any";
  const at = view.placeAt ?? lastCommon(shown.map((it) => it.x)) ?? ends[1];
  view.at.value = String(at);
  show(view.atWords, `${view.axis.title} ${view.placed(at)}; between readings interpolated linearly, outside of them none`);
  return at;
}

/**
 * The value of each well, what it is, and how it is written.
 * @param {CurveView} view
 * @param {Well[]} shown
 */
function wellValues(view, shown) {
  const at = slide(view, shown);
  const measure = view.measure.value();
  const isPlace = measure === "X of the maximum";
  const isSlope = measure === "greatest slope";
  const unit = view.axis.zone ? "" : view.subject.table.columns.find((it) => it.name === view.across.value())?.unit ?? "";
  const slopeUnit = isSlope && view.axis.zone ? " per hour" : unit && isSlope ? ` per ${unit}` : "";
  const what = measure === "value at" ? `${view.upTitle()} at ${view.placed(at)}${unit && ` ${unit}`}` : `${measure} of ${view.upTitle()}${slopeUnit}${isPlace && unit ? `, in ${unit}` : ""}`;
  const found = shown.map((it) => {
    const value = measured(it, measure, at);
    return { it, value: value !== null && isSlope && view.axis.zone ? value * 3_600_000 : value };
  });
  const range = extent(found.map(({ value }) => value));
  const words = (/** @type {number} */ value) => (isPlace ? view.placed(value) : number(value));
  const stored = (/** @type {number | null} */ value) => (isPlace && value !== null ? view.stored(value) : value);
  return { found, range, what, words, stored, brief: isPlace && view.axis.zone ? briefTime(view.axis.zone, range) : undefined };
}

/**
 * Times as they fit into wells: hours of one day, else days.
 * @param {import("../format.js").Zone} zone
 * @param {[number, number] | null} range
 */
function briefTime(zone, range) {
  const isOneDay = range !== null && clockAt(range[0], zone).slice(0, 10) === clockAt(range[1], zone).slice(0, 10);
  return (/** @type {number} */ it) => clockAt(it, zone).slice(...(isOneDay ? [11, 16] : [5, 10]));
}

/**
 * Colors of the groups of wells, in the order of the groups; what has no value is on no scale.
 * @param {ReturnType<CurveView["colored"]>} colored
 */
function groupColors(colored) {
  const groups = new Map(colored.map((it) => [it.group ?? "", it.isNone]));
  const valued = [...groups].flatMap(([group, isNone]) => (isNone ? [] : [group]));
  const share = (/** @type {string} */ group) => (valued.length > 1 ? valued.indexOf(group) / (valued.length - 1) : 0.5);
  return new Map([...groups].map(([group, isNone]) => [group, isNone ? NO_VALUE : sequential(share(group))]));
}

/**
 * Plates as colors: of a value of each curve, or of a condition.
 * @param {CurveView} view
 * @param {Well[]} shown
 * @param {string[]} said
 */
export function heat(view, shown, said) {
  const { table, wells, plate } = view.subject;
  const name = view.color.value();
  const { found, range, what, words, stored, brief } = wellValues(view, shown);
  const seen = name ? `${name} of each well` : what;
  const groups = name ? view.colored(shown) : [];
  const groupOf = new Map(groups.map((it) => [it.key, it.group ?? ""]));
  const colors = groupColors(groups);
  const size = plateOf(shown.map((it) => it.well));
  const isRounded = size[1] <= WRITTEN && !brief && found.some(({ value }) => value !== null && Number(short(value)) !== value);
  const parts = byPlate(shown).map(([plateName, own]) => {
    crowded(own, plateName, view.well.value(), plate !== null, said);
    const spots = found
      .filter(({ it }) => it.plate === plateName && it.well)
      .map(({ it, value }) => ({
        well: /** @type {any} */ (it.well),
        name: [...view.about(it), value === null ? "no value" : `${what}: ${words(value)}`].join(", "),
        value,
        link: rowLink(wells.name, it.key),
        color: colors.get(groupOf.get(it.key) ?? ""),
      }));
    return h("figure", null, view.caption(plateName, own), heatMap(size, spots, range, { brief, label: `${plateName} ${seen}` }));
  });
  const legend = name
    ? h("ul", { class: "chips" }, [...colors].map(([group, color]) => h("li", { class: "chip" }, swatch(color), group)))
    : scale(range, isRounded ? `${what}; in the wells rounded, exact in the CSV` : what, words);
  const save = () => saveValues(["plate", "well", labelOf(wells), what], found.map(({ it, value }) => [it.plate, it.wellName, it.name, stored(value)]), `${view.fileName()}-wells.csv`);
  const drawn = h("div", null, legend, h("div", { class: `plates${parts.length === 1 ? " one" : ""}` }, parts));
  const picture = () => savePicture(drawn, `${view.fileName()}-wells.png`, `${table.name}: ${seen}`);
  show(view.place, drawn, h("p", { class: "plot-tools" }, button("PNG", picture), h("button", { type: "button", click: save }, "CSV")));
  const placed = found.filter(({ it }) => it.well);
  return name ? `${counted(placed.length, "well")}.` : `${counted(placed.filter(({ value }) => value !== null).length, "value")} of ${counted(placed.length, "well")}.`;
}
