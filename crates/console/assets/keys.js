// The keys of the console: search (Ctrl+K), help (?), and pages.

import { h } from "./dom.js";

/** @typedef {Record<string, {name: string}>} Pages */

/** The modules of the search, read with its first use. @type {typeof import("./palette.js") | null} */
let search = null;

/** What was typed while they were read; null if they are not being read. @type {string | null} */
let early = null;

/**
 * Opens the search. A person types on at once, so no letter is lost or taken for a shortcut while its modules are read.
 * @param {Pages} pages
 */
export async function palette(pages) {
  if (search) {
    search.palette(pages);
  } else if (early === null) {
    early = "";
    try {
      search = await import("./palette.js");
      search.palette(pages, early);
    } finally {
      early = null;
    }
  }
}

/** Keys that lead to pages, after g. */
const GOES = /** @type {Record<string, string>} */ ({ h: "home", p: "plates", t: "tables", f: "files", s: "sql", e: "executions", j: "jobs", m: "models", c: "chat", a: "admin" });

let installed = false;

/** Listens to the keys of the console. @param {Pages} pages */
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
    if (early !== null) {
      event.preventDefault();
      early = event.key === "Backspace" ? early.slice(0, -1) : early + (event.key.length === 1 ? event.key : "");
      return;
    }
    const at = /** @type {HTMLElement} */ (event.target);
    const isTyping = at.closest("input, textarea, select, [contenteditable], dialog") !== null;
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !document.querySelector("nav")) {
      return;
    }
    if (isGoing) {
      isGoing = false;
      if (pages[GOES[event.key]]) {
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
  const goes = Object.entries(GOES).filter(([, page]) => pages[page]).map(([key, page]) => line(`g ${key}`, pages[page].name));
  const close = h("button", { type: "button", click: () => dialog.close() }, "Close");
  const dialog = h(
    "dialog",
    { class: "box", "aria-label": "Keys", close: () => dialog.remove() },
    h("h2", null, "Keys"),
    h("dl", { class: "keys" }, line("Ctrl K or /", "Search everything"), line("?", "These keys"), line("Enter", "Edit the cell that has the focus"), goes),
    h("p", null, close),
  );
  document.body.append(dialog);
  dialog.showModal();
}
