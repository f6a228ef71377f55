// JSON whose whole numbers keep all their digits: those that a number cannot hold are of the type bigint.

/** A whole number of so many digits that it may have more than a number holds, and what stands around it. */
const LONG = /[:,[\s]-?\d{16,}\s*(?:[,\]}]|$)|^-?\d{16,}\s*$/;

/** Texts and numbers of JSON. */
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Begins the text that stands for a whole number. Texts of the platform have no NUL. */
const MARK = "\u0000integer:";

/**
 * Reads JSON.
 * @param {string} text
 * @returns {any}
 */
export function parse(text) {
  if (!LONG.test(text)) {
    return JSON.parse(text);
  }
  const marked = text.replace(TOKENS, (token) => {
    const isExact = token.startsWith('"') || !/^-?\d+$/.test(token) || Number.isSafeInteger(Number(token));
    return isExact ? token : JSON.stringify(MARK + token);
  });
  const revive = (/** @type {string} */ _, /** @type {any} */ value) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value;
  return JSON.parse(marked, revive);
}

/**
 * Writes JSON.
 * @param {any} value
 * @param {number} [indent]
 * @returns {string}
 */
export function stringify(value, indent) {
  const mark = (/** @type {string} */ _, /** @type {any} */ it) => (typeof it === "bigint" ? `${MARK}${it}` : it);
  const text = JSON.stringify(value, mark, indent);
  return text === undefined ? "" : text.replace(/"\\u0000integer:(-?\d+)"/g, "$1");
}

/**
 * True for a number of any size.
 * @param {unknown} value
 * @returns {value is number | bigint}
 */
export function isNumber(value) {
  return typeof value === "number" || typeof value === "bigint";
}

/**
 * The number that a person wrote; null if nothing was written.
 * @param {string} text
 * @param {boolean} isWhole
 * @returns {number | bigint | null} NaN if it is none
 */
export function numberOf(text, isWhole) {
  const written = text.trim();
  if (written === "") {
    return null;
  }
  if (/^[+-]?\d+$/.test(written)) {
    const whole = BigInt(written.replace("+", ""));
    return Number.isSafeInteger(Number(whole)) ? Number(whole) : whole;
  }
  const isDecimal = !isWhole && /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(written);
  const number = isDecimal ? Number(written) : Number.NaN;
  // Digits other than 0 whose number would be 0 are too small to be stored.
  const isLost = number === 0 && /^[^eE]*[1-9]/.test(written);
  return Number.isFinite(number) && !isLost ? number : Number.NaN;
}

/**
 * A value as plots and their arithmetic take it: of a long whole number the last digits are rounded.
 * @param {any} value
 */
export function drawable(value) {
  return typeof value === "bigint" ? Number(value) : value;
}
