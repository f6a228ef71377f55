// Import of a file into a table: a trial first, with the problems at their cells.

import { call, get, stored } from "../api.js";
import { failure, h, input, load, select, show } from "../dom.js";
import { counted } from "../format.js";
import { data, grid } from "../grid.js";
import { address, values } from "../state.js";
import { keyOf, labelOf, references, undoable, written } from "../tables.js";
import { FOUND, READING, WORDS, bare, linesOf, previewed, problemGrid, put, readingWords, rowOf, skippedWords, topOf, worded } from "./import_reading.js";
import { linkedTables } from "./linked.js";

/** @typedef {import("./import_reading.js").Top} Top */

/** Rows of the file that are shown. */
const SHOWN = 12;

/**
 * The import of a file: how it is read, which column each header is, a trial, and then the import.
 * @param {Table} table
 * @param {Table[]} all
 * @param {() => void} done
 */
export function importForm(table, all, done) {
  return new ImportForm(table, all, done).element();
}

class ImportForm {
  /**
   * @param {Table} table
   * @param {Table[]} all
   * @param {() => void} done
   */
  constructor(table, all, done) {
    this.table = table;
    this.all = all;
    this.done = done;
    this.columns = written(table);
    this.file = h("input", { type: "file", required: true, accept: ".csv,.tsv,.txt,.xlsx,.parquet", change: () => this.begin() });
    const choose = () => (keys.hidden = blanks.hidden = this.mode.value !== "upsert");
    this.mode = select([["insert", "add every row"], ["upsert", "change rows that match, add the rest"]], null, { change: choose });
    const best = labelOf(table);
    this.key = h("select", { multiple: true, size: Math.min(4, this.columns.length) }, this.columns.map((it) => h("option", { selected: it.name === best }, it.name)));
    this.blank = select([["keep", "change nothing"], ["null", "empty the cell"]]);
    const keys = h("label", { hidden: true }, "Matched by", this.key);
    const blanks = h("label", { hidden: true }, "Blank cells", this.blank);
    this.fields = [h("label", null, "File", this.file), h("label", null, "Rows", this.mode), keys, blanks];
    this.read = h("div", { "aria-live": "polite", change: () => this.forget() });
    this.told = h("div", { "aria-live": "polite" });
    /** Options that the shown reading has. @type {Record<string, any>} */
    this.options = {};
    /** Options that are being tried. @type {Record<string, any>} */
    this.wanted = {};
    /** The reading that is shown. @type {{body: any, top: Top, source: File, sheet: any} | null} */
    this.last = null;
    /** Why an option that was chosen after it cannot be read. @type {{name: string, value: any, error: unknown} | null} */
    this.wrong = null;
    this.isOpen = false;
    /** Number of the latest trial: what is chosen after it makes it void. */
    this.trial = 0;
    /** The column of each header. @type {Map<string, HTMLSelectElement>} */
    this.mapped = new Map();
    /** Headers whose column was chosen here. @type {Set<string>} */
    this.byHand = new Set();
    /** The column of the referenced table by which each reference finds its row; what is missing leaves it to the platform. @type {Map<string, string>} */
    this.lookups = new Map();
    this.linked = linkedTables(table, all, () => [...this.mapped].map(([header, select]) => [header, select.value]));
    /** The reading of the file, which a check waits for: it would else be lost when the file is shown. */
    this.shown = Promise.resolve();
  }

  element() {
    const check = (/** @type {Event} */ event) => {
      event.preventDefault();
      this.send(true);
    };
    const given = values().get("_import");
    if (given) {
      load(this.told, "Reading the file", () => this.take(given).then(() => null));
    }
    const refers = references(this.table).map((it) => {
      const other = this.all.find((each) => each.name === it.foreign_key_table_name);
      return other ? `${it.name} takes the ${labelOf(other)} of a ${other.name}` : "";
    });
    const hint = `A delimited text, an Excel workbook (.xlsx) or Parquet. All rows are written, or none.${refers.length ? ` ${refers.filter(Boolean).join("; ")}.` : ""}`;
    return h(
      "form",
      { submit: check },
      h("p", { class: "quiet" }, hint),
      h("div", { class: "fields", change: () => this.forget() }, this.fields),
      this.read,
      h("p", { class: "pages" }, h("button", { class: "primary" }, "Check")),
      this.told,
    );
  }

  /** Takes a file that the platform has. @param {string} id */
  async take(id) {
    const content = await get(`/files/${encodeURIComponent(id)}/content`);
    const response = await fetch(stored(content.download_url));
    if (!response.ok) {
      throw new Error(`${content.file_name} cannot be read (${response.status}).`);
    }
    const taken = new DataTransfer();
    taken.items.add(new File([await response.blob()], content.file_name));
    this.file.files = taken.files;
    this.file.dispatchEvent(new Event("change"));
  }

