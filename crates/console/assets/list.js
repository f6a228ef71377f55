// A list by pages, at its place in the address. What was read stays when the next page cannot be read.

import { call } from "./api.js";
import { h, isHeld, load, paused } from "./dom.js";
import { stringify } from "./exact.js";
import { counted, grouped } from "./format.js";
import { grid } from "./grid.js";
import { change, isFiltered, values } from "./state.js";
import { TICK, happenings } from "./stream.js";

/** Entries of a page. */
export const PAGE = 50;

/** Pause between an event and the reading of the list, in ms: events come in bursts. */
const PAUSE = 400;

/**
 * @template T
 * @typedef {object} Listed
 * @property {string} reason what is read, for those who wait
 * @property {string} one what an entry is called
 * @property {() => number | null} [total] about how many entries there are without a filter, where it is known
 * @property {(string | HTMLElement)[] | (() => (string | HTMLElement)[])} [columns]
 * @property {(entry: T) => any[]} [row]
 * @property {(entries: T[]) => Node} [cards] what shows the entries in place of a table
 * @property {() => import("./dom.js").Child | import("./dom.js").Child[]} empty what stands there without entries
 * @property {(cursor: string | null) => Promise<{body: T[], next: string | null}>} read
 * @property {(type: string, data: any) => boolean} [live] whether an event may have changed the list
 * @property {(entries: T[]) => Promise<void>} [prepare] reads what the rows need besides
 * @property {() => void} [retry] draws the page again after a failure, in place of the list
 */

/**
 * @template T
 * @param {Listed<T>} listed
 * @returns {{place: HTMLElement, first: () => void, again: () => void}} `first` shows the first page, `again` the same one
 */
export function list(listed) {
  const place = h("div", null);
  const draw = async () => {
    const cursor = values().get("_page");
    const { body, next } = await listed.read(cursor);
    await listed.prepare?.(body);
    const columns = (typeof listed.columns === "function" ? listed.columns() : listed.columns) ?? [];
    const following = next && new URLSearchParams(next.split("?")[1]).get("cursor");
    const turn = (/** @type {string | null} */ to) => () => {
      change({ _page: to }, true);
      place.querySelector(".scroll")?.scrollTo(0, 0);
      again();
    };
    // Above the entries, where it is seen without scrolling.
    const total = listed.total?.() ?? 0;
    const isOne = !next && !cursor;
    const [own, all] = [body.length, total].map((it) => counted(it, listed.one, listed.one.replace(/y$/, "ie") + "s"));
    const rest = total <= body.length ? "" : !isFiltered() ? `, about ${grouped(total)} in all` : `, about ${all} without the filter`;
    const count = body.length === 0 ? "" : !isOne ? `${own} on this page${rest}` : isFiltered() && rest ? `${body.length} of about ${all}` : own;
    const pager = h(
      "p",
      { class: "pages" },
      h("span", { class: "quiet" }, count),
      cursor ? h("button", { type: "button", click: turn(null) }, "First page") : null,
      following ? h("button", { type: "button", click: turn(following) }, "Next page") : null,
    );
    // What was typed or asked since the rows were asked for is not taken away.
    if (isHeld(place)) {
      soon();
      return undefined;
    }
    return h("div", null, count || cursor ? pager : null, body.length && listed.cards ? listed.cards(body) : grid(columns, body.map((it) => listed.row?.(it) ?? []), listed.empty()));
  };
  const again = () => {
    // Who turns the page, or sorts it, no longer waits for an answer.
    place.querySelectorAll(".asking").forEach((it) => it.classList.remove("asking"));
    return load(place, listed.reason, draw, listed.retry ?? again);
  };
  const first = () => {
    change({ _page: null });
    again();
  };
  const { live } = listed;
  const soon = live ? watching(place, again, (type, data) => live(type, data) && !values().get("_page")) : again;
  if (!live) {
    again();
  }
  return { place, first, again };
}

/**
 * Reads a place now, and again after events that may have changed it.
 * @param {Element} place
 * @param {() => void} read
 * @param {(type: string, data: any) => boolean} live
 * @returns {() => void} reads it after a pause
 */
