// Choices of a view that stand in its address. Back undoes them one by one.

import { check, checks, labeled, select } from "./dom.js";
import { change, values } from "./state.js";

/** What the address has for nothing where something is usual. */
const NOTHING = "-";

/**
 * A choice of one.
 * @param {string} label
 * @param {string} name in the address
 * @param {string[]} options
 * @param {string} usual what stands there unless something was chosen
 * @param {() => void} changed
 */
export function choice(label, name, options, usual, changed) {
  const given = values().get(name);
  const wanted = given === NOTHING ? "" : (given ?? usual);
  const choose = () => {
    change({ [name]: box.value === usual ? null : box.value || NOTHING }, true);
    changed();
  };
  const box = select(options.map((it) => [it, it || "–"]), options.includes(wanted) ? wanted : usual, { change: choose });
  return { select: box, field: labeled(label, box), value: () => box.value };
}

/**
 * A box that is ticked or not.
 * @param {string} label
 * @param {string} name in the address
 * @param {() => void} changed
 */
export function flag(label, name, changed) {
  const choose = () => {
    change({ [name]: made.box.checked && "1" }, true);
    changed();
  };
  const made = check(label, { checked: values().has(name), change: choose });
  return made;
}

/**
 * A choice of several.
 * @param {string} label
 * @param {string} name in the address
 * @param {[string, string][]} options values and their texts
 * @param {() => void} changed
 */
export function several(label, name, options, changed) {
  const made = checks(label, options, values().getAll(name), () => {
    change({ [name]: made.value() }, true);
    changed();
  });
  // An address may name others than those that are offered.
  return { field: made.field, value: () => values().getAll(name) };
}
