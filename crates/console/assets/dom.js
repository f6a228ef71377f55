// Elements of pages. Text becomes text, never markup.

import { saved } from "./guard.js";

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 */

/**
 * A text as people can read it: characters that hide, or that turn the text around them, are shown by their codes.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2066-\u2069\ufeff]/g, (it) => `[U+${it.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}

/** Attributes that people read. */
const READ = ["aria-label", "title", "placeholder"];

/**
 * Makes an element. Functions among the attributes are listeners; `true` sets an attribute without a value.
 * @template {string} K
 * @param {K} name
 * @param {Record<string, any> | null} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {K extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[K] : HTMLElement}
 */
export function h(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") {
      element.addEventListener(key, value);
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(key, value === true ? "" : READ.includes(key) ? visible(String(value)) : String(value));
    }
  }
  // What is edited stays as it is.
  element.append(...(name === "textarea" ? children.flat().map(String) : nodes(children.flat())));
  return /** @type {any} */ (element);
}

/**
 * An element of a drawing. Children that are text become text.
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @param {...(Node | string)} children
 */
export function s(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, String(value));
  }
  element.append(...children);
  return element;
}

/**
 * @param {Child[]} children
 * @returns {(Node | string)[]}
 */
function nodes(children) {
  return children
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : visible(String(child))));
}

/**
 * Replaces what is in an element.
 * @param {Element} element
 * @param {...Child} children
 */
export function show(element, ...children) {
  element.replaceChildren(...nodes(children));
}

/** Names the browser's tab. @param {string | null | undefined} name of what is shown; nothing while it is read */
export function titled(name) {
  document.title = name ? `${visible(name)} · labdata` : "labdata";
}

/** States whose color is that of a state of executions. @type {Record<string, string[]>} */
const ALIKE = {
  completed: ["ready", "delivered", "published", "online"],
  queued: ["pending"],
  running: ["training", "in_review"],
  cancelled: ["draft", "offline"],
  failed: ["error"],
};

/** A state in words. @param {string} state */
export function stateWords(state) {
  return state === "error" ? "has trouble" : state.replace("_", " ");
}

/**
 * A state.
 * @param {string} state
 * @param {string} [kind] the execution's state whose color it has
 */
export function badge(state, kind = Object.keys(ALIKE).find((it) => ALIKE[it].includes(state)) ?? state) {
  return h("span", { class: `badge ${kind}` }, stateWords(state));
}

/** The text of an error, with the id by which the log knows the request. @param {unknown} error */
export function failure(error) {
  const request = /** @type {any} */ (error)?.request;
  const message = error instanceof Error ? error.message : String(error);
  return h("p", { class: "failure", role: "alert" }, message, request ? h("small", null, ` Request ${request}`) : null);
}

/** The latest call of `load` for each place. @type {WeakMap<Element, object>} */
const loading = new WeakMap();

/**
 * What reading a place again would take away: a field or cell that is being edited, a form that was opened, a question
 * that waits for its answer, a secret that is shown once, what somebody zoomed into.
 */
const HELD = ".editing, .asking, .secret, .zoomed, form:not(.permanent, details:not([open]) form), :is(input:not([type=checkbox]), select, textarea):focus:not(td.editable *)";

/** Whether reading a place again would take something away, such as a text that somebody has marked to copy it. @param {Element} place */
export function isHeld(place) {
  const marked = getSelection();
  return place.querySelector(HELD) !== null || (marked !== null && !marked.isCollapsed && place.contains(marked.anchorNode));
}

/** Parts of a place that are folded or open. */
const OPENED = "details[open] > summary";

/** Time after which a page says what it waits for, in ms. */
export const PATIENCE = 300;

/**
 * Returns a name by which an element is found again after its page is redrawn; marks of sorting and numbers of entries do not count.
 * @param {Element} element
 */
function nameOf(element) {
  const text = element.getAttribute("data-name") ?? element.getAttribute("aria-label") ?? element.textContent ?? "";
  return `${element.tagName} ${text.replace(/[↑↓]|\([\d,]+\)$/g, "").trim()}`;
}

