// A form that defines a table.

import { call } from "../api.js";
import { check, h, input, labeled, once } from "../dom.js";
import { keyOf } from "../tables.js";

const TYPES = ["string", "text", "integer", "float", "boolean", "datetime", "date", "uuid", "json"];

/** Types that a column's values can become without a loss. @type {Record<string, string[]>} */
const EXACT = { integer: ["float", "text"], string: ["text"], date: ["datetime", "text"] };

/**
 * The choice of a column's type: every type and table for a new column, what loses nothing for one that has values.
 * @param {Table[]} targets
 * @param {Column | null} before
 */
function typeChoice(targets, before) {
  const option = (/** @type {string} */ it) => h("option", { value: it }, it);
  if (before) {
    const { data_type: type, foreign_key_table_name: target } = before;
    const fixed = before.is_foreign_key ? [h("option", { value: `→${target ?? ""}` }, target ?? "a table that you cannot see")] : null;
    const kinds = [type, ...(before.is_primary_key ? [] : (EXACT[type] ?? (type === "text" ? [] : ["text"])))];
    return select(fixed ?? kinds.map(option), fixed !== null);
  }
  return select([
    h("optgroup", { label: "Values" }, TYPES.map(option)),
    h("optgroup", { label: "A row of" }, targets.map((it) => h("option", { value: `→${it.name}` }, it.name))),
  ]);
}

/** @param {HTMLElement[]} options @param {boolean} [disabled] */
function select(options, disabled = false) {
  return h("select", { disabled }, options);
}

/**
 * Fields of one column.
 * @param {Table[]} all
 * @param {string} name
 * @param {(element: HTMLElement) => void} removed
 * @param {Column | null} [before] the column as it is; null for a new one
 */
function columnFields(all, name, removed, before = null) {
  const named = input({ value: name, pattern: "[a-z][a-z0-9_]*", maxlength: 63, autocapitalize: "off" });
  const targets = all.filter((table) => table.semantic_category !== "raw" && table.columns.some((it) => it.is_primary_key));
  const type = typeChoice(targets, before);
  const label = input({ value: before?.label ?? "", placeholder: "on axes and headers" });
  const unit = input({ value: before?.unit ?? "", placeholder: "ug/mL", autocapitalize: "off", autocomplete: "off", size: 8 });
  const about = input({ value: before?.description ?? "" });
  const isKey = before?.is_primary_key ?? false;
  const needed = check("Required", { checked: before !== null && !before.is_nullable, disabled: isKey });
  const unique = check("Unique", { checked: before?.is_unique, disabled: isKey });
  const key = check("Primary key", { checked: isKey, disabled: before !== null });
  const remove = () => removed(element);
  const element = h(
    "div",
    { class: "fields column", role: "group", "aria-label": name ? `Column ${name}` : "New column" },
    labeled("Column", named),
    labeled("Label", label),
    labeled("Type", type),
    labeled("Unit", unit),
    labeled("Description", about),
    needed.field,
    unique.field,
    before && !isKey ? null : key.field,
    isKey ? null : h("button", { type: "button", click: remove, "aria-label": before ? `Remove ${name}` : "Leave out this column" }, "×"),
  );
  const value = () => {
    const target = type.value.startsWith("→") ? targets.find((it) => it.name === type.value.slice(1)) : undefined;
    const own = before?.is_foreign_key ? before.data_type : type.value;
    const data_type = target ? target.columns.find((it) => it.name === keyOf(target))?.data_type : own;
    const text = (/** @type {HTMLInputElement} */ it) => it.value.trim() || null;
    return {
      name: named.value.trim(),
      data_type,
      is_nullable: !needed.box.checked && !key.box.checked,
      is_unique: unique.box.checked && !key.box.checked,
      is_primary_key: key.box.checked,
      label: text(label),
      unit: text(unit),
      description: text(about),
      ...(before ? { default: before.default } : {}),
      ...(target ? { references: target.name } : before?.is_foreign_key ? { references: before.foreign_key_table_name } : {}),
    };
  };
  return { element, value, named };
}

/**
 * Columns of a table that are added and removed.
 * @param {Table[]} all
 * @param {(before: Column | null) => void} [removed]
 */
export function columnList(all, removed = () => {}) {
  const place = h("div", null);
  /** @type {{before: Column | null, fields: ReturnType<typeof columnFields>}[]} */
  let columns = [];
  const add = (/** @type {string} */ text, /** @type {Column | null} */ before = null) => {
    const remove = (/** @type {HTMLElement} */ element) => {
      columns = columns.filter((it) => it.fields.element !== element);
      element.remove();
      removed(before);
    };
    const fields = columnFields(all, text, remove, before);
    columns.push({ before, fields });
    place.append(fields.element);
    return fields;
  };
  const more = h("button", { type: "button", click: () => add("").named.focus() }, "Another column");
  return { place, add, more, columns: () => columns };
}

/** The form. @param {Table[]} all */
export function definition(all) {
  const name = input({ required: true, pattern: "[a-z][a-z0-9_]*", maxlength: 63, placeholder: "sample", autocapitalize: "off" });
  const description = input();
  const kind = h("select", null, h("option", { value: "curated" }, "rows (curated)"), h("option", { value: "raw" }, "points of curves (raw)"));
  const { place, add, more, columns } = columnList(all);
  const told = h("div", { "aria-live": "polite" });
  add("name");
  const go = h("button", { class: "primary" }, "Define the table");
  const send = once(go, told, async () => {
    const table = name.value.trim();
    if (all.some((it) => it.name === table)) {
      throw new Error(`There is a table "${table}" already. It is changed on its page.`);
    }
    const values = columns().map((it) => it.fields.value()).filter((it) => it.name);
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
    h("p", { class: "pages" }, more, go),
    told,
  );
}
