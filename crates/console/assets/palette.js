// Search over everything (Ctrl+K), and the keys of the console (?).

import { get } from "./api.js";
import { h, show } from "./dom.js";
import { address } from "./state.js";
import { keyOf, labelOf, read, rowLink, schema } from "./tables.js";

/** Pause after a letter before the platform is asked, in ms. */
const PAUSE = 80;

/** Entries of each kind that are listed. */
const EACH = 5;

/** Tables that are searched for rows. */
const TABLES = 12;

/** @typedef {{kind: string, name: string, more?: string, to: string}} Entry */

/** @typedef {Record<string, {name: string}>} Pages */

/** What lists of the platform change rarely, read once while the palette is open. @type {Promise<{tables: import("./tables.js").Table[], jobs: any[], models: any[]}> | null} */
let known = null;

function everything() {
  known ??= Promise.all([schema(), get("/jobs"), get("/ml-models")]).then(([tables, jobs, models]) => ({ tables, jobs, models }));
  return known;
}

/**
 * @param {string} text
 * @param {Pages} pages
 * @returns {Entry[]}
 */
function ofPages(text, pages) {
  return Object.entries(pages)
    .filter(([, page]) => page.name.toLowerCase().includes(text))
    .map(([path, page]) => ({ kind: "Page", name: page.name, to: `#/${path}` }));
}

/**
 * What bears the text in its name: each part of the platform is asked by itself, so that a slow one holds up none.
 * @param {string} text
 * @returns {Promise<Entry[]>[]}
 */
function searches(text) {
  const low = text.toLowerCase();
  const has = (/** @type {any} */ it) => it.name.toLowerCase().includes(low);
  const lists = everything().then(({ tables, jobs, models }) => [
    ...tables.filter(has).slice(0, EACH).map((it) => ({ kind: "Table", name: it.name, more: it.description ?? "", to: address("tables", it.name) })),
    ...tables.filter((it) => it.semantic_category === "raw" && has(it)).slice(0, EACH).map((it) => ({ kind: "Curves", name: it.name, to: address("plates", it.name) })),
    ...jobs.filter(has).slice(0, EACH).map((it) => ({ kind: "Job", name: it.name, to: `#/jobs/${it.id}` })),
    ...models.filter(has).slice(0, EACH).map((it) => ({ kind: "Model", name: it.name, to: `#/models/${it.id}` })),
  ]);
  const files = get(`/files?${new URLSearchParams({ query: text, limit: String(EACH) })}`).then((found) =>
    found.map((/** @type {any} */ it) => ({ kind: "File", name: it.file_name, to: `#/files/${it.file_id}` })),
  );
  const rows = everything().then(async ({ tables }) => {
    const curated = tables.filter((it) => it.id !== null && it.semantic_category === "curated" && labelOf(it) !== keyOf(it)).slice(0, TABLES);
    const found = await Promise.all(curated.map((table) => rowsOf(table, text)));
    return found.flat();
  });
  const id = /^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(low) ? get(`/job-executions/${low}`).then((it) => [{ kind: "Execution", name: it.job_name, to: `#/executions/${low}` }]) : null;
  return [lists, rows, files, ...(id ? [id] : [])].map((search) => search.catch(() => []));
}

/**
 * @param {import("./tables.js").Table} table
 * @param {string} text
 * @returns {Promise<Entry[]>}
 */
async function rowsOf(table, text) {
  const [key, label] = [keyOf(table), labelOf(table)];
  const { body } = await read(table, { filters: { [`${label}__contains`]: text }, columns: [key, label], limit: EACH });
  return body.map((/** @type {any} */ row) => ({ kind: table.name, name: String(row[label]), to: rowLink(table.name, row[key]) }));
}

/**
 * Opens the search.
 * @param {Pages} pages
 */