  /** Another file was chosen. */
  begin() {
    this.options = this.wanted = {};
    this.last = this.wrong = null;
    this.mapped.clear();
    this.byHand.clear();
    this.lookups.clear();
    show(this.read);
    this.preview();
  }

  /** What a trial found is of other choices than those of now. */
  forget() {
    this.trial += 1;
    show(this.told);
  }

  /** Reads the file. @param {Record<string, any>} [chosen] options besides those that hold */
  preview(chosen = {}) {
    this.forget();
    const sent = Object.fromEntries(Object.entries({ ...this.wanted, ...chosen }).filter(([, value]) => value !== FOUND));
    this.wanted = sent;
    this.shown = load(this.read, "Reading the file", () => this.reading(sent, chosen));
  }

  /**
   * The file as it is read with some options; if it cannot be, the reading before, with the choice that failed at its field.
   * @param {Record<string, any>} sent
   * @param {Record<string, any>} chosen those that were chosen last
   */
  async reading(sent, chosen) {
    const source = this.file.files?.[0];
    if (!source) {
      return null;
    }
    const top = this.last?.source === source && this.last.sheet === sent.sheet ? this.last.top : await topOf(source, sent);
    try {
      const body = await previewed(source, sent);
      // Another choice was made while this one was read.
      if (sent !== this.wanted) {
        return undefined;
      }
      [this.options, this.wrong, this.last] = [sent, null, { body, top, source, sheet: sent.sheet }];
    } catch (error) {
      if (sent !== this.wanted) {
        return undefined;
      }
      if (!this.last) {
        return h("div", null, failure(error), this.choices(null, top));
      }
      this.wanted = this.options;
      const [[name, value]] = Object.entries(chosen);
      this.wrong = { name, value, error };
    }
    const { body } = this.last;
    return h("div", null, body.doubts.map((/** @type {any} */ it) => this.doubt(it)), this.choices(body, this.last.top), this.firstRows(body));
  }

  /** What has to be decided, with its choices. @param {any} doubt */
  doubt(doubt) {
    // Times without a zone are most often those of the person's own.
    const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const isZone = doubt.options.some((/** @type {any} */ it) => it.timezone) && !doubt.options.some((/** @type {any} */ it) => it.timezone === own);
    const choices = [...(isZone ? [{ timezone: own }] : []), ...doubt.options];
    const button = (/** @type {any} */ option) => h("button", { type: "button", click: () => this.preview(option) }, Object.entries(option).map(([name, value]) => worded(name, value)).join(", "));
    return h("div", { class: "note warns" }, h("p", null, doubt.message), choices.length ? h("p", { class: "actions" }, choices.map(button)) : null);
  }

  /** How the file was read; each part can be chosen otherwise. @param {any} body null if it could not be read @param {Top} top */
  choices(body, top) {
    const { reading, sheets } = body ?? { reading: this.wanted, sheets: null };
    const isOpenTo = (/** @type {string} */ name) => !body || reading[name] !== null || ["quote", "timezone", "date_format"].includes(name);
    const fields = READING.filter(([name]) => isOpenTo(name)).map(([name, label, values]) => this.option(name, label, name === "sheet" && sheets ? sheets.map((/** @type {any} */ it) => it.name) : values, reading, body !== null));
    const header = (/** @type {string} */ line, /** @type {number} */ index) => {
      const source = /** @type {File} */ (this.file.files?.[0]);
      const choose = async () => this.preview({ header_row: top.blank ? await rowOf(source, this.wanted, top, index) : index + 1 });
      const isHeader = top.blank && body ? body.columns.map((/** @type {any} */ it) => it.header).join(" | ") === line : reading.header_row === index + 1;
      return h("li", null, h("button", { type: "button", class: "plain", "aria-pressed": String(isHeader), click: choose }, top.blank ? null : `${index + 1} `, h("code", null, line.slice(0, 160))));
    };
    const skipped = skippedWords(reading);
    return h(
      "details",
      { open: this.isOpen || this.wrong !== null || !body, toggle: (/** @type {any} */ event) => (this.isOpen = event.target.open) },
      h("summary", { "data-name": "reading" }, body ? readingWords(reading) : "Read as"),
      skipped ? h("p", { class: "quiet" }, skipped) : null,
      h("div", { class: "fields" }, fields),
      top.texts.length ? h("div", null, h("p", { class: "quiet" }, "The line of the header:"), h("ol", { class: "lines" }, top.texts.map(header))) : null,
    );
  }