export function watching(place, read, live) {
  const free = () => (isHeld(place) ? soon() : read());
  const soon = paused(PAUSE, () => place.isConnected && free());
  happenings((/** @type {any} */ event) => live(event.type, event.data) && soon(), free);
  return soon;
}

/** A place whose fields are not taken away once somebody has typed into them. */
function edited() {
  return h("div", { input: (/** @type {any} */ { target }) => target.classList.add("editing") });
}

/**
 * A place that shows what a promise gives, and follows events. What somebody does in it meanwhile is not taken away.
 * @param {string} reason
 * @param {(type: string, data: any) => boolean} live whether an event may have changed it
 * @param {(again: () => void) => Promise<import("./dom.js").Child>} work gets a function that reads it once more
 */
export function watched(reason, live, work) {
  const place = edited();
  const again = () => load(place, reason, () => work(again));
  const unasked = async () => {
    const shown = await work(again);
    return isHeld(place) ? void soon() : shown;
  };
  const soon = watching(place, () => load(place, reason, unasked, again), live);
  return place;
}

/**
 * @template T
 * @typedef {object} Part a part of the page of a record
 * @property {(record: T) => any} of what it shows: the part is drawn again when this has changed
 * @property {(record: T, again: () => void) => import("./dom.js").Child} make gets a function that reads the record once more
 * @property {boolean} [isLasting] what somebody does in it outlasts a drawing
 */

/**
 * The page of a record, in parts that follow events. A part in which somebody works is drawn again when he has finished,
 * and does not hold up the others.
 * @template T
 * @param {string} reason
 * @param {(type: string, data: any) => boolean} live whether an event may have changed the record
 * @param {() => Promise<T>} read
 * @param {Part<T>[]} parts
 */
export function followed(reason, live, read, parts) {
  const place = h("div", null);
  const drawings = parts.map((part) => ({ ...part, place: edited(), state: "", isAsked: true }));
  /** @type {T} */
  let record;
  let reads = 0;
  const draw = () => {
    for (const it of drawings) {
      const state = stringify(it.of(record) ?? null);
      if (!it.isAsked && state === it.state) {
        continue;
      }
      if (!it.isAsked && !it.isLasting && isHeld(it.place)) {
        later();
        continue;
      }
      it.state = state;
      it.isAsked = false;
      const again = () => {
        it.isAsked = true;
        readAgain();
      };
      load(it.place, reason, async () => it.make(record, again));
    }
  };
  const later = paused(PAUSE, () => place.isConnected && draw());
  const readAgain = () => {
    const mine = ++reads;
    return load(place, reason, async () => {
      const found = await read();
      // An older answer says nothing about what came later.
      if (mine !== reads) {
        return undefined;
      }
      record = found;
      draw();
      place.querySelector(":scope > .stale")?.remove();
      return drawings[0].place.isConnected ? undefined : h("div", null, drawings.map((it) => it.place));
    });
  };
  const soon = paused(PAUSE, () => place.isConnected && readAgain());
  happenings((/** @type {any} */ event) => live(event.type, event.data) && soon(), readAgain);
  return place;
}

/** Says that it is time to look again: for what no event of the platform tells of. @param {string} type */
export const ticks = (type) => type === TICK;

/** Events after which rows of tables may be others. @param {...(string | null | undefined)} tables */
export function writesTo(...tables) {
  return (/** @type {string} */ type, /** @type {any} */ data) => type === "job_execution.reverted" || (type === "data.written" && tables.includes(data.table));
}

/**
 * Reads a page of a list of the API.
 * @param {string} path
 * @param {Record<string, string | null | undefined>} filters
 */
export function pageOf(path, filters) {
  return (/** @type {string | null} */ cursor) => {
    const query = new URLSearchParams({ limit: String(PAGE) });
    for (const [name, value] of Object.entries({ ...filters, cursor })) {
      if (value) {
        query.set(name, value);
      }
    }
    return call("GET", `${path}?${query}`);
  };
}
