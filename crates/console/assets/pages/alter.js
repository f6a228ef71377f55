// A form that changes a table's definition: what would change is said before anything does.

import { call, every } from "../api.js";
import { accessChanges, columnChanges } from "../column_changes.js";
import { button, checks, failure, h, input, labeled, loaded, once, show, toast } from "../dom.js";
import { stringify } from "../exact.js";
import { counted } from "../format.js";
import { saved } from "../guard.js";
import { quoted, schema, sql, written } from "../tables.js";
import { columnList } from "./definition.js";

/**
 * @typedef {import("../column_changes.js").Change} Change
 */

/** @typedef {{table: Table, name: HTMLInputElement, description: HTMLInputElement, access: ReturnType<typeof accessFields>, columns: ReturnType<typeof columnList>["columns"], removed: () => Column[]}} Wanted what the form holds */

/**
 * The form.
 * @param {Table} table
 * @param {Table[]} all
 * @param {(name: string) => void} done gets the table's name
 */
export function alterTable(table, all, done) {
  const name = input({ value: table.name, required: true, pattern: "[a-z][a-z0-9_]*", autocapitalize: "off" });
  const description = input({ value: table.description ?? "" });
  const access = accessFields(table);
  const said = h("div", { "aria-live": "polite" });
  // What was said is of the definition before the last letter.
  const stale = () => show(said);
  const bin = removals((column) => add(column.name, column), stale);
  const { place, add, more, columns } = columnList(all, (before) => bin.put(before));
  for (const column of written(table)) {
    // The key that the platform generates is nobody's to change.
    if (!(column.is_primary_key && column.name === "id")) {
      add(column.name, column);
    }
  }
  const wanted = { table, name, description, access, columns, removed: bin.columns };
  const apply = async () => {
    const now = await alter(wanted);
    saved(form);
    toast(`${now} is changed.`);
    done(now);
  };
  const go = h("button", { class: "primary" }, "Show what changes");
  const submit = once(go, said, async () => {
    await check(table);
    const found = await changes(wanted);
    if (found.length === 0) {
      throw new Error("Nothing is changed yet.");
    }
    const isLoss = found.some((it) => it.isLoss);
    const sure = button(isLoss ? "Change the table, and remove the values" : "Change the table", apply, isLoss ? "danger" : "primary");
    show(said, h("ul", { "aria-label": "What changes" }, found.map((it) => h("li", { class: it.isLoss ? "failure" : false }, it.words))), h("p", null, sure));
    sure.focus();
    return false;
  });
  const form = h(
    "form",
    { submit, input: stale },
    h("div", { class: "fields" }, labeled("Name", name), labeled("Description", description)),
    h("p", { class: "quiet" }, "A type changes only where every stored value converts exactly: integer to float, date to datetime, everything to text."),
    place,
    bin.element,
    access.element,
    h("p", { class: "pages" }, more, go),
    said,
  );
  return columns().length ? form : failure("This table has no column that can be changed.");
}

/**
 * The columns that are to be removed, each with a button that keeps it.
 * @param {(column: Column) => void} keep
 * @param {() => void} changed
 */
function removals(keep, changed) {
  /** @type {Column[]} */
  let removed = [];
  const element = h("ul", { class: "chips", "aria-label": "Columns to remove" });
  const draw = () => {
    const back = (/** @type {Column} */ column) => () => {
      removed = removed.filter((it) => it !== column);
      keep(column);
      draw();
    };
    show(element, ...removed.map((it) => h("li", { class: "chip" }, `${it.name} is removed`, h("button", { type: "button", "aria-label": `Keep ${it.name}`, click: back(it) }, "Keep"))));
    element.hidden = removed.length === 0;
    changed();
  };
  draw();
  /** @param {Column | null} column nothing if it was not stored */
  const put = (column) => {
    removed = [...removed, ...(column ? [column] : [])];
    draw();
  };
  return { element, put, columns: () => removed };
}