  /**
   * The field of an option of the reading.
   * @param {string} name
   * @param {string} label
   * @param {string[] | null} choices its values, if they are few
   * @param {Record<string, any>} reading
   * @param {boolean} isRead whether the file could be read
   */
  option(name, label, choices, reading, isRead) {
    const bad = this.wrong?.name === name ? this.wrong : null;
    const given = bad?.value ?? reading[name] ?? (choices ? FOUND : "");
    const field = choices
      ? h("select", null, [...new Set([...(given === FOUND || !isRead ? [FOUND] : []), ...choices, given])].map((it) => h("option", { value: it, selected: it === given }, WORDS[it] ?? it)))
      : input({ value: given, size: 10, ...(name === "timezone" ? { placeholder: "Europe/Berlin" } : name === "date_format" ? { placeholder: "%d.%m.%Y" } : {}) });
    field.addEventListener("change", () => this.preview({ [name]: /** @type {HTMLInputElement} */ (field).value || (choices || isRead ? "" : FOUND) }));
    field.setAttribute("data-name", name);
    if (bad) {
      field.setAttribute("aria-invalid", "true");
    }
    return h("label", null, label, field, bad ? h("small", { class: "failure" }, /** @type {any} */ (bad.error).message.replace(`${name}: `, "")) : null);
  }

  /** The first rows, with the column of each header. @param {any} body */
  firstRows({ columns: found, rows, row_count: count, rows_read: looked }) {
    const before = new Map([...this.mapped].map(([header, select]) => [header, select.value]));
    this.mapped.clear();
    const head = found.map((/** @type {any} */ it) => {
      const chosen = before.get(it.header) ?? this.usual(it);
      const choices = [["?", "choose a column"], ["", "leave it out"], ...this.columns.map((column) => [column.name, column.name]), ...this.linked.choices];
      const select = h("select", { "aria-label": it.header }, choices.map(([value, words]) => h("option", { value, selected: value === chosen }, words)));
      select.addEventListener("change", () => {
        this.byHand.add(it.header);
        this.linked.draw();
      });
      this.mapped.set(it.header, select);
      return h("div", null, h("div", null, it.header), select, this.lookupChoice(select));
    });
    const listed = Math.min(rows.length, SHOWN);
    const more = count === null ? `The first ${listed} rows; ${counted(looked, "row")} of a large file were looked at.` : count > listed ? `The first ${listed} of ${counted(count, "row")}.` : `${counted(count, "row")}.`;
    this.linked.draw();
    return h("div", null, grid(head, data(rows.slice(0, SHOWN)), "The file has no rows.", "First rows of the file"), h("p", { class: "quiet" }, more), this.linked.place);
  }

  /** The column that a header names; `?` where a person has to say it. @param {any} it */
  usual(it) {
    const own = this.columns.find((column) => [column.name, column.label ?? column.name].some((name) => bare(name) === bare(it.header)));
    if (!own) {
      return this.table.columns.some((column) => column.is_system && bare(column.name) === bare(it.header)) ? "" : "?";
    }
    // The server finds columns by their names only, and compares units where it does.
    if (bare(own.name) === bare(it.header)) {
      return own.name;
    }
    this.byHand.add(it.header);
    return it.unit && own.unit && it.unit !== own.unit ? "?" : own.name;
  }

  /** A choice of what a reference's cells hold, for the header whose column it is. @param {HTMLSelectElement} header */
  lookupChoice(header) {
    const place = h("div", null);
    const draw = () => {
      const column = this.columns.find((it) => it.name === header.value && it.is_foreign_key);
      const other = column ? this.all.find((it) => it.name === column.foreign_key_table_name) : null;
      const unique = other ? written(other).filter((it) => it.is_primary_key || it.is_unique) : [];
      if (!column || !other || unique.length < 2) {
        show(place);
        return;
      }
      /** @type {[string, string][]} */
      const options = [["", `key${labelOf(other) === keyOf(other) ? "" : ` or ${labelOf(other)}`} of the ${other.name}`], ...unique.map((it) => /** @type {[string, string]} */ ([it.name, `${it.name} of the ${other.name}`]))];
      const box = select(options, this.lookups.get(column.name) ?? "", { "aria-label": `What ${column.name} holds`, change: () => this.lookups.set(column.name, box.value) });
      show(place, box);
    };
    header.addEventListener("change", draw);
    draw();
    return place;
  }

