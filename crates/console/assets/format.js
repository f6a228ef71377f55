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

/** @param {string | undefined} zone */
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
 * A clock for all values of an axis, which may neither jump nor go back as clocks of a place do.
 * @typedef {object} Zone
 * @property {number} offset from UTC in milliseconds
 * @property {string} name empty for dates and times without a zone, which are the same everywhere
 */

/** The clock of dates and of times without a zone. @type {Zone} */
export const CALENDAR = { offset: 0, name: "" };

/** An instant of the platform: a time with its zone. */
const INSTANT = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)$/;

/** @param {unknown} value */
export function isInstant(value) {
  return typeof value === "string" && INSTANT.test(value);
}

/**
 * The browser's clock as it stands at an instant.
 * @param {number} milliseconds
 * @returns {Zone}
 */
export function zoneAt(milliseconds) {
  const minutes = -new Date(milliseconds).getTimezoneOffset() || 0;
  const rest = Math.abs(minutes % 60);
  const hours = `${minutes < 0 ? "−" : "+"}${Math.floor(Math.abs(minutes) / 60)}${rest ? `:${String(rest).padStart(2, "0")}` : ""}`;
  return { offset: minutes * 60_000, name: minutes ? `UTC${hours}` : "UTC" };
}

/**
 * Milliseconds of an instant; of a date or a time without a zone those that it would have in UTC.
 * @param {any} text
 * @returns {number | null}
 */
export function milliseconds(text) {
  const found = typeof text !== "string" ? NaN : Date.parse(isInstant(text) || !text.includes(":") ? text : `${text.replace(" ", "T")}Z`);
  return Number.isNaN(found) ? null : found;
}

/**
 * What a clock shows: `2026-03-01T09:30:00.000`.
 * @param {number} milliseconds
 * @param {Zone} zone
 */
export function clockAt(milliseconds, zone) {
  return new Date(milliseconds + zone.offset).toISOString().slice(0, -1);
}

/**
 * A time in words, with its zone if it has one: `2026-03-01 09:30 UTC+1`.
 * @param {number} milliseconds
 * @param {Zone} zone
 */
export function moment(milliseconds, zone) {
  const clock = clockAt(milliseconds, zone).replace("T", " ");
  const words = clock.slice(0, 16) + clock.slice(16).replace(/\.?0+$/, "").replace(/^:00$/, "");
  return zone.name ? `${words} ${zone.name}` : words.replace(/ 00:00$/, "");
}

/**
 * The time between two instants, in words.
 * @param {string} from
 * @param {string} to
 */
export function duration(from, to) {
  const tenths = Math.round((Date.parse(to) - Date.parse(from)) / 100);
  if (tenths < 600) {
    return tenths > 0 ? `${number(tenths / 10)} s` : "under 0.1 s";
  }
  const seconds = Math.round(tenths / 10);
  const minutes = seconds < 3600 ? Math.floor(seconds / 60) : Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A count with its thousands apart, as in English: elsewhere the sign between them is that of decimals. @param {number} count */
export function grouped(count) {
  return count.toLocaleString("en-US");
}

/**
 * @param {number} count
 * @param {string} one what is counted
 * @param {string} [many]
 */
export function counted(count, one, many = `${one}s`) {
  return `${grouped(count)} ${count === 1 ? one : many}`;
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
  if (type === undefined ? isInstant(value) : type === "datetime" && typeof value === "string") {
    return instant(/** @type {string} */ (value));
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
  if (value === "") {
    return h("span", { class: "quiet", title: "An empty text" }, '""');
  }
  const short = text(value, type);
  if (typeof value === "string" && value !== short) {
    return h("time", { datetime: value, title: value }, short);
  }
  const exact = typeof value === "number" ? String(value) : short;
  return exact === short ? short : h("span", { class: "rounded", title: exact }, short);
}

/** An instant to the minute. @param {string} value */
export function minute(value) {
  return instant(value).replace(/(\d\d:\d\d):\d\d(?:\.\d+)?/, "$1");
}

/**
 * When something happened on the platform, to the minute; the title has the rest.
 * @param {string | null | undefined} value
 */
export function time(value) {
  return value ? h("time", { datetime: value, title: value }, minute(value)) : h("span", { class: "quiet" }, "–");
}

/**
 * Words for values that differ where the values do: numbers that would look alike have all their digits, others name their value.
 * @template T
 * @param {Iterable<T>} values
 * @param {(value: T) => string} words
 * @returns {Map<T, string>}
 */
export function distinctly(values, words) {
  const all = new Map([...new Set(values)].map((value) => [value, words(value)]));
  const counts = new Map();
  for (const it of all.values()) {
    counts.set(it, (counts.get(it) ?? 0) + 1);
  }
  const whole = (/** @type {T} */ value, /** @type {string} */ it) => {
    const exact = typeof value === "number" ? it.replace(number(value), String(value)) : it;
    return exact === it ? `${it} (${value})` : exact;
  };
  return new Map([...all].map(([value, it]) => [value, counts.get(it) > 1 ? whole(value, it) : it]));
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
