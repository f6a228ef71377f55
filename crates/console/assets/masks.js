// Masks of images as bits: what a brush and a polygon cover, steps that can be undone, and PNG files. No page is touched here.

/** @typedef {{x: number, y: number}} Point */
/** @typedef {{top: number, bottom: number}} Rows from one row to before another */

/** A mask: one bit per pixel, rows padded to a whole byte, the first pixel being the highest bit. */
export class Mask {
  /**
   * @param {number} width
   * @param {number} height
   */
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.stride = Math.ceil(width / 8);
    this.bits = new Uint8Array(this.stride * height);
  }

  /**
   * True if a pixel belongs to the mask.
   * @param {number} x
   * @param {number} y
   */
  has(x, y) {
    return (this.bits[y * this.stride + (x >> 3)] & (0x80 >> (x & 7))) !== 0;
  }

  /**
   * Sets the pixels of a row from one column to before another.
   * @param {number} y
   * @param {number} from
   * @param {number} to
   * @param {boolean} on
   */
  span(y, from, to, on) {
    const start = Math.max(0, from);
    const end = Math.min(this.width, to);
    if (y < 0 || y >= this.height || start >= end) {
      return;
    }
    const row = y * this.stride;
    const first = start >> 3;
    const last = (end - 1) >> 3;
    const head = 0xff >> (start & 7);
    const tail = (0xff << (7 - ((end - 1) & 7))) & 0xff;
    if (first === last) {
      this.put(row + first, head & tail, on);
      return;
    }
    this.put(row + first, head, on);
    this.bits.fill(on ? 0xff : 0, row + first + 1, row + last);
    this.put(row + last, tail, on);
  }

  /**
   * @param {number} byte
   * @param {number} bits
   * @param {boolean} on
   */
  put(byte, bits, on) {
    this.bits[byte] = on ? this.bits[byte] | bits : this.bits[byte] & ~bits;
  }

  /** Number of pixels. */
  count() {
    let sum = 0;
    for (const byte of this.bits) {
      sum += ONES[byte];
    }
    return sum;
  }

  /** The same pixels in another mask. */
  copy() {
    const copy = new Mask(this.width, this.height);
    copy.bits.set(this.bits);
    return copy;
  }
}

/** Number of bits of each byte. */
const ONES = Uint8Array.from({ length: 256 }, (_, byte) => byte.toString(2).replaceAll("0", "").length);

/**
 * The rows of a mask that lie between two heights.
 * @param {Mask} mask
 * @param {number} top
 * @param {number} bottom
 * @returns {Rows}
 */
function rows(mask, top, bottom) {
  const inside = (/** @type {number} */ y) => Math.min(Math.max(y, 0), mask.height);
  return { top: inside(Math.floor(top)), bottom: inside(Math.ceil(bottom)) };
}

/**
 * The rows that a stroke of a round brush touches.
 * @param {Mask} mask
 * @param {Point} from
 * @param {Point} to
 * @param {number} radius
 */
export function strokeRows(mask, from, to, radius) {
  return rows(mask, Math.min(from.y, to.y) - radius - 1, Math.max(from.y, to.y) + radius + 1);
}

/**
 * Draws or erases a stroke of a round brush. A pixel belongs to it if its center does; a brush covers at least the pixel
 * that it is on.
 * @param {Mask} mask
 * @param {Point} from
 * @param {Point} to
 * @param {number} radius in pixels
 * @param {boolean} on
 */
export function stroke(mask, from, to, radius, on) {
  const length = Math.hypot(to.x - from.x, to.y - from.y);
  // The shape of a stroke: discs at its ends, and a rectangle between them, cut row by row.
  const { top, bottom } = strokeRows(mask, from, to, radius);
  for (let y = top; y < bottom; y += 1) {
    const parts = [disc(from, radius, y + 0.5), disc(to, radius, y + 0.5)];
    if (length > 0) {
      parts.push(across(from, to, radius, length, y + 0.5));
    }
    const covered = parts.filter((part) => part !== null);
    if (covered.length) {
      // All parts of a row are one: a stroke is convex.
      const left = Math.min(...covered.map((part) => part[0]));
      const right = Math.max(...covered.map((part) => part[1]));
      mask.span(y, Math.ceil(left - 0.5), Math.floor(right - 0.5) + 1, on);
    }
  }
  for (const point of [from, to]) {
    mask.span(Math.floor(point.y), Math.floor(point.x), Math.floor(point.x) + 1, on);
  }
}