  /** Why the choices cannot be sent as they are; the field to change has the focus. */
  hindrance() {
    if (!this.last) {
      return "The file could not be read. Choose above how it is read.";
    }
    if (this.wrong) {
      return "A choice of how the file is read does not hold. Change it above, or choose the file again.";
    }
    const open = [...this.mapped].find(([, select]) => select.value === "?");
    open?.[1].focus();
    return open ? `Choose the column of "${open[0]}", or leave it out.` : null;
  }

  /**
   * What is sent.
   * @param {File} file
   * @param {any[]} further linked tables
   * @param {boolean} isTrial
   */
  body(file, further, isTrial) {
    const form = new FormData();
    put(form, { date_format: this.last?.body.reading.date_format, ...this.options, mode: this.mode.value, dry_run: isTrial, linked: further.length ? JSON.stringify(further) : null });
    if (this.mode.value === "upsert") {
      put(form, { key: [...this.key.selectedOptions].map((option) => option.value), blank: this.blank.value });
    }
    const own = new Set(this.columns.map((it) => it.name));
    // What nobody chose is left to the server, which compares the units as well.
    const given = [...this.mapped].filter(([header, { value }]) => this.byHand.has(header) || !own.has(value));
    form.append("columns", JSON.stringify(Object.fromEntries(given.map(([header, { value }]) => [header, own.has(value) ? value : null]))));
    const used = [...this.lookups].filter(([name, by]) => by && [...this.mapped.values()].some((select) => select.value === name));
    if (used.length) {
      form.append("lookups", JSON.stringify(Object.fromEntries(used)));
    }
    form.append("file", file, file.name);
    return form;
  }

  /** Tries the import, or makes it. @param {boolean} isTrial */
  async send(isTrial) {
    const file = this.file.files?.[0];
    if (!file) {
      show(this.told, failure("Choose a file first."));
      return;
    }
    await this.shown;
    const mine = ++this.trial;
    const hindrance = this.hindrance();
    if (hindrance) {
      show(this.told, failure(hindrance));
      return;
    }
    /** @type {any[]} */
    let further = [];
    try {
      further = this.linked.list();
    } catch (error) {
      show(this.told, failure(error));
      return;
    }
    const form = this.body(file, further, isTrial);
    show(this.told, h("p", { class: "quiet", role: "status" }, `${isTrial ? "Checking" : "Importing"} ${file.name}…`));
    try {
      const { body } = await call("POST", `/tables/${encodeURIComponent(this.table.name)}/import`, form);
      if (!isTrial || mine === this.trial) {
        this.tell(body, file, further.length > 0, isTrial);
      }
    } catch (error) {
      await this.refused(error, file, further);
    }
  }

  /**
   * Says what was written, or would be.
   * @param {any} body
   * @param {File} file
   * @param {boolean} isLinked
   * @param {boolean} isTrial
   */
  tell(body, file, isLinked, isTrial) {
    const parts = body.tables.map((/** @type {any} */ it) => [it.table, `${counted(it.created, "row")} created, ${it.updated} updated`]);
    const what = isLinked ? parts.map((/** @type {string[]} */ part) => part.join(": ")).join("; ") : parts[0][1];
    if (isTrial) {
      const now = h("button", { type: "button", class: "primary", click: () => this.send(false) }, `Import ${file.name}`);
      show(this.told, h("p", { role: "status" }, `No problems. It would be ${what}.`), now);
      return;
    }
    const run = h("a", { href: `#/executions/${body.job_execution_id}` }, "The execution shows what changed, keeps the file, and can be reverted.");
    const links = parts.map((/** @type {string[]} */ [name, count]) => h("li", null, h("a", { href: address("tables", name) }, name), `: ${count}`));
    show(this.told, h("div", { role: "status" }, isLinked ? h("ul", null, links) : `${what}. `, run));
    undoable(`${what}.`, body.job_execution_id, this.done);
    this.done();
  }

  /**
   * Shows why nothing was written.
   * @param {any} error
   * @param {File} file
   * @param {any[]} further linked tables
   */
  async refused(error, file, further) {
    // Problems of a linked table are at its index, which people do not see.
    const path = (/** @type {string | null} */ it) => it?.replace(/^linked\[(\d+)\].*/, (_, index) => `columns.${further[index].table}`) ?? null;
    const problems = error.problems ?? [];
    for (const { path: place, code } of problems) {
      const doubted = code === "doubtful_reading" ? this.mapped.get(place.replace(/^columns\./, "")) : null;
      if (doubted) {
        doubted.value = "?";
      }
    }
    const placed = problems.map((/** @type {any} */ it) => ({ ...it, path: path(it.path) }));
    show(this.told, placed.length ? problemGrid(placed, await linesOf(file), this.last?.body.reading.header_row ?? null) : failure(error));
  }
}
