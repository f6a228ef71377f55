// A form that defines a table.

import { call } from "../api.js";
import { h, once } from "../dom.js";
import { keyOf } from "../tables.js";

/** @typedef {import("../tables.js").Table} Table */

const TYPES = ["string", "text", "integer", "float", "boolean", "datetime", "date", "uuid", "json"];

/**
 * @param {string} label
 * @param {HTMLElement} input
 */
function labeled(label, input) {
  return h("label", null, label, input);
}

/**
 * Fields of one column.
 * @param {Table[]} all
 * @param {string} name
 * @param {(element: HTMLElement) => void} removed
 */
function columnFields(all, name, removed) {
  const named = /** @type {HTMLInputElement} */ (h("input", { value: name, pattern: "[a-z][a-z0-9_]*", maxlength: 63, autocapitalize: "off" }));
  const targets = all.filter((table) => table.semantic_category !== "raw" && table.columns.some((it) => it.is_primary_key));
  const type = /** @type {HTMLSelectElement} */ (
    h(
      "select",
      null,
      h("optgroup", { label: "Values" }, TYPES.map((it) => h("option", { value: it }, it))),
      h("optgroup", { label: "A row of" }, targets.map((it) => h("option", { value: `→${it.name}` }, it.name))),
    )
  );
  const unit = /** @type {HTMLInputElement} */ (h("input", { placeholder: "ug/mL", autocapitalize: "off", autocomplete: "off" }));
  const check = () => /** @type {HTMLInputElement} */ (h("input", { type: "checkbox" }));
  const [needed, unique, key] = [check(), check(), check()];
  const box = (/** @type {string} */ text, /** @type {HTMLInputElement} */ input) => h("label", { class: "check" }, input, text);
  const remove = () => removed(element);
  const element = h(
    "div",
    { class: "fields" },
    labeled("Column", named),
    labeled("Type", type),
    labeled("Unit", unit),
    box("Required", needed),
    box("Unique", unique),
    box("Primary key", key),
    h("button", { type: "button", click: remove, "aria-label": "Leave out this column" }, "×"),
  );
  const value = () => {
    const target = type.value.startsWith("→") ? targets.find((it) => it.name === type.value.slice(1)) : undefined;
    const data_type = target ? target.columns.find((it) => it.name === keyOf(target))?.data_type : type.value;
    return {
      name: named.value.trim(),
      data_type,
      is_nullable: !needed.checked && !key.checked,
      is_unique: unique.checked && !key.checked,
      is_primary_key: key.checked,
      ...(unit.value.trim() ? { unit: unit.value.trim() } : {}),
      ...(target ? { references: target.name } : {}),
    };
  };
  return { element, value, named };
}

/**
 * The form.
 * @param {Table[]} all
 */
export function definition(all) {
  const name = /** @type {HTMLInputElement} */ (h("input", { required: true, pattern: "[a-z][a-z0-9_]*", maxlength: 63, placeholder: "sample", autocapitalize: "off" }));
  const description = /** @type {HTMLInputElement} */ (h("input", null));
  const kind = /** @type {HTMLSelectElement} */ (
    h("select", null, h("option", { value: "curated" }, "rows (curated)"), h("option", { value: "raw" }, "points of curves (raw)"))
  );
  const place = h("div", null);
  const told = h("div", { "aria-live": "polite" });
  /** @type {ReturnType<typeof columnFields>[]} */
  let columns = [];
  const add = (/** @type {string} */ text) => {
    const made = columnFields(all, text, (element) => {
      columns = columns.filter((it) => it.element !== element);
      element.remove();
    });
    columns.push(made);
    place.append(made.element);
    return made;
  };
  add("name");
  const go = h("button", { class: "primary" }, "Define the table");
  const send = once(go, told, async () => {
    const table = name.value.trim();
    if (all.some((it) => it.name === table)) {
      throw new Error(`There is a table "${table}" already. A changed definition is sent by a script: PUT /api/v1/tables/${table}.`);
    }
    const values = columns.map((it) => it.value()).filter((it) => it.name);
    const body = { description: description.value || null, semantic_category: kind.value, columns: values };
    await call("PUT", `/tables/${encodeURIComponent(table)}`, body);
    location.hash = `#/tables/${encodeURIComponent(table)}`;
  });
  return h(
    "form",
    { submit: send },
    h("div", { class: "fields" }, labeled("Name", name), labeled("Description", description), labeled("Holds", kind)),
    h("p", { class: "quiet" }, "Names: a lower-case letter, then lower-case letters, digits and underscores. A table of rows gets a key id unless a column is the primary key; points need a column that refers to the row they belong to."),
    place,
    h("p", { class: "pages" }, h("button", { type: "button", click: () => add("").named.focus() }, "Another column"), go),
    told,
  );
}
