// Files: the list, uploads, and one with its preview.

import { call, every, get, post, stored } from "../api.js";
import { badge, button, destroy, folded, h, input, loaded, select, titled, toast } from "../dom.js";
import { counted, time } from "../format.js";
import { grid } from "../grid.js";
import { isImage, preview } from "../images.js";
import { list, pageOf, watched } from "../list.js";
import { may, mayWrite } from "../rights.js";
import { address, change, values } from "../state.js";
import { hasRows, schema } from "../tables.js";
import { uploads } from "../uploads.js";
import { annotations } from "./annotations.js";
import { executionNames } from "./executions.js";

/** @param {number | null} kilobytes */
function size(kilobytes) {
  if (kilobytes === null) {
    return "";
  }
  return kilobytes < 1024 ? `${kilobytes} kB` : `${(kilobytes / 1024).toFixed(1)} MB`;
}

/** The newest files, and a form to upload. */
export function files() {
  const given = values();
  const search = input({ type: "search", "aria-label": "Part of the name", placeholder: "part of the name", value: given.get("_name") ?? "" });
  const extensions = input({ "aria-label": "Extensions", placeholder: "extensions: csv, txt", size: 16, value: given.get("_extensions") ?? "" });
  const instrument = select([["", "any source"]], "", { "aria-label": "Source" });
  /** @type {Map<string, string>} */
  const names = new Map();
  const row = (/** @type {Api["FileRecord"]} */ it) => [
    h("a", { href: `#/files/${it.file_id}` }, it.file_name),
    size(it.size_kilobytes),
    time(it.uploaded_at),
    names.get(it.source_instrument_id ?? "") ?? String(it.source_type).replace("_", " "),
  ];
  const filters = () => ({ query: search.value.trim(), extensions: extensions.value.replaceAll(" ", ""), instrument_id: instrument.value });
  const known = every("/instruments").then((/** @type {Api["Instrument"][]} */ all) => {
    for (const it of all) {
      names.set(it.id, it.name);
      instrument.append(h("option", { value: it.id, selected: it.id === given.get("_instrument") }, it.name));
    }
  });
  const listed = list({
    reason: "Reading the files",
    one: "file",
    columns: ["File", "Size", "Uploaded", "Source"],
    row,
    empty: () => (Object.values(filters()).some(Boolean) ? "No file meets the conditions." : `No files yet. ${may("write") ? "Drop one above, or let" : "Let"} labdata-watch do it on the instrument's computer.`),
    read: async (cursor) => {
      await known;
      return pageOf("/files", filters())(cursor);
    },
    live: (type) => type.startsWith("file."),
  });
  const find = (/** @type {Event} */ event) => {
    event.preventDefault();
    change({ _name: search.value.trim(), _extensions: extensions.value.trim(), _instrument: instrument.value, _page: null }, true);
    listed.again();
  };
  instrument.addEventListener("change", find);
  return [
    h("h1", null, "Files"),
    may("write") ? uploads() : "",
    h("form", { class: "bar", submit: find }, search, extensions, instrument, h("button", null, "Filter")),
    listed.place,
  ];
}

/** One file. @param {string} id */
export function file(id) {
  const place = loaded("Reading the file", async () => {
    const [it, content] = await Promise.all([get(`/files/${id}`), get(`/files/${id}/content`)]);
    const run = it.job_execution_id;
    const remove = async () => {
      await call("DELETE", `/files/${id}`);
      toast(`${it.file_name} is in the trash.`);
      location.hash = "#/files";
    };
    titled(it.file_name);
    const [maker, instruments] = await Promise.all([executionNames([run]), it.source_instrument_id ? every("/instruments") : []]);
    const instrument = instruments.find((/** @type {Api["Instrument"]} */ each) => each.id === it.source_instrument_id);
    return h(
      "div",
      null,
      h("h1", null, it.file_name),
      h(
        "p",
        null,
        size(it.size_kilobytes),
        ", uploaded ",
        time(it.uploaded_at),
        run ? " by " : null,
        run ? h("a", { href: `#/executions/${run}` }, maker.get(run) ?? "an execution") : null,
        instrument ? `, from ${instrument.name}` : null,
        ". ",
        h("a", { href: stored(content.download_url) }, "Download"),
      ),
      it.source_instrument_id && may("write") ? readIt(it) : null,
      may("write") ? h("p", null, destroy("Delete", `Delete ${it.file_name}: it stays in the trash for some time`, remove)) : null,
      may("write") && /\.(csv|tsv|txt|xlsx|parquet)$/i.test(it.file_name) ? folded("Import it into a table", () => importsOf(id)) : null,
      beginning(it, content),
      isImage(it) ? annotations(it, content.download_url) : null,
      h("h2", null, "What it led to"),
      watched("Reading its runs", (type) => type.startsWith("job_execution."), async () => ledTo(await every(`/job-executions?trigger_file_id=${id}`))),
    );
  });
  return [h("p", { class: "crumbs" }, h("a", { href: "#/files" }, "← Files")), place];
}

