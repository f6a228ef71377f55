// A list by pages, at its place in the address. What was read stays when the next page cannot be read.

import { call } from "./api.js";
import { failure, h, load, show } from "./dom.js";
import { grid } from "./grid.js";
import { change, values } from "./state.js";
import { happenings } from "./stream.js";

/** Entries of a page. */
export const PAGE = 50;

/** Pause between an event and the reading of the list, in ms: events come in bursts. */
const PAUSE = 400;

/**
 * @template T
 * @typedef {object} Listed
 * @property {string} reason what is read, for those who wait
 * @property {(string | HTMLElement)[] | (() => (string | HTMLElement)[])} columns
 * @property {(entry: T) => any[]} row
 * @property {() => string} empty what stands there without entries
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
  const told = h("div", { "aria-live": "polite" });
  const place = h("div", null);
  const draw = async () => {
    const cursor = values().get("_page");
    const { body, next } = await listed.read(cursor);
    await listed.prepare?.(body);
    const columns = typeof listed.columns === "function" ? listed.columns() : listed.columns;
    const following = next && new URLSearchParams(next.split("?")[1]).get("cursor");
    const turn = (/** @type {string | null} */ to) => () => {
      change({ _page: to }, true);
      place.querySelector(".scroll")?.scrollTo(0, 0);
      again();
    };
    const pager =
      following || cursor
        ? h(
            "p",
            { class: "pages" },
            cursor ? h("button", { type: "button", click: turn(null) }, "First page") : null,
            following ? h("button", { type: "button", click: turn(following) }, "Next page") : null,
          )
        : null;
    // What is typed into a cell since the rows were asked for is not taken away.
    if (place.querySelector(".editing")) {
      soon();
      return undefined;
    }
    show(told);
    return h("div", null, grid(columns, body.map(listed.row), listed.empty()), pager);
  };
  const again = () =>
    load(place, listed.reason, async () => {
      try {
        return await draw();
      } catch (error) {
        if (!place.querySelector("table")) {
          throw error;
        }
        const retry = h("button", { type: "button", click: listed.retry ?? again }, "Try again");
        show(told, failure(error), h("p", null, "The entries below are those of before. ", retry));
        return undefined;
      }
    });
  const first = () => {
    change({ _page: null });
    again();
  };
  /** @type {number | undefined} */
  let due;
  // A cell that is being edited would lose what was typed into it.
  const free = () => (place.querySelector(".editing") ? soon() : again());
  const soon = () => {
    clearTimeout(due);
    due = place.isConnected ? setTimeout(free, PAUSE) : undefined;
  };
  const { live } = listed;
  if (live) {
    const on = (/** @type {any} */ event) => {
      if (live(event.type, event.data) && !values().get("_page")) {
        soon();
      }
    };
    happenings(on, free);
  } else {
    again();
  }
  return { place: h("div", null, told, place), first, again };
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
