// The canvas on which masks are drawn: brush, eraser, polygon, zoom, and all of it by keyboard.

import { h, show } from "./dom.js";
import { pixelSize } from "./images.js";
import { outline, tint } from "./mask_drawing.js";
import { Mask, Steps, addStrip, polygon, polygonRows, stroke, strokeRows } from "./masks.js";

/** Rows that are read from an image at a time. */
const STRIP = 256;

/** Colors of masks, one after the other. @type {[number, number, number][]} */
export const COLORS = [
  [0, 158, 115],
  [230, 159, 0],
  [86, 180, 233],
  [204, 121, 167],
  [240, 228, 66],
  [213, 94, 0],
];

/** Color of the mask that is drawn. @type {[number, number, number]} */
const DRAWN = [255, 0, 102];

const TOOLS = { brush: "Brush", eraser: "Eraser", polygon: "Polygon" };

/**
 * Reads the mask of an image file.
 * @param {Blob} file
 * @param {number} width
 * @param {number} height
 * @returns {Promise<Mask>}
 */
export async function readMask(file, width, height) {
  const image = await createImageBitmap(file);
  if (image.width !== width || image.height !== height) {
    throw new Error("A mask has another size than the image.");
  }
  const mask = new Mask(width, height);
  // A strip at a time: all pixels of a large image take hundreds of megabytes.
  const canvas = new OffscreenCanvas(width, Math.min(STRIP, height));
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  if (!pen) {
    throw new Error("This browser cannot read the mask.");
  }
  for (let top = 0; top < height; top += STRIP) {
    const count = Math.min(STRIP, height - top);
    pen.clearRect(0, 0, width, count);
    pen.drawImage(image, 0, -top);
    addStrip(mask, top, pen.getImageData(0, 0, width, count).data);
  }
  image.close();
  return mask;
}

/** Editor of one mask over an image. */
export class MaskEditor {
  /**
   * @param {ImageBitmap} image
   * @param {string} name of the image
   * @param {() => void} changed called when the mask has changed
   */
  constructor(image, name, changed) {
    this.image = image;
    this.changed = changed;
    this.mask = new Mask(image.width, image.height);
    this.steps = new Steps(this.mask);
    /** Other masks. @type {import("./mask_drawing.js").Layer[]} */
    this.layers = [];
    /** @type {keyof typeof TOOLS} */
    this.tool = "brush";
    this.radius = Math.max(1, Math.round(Math.max(image.width, image.height) / 80));
    /** Corners of a polygon that is not closed. @type {import("./masks.js").Point[]} */
    this.corners = [];
    this.cursor = { x: image.width / 2, y: image.height / 2 };
    this.scale = 1;
    this.origin = { x: 0, y: 0 };
    /** Where the pointer drags from. @type {{kind: "draw" | "pan", at: import("./masks.js").Point} | null} */
    this.drag = null;
    this.isDue = false;
    this.canvas = h("canvas", {
      width: 960,
      height: 600,
      tabindex: "0",
      role: "application",
      "aria-label": `Mask of ${name}`,
      "aria-describedby": "mask-help",
      pointerdown: (/** @type {PointerEvent} */ event) => this.pressed(event),
      pointermove: (/** @type {PointerEvent} */ event) => this.moved(event),
      pointerup: () => this.released(),
      pointercancel: () => this.released(),
      dblclick: () => this.close(),
      wheel: (/** @type {WheelEvent} */ event) => this.wheeled(event),
      keydown: (/** @type {KeyboardEvent} */ event) => this.typed(event),
      focus: () => this.draw(),
      blur: () => this.draw(),
    });
    this.overlay = document.createElement("canvas");
    this.said = h("p", { class: "quiet", role: "status" });
    this.bar = this.toolbar();
    this.fit();
    new ResizeObserver(() => this.resized()).observe(this.canvas);
    this.refresh();
  }

  /** The editor's elements. */
  get element() {
    const help =
      "Arrows move the cross, with Shift ten times as far. Space draws or sets a corner, Enter closes a polygon, Escape " +
      "drops it. B, E and P choose brush, eraser and polygon; [ and ] change the size; + and - zoom, 0 shows all; Ctrl+Z " +
      "undoes and Ctrl+Y repeats. Drag with the middle button, or with Alt, to move the image.";
    return h(
      "div",
      { class: "mask-editor" },
      this.bar,
      this.canvas,
      this.said,
      h("details", null, h("summary", null, "Keys"), h("p", { id: "mask-help", class: "quiet" }, help)),
    );
  }