/** Tables that the file can be imported into, each with its import of the file. @param {string} id */
function importsOf(id) {
  return loaded("Reading the tables", async () => {
    const tables = (await schema()).filter((it) => hasRows(it) && mayWrite(it));
    return h("ul", { class: "chips" }, tables.map((it) => h("li", null, h("a", { href: address("tables", it.name, { _import: id }) }, it.name))));
  });
}

/**
 * A button that reads the file into measurements and curves, and what readers find in it.
 * @param {Api["FileRecord"]} file
 */
function readIt(file) {
  const ask = async (/** @type {boolean} */ isTrial) => {
    const instrument = await get(`/instruments/${file.source_instrument_id}`);
    return post(`/files/${file.file_id}/read`, { ...(instrument.reader ? {} : { reader: "auto" }), dry_run: isTrial });
  };
  const read = async () => (location.hash = `#/executions/${(await ask(false)).job_execution_id}`);
  const found = () =>
    loaded("Reading the file", async () => {
      /** @type {Api["FileReading"]} */
      const it = await ask(true);
      const columns = [...new Set(it.rows.flatMap((row) => Object.entries(row).flatMap(([name, value]) => (value === null ? [] : [name]))))];
      const words = it.reader ? `${it.reader} finds ${counted(it.measurements, "measurement")}, of which ${it.curves} with curves.` : it.candidates.length ? `Several readers take it: ${it.candidates.join(", ")}.` : "No reader takes it.";
      const doubts = it.doubts.map((each) => h("p", { class: "note warns" }, each));
      return h("div", null, h("p", null, words), doubts, it.rows.length ? grid(columns, it.rows.map((row) => columns.map((name) => row[name])), "", "First measurements") : null);
    });
  return h("div", null, h("p", null, button("Read", async () => void (await read())), " writes what is in it to instrument_measurement and instrument_curve."), folded("What a reader finds", found));
}

/**
 * What a file looks like: its picture, or how its text begins.
 * @param {Api["FileRecord"]} file
 * @param {Api["FileContentResult"]} content
 */
function beginning(file, content) {
  if (content.text_preview !== null) {
    const more = content.preview_truncated ? h("p", { class: "quiet" }, "This is the beginning of the file.") : null;
    return h("div", null, h("pre", { tabindex: "0" }, content.text_preview), more);
  }
  return isImage(file) ? loaded("Reading the image", () => preview(file, content.download_url)) : h("p", { class: "empty" }, `No preview: ${content.preview_skipped_reason}.`);
}

/** How many runs are asked what they changed. */
const LOOKED_INTO = 10;

/** The runs of a file, newest first, with what they changed. @param {Api["JobExecution"][]} runs */
async function ledTo(runs) {
  const newest = runs.slice(0, LOOKED_INTO);
  const changes = await Promise.all(newest.map((it) => get(`/job-executions/${it.job_execution_id}/changes`)));
  const row = (/** @type {Api["JobExecution"]} */ it, /** @type {number} */ index) => [
    h("a", { href: `#/executions/${it.job_execution_id}` }, it.job_name),
    badge(it.status),
    time(it.started_at),
    changes[index] ? wrote(changes[index]) : "",
  ];
  return grid(["Run", "Status", "Started", "Wrote"], runs.map(row), "No run on the platform was given this file.");
}

/** What a run wrote, in words. @param {Api["JobExecutionChanges"]} changes */
function wrote(changes) {
  if (changes.reverted_at) {
    return "reverted";
  }
  const words = changes.tables.flatMap((/** @type {Api["TableChanges"]} */ it) => {
    const rows = it.created + it.updated;
    return [
      rows ? `${counted(rows, "row")} of ${it.table}` : [],
      it.series_points ? `${counted(it.series_points, "point")} of ${it.table}` : [],
    ].flat();
  });
  if (changes.files.length) {
    words.push(counted(changes.files.length, "file"));
  }
  return words.join(", ") || "nothing";
}