/** Elements of a place that have the same name. @param {Element} place @param {string} name */
function called(place, name) {
  return [...place.querySelectorAll("a, button, input, select, textarea, summary, .scroll, [data-name]")].filter((it) => nameOf(it) === name);
}

/** @typedef {{name: string, index: number}} Focus an element by its name, and its number among those of that name */

/**
 * Returns the focused element of a place, or null if the focus is elsewhere. A field within a cell stands for the cell.
 * @param {Element} place
 * @returns {Focus | null}
 */
function focusIn(place) {
  const active = document.activeElement;
  if (!active || active === place || !place.contains(active)) {
    return null;
  }
  const named = active.closest("[data-name]") ?? active;
  const name = nameOf(named);
  return { name, index: called(place, name).indexOf(named) };
}

/**
 * Moves the focus to the element of that name, else to the place itself, so that the next Tab continues there.
 * @param {Element} place
 * @param {Focus} focus
 */
function focusAgain(place, { name, index }) {
  const all = called(place, name);
  const found = all[index] ?? all.at(-1);
  if (!found) {
    place.setAttribute("tabindex", "-1");
  }
  /** @type {HTMLElement} */ (found ?? place).focus({ preventScroll: true });
}

/** What scrolls within a page: tables, scripts and logs. */
const SCROLLS = ".scroll, pre";

/** How far what scrolls in a place is scrolled. @param {Element} place */
function scrolled(place) {
  return [...place.querySelectorAll(SCROLLS)].map((it) => [it.scrollLeft, it.scrollTop]);
}

/**
 * Shows what a promise gives, or why it failed, above what was shown before; a line with the reason if it takes a while.
 * A slow answer never replaces that of a later call for the same place. The keyboard focus stays at the element that
 * had it, tables stay as far scrolled as they were, and what was unfolded stays open, but for forms. What is undefined
 * leaves the place as it is.
 * @param {Element} place
 * @param {string} reason
 * @param {() => Promise<Child>} work
 * @param {() => void} [retry] in place of the same call
 */
export async function load(place, reason, work, retry = () => load(place, reason, work)) {
  const mine = {};
  loading.set(place, mine);
  let focused = focusIn(place);
  let positions = scrolled(place);
  const put = (/** @type {Child} */ child) => {
    if (loading.get(place) === mine && child !== undefined) {
      focused = focusIn(place) ?? focused;
      positions = place.querySelector(SCROLLS) ? scrolled(place) : positions;
      const opened = [...place.querySelectorAll(OPENED)].filter((it) => !it.parentElement?.querySelector("form")).map((it) => ({ name: nameOf(it), index: called(place, nameOf(it)).indexOf(it) }));
      show(place, child);
      opened.forEach(({ name, index }) => called(place, name)[index]?.parentElement?.setAttribute("open", ""));
      [...place.querySelectorAll(SCROLLS)].forEach((it, index) => it.scrollTo(...(/** @type {[number, number]} */ (positions[index] ?? [0, 0]))));
      if (focused !== null && document.activeElement === document.body) {
        focusAgain(place, focused);
      }
    }
  };
  // What is shown stays while it is read again, and if it cannot be.
  const wait = () => loading.get(place) === mine && (place.hasChildNodes() ? place.setAttribute("aria-busy", "true") : put(h("p", { class: "quiet", role: "status" }, `${reason}…`)));
  const waiting = setTimeout(wait, PATIENCE);
  try {
    put(await work());
  } catch (error) {
    if (!place.querySelector(":scope > :not(.failure, .quiet[role=status], .stale)")) {
      put(failure(error));
    } else if (loading.get(place) === mine) {
      place.querySelector(":scope > .stale")?.remove();
      place.prepend(h("div", { class: "stale" }, failure(error), h("p", null, "What is below was read before. ", h("button", { type: "button", click: retry }, "Try again"))));
    }
  } finally {
    clearTimeout(waiting);
    place.removeAttribute("aria-busy");
  }
}