/**
 * Where a disc begins and ends at a height.
 * @param {Point} center
 * @param {number} radius
 * @param {number} y
 * @returns {[number, number] | null}
 */
function disc(center, radius, y) {
  const rest = radius ** 2 - (y - center.y) ** 2;
  return rest < 0 ? null : [center.x - Math.sqrt(rest), center.x + Math.sqrt(rest)];
}

/**
 * Where the rectangle of a stroke begins and ends at a height.
 * @param {Point} from
 * @param {Point} to
 * @param {number} radius
 * @param {number} length
 * @param {number} y
 * @returns {[number, number] | null}
 */
function across(from, to, radius, length, y) {
  const side = { x: (-(to.y - from.y) / length) * radius, y: ((to.x - from.x) / length) * radius };
  const corners = [
    { x: from.x + side.x, y: from.y + side.y },
    { x: to.x + side.x, y: to.y + side.y },
    { x: to.x - side.x, y: to.y - side.y },
    { x: from.x - side.x, y: from.y - side.y },
  ];
  const found = crossings(corners, y);
  return found.length < 2 ? null : [found[0], found[found.length - 1]];
}

/**
 * Where the edges of a polygon cross a height, from left to right.
 * @param {Point[]} points
 * @param {number} y
 * @returns {number[]}
 */
function crossings(points, y) {
  const found = [];
  for (const [index, point] of points.entries()) {
    const next = points[(index + 1) % points.length];
    // An end belongs to one of its edges only.
    if (point.y <= y !== next.y <= y) {
      found.push(point.x + ((y - point.y) / (next.y - point.y)) * (next.x - point.x));
    }
  }
  return found.sort((left, right) => left - right);
}

/**
 * The rows that a polygon touches.
 * @param {Mask} mask
 * @param {Point[]} points
 */
export function polygonRows(mask, points) {
  const heights = points.map((point) => point.y);
  return rows(mask, Math.min(...heights), Math.max(...heights) + 1);
}

/**
 * Fills or erases a polygon; what its edges enclose twice stays as it is. A pixel belongs to it if its center does.
 * @param {Mask} mask
 * @param {Point[]} points
 * @param {boolean} on
 */
export function polygon(mask, points, on) {
  const { top, bottom } = polygonRows(mask, points);
  for (let y = top; y < bottom; y += 1) {
    const found = crossings(points, y + 0.5);
    for (let index = 0; index + 1 < found.length; index += 2) {
      mask.span(y, Math.ceil(found[index] - 0.5), Math.ceil(found[index + 1] - 0.5), on);
    }
  }
}

/** Most bytes of steps that can be undone. The last step can be, however large it is. */
const MOST_BYTES = 64 << 20;

/** Steps of a mask that can be undone and done again. A step is kept as the rows that it changed. */
export class Steps {
  /** @param {Mask} mask */
  constructor(mask) {
    this.mask = mask;
    /** @type {{top: number, bits: Uint8Array}[]} */
    this.past = [];
    /** @type {{top: number, bits: Uint8Array}[]} */
    this.future = [];
    /** @type {{before: Uint8Array, top: number, bottom: number} | null} */
    this.open = null;
  }

  get canUndo() {
    return this.past.length > 0;
  }

  get canRedo() {
    return this.future.length > 0;
  }

  /** Begins a step. What changes until `end` is one. */
  begin() {
    this.open = { before: this.mask.bits.slice(), top: this.mask.height, bottom: 0 };
  }

  /** Says that rows change within the step. @param {Rows} changed */
  touch(changed) {
    if (this.open) {
      this.open.top = Math.min(this.open.top, changed.top);
      this.open.bottom = Math.max(this.open.bottom, changed.bottom);
    }
  }

