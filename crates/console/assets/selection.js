// Rows of a table that are chosen, over its pages: what may be done with all of them.

import { isFixed, short } from "./cells.js";
import { button, failure, folded, h, once, select, show } from "./dom.js";
import { counted } from "./format.js";
import { field } from "./row_form.js";
import { saveValues } from "./saving.js";
import { alsoDeleted, identity, keyOf, labelOf, read, title, undoable, writeRows } from "./tables.js";

/** Rows of one request of the export. */
const AT_ONCE = 1000;

/** Most rows that are chosen: those of one write. */
const MOST = 10_000;

/** @typedef {{table: Table, all: Table[], isWritable: boolean, asOf: () => string | null, changed: () => void}} Of */

/** Returns whether the row is chosen now. @param {Map<any, any>} chosen @param {any} key @param {any} row @param {boolean} isChosen */
function choose(chosen, key, row, isChosen) {
  if (!isChosen) {
    chosen.delete(key);
  } else if (chosen.size < MOST) {
    chosen.set(key, row);
  }
  return chosen.has(key);
}

/** @param {string} name @param {boolean} isChosen @param {() => void} change */
function boxFor(name, isChosen, change) {
  // Two clicks on a box are not the double click that edits its cell.
  const dblclick = (/** @type {Event} */ event) => event.stopPropagation();
  return h("input", { type: "checkbox", checked: isChosen, "aria-label": `Choose ${name}`, change, dblclick });
}

/** Marks the box for all rows of a page. @param {HTMLInputElement} every @param {number} chosen @param {number} all */
function mark(every, chosen, all) {
  every.checked = chosen > 0 && chosen === all;
  every.indeterminate = chosen > 0 && chosen < all;
}

/**
 * The boxes of rows, over all pages, and what may be done with those that are chosen.
 * @param {Of} of
 */
export function selection(of) {
  const { table } = of;
  const [key, label] = [keyOf(table), labelOf(table)];
  /** Chosen rows by their keys. @type {Map<any, any>} */
  const chosen = new Map();
  /** Boxes of the rows on the page. @type {{row: any, box: HTMLInputElement}[]} */
  let boxes = [];
  const every = h("input", { type: "checkbox", "aria-label": "Choose every row of this page" });
  const draw = () => {
    mark(every, boxes.filter(({ row }) => chosen.has(row[key])).length, boxes.length);
    const hadFocus = bar.element.contains(document.activeElement);
    bar.draw();
    if (hadFocus && bar.element.hidden) {
      every.focus();
    }
  };
  const bar = actions(of, chosen, () => {
    chosen.clear();
    boxes.forEach(({ box }) => (box.checked = false));
    draw();
    every.focus();
  });
  every.addEventListener("change", () => {
    boxes.forEach(({ row, box }) => (box.checked = choose(chosen, row[key], row, every.checked)));
    draw();
  });
  return {
    every,
    bar: bar.element,
    /** The rows of another page are about to be drawn. @param {any[]} rows */
    begin: (rows) => {
      boxes = [];
      rows.filter((row) => chosen.has(row[key])).forEach((row) => chosen.set(row[key], row));
      // Once the rows are in the page.
      setTimeout(draw);
    },
    /** The box of a row. @param {any} row */
    box: (row) => {
      const box = boxFor(String(row[label] ?? row[key]), chosen.has(row[key]), () => {
        box.checked = choose(chosen, row[key], row, box.checked);
        draw();
      });
      boxes = [...boxes.filter((it) => it.row !== row), { row, box }];
      return box;
    },
  };
}

/** The columns that may have one value in several rows: not those that are unique. @param {Table} table */
function sharedColumns(table) {
  return table.columns.filter((it) => !isFixed(table, it) && !it.is_unique);
}

/**
 * What may be done with the chosen rows.
 * @param {Of} of
 * @param {Map<any, any>} chosen
 * @param {() => void} clear
 */
