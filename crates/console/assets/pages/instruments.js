// Instruments: which there are, and the computer beside each.

import { every, get } from "../api.js";
import { h, titled } from "../dom.js";
import { time } from "../format.js";
import { grid } from "../grid.js";
import { ticks, watched } from "../list.js";
import { may } from "../rights.js";
import { address } from "../state.js";
import { device } from "./device.js";

/** The list of instruments. */
export function instruments() {
  const place = watched("Reading the instruments", ticks, async () => {
    const all = await every("/instruments");
    const row = (/** @type {Api["Instrument"]} */ it) => [
      h("a", { href: `#/instruments/${it.id}` }, it.name),
      it.instrument_type ?? "",
      it.description ?? "",
    ];
    const none = ["There is no instrument yet. ", may("admin") ? h("a", { href: "#/admin" }, "Add one") : "An administrator adds them", "."];
    return grid(["Instrument", "Type", "Description"], all.map(row), none);
  });
  return [h("h1", null, "Instruments"), place];
}

/** One instrument. @param {string} id */
export function instrument(id) {
  const place = watched("Reading the instrument", ticks, async () => {
    const it = await get(`/instruments/${id}`);
    titled(it.name);
    return h("div", null, h("h1", null, it.name), it.description ? h("p", null, it.description) : null);
  });
  return [h("p", { class: "crumbs" }, h("a", { href: "#/instruments" }, "← Instruments")), place, device(id), files(id)];
}

/** @param {string} id */
function files(id) {
  const place = watched("Reading its files", (type) => type.startsWith("file."), async () => {
    const all = await get(`/files?instrument_id=${id}&limit=20`);
    const row = (/** @type {Api["FileRecord"]} */ it) => [
      h("a", { href: `#/files/${it.file_id}` }, it.original_path),
      time(it.uploaded_at),
    ];
    const more = h("p", null, h("a", { href: address("files", "", { _instrument: id }) }, "All its files"));
    return h("div", null, grid(["File", "Uploaded"], all.map(row), "It has sent no files yet."), all.length ? more : null);
  });
  return h("section", null, h("h2", null, "Its newest files"), place);
}
