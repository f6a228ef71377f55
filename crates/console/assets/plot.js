// Plots of curves. plotly.js is loaded with the first one.
//
// The traces are SVG: plotly.js compiles its WebGL traces at run time, which the pages' policy forbids, and as lines of
// the screen's resolution 250,000 points take less time than in WebGL.

import { PATIENCE, h } from "./dom.js";
import { CALENDAR, clockAt } from "./format.js";
import { savePicture } from "./saving.js";
import { NO_VALUE, extent, lonePoints, sequential } from "./science.js";

/**
 * @typedef {object} Curve
 * @property {string} name
 * @property {any[]} x numbers; of a date axis milliseconds
 * @property {any[]} y
 * @property {string} [group] curves of one group have one color
 * @property {string} [link] page that a click leads to
 * @property {string[]} [text] what stands at the points, in place of their coordinates
 * @property {string[]} [about] lines that stand above the coordinates of a point
 * @property {any[][]} [values] x and y of the points of a plate, whose coordinates are places on it; a time is in words
 * @property {number | null} [shade] place on the scale of colors, 0 to 1, in place of the color of its group; null without a value
 * @property {(number | null)[]} [error] lengths of the error bars
 * @property {{low: any[], high: any[]}} [band] drawn around the curve
 * @property {"lines" | "markers"} [kind] unless the plot has one for all
 * @property {boolean} [isSecond] on the second axis
 * @property {boolean} [isPinned] stands out from those that are not
 */

/**
 * @typedef {object} Axis
 * @property {string} title
 * @property {"linear" | "log" | "date" | "category"} type
 * @property {import("./format.js").Zone} [zone] the clock of a date axis
 * @property {[number, number]} [range]
 * @property {{at: number[], text: string[]}} [ticks]
 */

/**
 * @typedef {object} Options
 * @property {"lines" | "markers" | "bars"} [kind]
 * @property {{x: string, y: string, isTime: boolean, whole: () => Curve[]}} [plate] names of the values of its curves, and the curves
 *   with all of their points
 * @property {Axis} [second] the axis at the right, of the curves that are on it
 * @property {(curve: Curve) => void} [pin] called when a curve is clicked with the Shift key
 */

const COLORS = {
  light: ["#0b6e69", "#b5520b", "#4b4fb3", "#a3266f", "#5a7d0a", "#8a6100", "#2b6fb0", "#6b4a3a"],
  dark: ["#5cc6bf", "#f0a267", "#a6a9ff", "#f08cc4", "#b4d65c", "#e3c04f", "#7fb8f0", "#c9a692"],
};

/** How lines of groups differ that have the same color. */
const DASHES = ["solid", "dash", "dot", "dashdot"];

/** Most names that a legend lists; a plot of more has none. */
export const LEGEND = 24;

/** Width of a page below which it is that of a phone. */
const PHONE = 600;

/** Letters of a title that the height of a plot has room for on a phone. */
const LINE = 20;

/** Opacity of curves beside those that are pinned. */
const DIMMED = 0.15;

/** Points of a curve up to which each is marked. */
const MARKED = 60;

/** @type {Promise<any> | null} */
let loading = null;

/** plotly.js. */
function plotly() {
  loading ??= new Promise((resolve, reject) => {
    const meta = /** @type {HTMLMetaElement} */ (document.querySelector("meta[name=labdata-plots]"));
    const loaded = () => resolve(/** @type {any} */ (window).Plotly);
    const failed = () => {
      loading = null;
      reject(new Error("The plots cannot be loaded. Is the platform running? Then load the page again."));
    };
    document.head.append(h("script", { src: `console/${meta.content}`, load: loaded, error: failed }));
  });
  return loading;
}