  /** Ends a step. */
  end() {
    const open = this.open;
    this.open = null;
    if (!open || open.top >= open.bottom) {
      return;
    }
    const { stride } = this.mask;
    this.past.push({ top: open.top, bits: open.before.slice(open.top * stride, open.bottom * stride) });
    this.future = [];
    let bytes = this.past.reduce((sum, step) => sum + step.bits.length, 0);
    while (bytes > MOST_BYTES && this.past.length > 1) {
      bytes -= /** @type {{bits: Uint8Array}} */ (this.past.shift()).bits.length;
    }
  }

  undo() {
    this.swap(this.past, this.future);
  }

  redo() {
    this.swap(this.future, this.past);
  }

  /**
   * Puts rows back, and keeps what stood there for the other way.
   * @param {{top: number, bits: Uint8Array}[]} from
   * @param {{top: number, bits: Uint8Array}[]} to
   */
  swap(from, to) {
    const step = from.pop();
    if (step) {
      const start = step.top * this.mask.stride;
      to.push({ top: step.top, bits: this.mask.bits.slice(start, start + step.bits.length) });
      this.mask.bits.set(step.bits, start);
    }
  }
}

/**
 * Adds pixels to a mask: those of a strip of an image that are at least half opaque.
 * @param {Mask} mask
 * @param {number} top
 * @param {Uint8ClampedArray} pixels red, green, blue and opacity of each
 */
export function addStrip(mask, top, pixels) {
  for (let pixel = 0; pixel * 4 < pixels.length; pixel += 1) {
    if (pixels[pixel * 4 + 3] >= 128) {
      const x = pixel % mask.width;
      mask.bits[(top + (pixel - x) / mask.width) * mask.stride + (x >> 3)] |= 0x80 >> (x & 7);
    }
  }
}

const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte;
  for (let bit = 0; bit < 8; bit += 1) {
    sum = sum & 1 ? 0xedb88320 ^ (sum >>> 1) : sum >>> 1;
  }
  return sum >>> 0;
});

/**
 * A part of a PNG.
 * @param {string} kind
 * @param {Uint8Array} data
 */
function chunk(kind, data) {
  const whole = new Uint8Array(12 + data.length);
  const view = new DataView(whole.buffer);
  view.setUint32(0, data.length);
  whole.set(new TextEncoder().encode(kind), 4);
  whole.set(data, 8);
  let sum = 0xffffffff;
  for (const byte of whole.subarray(4, 8 + data.length)) {
    sum = CRC[(sum ^ byte) & 0xff] ^ (sum >>> 8);
  }
  view.setUint32(8 + data.length, (sum ^ 0xffffffff) >>> 0);
  return whole;
}

/**
 * A mask as a PNG of one bit per pixel, white on transparent.
 * @param {Mask} mask
 * @returns {Promise<Blob>}
 */
export async function png(mask) {
  const { width, height, stride, bits } = mask;
  const head = new Uint8Array(13);
  new DataView(head.buffer).setUint32(0, width);
  new DataView(head.buffer).setUint32(4, height);
  // One bit, colors of a palette.
  head.set([1, 3, 0, 0, 0], 8);
  const lines = new Uint8Array((stride + 1) * height);
  for (let y = 0; y < height; y += 1) {
    lines.set(bits.subarray(y * stride, (y + 1) * stride), y * (stride + 1) + 1);
  }
  const packed = new Blob([lines]).stream().pipeThrough(new CompressionStream("deflate"));
  const data = new Uint8Array(await new Response(packed).arrayBuffer());
  return new Blob(
    [
      Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
      chunk("IHDR", head),
      chunk("PLTE", new Uint8Array(6).fill(255)),
      chunk("tRNS", Uint8Array.from([0, 255])),
      chunk("IDAT", data),
      chunk("IEND", new Uint8Array(0)),
    ],
    { type: "image/png" },
  );
}

/**
 * The bytes of a file in base64.
 * @param {Blob} file
 * @returns {Promise<string>}
 */
export async function base64(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let start = 0; start < bytes.length; start += 0x8000) {
    text += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
  }
  return btoa(text);
}