  toolbar() {
    /** @type {Record<string, HTMLElement>} */
    this.tools = {};
    for (const [tool, text] of Object.entries(TOOLS)) {
      const choose = () => this.choose(/** @type {keyof typeof TOOLS} */ (tool));
      this.tools[tool] = h("button", { type: "button", "aria-pressed": "false", click: choose }, text);
    }
    this.size = h("input", {
      type: "range",
      min: "1",
      max: String(Math.max(8, Math.round(Math.max(this.image.width, this.image.height) / 8))),
      value: String(this.radius),
      input: () => this.resize(Number(this.size.value)),
    });
    this.undoing = h("button", { type: "button", click: () => this.undo() }, "Undo");
    this.redoing = h("button", { type: "button", click: () => this.redo() }, "Redo");
    const zoom = (/** @type {number} */ by) => () => this.zoom(by, this.middle());
    return h(
      "div",
      { class: "bar", role: "toolbar", "aria-label": "Tools" },
      Object.values(this.tools),
      h("label", { class: "check" }, "Size", this.size),
      this.undoing,
      this.redoing,
      h("button", { type: "button", "aria-label": "Zoom in", click: zoom(1.5) }, "+"),
      h("button", { type: "button", "aria-label": "Zoom out", click: zoom(1 / 1.5) }, "−"),
      h(
        "button",
        {
          type: "button",
          click: () => {
            this.fit();
            this.draw();
          },
        },
        "Show all",
      ),
      h("button", { type: "button", click: () => this.clear() }, "Clear"),
    );
  }

  /** @param {keyof typeof TOOLS} tool */
  choose(tool) {
    this.tool = tool;
    this.corners = [];
    this.refresh();
  }

  /** @param {number} radius */
  resize(radius) {
    this.radius = Math.min(Math.max(1, radius), Number(this.size.max));
    this.size.value = String(this.radius);
    this.draw();
  }

  /** Puts the state into the toolbar, and draws. */
  refresh() {
    for (const [tool, element] of Object.entries(this.tools ?? {})) {
      element.setAttribute("aria-pressed", String(tool === this.tool));
    }
    this.undoing?.toggleAttribute("disabled", !this.steps.canUndo);
    this.redoing?.toggleAttribute("disabled", !this.steps.canRedo);
    const share = (100 * this.mask.count()) / (this.mask.width * this.mask.height);
    show(this.said, `${pixelSize(this.image)}, the mask covers ${share.toFixed(2)} %.`);
    this.draw();
    this.changed();
  }

  /** Edits a copy of another mask. @param {Mask} mask */
  open(mask) {
    this.mask = mask.copy();
    this.steps = new Steps(this.mask);
    this.corners = [];
    this.refresh();
  }

  /** Begins an empty mask. */
  reset() {
    this.open(new Mask(this.image.width, this.image.height));
  }

  clear() {
    this.change({ top: 0, bottom: this.mask.height }, () => this.mask.bits.fill(0));
  }

  /**
   * Makes a change that is one step.
   * @param {import("./masks.js").Rows} rows
   * @param {() => void} work
   */
  change(rows, work) {
    this.steps.begin();
    this.steps.touch(rows);
    work();
    this.steps.end();
    this.refresh();
  }

  undo() {
    this.steps.undo();
    this.refresh();
  }

  redo() {
    this.steps.redo();
    this.refresh();
  }

  /** Closes the polygon that is drawn. */
  close() {
    const points = this.corners;
    this.corners = [];
    if (this.tool === "polygon" && points.length > 2) {
      this.change(polygonRows(this.mask, points), () => polygon(this.mask, points, true));
    } else {
      this.draw();
    }
  }

  /**
   * Draws with the brush or the eraser.
   * @param {import("./masks.js").Point} from
   * @param {import("./masks.js").Point} to
   */
  paint(from, to) {
    this.steps.touch(strokeRows(this.mask, from, to, this.radius));
    stroke(this.mask, from, to, this.radius, this.tool === "brush");
    this.draw();
  }