/** The definition of all columns, those that are to be removed among them: they are dropped afterwards. @param {Wanted} wanted */
function definition({ table, name, description, access, columns, removed }) {
  const given = columns().map(({ before, fields }) => {
    const value = fields.value();
    return before && before.name !== value.name ? { ...value, renamed_from: before.name } : value;
  });
  const called = new Map(columns().flatMap(({ before, fields }) => (before ? [/** @type {[string, string]} */ ([before.name, fields.value().name])] : [])));
  const left = removed().map((it) => ({ name: it.name, data_type: it.data_type, is_nullable: it.is_nullable, is_unique: it.is_unique, unit: it.unit, label: it.label, description: it.description, default: it.default, ...(it.is_foreign_key ? { references: it.foreign_key_table_name } : {}) }));
  return {
    ...(name.value.trim() === table.name ? {} : { renamed_from: table.name }),
    description: description.value || null,
    semantic_category: table.semantic_category,
    history: table.history,
    // Left out, the access stays as it is.
    ...(access.isChanged() ? { access: access.value() } : {}),
    unique_together: (table.unique_together ?? []).map((set) => set.map((it) => called.get(it) ?? it)),
    columns: [...given.filter((it) => it.name), ...left],
  };
}

/** @param {Wanted} wanted @returns {Promise<Change[]>} */
async function changes({ table, name, description, access, columns, removed }) {
  const kept = columns().flatMap(({ before, fields }) => (before ? columnChanges(before, fields.value()) : fields.value().name ? [{ words: `${fields.value().name} is added, empty in every row` }] : []));
  const lost = await Promise.all(
    removed().map(async (column) => {
      const { data } = await sql(`select count(${quoted(column.sql_column_name)}) from ${quoted(table.sql_table_name ?? table.name)}`);
      const count = Number(data[0][0]);
      return { words: `${column.name} is removed${count ? ` with ${counted(count, "value")}: it can be restored from the trash` : "; it holds no value"}`, isLoss: count > 0 };
    }),
  );
  return [
    ...(name.value.trim() === table.name ? [] : [{ words: `The table is called ${name.value.trim()}; references to it follow, scripts and saved views have to.` }]),
    ...(description.value === (table.description ?? "") ? [] : [{ words: "The table's description changes" }]),
    ...accessChanges(table.access, access.value()),
    ...kept,
    ...lost,
  ];
}

/** Fails if somebody has changed the table since the form was opened: its definition holds every column. @param {Table} table */
async function check(table) {
  const now = (await schema()).find((it) => it.id === table.id);
  const text = (/** @type {any} */ it) => stringify({ ...it, row_count_estimate: null });
  if (!now || text(now) !== text(table)) {
    throw new Error(`Somebody else has ${now ? "changed" : "deleted"} the table since this form was opened, so nothing was changed. Load the page to see it as it is now.`);
  }
}

/** Changes the table. Returns its name. @param {Wanted} wanted */
async function alter(wanted) {
  await check(wanted.table);
  const now = wanted.name.value.trim();
  const path = `/tables/${encodeURIComponent(now)}`;
  await call("PUT", path, definition(wanted));
  for (const column of wanted.removed()) {
    await call("DELETE", `${path}/columns/${encodeURIComponent(column.name)}?force=true`);
  }
  return now;
}

/**
 * Boxes for the groups that read and write a table; nothing where the organization has no groups.
 * @param {Table} table
 */
function accessFields(table) {
  const sorted = (/** @type {string[] | undefined} */ names) => [...(names ?? [])].sort();
  const before = { read: sorted(table.access.read), write: sorted(table.access.write) };
  let value = () => before;
  const element = loaded("Reading the groups", async () => {
    /** @type {[string, string][]} */
    const groups = (await every("/groups")).map((/** @type {Api["Group"]} */ it) => [it.name, it.name]);
    if (groups.length === 0) {
      return null;
    }
    const [reads, writes] = [checks("Read by", groups, before.read), checks("Written by", groups, before.write)];
    // A group that is no longer there stays in the access.
    const gone = (/** @type {string[]} */ names) => names.filter((name) => !groups.some(([it]) => it === name));
    value = () => ({ read: sorted([...reads.value(), ...gone(before.read)]), write: sorted([...writes.value(), ...gone(before.write)]) });
    return h("div", { class: "fields" }, reads.field, writes.field, h("p", { class: "quiet" }, "None: everyone of the organization. Administrators always may."));
  });
  return { element, value: () => value(), isChanged: () => JSON.stringify(value()) !== JSON.stringify(before) };
}