/** plotly.js takes some tags in texts for markup. @param {unknown} text */
function plain(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** A title beside an axis, in two lines where one would be cut. @param {string} title */
function upright(title) {
  return innerWidth < PHONE && title.length > LINE ? title.replace(/, (?=[^,]*$)/, ",\n") : title;
}

/** Colors of the page as it is shown. */
function theme() {
  const text = getComputedStyle(document.body).color;
  const [red, green, blue] = (text.match(/[\d.]+/g) ?? []).map(Number);
  const isDark = red + green + blue > 3 * 127;
  return { text, isDark, line: isDark ? "#343d41" : "#d5dcde", ground: isDark ? "#1c2225" : "#ffffff" };
}

/**
 * @param {Axis} axis
 * @param {{line: string}} colors
 * @param {any[][]} lists values on the axis
 */
function axisLayout(axis, colors, lists) {
  const values = lists.flatMap((it) => extent(it) ?? []);
  const ticks = axis.ticks && { tickmode: "array", tickvals: axis.ticks.at, ticktext: axis.ticks.text, ticks: "" };
  return {
    title: { text: plain(axis.title).replace("\n", "<br>"), standoff: 8 },
    type: axis.type,
    range: axis.range,
    // The margins of a plate are known, and to measure them takes a third of its time.
    automargin: !axis.ticks,
    gridcolor: colors.line,
    linecolor: colors.line,
    zeroline: false,
    // Beyond the prefixes plotly.js writes powers with a style, which the pages' policy forbids.
    exponentformat: values.some((it) => Math.abs(it) >= 1e15 || (it !== 0 && Math.abs(it) < 1e-14)) ? "e" : "SI",
    ...(axis.type === "date" || axis.type === "category" ? {} : { hoverformat: ".6~g" }),
    ...ticks,
  };
}

/** The group whose color and entry in the legend a curve has. @param {Curve} curve */
function groupOf(curve) {
  return curve.group ?? curve.name;
}

/**
 * Colors and dashes of the groups, and the curve of each that stands in the legend.
 * @param {Curve[]} curves
 * @param {string[]} groups
 * @param {boolean} isDark
 */
function styles(curves, groups, isDark) {
  const palette = isDark ? COLORS.dark : COLORS.light;
  return {
    color: new Map(groups.map((group, index) => [group, palette[index % palette.length]])),
    dash: new Map(groups.map((group, index) => [group, DASHES[Math.floor(index / palette.length) % DASHES.length]])),
    // The legend has the line of a group that is seen best.
    leaders: new Map([...curves].reverse().sort((a, b) => Number(a.isPinned ?? false) - Number(b.isPinned ?? false)).map((curve) => [groupOf(curve), curve])),
    isAnyPinned: curves.some((curve) => curve.isPinned),
  };
}

/**
 * What plotly.js draws of curves.
 * @param {Curve[]} curves
 * @param {Axis} x
 * @param {Axis} y
 * @param {Options} options
 */
function figure(curves, x, y, options) {
  const colors = theme();
  const groups = [...new Set(curves.map(groupOf))];
  const { color, dash, leaders, isAnyPinned } = styles(curves, groups, colors.isDark);
  // plotly.js would put milliseconds on the browser's clock, which jumps twice a year.
  const across = (/** @type {any[]} */ values) =>
    x.type === "category" ? values.map(plain) : x.type === "date" ? values.map((it) => (it === null ? null : clockAt(it, x.zone ?? CALENDAR))) : values;
  const bands = curves.filter((curve) => curve.band).map((curve) => bandOf({ ...curve, x: across(curve.x) }, shaded(curve, colors.isDark) ?? color.get(groupOf(curve))));
  const lines = curves.map((curve) => {
    const group = groupOf(curve);
    const shade = shaded(curve, colors.isDark);
    const own = shade ?? color.get(group);
    const mode = options.kind ?? curve.kind ?? (curve.x.length <= MARKED && curves.length <= LEGEND ? "lines+markers" : "lines");
    return {
      type: options.kind === "bars" ? "bar" : "scatter",
      mode: options.kind === "bars" ? undefined : mode,
      name: plain(group),
      legendgroup: plain(group),
      showlegend: leaders.get(group) === curve,
      x: across(curve.x),
      y: curve.y,
      ...(curve.isSecond ? { yaxis: "y2" } : {}),
      opacity: isAnyPinned && !curve.isPinned ? DIMMED : 1,
      line: { width: curve.isPinned ? 3 : curve.band ? 2 : 1.25, color: own, dash: curve.isSecond ? "dot" : shade ? "solid" : dash.get(group) },
      ...(curve.error ? { error_y: { type: "data", array: curve.error, color: own, thickness: 1 } } : {}),
      marker: { size: 5, color: own },
      ...(curve.text ? { text: curve.text.map(plain), hoverinfo: "text" } : { customdata: curve.values, hovertemplate: template(curve, x, (curve.isSecond && options.second) || y, options.plate) }),
    };
  });
  const lone = marksOf(curves, lines, (curve) => (curve.isSecond ? options.second : y)?.type === "log");
  const traces = [...bands, ...lines, ...lone.map((it) => it.trace)];
  const owners = [...bands.map(() => null), ...curves.keys(), ...lone.map((it) => it.index)];
  const layout = layoutOf(curves, x, y, options, groups.length);
  return { traces, owners, layout, config: { displayModeBar: false, doubleClick: "reset", responsive: false } };
}

/**
 * A line is drawn between two points: one by itself has a mark, and the spread of its band as an error bar.
 * @param {Curve[]} curves
 * @param {any[]} lines a trace for each curve
 * @param {(curve: Curve) => boolean} isLog
 */
function marksOf(curves, lines, isLog) {
  return lines.flatMap((line, index) => {
    const curve = curves[index];
    const found = line.mode === "lines" ? lonePoints(curve.x, curve.y, isLog(curve)) : [];
    const of = (/** @type {any[] | undefined} */ values) => values && found.map((it) => values[it]);
    const error = curve.band ? { error_y: { type: "data", array: found.map((it) => curve.band?.high[it] - curve.y[it]), color: line.marker.color, thickness: 1 } } : {};
    return found.length ? [{ index, trace: { ...line, mode: "markers", showlegend: false, x: of(line.x), y: of(curve.y), text: of(curve.text), customdata: of(curve.values), ...error } }] : [];
  });
}

/**
 * @param {Curve[]} curves
 * @param {Axis} x
 * @param {Axis} y
 * @param {Options} options
 * @param {number} groups how many there are
 */
function layoutOf(curves, x, y, options, groups) {
  const colors = theme();
  const ys = curves.map((it) => it.y);
  return {
    margin: options.plate ? { l: 36, r: 8, t: 48, b: 8 } : { l: 60, r: 16, t: 16, b: 48 },
    paper_bgcolor: colors.ground,
    plot_bgcolor: colors.ground,
    font: { color: colors.text, family: "system-ui, sans-serif", size: 13 },
    hovermode: "closest",
    hoverlabel: { font: { family: "system-ui, sans-serif" } },
    showlegend: groups > 1 && groups <= LEGEND,
    // Beside the plot of a phone it would leave no room for the curves, and beside a second axis it would lie on its numbers.
    legend: { bgcolor: "transparent", ...(innerWidth < PHONE ? { orientation: "h", y: -0.25 } : options.second ? { orientation: "h", y: 1.02, yanchor: "bottom" } : {}) },
    dragmode: "zoom",
    xaxis: { ...axisLayout(x, colors, x.type === "linear" || x.type === "log" ? curves.map((it) => it.x) : []), ...(options.plate ? { showgrid: false, side: "top" } : {}) },
    yaxis: { ...axisLayout({ ...y, title: upright(y.title) }, colors, ys), ...(options.plate ? { showgrid: false } : {}) },
    ...(options.second ? { yaxis2: { ...axisLayout(options.second, colors, ys), overlaying: "y", side: "right", showgrid: false } } : {}),
    shapes: options.plate ? wells(x, y, colors.line) : [],
  };
}

/**
 * What stands at a point: what the curve is of, and both values with the names of their axes.
 * @param {Curve} curve
 * @param {Axis} x
 * @param {Axis} y
 * @param {Options["plate"]} plate
 */
function template(curve, x, y, plate) {
  // A template has places of its own for values.
  const line = (/** @type {string} */ text) => plain(text).replaceAll("%{", "%\u200b{");
  const about = (curve.about ?? [groupOf(curve)]).map(line);
  const values = plate
    ? [`${line(plate.x)}: %{customdata[0]${plate.isTime ? "" : ":.6~g"}}`, `${line(plate.y)}: %{customdata[1]:.6~g}`]
    : [`${line(x.title)}: %{x}`, `${line(y.title)}: %{y}`];
  return `${[...about, ...values].join("<br>")}<extra></extra>`;
}

/**
 * A curve's color on the scale, of which the part is used that can be seen on the page.
 * @param {Curve} curve
 * @param {boolean} isDark
 */
function shaded({ shade }, isDark) {
  return shade === null ? NO_VALUE : shade === undefined ? undefined : sequential(isDark ? 0.3 + 0.7 * shade : 0.8 * shade);
}

/**
 * The area between two curves of the same x.
 * @param {Curve} curve
 * @param {string | undefined} color
 */
function bandOf({ x, band, group, name }, color) {
  const known = x.map((_, index) => index).filter((index) => typeof band?.low[index] === "number");
  return {
    type: "scatter",
    mode: "lines",
    x: [...known.map((index) => x[index]), ...[...known].reverse().map((index) => x[index])],
    y: [...known.map((index) => band?.high[index]), ...[...known].reverse().map((index) => band?.low[index])],
    fill: "toself",
    fillcolor: `${color}33`,
    line: { width: 0 },
    legendgroup: plain(group ?? name),
    showlegend: false,
    hoverinfo: "skip",
  };
}

/**
 * Lines between the wells of a plate.
 * @param {Axis} x
 * @param {Axis} y
 * @param {string} color
 */
function wells(x, y, color) {
  const columns = x.ticks?.at.length ?? 0;
  const rows = y.ticks?.at.length ?? 0;
  const across = Array.from({ length: columns - 1 }, (_, index) => `M${index + 1.5},0.5V${rows + 0.5}`);
  const down = Array.from({ length: rows - 1 }, (_, index) => `M0.5,${index + 1.5}H${columns + 0.5}`);
  return [{ type: "path", path: [...across, ...down].join(""), layer: "below", line: { color, width: 1 } }];
}

const darkness = matchMedia("(prefers-color-scheme: dark)");

const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.isConnected) {
      /** @type {any} */ (window).Plotly.Plots.resize(target);
    }
  }
});