  /** A point of the image under the pointer. @param {MouseEvent} event */
  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * this.canvas.width;
    const y = ((event.clientY - box.top) / box.height) * this.canvas.height;
    return { x: (x - this.origin.x) / this.scale, y: (y - this.origin.y) / this.scale };
  }

  /** @param {PointerEvent} event */
  pressed(event) {
    event.preventDefault();
    this.canvas.focus();
    this.canvas.setPointerCapture(event.pointerId);
    this.cursor = this.under(event);
    if (event.button === 1 || event.altKey) {
      this.drag = { kind: "pan", at: { x: event.clientX, y: event.clientY } };
    } else if (event.button === 0 && this.tool === "polygon") {
      this.corners.push(this.cursor);
      this.draw();
    } else if (event.button === 0) {
      this.drag = { kind: "draw", at: this.cursor };
      this.steps.begin();
      this.paint(this.cursor, this.cursor);
    }
  }

  /** @param {PointerEvent} event */
  moved(event) {
    if (this.drag?.kind === "pan") {
      const ratio = this.canvas.width / this.canvas.getBoundingClientRect().width;
      this.origin.x += (event.clientX - this.drag.at.x) * ratio;
      this.origin.y += (event.clientY - this.drag.at.y) * ratio;
      this.drag.at = { x: event.clientX, y: event.clientY };
      this.draw();
      return;
    }
    const at = this.under(event);
    if (this.drag) {
      this.paint(this.drag.at, at);
      this.drag.at = at;
    }
    this.cursor = at;
    this.draw();
  }

  released() {
    if (this.drag?.kind === "draw") {
      this.steps.end();
      this.refresh();
    }
    this.drag = null;
  }

  /** @param {WheelEvent} event */
  wheeled(event) {
    // The page scrolls past the editor unless it is in use.
    if (document.activeElement === this.canvas || event.ctrlKey) {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), this.under(event));
    }
  }

  /** @param {KeyboardEvent} event */
  typed(event) {
    const step = (event.shiftKey ? 10 : 1) / Math.min(1, this.scale);
    const move = (/** @type {number} */ x, /** @type {number} */ y) => () => this.step(x * step, y * step);
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: move(-1, 0),
      ArrowRight: move(1, 0),
      ArrowUp: move(0, -1),
      ArrowDown: move(0, 1),
      " ": () => this.tap(),
      Enter: () => this.close(),
      Escape: () => {
        this.corners = [];
        this.draw();
      },
      b: () => this.choose("brush"),
      e: () => this.choose("eraser"),
      p: () => this.choose("polygon"),
      "[": () => this.resize(Math.floor(this.radius / 1.25)),
      "]": () => this.resize(Math.ceil(this.radius * 1.25)),
      "+": () => this.zoom(1.5, this.cursor),
      "=": () => this.zoom(1.5, this.cursor),
      "-": () => this.zoom(1 / 1.5, this.cursor),
      0: () => {
        this.fit();
        this.draw();
      },
    };
    const withControl = { z: () => (event.shiftKey ? this.redo() : this.undo()), y: () => this.redo() };
    const isControl = event.ctrlKey || event.metaKey;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const work = isControl ? /** @type {Record<string, () => void>} */ (withControl)[key] : keys[key];
    if (work && !event.altKey) {
      event.preventDefault();
      work();
    }
  }

  /**
   * Moves the cross, and the image where the cross would leave the view.
   * @param {number} x
   * @param {number} y
   */
  step(x, y) {
    this.cursor = {
      x: Math.min(Math.max(0, this.cursor.x + x), this.image.width - 1),
      y: Math.min(Math.max(0, this.cursor.y + y), this.image.height - 1),
    };
    const at = { x: this.cursor.x * this.scale + this.origin.x, y: this.cursor.y * this.scale + this.origin.y };
    this.origin.x += Math.max(0, 20 - at.x) - Math.max(0, at.x - this.canvas.width + 20);
    this.origin.y += Math.max(0, 20 - at.y) - Math.max(0, at.y - this.canvas.height + 20);
    this.draw();
  }

  /** What the tool does at the cross. */
  tap() {
    const at = this.cursor;
    if (this.tool === "polygon") {
      this.corners.push(at);
      this.draw();
    } else {
      this.steps.begin();
      this.paint(at, at);
      this.steps.end();
      this.refresh();
    }
  }

  /** The point of the image in the middle of the view. */
  middle() {
    return {
      x: (this.canvas.width / 2 - this.origin.x) / this.scale,
      y: (this.canvas.height / 2 - this.origin.y) / this.scale,
    };
  }

  /**
   * Zooms, and leaves a point of the image where it is.
   * @param {number} by
   * @param {import("./masks.js").Point} at
   */
  zoom(by, at) {
    const scale = Math.min(Math.max(this.scale * by, this.smallest() / 2), 32);
    this.origin.x += at.x * (this.scale - scale);
    this.origin.y += at.y * (this.scale - scale);
    this.scale = scale;
    this.draw();
  }

  /** The scale at which the whole image is seen. */
  smallest() {
    return Math.min(this.canvas.width / this.image.width, this.canvas.height / this.image.height);
  }

  fit() {
    this.scale = this.smallest();
    this.origin = {
      x: (this.canvas.width - this.image.width * this.scale) / 2,
      y: (this.canvas.height - this.image.height * this.scale) / 2,
    };
  }

  /** Follows the size that the page gives the canvas. */
  resized() {
    const { clientWidth, clientHeight } = this.canvas;
    if (clientWidth && clientHeight && (clientWidth !== this.canvas.width || clientHeight !== this.canvas.height)) {
      this.canvas.width = clientWidth;
      this.canvas.height = clientHeight;
      this.fit();
      this.draw();
    }
  }

  /** Draws before the next frame, however often it is asked for. */
  draw() {
    if (!this.isDue) {
      this.isDue = true;
      requestAnimationFrame(() => {
        this.isDue = false;
        this.drawn();
      });
    }
  }

  drawn() {
    const pen = this.canvas.getContext("2d");
    if (!pen) {
      return;
    }
    const { width, height } = this.canvas;
    pen.clearRect(0, 0, width, height);
    pen.imageSmoothingEnabled = this.scale < 2;
    const { origin, scale } = this;
    pen.drawImage(this.image, origin.x, origin.y, this.image.width * scale, this.image.height * scale);
    tint(pen, this.overlay, [...this.layers, { mask: this.mask, color: DRAWN }], this);
    outline(pen, this);
  }
}
