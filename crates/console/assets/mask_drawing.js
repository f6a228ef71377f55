// What the editor of masks draws over an image.

/**
 * @typedef {import("./masks.js").Point} Point
 * @typedef {{mask: import("./masks.js").Mask, color: [number, number, number]}} Layer
 * @typedef {{origin: Point, scale: number}} View where the image begins in the canvas, and its size
 */

/** Opacity of masks over the image, of 255. */
const OPACITY = 120;

/**
 * Lays masks over the image: only the pixels of the view are looked at.
 * @param {CanvasRenderingContext2D} pen
 * @param {HTMLCanvasElement} overlay
 * @param {Layer[]} layers
 * @param {View} view
 */
export function tint(pen, overlay, layers, { origin, scale }) {
  const { width, height } = pen.canvas;
  const data = new ImageData(width, height);
  const columns = Array.from({ length: width }, (_, at) => Math.floor((at - origin.x) / scale));
  for (let row = 0; row < height; row += 1) {
    const y = Math.floor((row - origin.y) / scale);
    for (const { mask, color } of y < 0 ? [] : layers.filter(({ mask }) => y < mask.height)) {
      for (let column = 0; column < width; column += 1) {
        const x = columns[column];
        if (x >= 0 && x < mask.width && mask.has(x, y)) {
          data.data.set(color, (row * width + column) * 4);
          data.data[(row * width + column) * 4 + 3] = OPACITY;
        }
      }
    }
  }
  overlay.width = width;
  overlay.height = height;
  overlay.getContext("2d")?.putImageData(data, 0, 0);
  pen.drawImage(overlay, 0, 0);
}

/**
 * Draws the polygon under way, and where the tool is. Two colors, so that one of them differs from the image.
 * @param {CanvasRenderingContext2D} pen
 * @param {View & {cursor: Point, corners: Point[], radius: number, tool: string}} view
 */
export function outline(pen, { origin, scale, cursor, corners, radius, tool }) {
  const seen = (/** @type {Point} */ point) => ({ x: point.x * scale + origin.x, y: point.y * scale + origin.y });
  const at = seen(cursor);
  for (const [color, width] of /** @type {[string, number][]} */ ([["black", 3], ["white", 1]])) {
    pen.strokeStyle = color;
    pen.lineWidth = width;
    pen.beginPath();
    for (const [index, corner] of corners.map(seen).entries()) {
      pen[index ? "lineTo" : "moveTo"](corner.x, corner.y);
    }
    if (corners.length) {
      pen.lineTo(at.x, at.y);
    }
    if (document.activeElement === pen.canvas) {
      pen.moveTo(at.x - 8, at.y);
      pen.lineTo(at.x + 8, at.y);
      pen.moveTo(at.x, at.y - 8);
      pen.lineTo(at.x, at.y + 8);
    }
    if (tool !== "polygon") {
      const size = Math.max(1, radius * scale);
      pen.moveTo(at.x + size, at.y);
      pen.arc(at.x, at.y, size, 0, 2 * Math.PI);
    }
    pen.stroke();
  }
}
