// Choices that stand in the address of a page.

import { h } from "../dom.js";
import { change, values } from "../state.js";

/**
 * A choice that stands in the address.
 * @param {string} label
 * @param {string} name in the address
 * @param {string[]} options
 * @param {string} usual what stands there unless something was chosen
 * @param {() => void} changed
 */
export function choice(label, name, options, usual, changed) {
  const chosen = values().get(name) ?? usual;
  const select = /** @type {HTMLSelectElement} */ (h("select", null, options.map((it) => h("option", { value: it, selected: it === chosen }, it || "–"))));
  select.addEventListener("change", () => {
    change({ [name]: select.value === usual ? null : select.value || "-" });
    changed();
  });
  return { select, field: h("label", null, label, select), value: () => (select.value === "-" ? "" : select.value) };
}

/**
 * @param {string} label
 * @param {string} name in the address
 * @param {() => void} changed
 */
export function check(label, name, changed) {
  const box = /** @type {HTMLInputElement} */ (h("input", { type: "checkbox", checked: values().has(name) }));
  box.addEventListener("change", () => {
    change({ [name]: box.checked && "1" });
    changed();
  });
  return { box, field: h("label", { class: "check" }, box, label) };
}

/**
 * A choice of several, in the address.
 * @param {string} label
 * @param {string} name
 * @param {[string, string][]} options values and their texts
 * @param {() => void} changed
 */
export function several(label, name, options, changed) {
  const chosen = new Set(values().getAll(name));
  const box = (/** @type {[string, string]} */ [value, words]) => {
    const input = /** @type {HTMLInputElement} */ (h("input", { type: "checkbox", checked: chosen.has(value) }));
    input.addEventListener("change", () => {
      chosen[input.checked ? "add" : "delete"](value);
      change({ [name]: options.map(([it]) => it).filter((it) => chosen.has(it)) });
      changed();
    });
    return h("label", { class: "check" }, input, words);
  };
  return { value: () => [...chosen], field: h("fieldset", null, h("legend", null, label), options.map(box)) };
}
