// Search over everything (Ctrl+K).

import { ApiError, get } from "./api.js";
import { h, show } from "./dom.js";
import { instant } from "./format.js";
import { address } from "./state.js";
import { hasRows, keyOf, labelOf, nonempty, read, rowLink, schema } from "./tables.js";
import { savedViews } from "./views.js";

/** Pause after a letter before the platform is asked for files and rows, in ms. */
const PAUSE = 40;

/** Entries of each kind that are listed. */
const EACH = 5;

/** Tables that are searched for rows at a time, those with few rows first: they answer at once. */
const AT_ONCE = 6;

/** Jobs whose executions are found by the job's name. */
const JOBS = 50;

/** Rows of a table from which on to look through all of them takes long. */
const LARGE = 10_000;

/** @typedef {{kind: string, name: string, more?: string, to: string}} Entry */

/** @typedef {Record<string, {name: string}>} Pages */

/** @typedef {{tables: Table[], jobs: any[], models: any[], instruments: any[], views: any[]}} Lists lists of the platform that change rarely */

/** The lists, each read once while the palette is open. @type {{[Name in keyof Lists]: Promise<Lists[Name]>} | null} */
let known = null;

function lists() {
  if (known === null) {
    known = { tables: schema(), jobs: get("/jobs?limit=1000"), models: get("/ml-models"), instruments: get("/instruments?limit=1000"), views: savedViews() };
    // Each search says what could not be read.
    Object.values(known).forEach((list) => list.catch(() => {}));
  }
  return known;
}

/**
 * @param {string} text
 * @param {Pages} pages
 * @returns {Entry[]}
 */
function ofPages(text, pages) {
  return Object.entries(pages)
    .filter(([, page]) => page.name.toLowerCase().includes(text))
    .map(([path, page]) => ({ kind: "Page", name: page.name, to: `#/${path}` }));
}

/**
 * Finds what bears the text in its name. Lists that are known are searched at once; after a pause each part of the platform and
 * each table is asked by itself, so that one that is slow or fails holds up none.
 * @param {string} text
 * @param {() => boolean} isLatest false once another text is searched for
 * @param {(entries: Entry[]) => void} add
 * @returns {Promise<string[]>} why parts could not be searched, once all have answered
 */
async function searches(text, isLatest, add) {
  const low = text.toLowerCase();
  const has = (/** @type {any} */ it) => it.name.toLowerCase().includes(low);
  /** @type {Set<string>} */
  const problems = new Set();
  const failed = (/** @type {any} */ error) => {
    // Somebody who may not read a list does not miss it.
    if (!(error instanceof ApiError && error.status === 403)) {
      problems.add(error.message);
    }
  };
  /** @template T @param {Promise<T[]>} list @param {(it: T) => Entry} entry @param {(it: T) => boolean} [is] */
  const listed = (list, entry, is = has) => list.then((all) => add(all.filter(is).slice(0, EACH).map(entry))).catch(failed);
  const { tables, jobs, models, instruments, views } = lists();
  const listings = [
    listed(views, (it) => ({ kind: "Saved view", name: it.name, to: it.address })),
    listed(tables, (it) => ({ kind: "Table", name: it.name, more: it.description ?? "", to: address("tables", it.name) })),
    listed(tables, (it) => ({ kind: "Curves", name: it.name, to: address("plates", it.name) }), (it) => it.semantic_category === "raw" && has(it)),
    listed(jobs, (it) => ({ kind: "Job", name: it.name, to: `#/jobs/${it.id}` })),
    listed(models, (it) => ({ kind: "Model", name: it.name, to: `#/models/${it.id}` })),
    listed(instruments, (it) => ({ kind: "Instrument", name: it.name, more: it.instrument_type ?? "", to: `#/instruments/${it.id}` })),
  ];
  await new Promise((resolve) => setTimeout(resolve, PAUSE));
  if (!isLatest()) {
    return [];
  }
  const files = get(`/files?${new URLSearchParams({ query: text, limit: String(EACH) })}`).then((found) =>
    found.map((/** @type {any} */ it) => ({ kind: "File", name: it.file_name, to: `#/files/${it.file_id}` })),
  );
  const rows = tables.then((all) => {
    const work = all.filter((it) => hasRows(it) && labelOf(it) !== keyOf(it)).sort((a, b) => a.row_count_estimate - b.row_count_estimate).map((table) => () => rowsOf(table, text, add));
    const next = async () => {
      for (let one = work.shift(); one && isLatest(); one = work.shift()) {
        const more = await one().catch(failed);
        more && work.push(more);
      }
    };
    return Promise.all(Array.from({ length: AT_ONCE }, next));
  });
  const named = jobs.then((all) => executions({ job_id__in: all.filter(has).map((it) => it.id).slice(0, JOBS) }));
  // The first digits of an id are those of a range, which the key's index finds.
  const digits = /^[0-9a-f-]{6,36}$/.test(low) ? low.replaceAll("-", "") : "";
  const end = (/** @type {string} */ digit) => digits.padEnd(32, digit).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  const numbered = digits.length > 5 && digits.length < 33 ? executions({ id__gte: end("0"), id__lte: end("f") }) : Promise.resolve([]);
  await Promise.all([rows.catch(failed), ...listings, ...[files, named, numbered].map((search) => search.then(add, failed))]);
  return [...problems];
}

