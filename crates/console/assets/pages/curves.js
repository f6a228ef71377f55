// The curves of plates: over each other, at their wells, as means of conditions, or as colors.

import { choice, flag, several } from "../choices.js";
import { axes, axisOf, placeOn, series, storedPlace } from "../curves.js";
import { failure, h, show } from "../dom.js";
import { numberOf } from "../exact.js";
import { filterBar, filters } from "../filters.js";
import { counted, distinctly, text } from "../format.js";
import { watching, writesTo } from "../list.js";
import { plotTools } from "../plot.js";
import { saveValues } from "../saving.js";
import { MEASURES, wellOf } from "../science.js";
import { address, change, values } from "../state.js";
import { keyOf, labelOf, named, names as namesOf, read, rowLink, title, written } from "../tables.js";
import { atWells, heat, means, overlaid } from "./curve_layouts.js";
import { colorsOf, countOf, leftOut, passedOver, pathsOf, plateChips, plateLink, runChip, withoutBlanks, worded, writtenBy } from "./plate_parts.js";
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

/** The view of the curves of rows. */
export class CurveView {
  /** @param {Subject} subject */
  constructor(subject) {
    const { table, owner, owners, wells, plate, all } = subject;
    this.subject = subject;
    const first = axes(table);
    const own = written(wells);
    const draw = () => this.drawCurves();
    const reads = () => this.readCurves();
    this.told = h("span", { class: "quiet told", role: "status" });
    this.notes = h("div", { "aria-live": "polite" });
    this.place = h("div", null);
    this.pins = h("div", null);
    /** @type {Well[]} */
    this.curves = [];
    /** Ends of the x of all curves, once they are known. @type {number[] | null} */
    this.rangeOfX = null;
    /** The x axis of what is shown. @type {import("../plot.js").Axis} */
    this.axis = { title: "", type: "linear" };
    /** Words of the values at the chosen paths. @type {Map<string, Map<any, string>>} */
    this.labels = new Map();
    /** Values of the referenced rows, by path and then the key. @type {Map<string, Map<any, any>>} */
    this.known = new Map();
    this.isCut = false;
    /** What a filter leaves out, and how many rows have no curve, in words. */
    this.rest = "";
    this.rounded = 0;
    /** Number of the latest reading. */
    this.reading = 0;
    this.paths = pathsOf(wells, all);
    this.of = choice("Curves of", "_of", owners.map((it) => it.name), owner.name, () => (location.hash = address("plates", table.name, { _of: this.of.value(), _all: "1" })));
    this.across = choice("X axis", "_x", first.xs, first.x, reads);
    this.up = choice("Y axis", "_y", first.ys, first.y, reads);
    this.second = choice("Second axis", "_y2", ["", ...first.ys.filter((it) => it !== first.x)], "", reads);
    this.layout = choice("Layout", "_layout", LAYOUTS, plate && values().has("_plate") ? "as a plate" : "overlaid", draw);
    this.well = choice("Well column", "_well", own.filter((it) => it.data_type === "string" && !it.is_foreign_key).map((it) => it.name), wellColumn(wells), draw);
    this.color = choice("Color by", "_color", ["", ...own.map((it) => it.name)], "", draw);
    this.logY = flag("Log scale", "_log", draw);
    this.logX = flag("Log X", "_logx", draw);
    this.by = several("Conditions", "_by", this.paths.filter((it) => it.name !== labelOf(wells)).map((it) => [it.name, it.name.replace("__", " → ")]), reads);
    this.band = choice("Band", "_band", ["SD", "SEM", "none"], "SD", draw);
    this.blanks = own.filter((it) => it.data_type === "boolean").map((it) => it.name);
    this.blank = choice("Subtract blanks", "_blank", ["", ...this.blanks], "", draw);
    this.measure = choice("Color shows", "_measure", [...MEASURES], "maximum", draw);
    /** Place of the slider, which the address has once it is let go. @type {number | null} */
    this.placeAt = values().has("_at") ? Number(values().get("_at")) : null;
    this.atWords = h("output", null);
    this.at = this.slider();
    this.step = h("div", { class: "step", hidden: true }, this.at, this.atWords);
  }

  /** The slider of the x whose value a heat map shows; it draws once a frame. */
  slider() {
    let isDue = false;
    const move = () => {
      this.placeAt = Number(at.value);
      if (!isDue) {
        isDue = true;
        requestAnimationFrame(() => {
          isDue = false;
          this.drawCurves();
        });
      }
    };
    const at = h("input", { type: "range", "aria-label": "X of the value", input: move, change: () => change({ _at: at.value }) });
    return at;
  }

