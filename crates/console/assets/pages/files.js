// Files: the list, uploads, and one with its preview.

import { call, get } from "../api.js";
import { failure, h, load, show, time } from "../dom.js";
import { grid } from "../grid.js";

/**
 * @param {number | null} kilobytes
 */
function size(kilobytes) {
  if (kilobytes === null) {
    return "";
  }
  return kilobytes < 1024 ? `${kilobytes} kB` : `${(kilobytes / 1024).toFixed(1)} MB`;
}

/** The newest files, and a form to upload. */
export function files() {
  const place = h("div", null);
  const search = /** @type {HTMLInputElement} */ (h("input", { type: "search", "aria-label": "Part of the name", placeholder: "part of the name" }));
  const row = (/** @type {any} */ it) => [
    h("a", { href: `#/files/${it.file_id}` }, it.file_name),
    size(it.size_kilobytes),
    time(it.uploaded_at),
    String(it.source_type).replace("_", " "),
  ];
  const page = async (/** @type {string} */ address, /** @type {boolean} */ isFirst) => {
    const { body, next } = await call("GET", address);
    const more = next ? h("button", { type: "button", click: () => turn(next, false) }, "Older") : null;
    const back = isFirst ? null : h("button", { type: "button", click: first }, "Newest");
    const empty = search.value ? "No file of that name." : "No files yet. Upload one above, or let labdata-watch do it on the instrument's computer.";
    return h("div", null, grid(["File", "Size", "Uploaded", "Source"], body.map(row), empty), h("p", { class: "pages" }, back, more));
  };
  const turn = (/** @type {string} */ address, /** @type {boolean} */ isFirst) =>
    load(place, "Reading the files", () => page(address, isFirst));
  const first = () => {
    const name = search.value.trim();
    turn(`/files?limit=50${name ? `&query=${encodeURIComponent(name)}` : ""}`, true);
  };
  const find = (/** @type {Event} */ event) => {
    event.preventDefault();
    first();
  };
  first();
  return [
    h("h1", null, "Files"),
    upload(first),
    h("form", { class: "bar", submit: find }, search, h("button", null, "Search")),
    place,
  ];
}

/**
 * Files belong to an instrument here; scripts attach theirs to an execution.
 * @param {() => void} done
 */
function upload(done) {
  const instrument = h("select", { "aria-label": "Instrument" });
  const chosen = /** @type {HTMLInputElement} */ (h("input", { type: "file", multiple: true, "aria-label": "Files" }));
  const told = h("div", { "aria-live": "polite" });
  const place = h("details", null);
  load(place, "Reading the instruments", async () => {
    const all = await get("/instruments");
    instrument.append(...all.map((/** @type {any} */ it) => h("option", { value: it.id }, it.name)));
    const send = async (/** @type {Event} */ event) => {
      event.preventDefault();
      for (const file of chosen.files ?? []) {
        show(told, h("p", { class: "quiet", role: "status" }, `Sending ${file.name}…`));
        const form = new FormData();
        form.append("instrument_id", /** @type {HTMLSelectElement} */ (instrument).value);
        form.append("file", file, file.name);
        try {
          await call("POST", "/files", form);
        } catch (error) {
          show(told, failure(error));
          return;
        }
      }
      show(told, h("p", { role: "status" }, "Sent."));
      done();
    };
    const none = h("p", { class: "empty" }, "A file belongs to an instrument. There is none yet: POST /api/v1/instruments makes one.");
    const form = h("form", { class: "bar", submit: send }, instrument, chosen, h("button", { class: "primary" }, "Upload"));
    place.prepend(h("summary", null, "Upload files"));
    const rest = all.length ? form : none;
    return h("div", null, h("small", { class: "quiet" }, "Up to 4.5 MB each; larger ones with the Python client."), rest, told);
  }).then(() => {
    if (!place.querySelector("summary")) {
      place.prepend(h("summary", null, "Upload files"));
    }
  });
  return place;
}

/**
 * One file.
 * @param {string} id
 */
export function file(id) {
  const place = h("div", null);
  load(place, "Reading the file", async () => {
    const [it, content] = await Promise.all([get(`/files/${id}`), get(`/files/${id}/content`)]);
    const run = it.job_execution_id;
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
        run ? h("a", { href: `#/executions/${run}` }, "an execution") : null,
        ". ",
        h("a", { href: content.download_url }, "Download"),
      ),
      content.text_preview === null
        ? h("p", { class: "empty" }, `No preview: ${content.preview_skipped_reason}.`)
        : h("pre", { tabindex: "0" }, content.text_preview),
      content.preview_truncated ? h("p", { class: "quiet" }, "This is the beginning of the file.") : null,
    );
  });
  return [h("p", null, h("a", { href: "#/files" }, "← Files")), place];
}
