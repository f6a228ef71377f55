// Import of a file into a table: a trial first, with the problems at their cells.

import { call, get, stored } from "../api.js";
import { failure, h, input, load, select, show } from "../dom.js";
import { counted } from "../format.js";
import { data, grid } from "../grid.js";
import { address, values } from "../state.js";
import { keyOf, labelOf, references, undoable, written } from "../tables.js";
import { linkedTables } from "./linked.js";

/** Most problems that are listed. */
const LISTED = 200;

/** Rows of the file that are shown. */
const SHOWN = 12;

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
 * @param {number | null} headerRow
 */
function problemGrid(problems, lines, headerRow) {
  const row = (/** @type {{path: string | null, message: string}} */ problem) => {
    const [, line, column] = /^rows\[(\d+)\](?:\.(.*))?$/.exec(problem.path ?? "") ?? [];
    const header = /^columns\.(.*)$/s.exec(problem.path ?? "")?.[1];
    const where = line ? Number(line) : header === undefined ? "file" : "header";
    const text = line ? lines[Number(line) - 1] : header === undefined || headerRow === null ? undefined : lines[headerRow - 1];
    return [where, column ?? header ?? "", h("span", { class: "failure" }, problem.message), text === undefined ? "" : h("code", null, text)];
  };
  const count = `${counted(problems.length, "problem")}. Nothing was written.`;
  return h(
    "div",
    null,
    h("p", { class: "failure", role: "alert" }, problems.length > LISTED ? `${count} The first ${LISTED}:` : count),
    kinds(problems),
    grid(["Line", "Column", "Problem", "As in the file"], problems.slice(0, LISTED).map(row), "", "Problems of the file"),
  );
}

/**
 * How many problems there are of each kind, where there are many.
 * @param {{path: string | null, message: string, code?: string}[]} problems
 */