  /** The page's elements. */
  element() {
    const { table, owners, wells, plate, all } = this.subject;
    const reads = () => this.readCurves();
    this.arrange();
    const drawing = h("div", null, this.pins, this.told, this.notes, this.place);
    watching(drawing, reads, writesTo(table.name, wells.name, plate?.foreign_key_table_name));
    const fields = [owners.length > 1 ? this.of : null, this.across, this.up, this.second, this.layout, this.well, this.color, this.measure, this.band, this.blank, this.logY, this.logX];
    return h(
      "div",
      null,
      plate ? h("p", { class: "crumbs" }, h("a", { href: address("plates", table.name) }, "All plates")) : null,
      plate ? plateChips(this.subject, reads) : null,
      runChip(reads),
      filterBar(wells, all, reads),
      h("div", { class: "fields" }, fields.map((it) => it?.field)),
      h("details", { open: this.by.value().length > 0 }, h("summary", null, "Conditions"), this.by.field),
      this.step,
      drawing,
      h("p", { class: "quiet" }, "Drag over a part of a plot to zoom in, double-click to reset, click a curve or a well to open its row, with Shift to highlight a curve."),
    );
  }

  async readCurves() {
    const mine = ++this.reading;
    const waiting = setTimeout(() => show(this.told, "Reading the curves…"), 300);
    try {
      const got = await this.readPages();
      const others = await this.readKnown(got.map((it) => it.row));
      if (mine === this.reading) {
        this.known = others;
        this.rangeOfX = null;
        this.curves = got.map(({ row, curve }) => ({ ...curve, row, ...this.described(row) }));
        this.rounded = this.curves.reduce((sum, { given }) => sum + [...given.x, ...given.y].filter((value) => typeof value === "bigint").length, 0);
        this.drawCurves();
      }
    } catch (error) {
      show(this.told, failure(error));
    } finally {
      clearTimeout(waiting);
    }
  }

  /** Conditions of the rows: those of the filter, the chosen plates, and the execution that wrote their curves. */
  async wantedRows() {
    const { wells, plate, all } = this.subject;
    const wanted = await filters(wells, all);
    const chosen = values().getAll("_plate");
    if (plate && chosen.length > 0) {
      wanted[`${plate.name}__in`] = plate.data_type === "integer" ? chosen.map((it) => numberOf(it, true)) : chosen;
    }
    const run = values().get("_run");
    const ofRun = run ? await writtenBy(this.subject, run) : null;
    if (ofRun) {
      wanted[`${keyOf(wells)}__in`] = ofRun.keys;
    }
    return { wanted, isMore: ofRun?.isMore === true };
  }

  /** Rows that have curves. Those without are passed over, as far as some pages reach. */
  async readPages() {
    const { table, owner, wells } = this.subject;
    const { wanted, isMore } = await this.wantedRows();
    const got = [];
    let count = 0;
    /** @type {string | null | undefined} */
    let next = undefined;
    for (let page = 0; page < PAGES && next !== null && got.length < MOST; page++) {
      const rows = await read(wells, { filters: wanted, limit: ROWS }, next);
      const keys = rows.body.map((/** @type {any} */ row) => row[keyOf(wells)]);
      const found = keys.length ? await series(table, owner.name, keys, this.across.value(), this.up.value(), this.second.value()) : [];
      got.push(...found.map((curve, index) => ({ row: rows.body[index], curve })).filter((it) => it.curve.y.length > 0));
      next = rows.next;
      count += keys.length;
    }
    this.rest = passedOver(wells, table, count, got.length);
    this.isCut = next !== null || got.length > MOST || isMore;
    return got.slice(0, MOST);
  }

  /** @param {any[]} rows */
  async readKnown(rows) {
    const { wells, all } = this.subject;
    const labels = await namesOf(wells, all, rows);
    /** @type {Map<string, Map<any, any>>} */
    const found = new Map(labels);
    for (const path of this.paths.filter((it) => it.reference && this.by.value().includes(it.name))) {
      const reference = /** @type {Column} */ (path.reference);
      const other = named(all, reference.foreign_key_table_name);
      const keys = [...new Set(rows.map((row) => row[reference.name]).filter((it) => it !== null))];
      const { body } = keys.length ? await read(other, { filters: { [`${keyOf(other)}__in`]: keys }, columns: [...new Set([keyOf(other), path.column.name])], limit: keys.length }) : { body: [] };
      found.set(path.name, new Map(body.map((/** @type {any} */ it) => [it[keyOf(other)], it[path.column.name]])));
    }
    return found;
  }

