// Elements of pages. Text becomes text, never markup.

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 */

/**
 * Makes an element. Functions among the attributes are listeners; `true` sets an attribute without a value.
 * @param {string} name
 * @param {Record<string, any> | null} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function h(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") {
      element.addEventListener(key, value);
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(key, value === true ? "" : String(value));
    }
  }
  element.append(...nodes(children.flat()));
  return element;
}

/**
 * @param {Child[]} children
 * @returns {(Node | string)[]}
 */
function nodes(children) {
  return children
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}

/**
 * Replaces what is in an element.
 * @param {Element} element
 * @param {...Child} children
 */
export function show(element, ...children) {
  element.replaceChildren(...nodes(children));
}

/**
 * A time for people, with the exact one as its title.
 * @param {string | null | undefined} text
 */
export function time(text) {
  if (!text) {
    return h("span", { class: "quiet" }, "–");
  }
  const date = new Date(text);
  const shown = date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  return h("time", { datetime: text, title: text }, shown);
}

/**
 * The text of an error, with the id by which the log knows the request.
 * @param {unknown} error
 */
export function failure(error) {
  const request = /** @type {any} */ (error)?.request;
  const message = error instanceof Error ? error.message : String(error);
  return h("p", { class: "failure", role: "alert" }, message, request ? h("small", null, ` Request ${request}`) : null);
}

/**
 * Shows what a promise gives, or why it failed; a line with the reason if it takes a while.
 * @param {Element} place
 * @param {string} reason
 * @param {() => Promise<Child>} work
 */
export async function load(place, reason, work) {
  const waiting = setTimeout(() => show(place, h("p", { class: "quiet", role: "status" }, `${reason}…`)), 300);
  try {
    show(place, await work());
  } catch (error) {
    show(place, failure(error));
  } finally {
    clearTimeout(waiting);
  }
}
