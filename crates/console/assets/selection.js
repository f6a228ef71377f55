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

/** @param {{table: Table, all: Table[], isWritable: boolean, asOf: () => string | null, changed: () => void}} of */
export function selection({ table, all, isWritable, asOf, changed }) {
  const [key, label] = [keyOf(table), labelOf(table)];
  /** Chosen rows by their keys. @type {Map<any, any>} */
  const chosen = new Map();
  /** Boxes of the rows on the page. @type {{row: any, box: HTMLInputElement}[]} */
  let boxes = [];
  const every = h("input", { type: "checkbox", "aria-label": "Choose every row of this page" });
  const said = h("div", { "aria-live": "polite" });
  const count = h("strong", { role: "status" });

  const draw = () => {
    const here = boxes.filter(({ row }) => chosen.has(row[key])).length;
    every.checked = here > 0 && here === boxes.length;
    every.indeterminate = here > 0 && here < boxes.length;
    const hadFocus = bar.contains(document.activeElement);
    bar.hidden = chosen.size === 0;
    show(said);
    show(count, `${counted(chosen.size, "row")} chosen`);
    if (hadFocus && bar.hidden) {
      every.focus();
    }
  };

  /** @param {any} row @param {boolean} isChosen */
  const set = (row, isChosen) => {
    if (isChosen && chosen.size < MOST) {
      chosen.set(row[key], row);
    } else if (!isChosen) {
      chosen.delete(row[key]);
    }
  };

  every.addEventListener("change", () => {
    for (const { row, box } of boxes) {
      set(row, every.checked);
      box.checked = chosen.has(row[key]);
    }
    draw();
  });

  /** Every column of the chosen rows, as the platform has them now. */
  const save = async () => {
    const keys = [...chosen.keys()];
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
    const lost = keys.length - lines.length;
    show(said, lost ? h("span", { class: "failure" }, `${counted(lost, "row")} of them ${lost === 1 ? "is" : "are"} deleted, and not in the file.`) : null);
  };

  const rows = () => [...chosen.values()].map((row) => identity(table, row));

  const ask = async () => {
    try {
      const more = await alsoDeleted(table, rows(), "them");
      const names = [...chosen.values()].slice(0, 3).map((row) => String(row[label] ?? row[key]));
      const what = `${names.join(", ")}${chosen.size > names.length ? ` and ${chosen.size - names.length} more` : ""}`;
      const go = button(`Delete ${counted(chosen.size, "row")}${more}`, confirmed, "danger");
      show(said, h("span", null, `${what}. `), go);
      go.focus();
    } catch (error) {
      show(said, failure(error));
    }
  };

  const confirmed = async () => {
    const count = chosen.size;
    const { job_execution_id: execution } = await writeRows(table, "delete", rows());
    chosen.clear();
    draw();
    every.focus();
    undoable(`${counted(count, "row")} deleted.`, execution, changed);
    changed();
  };

  const clear = () => {
    chosen.clear();
    boxes.forEach(({ box }) => (box.checked = false));
    draw();
  };

  // A unique column has no value for several rows.
  const columns = table.columns.filter((it) => !isFixed(table, it) && !it.is_unique);
  /** A form that gives all chosen rows one value of a column, in one write. */
  const change = () => {
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
      const { tables, job_execution_id: execution } = await writeRows(table, "update", rows().map((it) => ({ ...it, [box.value]: value })), { return_rows: true });
      // They are still chosen, and are known as they are now.
      tables[0].rows.forEach((/** @type {any} */ row) => chosen.set(row[key], row));
      undoable(`${title(table, box.value)} of ${counted(chosen.size, "row")}: ${short(made.input.value)}`, execution, changed);
      changed();
    });
    return h("form", { class: "bar", submit }, box, place, go, told);
  };

  const bar = h(
    "div",
    { class: "bar", role: "group", "aria-label": "Chosen rows", hidden: true },
    count,
    button("Save as CSV", save),
    isWritable && columns.length ? folded("Change a column", change) : null,
    isWritable ? h("button", { type: "button", class: "danger", click: ask }, "Delete…") : null,
    h("button", { type: "button", click: clear }, "Choose none"),
    said,
  );

  return {
    every,
    bar,
    /** The rows of another page are about to be drawn. @param {any[]} rows */
    begin: (rows) => {
      boxes = [];
      for (const row of rows) {
        if (chosen.has(row[key])) {
          chosen.set(row[key], row);
        }
      }
      // Once the rows are in the page.
      setTimeout(draw);
    },
    /** The box of a row. @param {any} row */
    box: (row) => {
      const box = h("input", { type: "checkbox", checked: chosen.has(row[key]), "aria-label": `Choose ${row[label] ?? row[key]}` });
      box.addEventListener("change", () => {
        set(row, box.checked);
        box.checked = chosen.has(row[key]);
        draw();
      });
      // Two clicks on a box are not the double click that edits its cell.
      box.addEventListener("dblclick", (event) => event.stopPropagation());
      boxes = [...boxes.filter((it) => it.row !== row), { row, box }];
      return box;
    },
  };
}