  /** The value of a row at a path; of a reference, the key. @param {any} row @param {string} path */
  keyAt(row, path) {
    const reference = this.paths.find((it) => it.name === path)?.reference;
    const value = (reference ? this.known.get(path)?.get(row[reference.name]) : row[path]) ?? null;
    return value !== null && typeof value === "object" ? text(value) : value;
  }

  /** The value of a row at a path, as people see it. @param {any} row @param {string} path */
  valueAt(row, path) {
    const key = this.keyAt(row, path);
    return this.paths.some((it) => it.name === path && it.reference) ? key : (this.known.get(path)?.get(key) ?? key);
  }

  /** @param {any} row */
  described(row) {
    const { wells } = this.subject;
    return { name: String(row[labelOf(wells)] ?? row[keyOf(wells)]), well: null, wellName: "", plate: "", condition: "", order: [], isBlank: false };
  }

  /** Puts what the choices say into the curves. */
  describe() {
    const { plate } = this.subject;
    const flag = this.blank.value();
    const conditions = this.by.value();
    const words = (/** @type {string} */ path) => {
      const valueOf = new Map(this.curves.map((it) => [this.keyAt(it.row, path), this.valueAt(it.row, path)]));
      return distinctly(valueOf.keys(), (key) => worded(this.paths, path, valueOf.get(key)));
    };
    this.labels = new Map([...conditions, this.color.value(), plate?.name ?? ""].filter(Boolean).map((path) => [path, words(path)]));
    for (const it of this.curves) {
      it.wellName = String(it.row[this.well.value()] ?? "");
      it.well = wellOf(it.wellName);
      it.plate = plate ? this.labelAt(it.row, plate.name) : "";
      it.order = conditions.map((path) => this.valueAt(it.row, path));
      it.condition = conditions.map((path) => this.labelAt(it.row, path)).join(", ");
      it.isBlank = flag !== "" && it.row[flag] === true;
    }
  }

  /** Words of a row's value at a chosen path, others for each value. @param {any} row @param {string} path */
  labelAt(row, path) {
    return this.labels.get(path)?.get(this.keyAt(row, path)) ?? "";
  }

  /** Lines that say what a curve is of. @param {Well} it */
  about(it) {
    const more = this.color.value() ? `${this.color.value()}: ${this.labelAt(it.row, this.color.value())}` : "";
    return [[it.name, it.plate, it.wellName === it.name ? "" : it.wellName].filter(Boolean).join(" · "), it.condition, more].filter(Boolean);
  }

  /** Shows the choices that the layout has, and returns it. */
  arrange() {
    const { table } = this.subject;
    const kind = this.layout.value();
    const isMeans = kind === "means by condition";
    const isHeat = kind === "heat map";
    this.well.field.hidden = isMeans || kind === "overlaid";
    this.color.field.hidden = isMeans;
    this.band.field.hidden = !isMeans;
    this.blank.field.hidden = this.blanks.length === 0;
    this.measure.field.hidden = !isHeat || this.color.value() !== "";
    this.step.hidden = !isHeat || this.measure.value() !== "value at" || this.color.value() !== "";
    this.logY.field.hidden = isHeat;
    this.axis = axisOf(table, this.across.value(), this.curves);
    this.logX.field.hidden = isHeat || kind === "as a plate" || this.axis.type === "date";
    this.axis.type = this.isLogX() ? "log" : this.axis.type;
    this.second.field.hidden = kind !== "overlaid" || this.second.select.length < 3;
    this.pins.hidden = kind !== "overlaid";
    return kind;
  }

