// Import of a file into a table: a trial first, with the problems at their cells.

import { call } from "../api.js";
import { failure, h, show } from "../dom.js";
import { grid } from "../grid.js";
import { keyOf, labelOf, labeled, written } from "../tables.js";

/** @typedef {import("../tables.js").Table} Table */

/** Most problems that are listed. */
const LISTED = 200;

/** Bytes of a text file that are looked through for the lines with problems. */
const LOOKED_THROUGH = 5_000_000;

/**
 * The lines of a text file by number, for the problems' sake; none of workbooks and Parquet files.
 * @param {File} file
 */
async function linesOf(file) {
  if (!/\.(csv|tsv|txt)$/i.test(file.name)) {
    return [];
  }
  return (await file.slice(0, LOOKED_THROUGH).text()).split(/\r\n|\n|\r/);
}

/**
 * The problems as a table: the line, the column, what is wrong, and the line as the file has it.
 * @param {{path: string | null, message: string}[]} problems
 * @param {string[]} lines
 */
function problemGrid(problems, lines) {
  const row = (/** @type {{path: string | null, message: string}} */ problem) => {
    const [, line, column] = /^rows\[(\d+)\](?:\.(.*))?$/.exec(problem.path ?? "") ?? [];
    const header = /^columns\.(.*)$/s.exec(problem.path ?? "")?.[1];
    const where = line ? Number(line) : header === undefined ? "file" : "header";
    const text = line ? lines[Number(line) - 1] : header === undefined ? undefined : lines[0];
    return [where, column ?? header ?? "", h("span", { class: "failure" }, problem.message), text === undefined ? "" : h("code", null, text)];
  };
  const count = `${problems.length} ${problems.length === 1 ? "problem" : "problems"}. Nothing was written.`;
  return h(
    "div",
    null,
    h("p", { class: "failure", role: "alert" }, problems.length > LISTED ? `${count} The first ${LISTED}:` : count),
    labeled(grid(["Line", "Column", "Problem", "As in the file"], problems.slice(0, LISTED).map(row), ""), "Problems of the file"),
  );
}

/**
 * The form.
 * @param {Table} table
 * @param {() => void} done
 */
export function importForm(table, done) {
  const file = /** @type {HTMLInputElement} */ (h("input", { type: "file", required: true, accept: ".csv,.tsv,.txt,.xlsx,.parquet" }));
  const mode = /** @type {HTMLSelectElement} */ (
    h("select", null, h("option", { value: "insert" }, "add every row"), h("option", { value: "upsert" }, "change rows that match, add the rest"))
  );
  const names = written(table).map((it) => it.name);
  const best = labelOf(table);
  const key = /** @type {HTMLSelectElement} */ (h("select", { multiple: true, size: Math.min(4, names.length) }, names.map((it) => h("option", { selected: it === best }, it))));
  const keys = h("label", { hidden: true }, "Matched by", key);
  mode.addEventListener("change", () => (keys.hidden = mode.value !== "upsert"));
  const told = h("div", { "aria-live": "polite" });
  const columns = h("div", null);
  /** Columns for headers that are not called as a column; filled from the problems of a trial. @type {Map<string, HTMLSelectElement>} */
  const mapped = new Map();
  const send = async (/** @type {boolean} */ isTrial) => {
    const chosen = file.files?.[0];
    if (!chosen) {
      show(told, failure("Choose a file first."));
      return;
    }
    const form = new FormData();
    form.append("mode", mode.value);
    if (mode.value === "upsert") {
      for (const option of key.selectedOptions) {
        form.append("key", option.value);
      }
    }
    form.append("dry_run", String(isTrial));
    const map = Object.fromEntries([...mapped].filter(([, select]) => select.value !== "?").map(([header, select]) => [header, select.value || null]));
    if (Object.keys(map).length > 0) {
      form.append("columns", JSON.stringify(map));
    }
    form.append("file", chosen, chosen.name);
    show(told, h("p", { class: "quiet", role: "status" }, `${isTrial ? "Checking" : "Importing"} ${chosen.name}…`));
    try {
      const { body } = await call("POST", `/tables/${encodeURIComponent(table.name)}/import`, form);
      const what = `${body.created} ${body.created === 1 ? "row" : "rows"} created, ${body.updated} updated`;
      if (isTrial) {
        const now = h("button", { type: "button", class: "primary", click: () => send(false) }, `Import ${chosen.name}`);
        show(told, h("p", { role: "status" }, `No problems. It would be ${what}.`), now);
        return;
      }
      const run = h("a", { href: `#/executions/${body.job_execution_id}` }, "The execution shows what changed, and can revert it.");
      show(told, h("p", { role: "status" }, `${what}. `, run));
      done();
    } catch (error) {
      const problems = /** @type {any} */ (error).problems ?? [];
      propose(problems);
      show(told, problems.length ? problemGrid(problems, await linesOf(chosen)) : failure(error));
    }
  };
  /** Fields for the headers without a column. @param {{path: string | null}[]} problems */
  const propose = (problems) => {
    for (const problem of problems) {
      const header = /^columns\.(.*)$/s.exec(problem.path ?? "")?.[1];
      if (header !== undefined && !mapped.has(header)) {
        const options = [["?", "choose a column"], ["", "leave it out"], ...names.map((it) => [it, it])];
        const select = /** @type {HTMLSelectElement} */ (h("select", null, options.map(([value, text]) => h("option", { value }, text))));
        mapped.set(header, select);
        columns.append(h("label", null, header, select));
      }
    }
    columns.className = "fields";
  };
  file.addEventListener("change", () => {
    mapped.clear();
    show(columns);
    show(told);
  });
  const check = (/** @type {Event} */ event) => {
    event.preventDefault();
    send(true);
  };
  const hint = `A delimited text, an Excel workbook (.xlsx) or Parquet. The key of the table is ${keyOf(table)}. All rows are written, or none.`;
  return h(
    "form",
    { submit: check },
    h("p", { class: "quiet" }, hint),
    h("div", { class: "fields" }, h("label", null, "File", file), h("label", null, "Rows", mode), keys),
    columns,
    h("p", { class: "pages" }, h("button", { class: "primary" }, "Check")),
    told,
  );
}