function actions(of, chosen, clear) {
  const { table, isWritable } = of;
  const said = h("div", { "aria-live": "polite" });
  const count = h("strong", { role: "status" });
  const save = async () => {
    const lost = await saveRows(of, [...chosen.keys()]);
    show(said, lost ? h("span", { class: "failure" }, `${counted(lost, "row")} of them ${lost === 1 ? "is" : "are"} deleted, and not in the file.`) : null);
  };
  const ask = async () => {
    try {
      const go = await sureOf(of, chosen, clear);
      show(said, ...go);
      go[1].focus();
    } catch (error) {
      show(said, failure(error));
    }
  };
  const element = h(
    "div",
    { class: "bar", role: "group", "aria-label": "Chosen rows", hidden: true },
    count,
    button("Save as CSV", save),
    isWritable && sharedColumns(table).length ? folded("Change a column", () => change(of, chosen)) : null,
    isWritable ? h("button", { type: "button", class: "danger", click: ask }, "Delete…") : null,
    h("button", { type: "button", click: clear }, "Choose none"),
    said,
  );
  const draw = () => {
    element.hidden = chosen.size === 0;
    show(said);
    show(count, `${counted(chosen.size, "row")} chosen`);
  };
  return { element, draw };
}

/**
 * Saves every column of rows, as the platform has them now. Returns how many are deleted.
 * @param {Of} of
 * @param {any[]} keys
 */
async function saveRows({ table, asOf }, keys) {
  const key = keyOf(table);
  const found = new Map();
  for (let from = 0; from < keys.length; from += AT_ONCE) {
    const at = asOf();
    const { body } = await read(table, { filters: { [`${key}__in`]: keys.slice(from, from + AT_ONCE) }, limit: AT_ONCE, ...(at ? { as_of: at } : {}) });
    body.forEach((/** @type {any} */ row) => found.set(row[key], row));
  }
  const names = table.columns.map((column) => column.name);
  // In the order in which they were chosen.
  const lines = keys.flatMap((it) => (found.has(it) ? [names.map((name) => found.get(it)[name])] : []));
  saveValues(names, lines, `${table.name}.csv`);
  return keys.length - lines.length;
}

/**
 * Names the rows that would be deleted, beside the button that deletes them.
 * @param {Of} of
 * @param {Map<any, any>} chosen
 * @param {() => void} clear
 */
async function sureOf({ table, changed }, chosen, clear) {
  const [key, label] = [keyOf(table), labelOf(table)];
  const rows = () => [...chosen.values()].map((row) => identity(table, row));
  const more = await alsoDeleted(table, rows(), "them");
  const names = [...chosen.values()].slice(0, 3).map((row) => String(row[label] ?? row[key]));
  const what = `${names.join(", ")}${chosen.size > names.length ? ` and ${chosen.size - names.length} more` : ""}`;
  const confirmed = async () => {
    const words = `${counted(chosen.size, "row")} deleted.`;
    const { job_execution_id: execution } = await writeRows(table, "delete", rows());
    clear();
    undoable(words, execution, changed);
    changed();
  };
  return [h("span", null, `${what}. `), button(`Delete ${counted(chosen.size, "row")}${more}`, confirmed, "danger")];
}

/**
 * A form that gives all chosen rows one value of a column, in one write.
 * @param {Of} of
 * @param {Map<any, any>} chosen
 */
function change({ table, all, changed }, chosen) {
  const [key, columns] = [keyOf(table), sharedColumns(table)];
  const place = h("span", null);
  const told = h("div", { "aria-live": "polite" });
  const go = h("button", { class: "primary" }, "Change the chosen rows");
  const make = () => {
    const column = /** @type {Column} */ (columns.find((it) => it.name === box.value));
    const made = field(column, all, null, undefined);
    made.input.setAttribute("aria-label", `New ${title(table, column.name)}`);
    show(place, made.input, made.list);
    return made;
  };
  const box = select(columns.map((it) => [it.name, title(table, it.name)]), null, { "aria-label": "Column to change", change: () => (made = make()) });
  let made = make();
  const submit = once(go, told, async () => {
    const value = await made.value();
    const rows = [...chosen.values()].map((row) => ({ ...identity(table, row), [box.value]: value }));
    const { tables, job_execution_id: execution } = await writeRows(table, "update", rows, { return_rows: true });
    // They are still chosen, and are known as they are now.
    tables[0].rows.forEach((/** @type {any} */ row) => chosen.set(row[key], row));
    undoable(`${title(table, box.value)} of ${counted(chosen.size, "row")}: ${short(made.input.value)}`, execution, changed);
    changed();
  });
  return h("form", { class: "bar", submit }, box, place, go, told);
}