/**
 * A place that shows what a promise gives, or why it failed.
 * @param {string} reason
 * @param {(again: () => void) => Promise<Child>} work gets a function that reads it once more
 */
export function loaded(reason, work) {
  const place = h("div", null);
  const again = () => load(place, reason, () => work(again));
  again();
  return place;
}

/**
 * A part of the page that is made when it is opened for the first time, and again if it could not be read.
 * @param {string} name
 * @param {() => Node} make
 */
export function folded(name, make) {
  const place = h("div", null);
  const open = () => details.hasAttribute("open") && (!place.hasChildNodes() || place.querySelector(":scope > div > p.failure")) && show(place, make());
  const details = h("details", { toggle: open }, h("summary", null, name), place);
  return details;
}

/**
 * A button that opens a folded part of the page: the next step where there is nothing yet.
 * @param {string} label
 * @param {HTMLDetailsElement} part
 */
export function opens(label, part) {
  const open = () => {
    part.open = true;
    part.querySelector("summary")?.focus();
  };
  return h("button", { type: "button", click: open }, label);
}

/**
 * A button that asks once more before it destroys something, and names what.
 * @param {string} label
 * @param {string} sure what is destroyed, as the second button's label
 * @param {() => Promise<void>} work
 */
export function destroy(label, sure, work) {
  const place = h("span", { class: "bar inline" });
  const done = () => {
    place.classList.remove("asking");
    return work();
  };
  const ask = () => {
    const go = button(sure, done, "danger");
    place.classList.add("asking");
    show(place, go, h("button", { type: "button", click: keep }, "Keep"));
    go.focus();
  };
  const first = h("button", { type: "button", class: "danger", click: ask }, label);
  const keep = () => {
    place.classList.remove("asking");
    show(place, first);
    first.focus();
  };
  show(place, first);
  return place;
}

/**
 * A function that does its work once nobody has called it for a while.
 * @param {number} pause in ms
 * @param {() => any} work
 */
export function paused(pause, work) {
  let due = 0;
  return () => {
    clearTimeout(due);
    due = setTimeout(work, pause);
  };
}

/**
 * A button whose work may fail: it says why beside itself, and cannot be pressed twice.
 * @param {string} label
 * @param {() => Promise<void>} work
 * @param {string} [kind]
 */
export function button(label, work, kind) {
  /** @type {HTMLElement | null} */
  let said = null;
  const tell = (/** @type {HTMLElement} */ words) => {
    said?.remove();
    said = words;
    element.after(words);
  };
  const press = async () => {
    said?.remove();
    element.setAttribute("disabled", "");
    const waiting = setTimeout(() => tell(h("span", { class: "quiet", role: "status" }, `${label}…`)), PATIENCE);
    try {
      await work();
      said?.remove();
    } catch (error) {
      tell(failure(error));
    } finally {
      clearTimeout(waiting);
    }
    element.removeAttribute("disabled");
  };
  const element = h("button", { type: "button", class: kind, click: press }, label);
  return element;
}

/**
 * A listener for the submission of a form. The button is disabled meanwhile, so that nothing is sent twice.
 * @param {HTMLElement} go the form's button
 * @param {Element} said shows what it waits for, and why it failed
 * @param {() => Promise<void | false>} work false if the form's texts are not saved by it
 */
export function once(go, said, work) {
  return async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (go.hasAttribute("disabled")) {
      return;
    }
    show(said);
    go.setAttribute("disabled", "");
    const waiting = setTimeout(() => show(said, h("p", { class: "quiet", role: "status" }, `${go.textContent}…`)), PATIENCE);
    try {
      if ((await work()) !== false) {
        saved(/** @type {HTMLElement} */ (event.target));
      }
      clearTimeout(waiting);
      said.querySelector(".quiet[role=status]")?.remove();
    } catch (error) {
      clearTimeout(waiting);
      show(said, failure(error));
    }
    go.removeAttribute("disabled");
  };
}

