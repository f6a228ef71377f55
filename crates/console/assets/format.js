// Values for people: one form for each kind, everywhere. What it leaves out is in the title.

import { h } from "./dom.js";
import { stringify } from "./exact.js";

/** Digits of a fraction that are shown. */
const DIGITS = 6;

const PARTS = /** @type {Intl.DateTimeFormatOptions} */ ({
  year: "numeric",
  month: "2-digit",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});

const clocks = new Map();

/**
 * @param {string | undefined} zone
 */
function clock(zone) {
  if (!clocks.has(zone)) {
    clocks.set(zone, new Intl.DateTimeFormat("en-US", { ...PARTS, timeZone: zone, timeZoneName: "short" }));
  }
  return /** @type {Intl.DateTimeFormat} */ (clocks.get(zone));
}

/**
 * A number with six significant digits; what stands before the decimal point is never rounded.
 * @param {number | bigint} value
 */
export function number(value) {
  if (typeof value === "bigint" || Number.isInteger(value)) {
    return String(value);
  }
  const whole = Math.floor(Math.log10(Math.abs(value))) + 1;
  return String(Number(value.toPrecision(Math.min(Math.max(DIGITS, whole + 1), 17))));
}

/**
 * An instant in the browser's time zone, which it names: `2026-03-01 09:30 GMT+1`.
 * @param {string | number} value RFC 3339, or milliseconds
 * @param {string} [zone] another time zone
 */
export function instant(value, zone) {
  const date = new Date(value);
  if (Number.isNaN(date.getTime())) {
    return String(value);
  }
  const found = Object.fromEntries(clock(zone).formatToParts(date).map((part) => [part.type, part.value]));
  // A date has milliseconds, the platform's instants microseconds.
  const written = typeof value === "string" ? /\.(\d+)/.exec(value)?.[1] : String(date.getMilliseconds()).padStart(3, "0");
  const digits = (written ?? "").replace(/0+$/, "");
  const fraction = digits ? `.${digits}` : "";
  const seconds = found.second !== "00" || fraction ? `:${found.second}${fraction}` : "";
  return `${found.year}-${found.month}-${found.day} ${found.hour}:${found.minute}${seconds} ${found.timeZoneName}`;
}

/**
 * The time between two instants, in words.
 * @param {string} from
 * @param {string} to
 */
export function duration(from, to) {
  const seconds = (Date.parse(to) - Date.parse(from)) / 1000;
  if (seconds < 60) {
    return `${number(Math.max(0, Math.round(seconds * 10) / 10))} s`;
  }
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/**
 * @param {number} count
 * @param {string} one what is counted
 * @param {string} [many]
 */
export function counted(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;
}

/**
 * The text of a value; of nothing, nothing.
 * @param {unknown} value
 * @param {string} [type] data type of its column
 */
export function text(value, type) {
  if (value === null || value === undefined) {
    return "";
  }
  if (type === "datetime" && typeof value === "string") {
    return instant(value);
  }
  if (typeof value === "number" || typeof value === "bigint") {
    return number(value);
  }
  return typeof value === "object" ? stringify(value) : String(value);
}

/**
 * A value for a page. Its title has what the text leaves out.
 * @param {unknown} value
 * @param {string} [type] data type of its column
 * @returns {HTMLElement | string}
 */
export function shown(value, type) {
  const short = text(value, type);
  if (type === "datetime" && short) {
    return h("time", { datetime: String(value), title: String(value) }, short);
  }
  const exact = typeof value === "number" ? String(value) : short;
  return exact === short ? short : h("span", { title: exact }, short);
}

/**
 * When something happened on the platform, to the minute; the title has the rest.
 * @param {string | null | undefined} value
 */
export function time(value) {
  const words = value && instant(value).replace(/(\d\d:\d\d):\d\d(?:\.\d+)?/, "$1");
  return value ? h("time", { datetime: value, title: value }, words) : h("span", { class: "quiet" }, "–");
}

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/**
 * The order in which people list values: numbers by size, texts with numbers in them too, nothing last.
 * @param {any} a
 * @param {any} b
 */
export function naturally(a, b) {
  const [isNoA, isNoB] = [a === null || a === undefined || a === "", b === null || b === undefined || b === ""];
  if (isNoA || isNoB) {
    return Number(isNoA) - Number(isNoB);
  }
  const areNumbers = Number.isFinite(Number(a)) && Number.isFinite(Number(b));
  return areNumbers ? Number(a) - Number(b) : collator.compare(String(a), String(b));
}