export function palette(pages) {
  if (document.querySelector("dialog[open]")) {
    return;
  }
  known = null;
  const input = /** @type {HTMLInputElement} */ (
    h("input", { type: "text", role: "combobox", "aria-label": "Search", "aria-expanded": "true", "aria-controls": "found", "aria-autocomplete": "list", placeholder: "Samples, plates, files, jobs, tables…", autocomplete: "off" })
  );
  const found = h("ul", { id: "found", role: "listbox", "aria-label": "Found" });
  const told = h("p", { class: "quiet", role: "status" });
  /** @type {Entry[]} */
  let entries = [];
  let chosen = 0;
  let number = 0;
  /** @type {number | undefined} */
  let due;
  const draw = () => {
    const line = (/** @type {Entry} */ it, /** @type {number} */ index) =>
      h(
        "li",
        { role: "option", id: `found-${index}`, "aria-selected": String(index === chosen), click: () => go(it), pointermove: () => choose(index) },
        h("span", { class: "kind" }, it.kind),
        h("span", { class: "name" }, it.name),
        it.more ? h("span", { class: "quiet" }, it.more) : null,
      );
    show(found, ...entries.map(line));
    input.setAttribute("aria-activedescendant", entries.length ? `found-${chosen}` : "");
  };
  const choose = (/** @type {number} */ index) => {
    if (index !== chosen) {
      chosen = index;
      draw();
      found.children[chosen]?.scrollIntoView({ block: "nearest" });
    }
  };
  const go = (/** @type {Entry | undefined} */ it) => {
    if (it) {
      dialog.close();
      location.hash = it.to;
    }
  };
  const search = () => {
    const mine = ++number;
    const text = input.value.trim();
    entries = ofPages(text.toLowerCase(), pages);
    chosen = 0;
    draw();
    show(told);
    if (text === "") {
      return;
    }
    const all = searches(text).map((each) =>
      each.then((more) => {
        if (mine === number) {
          entries = [...entries, ...more];
          draw();
        }
      }),
    );
    Promise.all(all).then(() => mine === number && entries.length === 0 && show(told, `Nothing is called "${text}".`));
  };
  const key = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      go(entries[chosen]);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      choose((chosen + step + entries.length) % Math.max(entries.length, 1));
    }
  };
  input.addEventListener("input", () => {
    clearTimeout(due);
    due = setTimeout(search, PAUSE);
  });
  input.addEventListener("keydown", key);
  const dialog = /** @type {HTMLDialogElement} */ (h("dialog", { class: "palette", "aria-label": "Search", close: () => dialog.remove() }, input, found, told));
  document.body.append(dialog);
  dialog.showModal();
  search();
}

/** Keys that lead to pages, after g. */
const GOES = /** @type {Record<string, string>} */ ({ h: "home", p: "plates", t: "tables", f: "files", s: "sql", e: "executions", j: "jobs", m: "models", c: "chat", a: "admin" });

let installed = false;

/**
 * Listens to the keys of the console.
 * @param {Pages} pages
 */
export function shortcuts(pages) {
  if (installed) {
    return;
  }
  installed = true;
  let isGoing = false;
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      if (document.querySelector("nav")) {
        palette(pages);
      }
      return;
    }
    const at = /** @type {HTMLElement} */ (event.target);
    const isTyping = at.closest("input, textarea, select, [contenteditable], dialog") !== null;
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !document.querySelector("nav")) {
      return;
    }
    if (isGoing) {
      isGoing = false;
      if (GOES[event.key]) {
        location.hash = `#/${GOES[event.key]}`;
      }
      return;
    }
    isGoing = event.key === "g";
    if (event.key === "/") {
      event.preventDefault();
      palette(pages);
    } else if (event.key === "?") {
      help(pages);
    }
  });
}

/** @param {Pages} pages */
function help(pages) {
  if (document.querySelector("dialog[open]")) {
    return;
  }
  const line = (/** @type {string} */ keys, /** @type {string} */ what) => h("div", null, h("dt", null, h("kbd", null, keys)), h("dd", null, what));
  const goes = Object.entries(GOES).map(([key, page]) => line(`g ${key}`, pages[page].name));
  const close = h("button", { type: "button", click: () => dialog.close() }, "Close");
  const dialog = /** @type {HTMLDialogElement} */ (
    h(
      "dialog",
      { class: "box", "aria-label": "Keys", close: () => dialog.remove() },
      h("h2", null, "Keys"),
      h("dl", { class: "keys" }, line("Ctrl K or /", "Search everything"), line("?", "These keys"), line("Enter", "Edit the cell that has the focus"), goes),
      h("p", null, close),
    )
  );
  document.body.append(dialog);
  dialog.showModal();
}