/**
 * A form of labelled fields. What goes wrong is said below it.
 * @param {[string, HTMLElement][]} fields
 * @param {string} label of its button
 * @param {() => Promise<void>} work
 * @param {string} [kind] `permanent` for a form that nobody opened: its page follows events until somebody uses it
 */
export function form(fields, label, work, kind = "") {
  const said = h("div", { "aria-live": "polite" });
  const go = h("button", { class: "primary" }, label);
  const submit = once(go, said, work);
  return h("form", { class: `fields ${kind}`.trim(), submit }, fields.map(([name, field]) => labeled(name, field)), h("p", null, go), said);
}

/**
 * A field with its label.
 * @param {string} name
 * @param {...Child} field
 */
export function labeled(name, ...field) {
  return h("label", null, h("span", null, name), ...field);
}

/** @param {Record<string, any>} [attributes] */
export function input(attributes) {
  const text = String(attributes?.value ?? "");
  if (/\n/.test(text)) {
    // A field of one line would drop the line breaks.
    return /** @type {any} */ (h("textarea", { ...attributes, value: null, rows: 2 }, text));
  }
  return h("input", attributes ?? null);
}

/**
 * @param {[string, string][]} options values and their texts
 * @param {string | null} [chosen]
 * @param {Record<string, any>} [attributes]
 */
export function select(options, chosen, attributes) {
  const all = options.map(([value, text]) => h("option", { value, selected: value === chosen }, text));
  return h("select", attributes ?? null, all);
}

/**
 * A box that is ticked, with its text.
 * @param {string} text
 * @param {Record<string, any>} [attributes]
 */
export function check(text, attributes) {
  const box = input({ type: "checkbox", ...attributes });
  return { box, field: h("label", { class: "check" }, box, text) };
}

/**
 * Boxes of which several are ticked.
 * @param {string} legend
 * @param {[string, string][]} options values and their texts
 * @param {Iterable<string>} ticked
 * @param {() => void} [changed]
 */
export function checks(legend, options, ticked, changed) {
  const before = new Set(ticked);
  const all = options.map(([value, text]) => check(text, { value, checked: before.has(value), change: changed }));
  return { field: h("fieldset", null, h("legend", null, legend), all.map((it) => it.field)), value: () => all.filter(({ box }) => box.checked).map(({ box }) => box.value) };
}

/** Names with their values. @param {([string, Child] | null)[]} facts those that are null are left out */
export function facts(facts) {
  return h("dl", null, facts.filter((it) => it !== null).map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
}

/** Time for which a short message stays, in ms; one with an undo stays longer. */
const SHORT = 6000;
const LONG = 60_000;

/** Most short messages at a time. */
const MOST = 3;

/** The messages. @type {HTMLElement | null} */
let toasts = null;

/**
 * Says for a while what was done, and offers to undo it.
 * @param {string} words
 * @param {() => Promise<void>} [undo]
 */
export function toast(words, undo) {
  toasts ??= h("div", { class: "toasts", role: "status", "aria-live": "polite" });
  if (!toasts.isConnected) {
    document.body.append(toasts);
  }
  const main = document.getElementById("main");
  const from = main && focusIn(main);
  // The focus of a message that ends goes back to where it was when the message came.
  const close = (isOver = false) => {
    const hadFocus = element.contains(document.activeElement) || (!isOver && document.activeElement === document.body);
    element.remove();
    if (main && hadFocus) {
      from ? focusAgain(main, from) : main.focus();
    }
  };
  const back = async () => {
    show(element, "Undoing…");
    try {
      await undo?.();
      close();
    } catch (error) {
      show(element, failure(error), h("button", { type: "button", click: () => close() }, "Close"));
    }
  };
  const element = h(
    "div",
    { class: "toast" },
    h("span", null, words),
    undo ? h("button", { type: "button", click: back }, "Undo") : null,
    h("button", { type: "button", class: "plain", "aria-label": "Close the message", click: () => close() }, "×"),
  );
  toasts.append(element);
  [...toasts.children].slice(0, -MOST).forEach((it) => it.remove());
  setTimeout(() => close(true), undo ? LONG : SHORT);
}