/**
 * The newest executions that meet a condition.
 * @param {Record<string, any>} filters
 * @returns {Promise<Entry[]>}
 */
async function executions(filters) {
  if (Object.values(filters)[0].length === 0) {
    return [];
  }
  const table = /** @type {Table} */ ({ name: "job_execution", semantic_category: "core" });
  const { body } = await read(table, { filters, columns: ["id", "job_name", "status", "created_at"], order_by: ["-created_at"], limit: EACH });
  return body.map((/** @type {any} */ it) => ({ kind: "Execution", name: it.job_name, more: `${it.status}, ${instant(it.created_at).slice(0, 16)}`, to: `#/executions/${it.id}` }));
}

/**
 * Rows of a table with the text in their name. Of a large one only those whose name begins with it, which an index finds
 * at once among a million.
 * @param {Table} table
 * @param {string} text
 * @param {(entries: Entry[]) => void} add
 * @returns {Promise<void | (() => Promise<void>)>} what looks through all rows of a large one, which takes long
 */
async function rowsOf(table, text, add) {
  const [key, label] = [keyOf(table), labelOf(table)];
  const columns = [key, label];
  const entry = (/** @type {any} */ row) => ({ kind: table.name, name: String(nonempty(row[label])), to: rowLink(table.name, row[key]) });
  const containing = async (/** @type {any[]} */ first) => {
    const { body } = await read(table, { filters: { [`${label}__contains`]: text }, columns, limit: EACH });
    const known = new Set(first.map((row) => row[key]));
    add(body.filter((/** @type {any} */ row) => !known.has(row[key])).slice(0, EACH - first.length).map(entry));
  };
  if (table.row_count_estimate < LARGE) {
    return containing([]);
  }
  const range = { [`${label}__gte`]: text, [`${label}__lte`]: `${text}\uffff` };
  const { body } = await read(table, { filters: range, columns, order_by: [label], limit: EACH });
  const first = body.filter((/** @type {any} */ row) => String(row[label]).startsWith(text));
  add(first.map(entry));
  return first.length < EACH ? () => containing(first) : undefined;
}

/**
 * Entries of which one is chosen.
 * @param {HTMLElement} input has the focus meanwhile
 * @param {(entry: Entry) => void} go
 */
function listbox(input, go) {
  const element = h("ul", { id: "found", role: "listbox", "aria-label": "Found" });
  /** @type {Entry[]} */
  let entries = [];
  let chosen = 0;
  const draw = () => {
    const line = (/** @type {Entry} */ it, /** @type {number} */ index) =>
      h(
        "li",
        { role: "option", id: `found-${index}`, "aria-selected": String(index === chosen), click: () => go(it), pointermove: () => choose(index) },
        h("span", { class: "kind" }, it.kind),
        h("span", { class: "name" }, it.name),
        it.more ? h("span", { class: "quiet" }, it.more) : null,
      );
    show(element, ...entries.map(line));
    input.setAttribute("aria-activedescendant", entries.length ? `found-${chosen}` : "");
  };
  const choose = (/** @type {number} */ index) => {
    if (index !== chosen) {
      chosen = index;
      draw();
      element.children[chosen]?.scrollIntoView({ block: "nearest" });
    }
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      entries[chosen] && go(entries[chosen]);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      choose((chosen + step + entries.length) % Math.max(entries.length, 1));
    }
  });
  return {
    element,
    count: () => entries.length,
    /** @param {Entry[]} first */
    begin: (first) => {
      [entries, chosen] = [first, 0];
      draw();
    },
    /** @param {Entry[]} more */
    add: (more) => {
      entries = [...entries, ...more];
      draw();
    },
  };
}

/**
 * Opens the search.
 * @param {Pages} pages
 * @param {string} [text] what is searched for at first
 */
export function palette(pages, text = "") {
  if (document.querySelector("dialog[open]")) {
    return;
  }
  known = null;
  // Read while the first letters are typed.
  lists();
  const input = h("input", { type: "text", role: "combobox", "aria-label": "Search", "aria-expanded": "true", "aria-controls": "found", "aria-autocomplete": "list", placeholder: "Samples, plates, files, jobs, executions, tables…", autocomplete: "off" });
  input.value = text;
  const told = h("p", { class: "quiet", role: "status" });
  const found = listbox(input, (it) => {
    dialog.close();
    location.hash = it.to;
  });
  let number = 0;
  const search = () => {
    const mine = ++number;
    const text = input.value.trim();
    found.begin(ofPages(text.toLowerCase(), pages));
    show(told);
    if (text === "") {
      return;
    }
    const add = (/** @type {Entry[]} */ more) => {
      if (mine === number && more.length > 0) {
        found.add(more);
      }
    };
    const end = (/** @type {string[]} */ problems) => {
      if (mine !== number) {
        return;
      }
      if (problems.length > 0) {
        show(told, `Not everything could be searched. ${problems[0]}`);
      } else if (found.count() === 0) {
        show(told, `Nothing is called "${text}".`);
      }
    };
    searches(text, () => mine === number, add).then(end);
  };
  input.addEventListener("input", search);
  const dialog = h("dialog", { class: "palette", "aria-label": "Search", close: () => dialog.remove() }, input, found.element, told);
  document.body.append(dialog);
  dialog.showModal();
  search();
}
