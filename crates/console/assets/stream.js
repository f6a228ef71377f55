// Server-sent events, for as long as the page that shows them is there.

import { ApiError, renewed, told } from "./api.js";
import { parse, stringify } from "./exact.js";

/** Pause before a broken stream is opened again, in ms. */
const RETRY = 3000;

/** Pause between looks for what no event tells of, in ms. */
const TICKS = 30_000;

/** Type of the event that says it is time for such a look; it comes from the browser alone. */
export const TICK = "tick";

let page = new AbortController();

/** Parts of the page that follow what happens, by one stream: a browser has few connections. @type {{on: (event: any) => void, read: () => void}[]} */
let followers = [];

/** Whether they have read what stands. */
let areRead = false;

/** Another page is shown: streams of the last one end. */
export function turn() {
  page.abort();
  page = new AbortController();
  followers = [];
  areRead = false;
}

/**
 * @typedef {{name: string, data: any}} StreamEvent
 */

/**
 * Reads events until the stream ends, the page is left or `stop` says so.
 * @param {string} path below /api/v1
 * @param {(event: StreamEvent) => void} on
 * @param {{method?: string, body?: any, stop?: AbortSignal, opened?: () => void}} [options] `opened`
 *   is called once the server has begun to answer
 */
export async function follow(path, on, { method = "GET", body, stop, opened } = {}) {
  const signal = stop ? AbortSignal.any([page.signal, stop]) : page.signal;
  try {
    const response = await fetch(`api/v1${path}`, {
      method,
      credentials: "same-origin",
      headers: { Accept: "text/event-stream", ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
      body: body === undefined ? undefined : stringify(body),
      signal,
    });
    if (response.status === 401) {
      await renewed();
      return await follow(path, on, { method, body, stop, opened });
    }
    if (!response.ok || !response.body) {
      const read = await response.json().catch(() => null);
      throw new ApiError(response.status, told(read, response.status), response.headers.get("x-request-id"));
    }
    opened?.();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parsed(block);
        if (event) {
          on(event);
        }
      }
    }
  } catch (error) {
    if (!signal.aborted) {
      throw error;
    }
  }
}

/**
 * One event; nothing for a comment, which only keeps the connection open.
 * @param {string} block
 * @returns {StreamEvent | null}
 */
function parsed(block) {
  let name = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) {
      name = line.slice(7);
    } else if (line.startsWith("data: ")) {
      data.push(line.slice(6));
    }
  }
  return data.length ? { name, data: parse(data.join("\n")) } : null;
}

/**
 * Follows a stream while the page is there, through restarts of the server.
 * @param {string} path below /api/v1
 * @param {(event: StreamEvent) => boolean} on true for the last event
 * @param {{stop?: AbortSignal, opened?: () => void, broken?: () => void}} options `opened` is called
 *   whenever the server has begun to answer, `broken` whenever it does not respond, or no longer
 */
export async function keepFollowing(path, on, { stop, opened, broken }) {
  const signal = stop ? AbortSignal.any([page.signal, stop]) : page.signal;
  let isOver = false;
  while (!signal.aborted) {
    try {
      await follow(path, (event) => (isOver ||= on(event)), { stop, opened });
    } catch (error) {
      // Another try would be refused again, unless there are too many streams at present.
      if (error instanceof ApiError && error.status >= 400 && error.status < 500) {
        throw error;
      }
    }
    if (isOver || signal.aborted) {
      return;
    }
    broken?.();
    await new Promise((resolve) => setTimeout(resolve, RETRY));
  }
}

/**
 * Follows what happens in the organization while the page is there.
 * @param {(event: any) => void} on
 * @param {() => void} read reads what stands: whenever events begin to be followed, so that nothing
 *   happens unseen between the two, and once where they cannot be
 */
export async function happenings(on, read) {
  const all = followers;
  all.push({ on, read });
  if (all.length > 1) {
    areRead && read();
    return;
  }
  const opened = () => {
    areRead = true;
    all.forEach((it) => it.read());
  };
  const broken = () => areRead || all !== followers || opened();
  const tell = (/** @type {any} */ event) => all.forEach((it) => it.on(event));
  const each = (/** @type {StreamEvent} */ { data }) => {
    tell(data);
    return false;
  };
  const ticking = setInterval(() => document.hidden || tell({ type: TICK, data: {} }), TICKS);
  page.signal.addEventListener("abort", () => clearInterval(ticking));
  await keepFollowing("/events", each, { opened, broken }).catch(broken);
}
