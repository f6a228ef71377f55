// Files that the browser saves.

import { h } from "./dom.js";
import { stringify } from "./exact.js";

/**
 * Saves values as CSV for spreadsheets, which would compute a text that begins as a formula: it gets an apostrophe, as
 * with the API's `neutralize_formulas`. Without a mark at its start Excel would not read it as UTF-8.
 * @param {string[]} header
 * @param {any[][]} rows
 * @param {string} name
 */
export function saveValues(header, rows, name) {
  const cell = (/** @type {any} */ value) => {
    const text = value === null || value === undefined ? "" : typeof value === "object" ? stringify(value) : neutralized(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [header, ...rows].map((row) => row.map(cell).join(","));
  save(new Blob(["\ufeff", lines.join("\r\n"), "\r\n"], { type: "text/csv" }), name);
}

/** @param {any} value */
function neutralized(value) {
  const isFormula = typeof value === "string" && /^[=+\-@\t\r]/.test(value);
  return isFormula ? `'${value}` : String(value);
}

/**
 * @param {Blob} blob
 * @param {string} name
 */
export function save(blob, name) {
  const address = URL.createObjectURL(blob);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** Longest side of a canvas, in px. */
const CANVAS = 16_000;

/** Room around a picture with a title, in px. */
const MARGIN = 12;

/** Height of the title, in px. */
const TITLE = 30;

/** What a drawing takes from the styles of the page, which its picture does not have. */
const STYLES = ["fill", "stroke", "stroke-width", "font-size", "font-family", "text-anchor", "dominant-baseline"];

/** An SVG of the page by itself, as an address. @param {SVGElement} drawing */
function standalone(drawing) {
  const copy = /** @type {SVGElement} */ (drawing.cloneNode(true));
  const copies = [copy, ...copy.querySelectorAll("*")];
  for (const [index, element] of [drawing, ...drawing.querySelectorAll("*")].entries()) {
    const style = getComputedStyle(element);
    STYLES.forEach((name) => copies[index].setAttribute(name, style.getPropertyValue(name)));
  }
  const { width, height } = drawing.getBoundingClientRect();
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  return `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
}

/**
 * Writes a text at its place: word by word, as a line may be broken anywhere between them.
 * @param {CanvasRenderingContext2D} context
 * @param {Text} node
 */
function write(context, node) {
  const style = getComputedStyle(/** @type {Element} */ (node.parentElement));
  context.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  context.fillStyle = style.color;
  const range = document.createRange();
  for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const box = range.getBoundingClientRect();
    context.fillText(word, box.left, (box.top + box.bottom) / 2, box.width);
  }
}

/**
 * Paints the grounds and texts of a part of the page, and returns what is to be drawn above them.
 * @param {CanvasRenderingContext2D} context
 * @param {Node} node
 * @returns {{box: DOMRect, address: string | Promise<string>}[]}
 */
function paint(context, node) {
  if (node instanceof Text) {
    write(context, node);
  }
  if (!(node instanceof Element)) {
    return [];
  }
  const box = node.getBoundingClientRect();
  context.fillStyle = getComputedStyle(node).backgroundColor;
  context.fillRect(box.x, box.y, box.width, box.height);
  if (node instanceof SVGElement) {
    return [{ box, address: standalone(node) }];
  }
  const plot = "picture" in node ? /** @type {import("./plot.js").Plot} */ (node) : null;
  return plot ? [{ box, address: plot.picture() }] : [...node.childNodes].flatMap((it) => paint(context, it));
}

/**
 * Saves a part of the page as a picture: its plots, drawings, texts and grounds, each where it is. They are drawn here
 * from their SVG: the pages' policy forbids the blob that plotly.js would load.
 * @param {HTMLElement} part
 * @param {string} name
 * @param {string} [title] stands above the part
 */
export async function savePicture(part, name, title = "") {
  const frame = part.getBoundingClientRect();
  const margin = title ? MARGIN : 0;
  const [left, top] = [frame.left - margin, frame.top - margin - (title ? TITLE : 0)];
  const [width, height] = [frame.right + margin - left, frame.bottom + margin - top];
  const scale = Math.min(2, CANVAS / width, CANVAS / height);
  const canvas = h("canvas", { width: Math.round(scale * width), height: Math.round(scale * height) });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(scale, scale);
  context.translate(-left, -top);
  const page = getComputedStyle(document.body);
  context.fillStyle = page.backgroundColor;
  context.fillRect(left, top, width, height);
  context.fillStyle = page.color;
  context.font = `600 17px ${page.fontFamily}`;
  context.textBaseline = "middle";
  context.fillText(title, frame.left, top + margin + TITLE / 3, frame.width);
  // All places are read before the first picture is awaited: the page may be scrolled then.
  for (const { box, address } of paint(context, part)) {
    const picture = new Image();
    picture.src = await address;
    await picture.decode();
    context.drawImage(picture, box.x, box.y, box.width, box.height);
  }
  canvas.toBlob((blob) => blob && save(blob, name), "image/png");
}