function kinds(problems) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { path, code, message } of problems) {
    const column = /\.(.*)$/s.exec(path ?? "")?.[1];
    const name = `${(code ?? message).replaceAll("_", " ")}${column ? ` in ${column}` : ""}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  if (problems.length < 6) {
    return null;
  }
  return h("ul", { class: "chips" }, [...counts].sort(([, a], [, b]) => b - a).slice(0, 12).map(([name, count]) => h("li", { class: "chip" }, `${name}: ${count}`)));
}

/** How a file is read, as people choose it: the option, its label, and its values if they are few. @type {[string, string, string[] | null][]} */
const READING = [
  ["format", "Format", ["csv", "xlsx", "parquet"]],
  ["sheet", "Sheet", null],
  ["header_row", "Header in line", null],
  ["last_row", "Last line", null],
  ["delimiter", "Columns end at", [",", ";", "\t", "|"]],
  ["quote", "Quotation mark", ["", '"', "'"]],
  ["decimal", "Decimal sign", [".", ","]],
  ["thousands", "Thousands", ["", ".", ",", "'", " "]],
  ["encoding", "Encoding", null],
  ["timezone", "Time zone", null],
  ["date_format", "Date format", null],
  ["text_numbers", "Texts in number columns", ["refuse", "null"]],
  ["error_cells", "Error cells", ["refuse", "null"]],
  ["invalid_bytes", "Bytes of another encoding", ["refuse", "replace"]],
  ["duplicate_headers", "Headers that repeat", ["refuse", "number"]],
];

/**
 * The first rows of a file that may be its header. Those of a workbook come without its blank rows.
 * @typedef {{texts: string[], cells: any[][] | null, blank: number}} Top
 */

/**
 * @param {File} file
 * @param {Record<string, any>} options how it is read
 * @returns {Promise<Top>}
 */
async function topOf(file, { sheet }) {
  if (!/\.xlsx$/i.test(file.name)) {
    return { texts: (await linesOf(file)).slice(0, HEADERS), cells: null, blank: 0 };
  }
  const body = await previewed(file, { sheet, header_row: 0, last_row: HEADERS }).catch(() => null);
  const cells = body?.rows ?? [];
  return { texts: cells.map((/** @type {any[]} */ row) => row.map((it) => it ?? "").join(" | ")), cells, blank: body?.reading.blank_lines ?? 0 };
}

/**
 * The number of a workbook's row in its sheet, by the headers that it gives.
 * @param {File} file
 * @param {Record<string, any>} options how it is read
 * @param {Top} top
 * @param {number} index
 */
async function rowOf(file, options, { cells, blank }, index) {
  const wanted = (cells?.[index] ?? []).filter((it) => it !== null).map(String).join("\n");
  for (let row = index + 1; row < index + 1 + blank; row++) {
    const body = await previewed(file, { ...options, header_row: row, duplicate_headers: "number" }).catch(() => null);
    const at = body?.reading.header_row;
    if (at === row && body.columns.map((/** @type {any} */ it) => it.header).join("\n") === wanted) {
      return row;
    }
  }
  return index + 1 + blank;
}

/**
 * A reading of a file.
 * @param {File} file
 * @param {Record<string, any>} options
 */
async function previewed(file, options) {
  const form = new FormData();
  put(form, options);
  form.append("file", file, file.name);
  return (await call("POST", "/tools/preview-table", form)).body;
}

/** A choice that is left to the platform. */
const FOUND = "?";

const WORDS = /** @type {Record<string, string>} */ ({ [FOUND]: "as found", null: "leave them empty", replace: "mark them as unreadable", number: "number them", "\t": "tab", " ": "blank", "": "none", ",": "comma ,", ";": "semicolon ;", ".": "point .", "'": "apostrophe '", "|": "bar |" });

/** Lines of a text that are offered as the header. */
const HEADERS = 12;

/**
 * A header as it finds its column: without a unit in brackets, case, blanks and punctuation.
 * @param {string} text
 */
function bare(text) {
  return text.normalize("NFKC").replace(/[([][^()[\]]*[)\]]\s*$/, "").toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
}

/**
 * Adds options to a form.
 * @param {FormData} form
 * @param {Record<string, any>} options
 */
function put(form, options) {
  for (const [name, value] of Object.entries(options)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== null && each !== undefined) {
        form.append(name, String(each));
      }
    }
  }
}

/**
 * The import of a file: how it is read, which column each header is, a trial, and then the import.
 * @param {Table} table
 * @param {Table[]} all
 * @param {() => void} done
 */
export function importForm(table, all, done) {
  const file = h("input", { type: "file", required: true, accept: ".csv,.tsv,.txt,.xlsx,.parquet" });
  const mode = select([["insert", "add every row"], ["upsert", "change rows that match, add the rest"]]);
  const columns = written(table);
  const best = labelOf(table);
  const key = h("select", { multiple: true, size: Math.min(4, columns.length) }, columns.map((it) => h("option", { selected: it.name === best }, it.name)));
  const keys = h("label", { hidden: true }, "Matched by", key);
  const blank = select([["keep", "change nothing"], ["null", "empty the cell"]]);
  const blanks = h("label", { hidden: true }, "Blank cells", blank);
  mode.addEventListener("change", () => (keys.hidden = blanks.hidden = mode.value !== "upsert"));
  const read = h("div", { "aria-live": "polite" });
  const told = h("div", { "aria-live": "polite" });
  /** Options that the shown reading has. @type {Record<string, any>} */
  let options = {};
  /** Options that are being tried. @type {Record<string, any>} */
  let wanted = {};
  /** The reading that is shown. @type {{body: any, top: Top, source: File, sheet: any} | null} */
  let last = null;
  /** Why an option that was chosen after it cannot be read. @type {{name: string, value: any, error: unknown} | null} */
  let wrong = null;
  let isOpen = false;
  /** Number of the latest trial: what is chosen after it makes it void. */
  let trial = 0;
  /** The column of each header. @type {Map<string, HTMLSelectElement>} */
  const mapped = new Map();
  /** Headers whose column was chosen here. @type {Set<string>} */
  const byHand = new Set();
  /** The column of the referenced table by which each reference finds its row; what is missing leaves it to the platform. @type {Map<string, string>} */
  const lookups = new Map();
  const linked = linkedTables(table, all, () => [...mapped].map(([header, select]) => [header, select.value]));

  /**
   * A choice of what a reference's cells hold, for the header whose column it is.
   * @param {HTMLSelectElement} header
   */
  const lookupChoice = (header) => {
    const place = h("div", null);
    const draw = () => {
      const column = columns.find((it) => it.name === header.value && it.is_foreign_key);
      const other = column ? all.find((it) => it.name === column.foreign_key_table_name) : null;
      const unique = other ? written(other).filter((it) => it.is_primary_key || it.is_unique) : [];
      if (!column || !other || unique.length < 2) {
        show(place);
        return;
      }
      /** @type {[string, string][]} */
      const options = [["", `key${labelOf(other) === keyOf(other) ? "" : ` or ${labelOf(other)}`} of the ${other.name}`], ...unique.map((it) => /** @type {[string, string]} */ ([it.name, `${it.name} of the ${other.name}`]))];
      const box = select(options, lookups.get(column.name) ?? "", { "aria-label": `What ${column.name} holds`, change: () => lookups.set(column.name, box.value) });
      show(place, box);
    };
    header.addEventListener("change", draw);
    draw();
    return place;
  };

  /** The reading of the file, which a check waits for: it would else be lost when the file is shown. */
  let shown = Promise.resolve();
  /** @param {Record<string, any>} [chosen] options besides those that hold */
  const preview = (chosen = {}) => {
    forget();
    wanted = Object.fromEntries(Object.entries({ ...wanted, ...chosen }).filter(([, value]) => value !== FOUND));
    const sent = wanted;
    shown = load(read, "Reading the file", async () => {
      const source = file.files?.[0];
      if (!source) {
        return null;
      }
      const top = last?.source === source && last.sheet === sent.sheet ? last.top : await topOf(source, sent);
      try {
        const body = await previewed(source, sent);
        // Another choice was made while this one was read.
        if (sent !== wanted) {
          return undefined;
        }
        [options, wrong, last] = [sent, null, { body, top, source, sheet: sent.sheet }];
      } catch (error) {
        if (sent !== wanted) {
          return undefined;
        }
        if (!last) {
          return h("div", null, failure(error), readings(null, top));
        }
        wanted = options;
        // The last good reading stays, with the choice that failed at its field.
        const [[name, value]] = Object.entries(chosen);
        wrong = { name, value, error };
      }
      return h("div", null, doubts(last.body.doubts), readings(last.body, last.top), firstRows(last.body));
    });
  };

  /** What a trial found is of other choices than those of now. */
  const forget = () => {
    trial += 1;
    show(told);
  };

  /** What has to be decided, each with its choices. @param {any[]} found */
  const doubts = (found) =>
    found.map((doubt) => {
      // Times without a zone are most often those of the person's own.
      const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
      const isZone = doubt.options.some((/** @type {any} */ it) => it.timezone) && !doubt.options.some((/** @type {any} */ it) => it.timezone === own);
      const choices = [...(isZone ? [{ timezone: own }] : []), ...doubt.options];
      const button = (/** @type {any} */ option) => h("button", { type: "button", click: () => preview(option) }, Object.entries(option).map(([name, value]) => worded(name, value)).join(", "));
      return h("div", { class: "note warns" }, h("p", null, doubt.message), choices.length ? h("p", { class: "actions" }, choices.map(button)) : null);
    });

  /** @param {string} name @param {any} value */
  const worded = (name, value) => {
    const label = READING.find(([it]) => it === name)?.[1] ?? name.replaceAll("_", " ");
    return `${label}: ${WORDS[String(value)] ?? value}`;
  };

  /** How the file was read; each part can be chosen otherwise. @param {any} body null if it could not be read @param {Top} top */
  const readings = (body, top) => {
    const { reading, sheets } = body ?? { reading: wanted, sheets: null };
    const isOpenTo = (/** @type {string} */ name) => !body || reading[name] !== null || ["quote", "timezone", "date_format"].includes(name);
    const fields = READING.filter(([name]) => isOpenTo(name)).map(([name, label, values]) => {
      const bad = wrong?.name === name ? wrong : null;
      const choices = name === "sheet" && sheets ? sheets.map((/** @type {any} */ it) => it.name) : values;
      const given = bad?.value ?? reading[name] ?? (choices ? FOUND : "");
      const field = choices
        ? h("select", null, [...new Set([...(given === FOUND || !body ? [FOUND] : []), ...choices, given])].map((it) => h("option", { value: it, selected: it === given }, WORDS[it] ?? it)))
        : input({ value: given, size: 10, ...(name === "timezone" ? { placeholder: "Europe/Berlin" } : name === "date_format" ? { placeholder: "%d.%m.%Y" } : {}) });
      field.addEventListener("change", () => preview({ [name]: /** @type {HTMLInputElement} */ (field).value || (choices || body ? "" : FOUND) }));
      field.setAttribute("data-name", name);
      if (bad) {
        field.setAttribute("aria-invalid", "true");
      }
      return h("label", null, label, field, bad ? h("small", { class: "failure" }, /** @type {any} */ (bad.error).message.replace(`${name}: `, "")) : null);
    });
    const skipped = [
      reading.lines_above ? `${counted(reading.lines_above, "line")} above the header` : "",
      reading.lines_below ? `${counted(reading.lines_below, "line")} below the table` : "",
      reading.blank_lines ? counted(reading.blank_lines, "blank line") : "",
    ].filter(Boolean);
    const header = (/** @type {string} */ line, /** @type {number} */ index) => {
      const source = /** @type {File} */ (file.files?.[0]);
      const choose = async () => preview({ header_row: top.blank ? await rowOf(source, wanted, top, index) : index + 1 });
      const isHeader = top.blank && body ? body.columns.map((/** @type {any} */ it) => it.header).join(" | ") === line : reading.header_row === index + 1;
      return h("li", null, h("button", { type: "button", class: "plain", "aria-pressed": String(isHeader), click: choose }, top.blank ? null : `${index + 1} `, h("code", null, line.slice(0, 160))));
    };
    const sign = (/** @type {any} */ it) => (WORDS[it] ?? it).split(" ")[0];
    const found = [reading.encoding, (reading.delimiter ?? null) === null ? "" : `columns end at a ${sign(reading.delimiter)}, decimal ${sign(reading.decimal)}`, reading.sheet ? `sheet ${reading.sheet}` : "", reading.header_row === null ? "" : `header in line ${reading.header_row}`].filter(Boolean).join(", ");
    return h(
      "details",
      { open: isOpen || wrong !== null || !body, toggle: (/** @type {any} */ event) => (isOpen = event.target.open) },
      h("summary", { "data-name": "reading" }, body ? `Read as ${reading.format}${found ? `: ${found}` : ""}` : "Read as"),
      skipped.length ? h("p", { class: "quiet" }, `Skipped: ${skipped.join(", ")}.`) : null,
      h("div", { class: "fields" }, fields),
      top.texts.length ? h("div", null, h("p", { class: "quiet" }, "The line of the header:"), h("ol", { class: "lines" }, top.texts.map(header))) : null,
    );
  };

  /** The first rows, with the column of each header. @param {any} body */
  const firstRows = ({ columns: found, rows, row_count: count, rows_read: looked }) => {
    const system = new Set(table.columns.filter((it) => it.is_system).map((it) => bare(it.name)));
    const before = new Map([...mapped].map(([header, select]) => [header, select.value]));
    mapped.clear();
    const head = found.map((/** @type {any} */ it) => {
      const own = columns.find((column) => [column.name, column.label ?? column.name].some((name) => bare(name) === bare(it.header)));
      // The server finds columns by their names only, and compares units where it does.
      const isByLabel = own && bare(own.name) !== bare(it.header);
      const isOther = isByLabel && it.unit && own.unit && it.unit !== own.unit;
      if (isByLabel) {
        byHand.add(it.header);
      }
      const usual = isOther ? "?" : own?.name ?? (system.has(bare(it.header)) ? "" : "?");
      const chosen = before.get(it.header) ?? usual;
      const choices = [["?", "choose a column"], ["", "leave it out"], ...columns.map((column) => [column.name, column.name]), ...linked.choices];
      const select = h("select", { "aria-label": it.header }, choices.map(([value, words]) => h("option", { value, selected: value === chosen }, words)));
      select.addEventListener("change", () => {
        byHand.add(it.header);
        linked.draw();
      });
      mapped.set(it.header, select);
      return h("div", null, h("div", null, it.header), select, lookupChoice(select));
    });
    const listed = Math.min(rows.length, SHOWN);
    const more = count === null ? `The first ${listed} rows; ${counted(looked, "row")} of a large file were looked at.` : count > listed ? `The first ${listed} of ${counted(count, "row")}.` : `${counted(count, "row")}.`;
    linked.draw();
    return h("div", null, grid(head, data(rows.slice(0, SHOWN)), "The file has no rows.", "First rows of the file"), h("p", { class: "quiet" }, more), linked.place);
  };

  const send = async (/** @type {boolean} */ isTrial) => {
    const chosen = file.files?.[0];
    if (!chosen) {
      show(told, failure("Choose a file first."));
      return;
    }
    await shown;
    const mine = ++trial;
    if (!last) {
      show(told, failure("The file could not be read. Choose above how it is read."));
      return;
    }
    if (wrong) {
      show(told, failure("A choice of how the file is read does not hold. Change it above, or choose the file again."));
      return;
    }
    const open = [...mapped].find(([, select]) => select.value === "?");
    if (open) {
      show(told, failure(`Choose the column of "${open[0]}", or leave it out.`));
      open[1].focus();
      return;
    }
    /** @type {any[]} */
    let further = [];
    try {
      further = linked.list();
    } catch (error) {
      show(told, failure(error));
      return;
    }
    const form = new FormData();
    put(form, { date_format: last.body.reading.date_format, ...options, mode: mode.value, dry_run: isTrial, linked: further.length ? JSON.stringify(further) : null });
    if (mode.value === "upsert") {
      put(form, { key: [...key.selectedOptions].map((option) => option.value), blank: blank.value });
    }
    const own = new Set(columns.map((it) => it.name));
    // What nobody chose is left to the server, which compares the units as well.
    const given = [...mapped].filter(([header, { value }]) => byHand.has(header) || !own.has(value));
    form.append("columns", JSON.stringify(Object.fromEntries(given.map(([header, { value }]) => [header, own.has(value) ? value : null]))));
    const used = [...lookups].filter(([name, by]) => by && [...mapped.values()].some((select) => select.value === name));
    if (used.length) {
      form.append("lookups", JSON.stringify(Object.fromEntries(used)));
    }
    form.append("file", chosen, chosen.name);
    show(told, h("p", { class: "quiet", role: "status" }, `${isTrial ? "Checking" : "Importing"} ${chosen.name}…`));
    try {
      const { body } = await call("POST", `/tables/${encodeURIComponent(table.name)}/import`, form);
      if (isTrial && mine !== trial) {
        return;
      }
      const parts = body.tables.map((/** @type {any} */ it) => [it.table, `${counted(it.created, "row")} created, ${it.updated} updated`]);
      const what = further.length ? parts.map((/** @type {string[]} */ part) => part.join(": ")).join("; ") : parts[0][1];
      if (isTrial) {
        const now = h("button", { type: "button", class: "primary", click: () => send(false) }, `Import ${chosen.name}`);
        show(told, h("p", { role: "status" }, `No problems. It would be ${what}.`), now);
        return;
      }
      const run = h("a", { href: `#/executions/${body.job_execution_id}` }, "The execution shows what changed, keeps the file, and can be reverted.");
      const links = parts.map((/** @type {string[]} */ [name, count]) => h("li", null, h("a", { href: address("tables", name) }, name), `: ${count}`));
      show(told, h("div", { role: "status" }, further.length ? h("ul", null, links) : `${what}. `, run));
      undoable(`${what}.`, body.job_execution_id, done);
      done();
    } catch (error) {
      // Problems of a linked table are at its index, which people do not see.
      const path = (/** @type {string | null} */ it) => it?.replace(/^linked\[(\d+)\].*/, (_, index) => `columns.${further[index].table}`) ?? null;
      for (const { path: place, code } of /** @type {any} */ (error).problems ?? []) {
        const doubted = code === "doubtful_reading" ? mapped.get(place.replace(/^columns\./, "")) : null;
        if (doubted) {
          doubted.value = "?";
        }
      }
      const problems = (/** @type {any} */ (error).problems ?? []).map((/** @type {any} */ it) => ({ ...it, path: path(it.path) }));
      show(told, problems.length ? problemGrid(problems, await linesOf(chosen), last?.body.reading.header_row ?? null) : failure(error));
    }
  };
  file.addEventListener("change", () => {
    options = wanted = {};
    last = wrong = null;
    mapped.clear();
    byHand.clear();
    lookups.clear();
    show(read);
    preview();
  });
  read.addEventListener("change", forget);
  const check = (/** @type {Event} */ event) => {
    event.preventDefault();
    send(true);
  };
  /** Takes a file that the platform has. @param {string} id */
  const take = async (id) => {
    const content = await get(`/files/${encodeURIComponent(id)}/content`);
    const response = await fetch(stored(content.download_url));
    if (!response.ok) {
      throw new Error(`${content.file_name} cannot be read (${response.status}).`);
    }
    const taken = new DataTransfer();
    taken.items.add(new File([await response.blob()], content.file_name));
    file.files = taken.files;
    file.dispatchEvent(new Event("change"));
  };
  const given = values().get("_import");
  if (given) {
    load(told, "Reading the file", () => take(given).then(() => null));
  }
  const refers = references(table).map((it) => {
    const other = all.find((each) => each.name === it.foreign_key_table_name);
    return other ? `${it.name} takes the ${labelOf(other)} of a ${other.name}` : "";
  });
  const hint = `A delimited text, an Excel workbook (.xlsx) or Parquet. All rows are written, or none.${refers.length ? ` ${refers.filter(Boolean).join("; ")}.` : ""}`;
  return h(
    "form",
    { submit: check },
    h("p", { class: "quiet" }, hint),
    h("div", { class: "fields", change: forget }, h("label", null, "File", file), h("label", null, "Rows", mode), keys, blanks),
    read,
    h("p", { class: "pages" }, h("button", { class: "primary" }, "Check")),
    told,
  );
}