  async drawCurves() {
    this.describe();
    const kind = this.arrange();
    /** @type {string[]} */
    const said = [];
    const shown = this.subtracted(said);
    this.warn(kind, shown, said);
    try {
      const began = performance.now();
      let words = "0 curves.";
      if (this.curves.length === 0) {
        show(this.place, h("p", { class: "empty" }, "No row with a curve meets the condition."));
      } else if (kind === "heat map") {
        words = heat(this, shown, said);
      } else if (kind === "means by condition") {
        words = await means(this, shown, said);
      } else if (kind === "as a plate") {
        await atWells(this, shown, said);
        words = countOf(shown.filter((it) => it.well), false, this.logY.box.checked);
      } else {
        await overlaid(this, shown, said);
        words = countOf(shown, this.isLogX(), this.logY.box.checked);
      }
      performance.measure("plot", { start: began });
      show(this.told, words);
      show(this.notes, ...said.map((it) => h("p", { class: "note warns" }, it)), h("p", { class: "quiet" }, this.rest));
    } catch (error) {
      show(this.told, failure(error));
    }
  }

  /** Says what the curves that are shown leave out. @param {string} kind @param {Well[]} shown @param {string[]} said */
  warn(kind, shown, said) {
    if (this.rounded > 0) {
      said.push(`${counted(this.rounded, "value")} beyond 2^53: drawn and computed without the last digits, which the CSV of the curves has.`);
    }
    if (this.isCut) {
      said.push(`These are the first ${counted(this.curves.length, "curve")}; a filter chooses others.`);
    }
    if (this.logY.box.checked && kind !== "heat map") {
      leftOut(shown, "y", said);
    }
    if (this.isLogX()) {
      leftOut(shown, "x", said);
    }
  }

  /** The curves without the blanks of their plates, if asked. @param {string[]} said */
  subtracted(said) {
    return this.blank.value() === "" ? this.curves : withoutBlanks(this.curves, this.across.value(), said);
  }

  /** Whether x is logarithmic: times are not. */
  isLogX() {
    return this.logX.box.checked && !this.logX.field.hidden;
  }

  /** A place on the x axis in words. @param {any} it */
  placed(it) {
    return placeOn(this.axis, it);
  }

  /** A place on the x axis as files have it. @param {any} it */
  stored(it) {
    return storedPlace(this.axis, it);
  }

  minusBlank() {
    return this.blank.value() ? " minus blank" : "";
  }

  fileName() {
    return this.subject.table.name + (this.blank.value() ? "-minus-blank" : "");
  }

  upTitle() {
    return title(this.subject.table, this.up.value()) + this.minusBlank();
  }

  /** @param {Well[]} shown */
  colored(shown) {
    const { wells, plate } = this.subject;
    const name = this.color.value();
    const grouped = shown.map((it) => {
      const value = name ? this.valueAt(it.row, name) : it.plate;
      return { it, value, isNone: name !== "" && value === null, name: name ? this.labelAt(it.row, name) : it.plate };
    });
    const colors = colorsOf(grouped);
    const order = [...colors.keys()];
    return grouped
      .sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name))
      .map(({ it, isNone, name: group }) => ({ ...it, isNone, group: name || plate ? group : undefined, shade: colors.get(group), about: this.about(it), link: rowLink(wells.name, it.key) }));
  }

  /** Shows plots side by side below their tools. @param {import("../plot.js").Plot[]} plots @param {() => void} [save] @param {(HTMLElement | null)[]} [captions] */
  frame(plots, save = () => this.saveCurves(), captions = []) {
    show(this.place, plotTools(plots, this.fileName(), save), h("div", { class: `plates${plots.length === 1 ? " one" : ""}` }, plots.map((it, index) => h("figure", null, captions[index], it))));
  }

  /** A plate's name, which leads to its row. @param {string} name @param {Well[]} own */
  caption(name, own) {
    const { plate } = this.subject;
    return name ? h("figcaption", null, plateLink(plate, own[0].row[plate?.name ?? ""], name)) : null;
  }

  /** Pins a curve, or frees it. @param {string} key */
  pin(key) {
    const now = values().getAll("_pin");
    change({ _pin: now.includes(key) ? now.filter((it) => it !== key) : [...now, key] });
    this.drawCurves();
  }

  saveCurves() {
    const { wells, plate } = this.subject;
    const header = [keyOf(wells), labelOf(wells), ...(plate ? [plate.name] : []), ...this.by.value(), this.across.value(), this.up.value() + this.minusBlank()];
    const lines = this.subtracted([]).flatMap((it) =>
      it.given.x.map((x, index) => [it.key, it.row[labelOf(wells)], ...(plate ? [it.plate] : []), ...it.order, x, (this.blank.value() ? it.y : it.given.y)[index]]),
    );
    saveValues(header, lines, `${this.fileName()}.csv`);
  }
}
