// The address: every view is its address, so that Back, a reload and a shared link show it again.
//
// An address is `#/page/thing?name=value&…`. Names that begin with `_` are the view's own; the others are filters.

/** The parts of an address. @param {string} [hash] */
export function parts(hash = location.hash) {
  const [path, query] = split(hash.replace(/^#\/?/, ""));
  const [page, ...rest] = path.split("/");
  return { page, one: decoded(rest.join("/")), values: new URLSearchParams(query) };
}

/** @param {string} text */
function split(text) {
  const at = text.indexOf("?");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * @typedef {Record<string, string | string[] | null | undefined | false>} Values
 */

/**
 * The address of a page, with values of its view. What is empty is left out.
 * @param {string} page
 * @param {string} [one] the thing that it shows
 * @param {Values} [values]
 */
export function address(page, one = "", values = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each) {
        query.append(name, each);
      }
    }
  }
  const text = query.toString();
  return `#/${page}${one ? `/${encodeURIComponent(one)}` : ""}${text ? `?${text}` : ""}`;
}

let tell = () => {};

/** Sets what is called after a view has changed its address. @param {() => void} work */
export function moved(work) {
  tell = work;
}

/** The values of the view that is shown. */
export function values() {
  return parts().values;
}

/** Whether the address has filters. */
export function isFiltered() {
  return [...values().keys()].some((name) => !name.startsWith("_"));
}

/**
 * Puts values into the address of the view that is shown; the others stay.
 * @param {Values} changed
 * @param {boolean} [isStep] Back leads to the view before it
 */
export function change(changed, isStep = false) {
  const { page, one, values } = parts();
  /** @type {Values} */
  const all = {};
  for (const name of new Set([...values.keys()])) {
    all[name] = values.getAll(name);
  }
  const next = address(page, one, { ...all, ...changed });
  if (next === location.hash) {
    return;
  }
  // Neither fires an event: whoever changes the address has drawn, or draws, what it says.
  if (isStep) {
    history.pushState(null, "", next);
  } else {
    history.replaceState(null, "", next);
  }
  tell();
}
