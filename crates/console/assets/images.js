// Images among the files. They are drawn from their bytes: the page's policy lets no picture be loaded by its address.

import { stored } from "./api.js";
import { h } from "./dom.js";
import { grouped } from "./format.js";

/** Endings of names of images that browsers decode. */
const NAMES = /\.(png|jpe?g|gif|webp|bmp|avif)$/i;

/** Largest file that is drawn, in kB. */
const MAX_KILOBYTES = 32 << 10;

/** Longest side of a preview, in pixels. */
const MAX_SIDE = 2048;

/**
 * True if a file may be an image that a browser decodes: many instruments and scripts store files without a type.
 * @param {Api["FileRecord"]} file
 */
export function isImage(file) {
  return file.content_type.startsWith("image/") || NAMES.test(file.file_name);
}

/**
 * The pixels of a file.
 * @param {string} address its `download_url`
 * @returns {Promise<ImageBitmap>}
 */
export async function pixels(address) {
  const answer = await fetch(stored(address));
  if (!answer.ok) {
    throw new Error(`The image cannot be read (${answer.status}). Reload the page.`);
  }
  try {
    return await createImageBitmap(await answer.blob());
  } catch {
    throw new Error("This browser cannot decode the image. Download it to see it.");
  }
}

/** A size in words. @param {{width: number, height: number}} image */
export function pixelSize({ width, height }) {
  return `${grouped(width)} by ${grouped(height)} pixels`;
}

/**
 * A picture of a file.
 * @param {Api["FileRecord"]} file
 * @param {string} address its `download_url`
 */
export async function preview(file, address) {
  if ((file.size_kilobytes ?? 0) > MAX_KILOBYTES) {
    throw new Error("The image is too large for a preview. Download it to see it.");
  }
  const image = await pixels(address);
  const scale = Math.min(1, MAX_SIDE / Math.max(image.width, image.height));
  const width = Math.max(1, Math.round(image.width * scale));
  const height = Math.max(1, Math.round(image.height * scale));
  const canvas = h("canvas", { width, height, role: "img", "aria-label": file.file_name });
  canvas.getContext("2d")?.drawImage(image, 0, 0, width, height);
  const size = pixelSize(image);
  image.close();
  return h("figure", { class: "preview" }, canvas, h("figcaption", { class: "quiet" }, size));
}