/**
 * `<lab-plot>`: curves on two axes. It draws once it is in the page, where it has a size, and again in the other color
 * scheme; outside the page it holds nothing of plotly.js.
 */
export class Plot extends HTMLElement {
  /** @type {{curves: Curve[], x: Axis, y: Axis, options: Options} | null} */
  #drawn = null;
  /** Whether plotly.js draws in this element at present. */
  #isHeld = false;
  /** Numbers the drawings, so that a slow one does not replace a later one. */
  #number = 0;
  /** Indices of the curves that traces are of; null of a band. @type {(number | null)[]} */
  #owners = [];
  /** Whether it has fewer points than its curves. */
  #thinned = false;
  /** Called when it enters the page. @type {() => void} */
  #enter = () => {};
  #entered = this.#entry();

  #entry() {
    return new Promise((resolve) => (this.#enter = () => resolve(null)));
  }

  connectedCallback() {
    darkness.addEventListener("change", this.#again);
    this.#enter();
  }

  disconnectedCallback() {
    darkness.removeEventListener("change", this.#again);
    this.#entered = this.#entry();
    if (this.#isHeld) {
      this.#isHeld = false;
      resized.unobserve(this);
      /** @type {any} */ (window).Plotly.purge(this);
    }
    // Whoever moves it into the page again finds it as it was.
    this.#again();
  }

  /**
   * Draws curves in place of those that it shows.
   * @param {Curve[]} curves
   * @param {Axis} x
   * @param {Axis} y
   * @param {Options} [options]
   */
  async draw(curves, x, y, options = {}) {
    this.#drawn = { curves, x, y, options };
    await this.#paint();
  }

  #again = () => {
    if (this.#drawn) {
      this.#paint().catch(() => {});
    }
  };

  async #paint() {
    const number = ++this.#number;
    await this.#entered;
    const library = await this.#loaded();
    if (number !== this.#number || !this.isConnected || !this.#drawn) {
      return;
    }
    const { curves, x, y, options } = this.#drawn;
    this.classList.remove("zoomed");
    const { traces, owners, layout, config } = figure(curves, x, y, options);
    this.#owners = owners;
    this.#thinned = options.plate !== undefined;
    await library.react(this, traces, layout, config);
    if (this.#isHeld) {
      return;
    }
    if (!this.isConnected) {
      library.purge(this);
      return;
    }
    this.#isHeld = true;
    resized.observe(this);
    const self = /** @type {any} */ (this);
    const curveOf = (/** @type {any} */ event) => this.#drawn?.curves[this.#owners[event.points[0].curveNumber] ?? -1];
    self.on("plotly_click", (/** @type {any} */ event) => {
      const curve = curveOf(event);
      const pin = this.#drawn?.options.pin;
      if (curve && pin && event.event?.shiftKey) {
        pin(curve);
      } else if (curve?.link) {
        location.hash = curve.link;
      }
    });
    self.on("plotly_relayout", (/** @type {any} */ event) => {
      const isMoved = (/** @type {any} */ now, /** @type {Axis | undefined} */ axis) => (axis?.range ? String(axis.range) !== String(now.range) : now.autorange === false);
      this.classList.toggle("zoomed", isMoved(self.layout.xaxis, this.#drawn?.x) || isMoved(self.layout.yaxis, this.#drawn?.y));
      const plate = this.#drawn?.options.plate;
      if (plate && Object.keys(event).some((it) => it.startsWith("xaxis.range")) && this.#thinned) {
        this.#thinned = false;
        const whole = plate.whole();
        library.restyle(this, { x: whole.map((it) => it.x), y: whole.map((it) => it.y), customdata: whole.map((it) => it.values) }, [...whole.keys()]);
      }
    });
    self.on("plotly_hover", (/** @type {any} */ event) => this.#light(event.points[0].curveNumber));
    self.on("plotly_unhover", () => this.#light(null));
  }

  /**
   * Dims every curve but one, in the picture alone: to draw hundreds of curves again takes longer than a hand rests.
   * @param {number | null} index of its trace
   */
  #light(index) {
    const owner = index === null ? null : this.#owners[index];
    this.classList.toggle("dims", owner !== null && !this.#drawn?.options.plate && (this.#drawn?.curves.length ?? 0) > 1);
    for (const lit of this.querySelectorAll(".trace.lit")) {
      lit.classList.remove("lit");
    }
    this.#owners.forEach((it, trace) => {
      if (owner !== null && it === owner) {
        this.querySelectorAll(`.trace${/** @type {any} */ (this)._fullData[trace]?.uid}`).forEach((lit) => lit.classList.add("lit"));
      }
    });
  }

  /** plotly.js. The element says so if loading it takes a while: it has 4.6 MB. */
  async #loaded() {
    const words = h("p", { class: "quiet loading", role: "status" }, "Loading the plots…");
    const waiting = setTimeout(() => this.append(words), PATIENCE);
    try {
      return await plotly();
    } finally {
      clearTimeout(waiting);
      words.remove();
    }
  }

  /** Zooms about the middle; a factor below 1 shows less. Without one everything is shown. @param {number} [factor] */
  async zoom(factor) {
    const library = await plotly();
    const { xaxis, yaxis, yaxis2 } = /** @type {any} */ (this).layout;
    if (factor === undefined) {
      await this.#paint();
      return;
    }
    const about = (/** @type {any} */ axis) => {
      const [from, to] = axis.range.map((/** @type {any} */ it) => (axis.type === "date" ? Date.parse(`${it}Z`.replace(" ", "T")) : it));
      const half = ((to - from) / 2) * factor;
      const middle = (from + to) / 2;
      return [middle - half, middle + half].map((it) => (axis.type === "date" ? clockAt(it, CALENDAR) : it));
    };
    await library.relayout(this, { "xaxis.range": about(xaxis), "yaxis.range": about(yaxis), ...(yaxis2 ? { "yaxis2.range": about(yaxis2) } : {}) });
  }

  /** What it shows, as the address of an SVG. */
  async picture() {
    const { width, height } = this.getBoundingClientRect();
    return (await plotly()).toImage(this, { format: "svg", width, height });
  }
}

customElements.define("lab-plot", Plot);

/**
 * Makes an empty plot.
 * @param {string} [label] what it shows, for those who do not see it
 * @param {string} [kind] `small`
 */
export function plot(label, kind) {
  return /** @type {Plot} */ (h("lab-plot", { class: kind, role: "img", "aria-label": label }));
}

/**
 * Buttons of plots, which zoom together: zoom, picture, values.
 * @param {Plot[]} plots
 * @param {string} name of the files, without extension
 * @param {() => void} values
 * @param {...import("./dom.js").Child} before what stands before them
 */
export function plotTools(plots, name, values, ...before) {
  const button = (/** @type {string} */ text, /** @type {() => any} */ click, /** @type {string} */ title) =>
    h("button", { type: "button", click, title }, text);
  const zoom = (/** @type {number} */ factor) => () => Promise.all(plots.map((it) => it.zoom(factor)));
  return h(
    "div",
    { class: "plot-tools" },
    ...before,
    button("+", zoom(0.5), "Zoom in; or drag over a part of the plot"),
    button("−", zoom(2), "Zoom out"),
    button("Reset", () => plots.forEach((it) => it.zoom()), "Show everything; or double-click the plot"),
    button("PNG", () => savePicture(plots[0].closest(".plates") ?? plots[0], `${name}.png`), "Save what is drawn as a picture"),
    button("CSV", values, "Save the values of the curves"),
  );
}
