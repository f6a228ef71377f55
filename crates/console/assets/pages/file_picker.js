// A field that chooses one of the organization's files.

import { get } from "../api.js";
import { failure, h, input, show } from "../dom.js";

/** Pause after the last letter before files are looked for, in ms. */
const PAUSE = 250;

/** The newest files, narrowed by a part of the name. No file is chosen at first. */
export function filePicker() {
  const search = input({ type: "search", placeholder: "part of the name", "aria-label": "Part of the file's name" });
  const list = /** @type {HTMLSelectElement} */ (h("select", { "aria-label": "File" }, h("option", { value: "" }, "no file")));
  const said = h("span", { "aria-live": "polite" });
  let asked = 0;
  const look = async () => {
    const mine = ++asked;
    try {
      const files = await get(`/files?limit=50&query=${encodeURIComponent(search.value.trim())}`);
      if (mine !== asked) {
        return;
      }
      const options = files.map((/** @type {Api["FileRecord"]} */ it) => {
        const uploaded = new Date(it.uploaded_at ?? 0).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
        return h("option", { value: it.file_id }, `${it.file_name} (${uploaded})`);
      });
      show(list, h("option", { value: "" }, "no file"), ...options);
      show(said, files.length ? null : h("small", { class: "quiet" }, "No file has such a name."));
    } catch (error) {
      show(said, failure(error));
    }
  };
  let due = 0;
  search.addEventListener("input", () => {
    clearTimeout(due);
    due = setTimeout(look, PAUSE);
  });
  look();
  return { field: h("span", { class: "bar inline" }, search, list, said), value: () => list.value || null };
}
