// The form of a job's parameters, from their definitions.

import { get } from "../api.js";
import { failure, h, input, paused, show } from "../dom.js";
import { minute } from "../format.js";
import { pixels } from "../images.js";
import { happenings } from "../stream.js";
import { quoted, sql } from "../tables.js";

/** @typedef {{fields: [string, HTMLElement][], values: () => Record<string, any>}} Parameters */

/**
 * @param {Api["ParameterDefinition"][]} definitions
 * @returns {Parameters}
 */
export function parameters(definitions) {
  const read = /** @type {Record<string, () => any>} */ ({});
  const ofFiles = new Set(definitions.map((definition) => definition.file_id_parameter));
  const fields = definitions.map((definition) => {
    const isFile = ofFiles.has(definition.parameter_name) && definition.widget_type === "text" && definition.default === null;
    const { field, value } = isFile ? chosenFile() : widget(definition, () => read);
    read[definition.parameter_name] = value;
    const label = definition.label ?? definition.parameter_name;
    return /** @type {[string, HTMLElement]} */ ([definition.required ? `${label} *` : label, field]);
  });
  const values = () => {
    const given = Object.entries(read).map(([name, value]) => [name, value()]);
    return Object.fromEntries(given.filter(([, value]) => value !== undefined));
  };
  return { fields, values };
}

/**
 * @param {Api["ParameterDefinition"]} it
 * @param {() => Record<string, () => any>} others the values of the other parameters
 * @returns {{field: HTMLElement, value: () => any}}
 */
function widget(it, others) {
  const required = it.required && it.default === null;
  if (it.widget_type === "slider") {
    const min = it.min ?? 0;
    const field = input({ type: "range", min, max: it.max ?? 100, step: it.step ?? "any", value: it.default ?? min });
    const shown = h("output", null, field.value);
    field.addEventListener("input", () => show(shown, field.value));
    return { field: h("span", { class: "bar inline" }, field, shown), value: () => Number(field.value) };
  }
  if (it.widget_type === "date") {
    const field = input({ type: "date", required, value: it.default });
    return { field, value: () => field.value || undefined };
  }
  if (it.widget_type === "combobox" && it.model_source) {
    return choices(it, required);
  }
  if (it.widget_type === "region") {
    return region(it, others);
  }
  const field = input({ type: "text", required, value: it.default });
  return { field, value: () => field.value || undefined };
}

/** The id of a file, chosen by its name: an image on which another parameter is drawn. */
function chosenFile() {
  const { field, value } = filePicker();
  return { field, value: () => value() ?? undefined };
}

/**
 * Values of a column, as `table.column` names it.
 * @param {Api["ParameterDefinition"]} it
 * @param {boolean} required
 */
function choices(it, required) {
  const id = `choices-${it.parameter_name}`;
  const field = input({ type: "text", list: id, required, value: it.default });
  const list = h("datalist", { id });
  const [table, column = "name"] = (it.model_source ?? "").split(".");
  const query = `SELECT DISTINCT ${quoted(column)}::text FROM ${quoted(table)} ORDER BY 1 LIMIT 500`;
  sql(query).then(
    ({ data }) => list.append(...data.map((/** @type {any} */ row) => h("option", { value: row[0] }))),
    // Without proposals the value can still be written.
    () => {},
  );
  return { field: h("span", null, field, list), value: () => field.value || undefined };
}

/**
 * A rectangle of an image, in its pixels, drawn or typed.
 * @param {Api["ParameterDefinition"]} it
 * @param {() => Record<string, () => any>} others
 */
function region(it, others) {
  const names = ["x", "y", "width", "height"];
  const start = /** @type {Record<string, number>} */ (it.default ?? {});
  const numbers = names.map((name) => input({ type: "number", min: 0, "aria-label": name, placeholder: name, value: start[name] }));
  const stage = h("div", { class: "region" });
  const open = async () => {
    const file = it.file_id ?? others()[it.file_id_parameter ?? ""]?.();
    try {
      if (!file) {
        throw new Error("Give the image's file first.");
      }
      const { download_url: address } = await get(`/files/${file}/content`);
      show(stage, drawn(await pixels(address), numbers));
    } catch (error) {
      show(stage, failure(error));
    }
  };
  const field = h("span", null, h("span", { class: "region-numbers" }, numbers), h("button", { type: "button", click: open }, "Draw on the image"), stage);
  const value = () => {
    if (numbers.some((number) => number.value === "")) {
      return undefined;
    }
    return Object.fromEntries(names.map((name, index) => [name, Number(numbers[index].value)]));
  };
  return { field, value };
}

/**
 * The image, on which a drag draws the rectangle.
 * @param {ImageBitmap} image
 * @param {HTMLInputElement[]} numbers
 */
function drawn(image, numbers) {
  const canvas = h("canvas", { width: image.width, height: image.height, role: "img", "aria-label": "The image, to draw on" });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const paint = () => {
    context.drawImage(image, 0, 0);
    const [x, y, width, height] = numbers.map((number) => Number(number.value));
    context.lineWidth = Math.max(2, canvas.width / 300);
    context.strokeStyle = "#d81b60";
    context.strokeRect(x, y, width, height);
  };
  const at = (/** @type {PointerEvent} */ event) => {
    const box = canvas.getBoundingClientRect();
    return [
      Math.round(((event.clientX - box.left) / box.width) * canvas.width),
      Math.round(((event.clientY - box.top) / box.height) * canvas.height),
    ];
  };
  /** @type {number[] | null} */
  let from = null;
  canvas.addEventListener("pointerdown", (event) => {
    from = at(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (from) {
      const to = at(event);
      const sides = [0, 1].map((axis) => [Math.min(from?.[axis] ?? 0, to[axis]), Math.abs(to[axis] - (from?.[axis] ?? 0))]);
      [sides[0][0], sides[1][0], sides[0][1], sides[1][1]].forEach((value, index) => {
        numbers[index].value = String(value);
      });
      paint();
    }
  });
  canvas.addEventListener("pointerup", () => {
    from = null;
  });
  for (const number of numbers) {
    number.addEventListener("input", paint);
  }
  paint();
  return canvas;
}

/** Files that are offered at a time. */
const FILES = 50;

/** Pause after the last letter, or event, before files are looked for, in ms. */
const PAUSE = 250;

/** The newest files, narrowed by a part of the name; those that arrive or go meanwhile come and leave. No file is chosen at first. */
export function filePicker() {
  const search = input({ type: "search", placeholder: "part of the name", "aria-label": "Part of the file's name" });
  const list = h("select", { "aria-label": "File" }, h("option", { value: "" }, "no file"));
  const said = h("span", { "aria-live": "polite" });
  const field = h("span", { class: "bar inline" }, search, list, said);
  const deleted = new Set();
  let asked = 0;
  const look = async () => {
    const mine = ++asked;
    try {
      const files = await get(`/files?limit=${FILES}&query=${encodeURIComponent(search.value.trim())}`);
      if (mine !== asked) {
        return;
      }
      // One that came back from the trash is listed.
      const wasDeleted = deleted.has(list.value) && !files.some((/** @type {Api["FileRecord"]} */ it) => it.file_id === list.value);
      offer(list, files, wasDeleted);
      const hint = wasDeleted ? "The file that was chosen has been deleted." : files.length === FILES ? `The newest ${FILES}: a part of the name finds others.` : files.length ? null : "No file has such a name.";
      show(said, hint ? h("small", { class: "quiet" }, hint) : null);
    } catch (error) {
      show(said, failure(error));
    }
  };
  search.addEventListener("input", paused(PAUSE, look));
  // A list that is open is not changed under the pointer.
  const soon = paused(PAUSE, () => field.isConnected && (document.activeElement === list ? soon() : look()));
  const on = (/** @type {any} */ { type, data }) => {
    if (type === "file.deleted") {
      deleted.add(data.file_id);
    }
    if (type.startsWith("file.")) {
      soon();
    }
  };
  happenings(on, look);
  return { field, value: () => list.value || null };
}

/**
 * Offers files. The one that is chosen stays so, even where newer ones or another part of the name leave it out.
 * @param {HTMLSelectElement} list
 * @param {Api["FileRecord"][]} files
 * @param {boolean} wasDeleted whether the chosen one no longer exists
 */
function offer(list, files, wasDeleted) {
  const [chosen] = list.selectedOptions;
  const options = files.map((it) => h("option", { value: it.file_id }, `${it.file_name} (${it.uploaded_at ? minute(it.uploaded_at) : "not uploaded"})`));
  const isKept = chosen?.value && !wasDeleted;
  const isListed = options.some((it) => it.value === chosen?.value);
  show(list, h("option", { value: "" }, "no file"), isKept && !isListed && chosen, ...options);
  list.value = isKept ? chosen.value : "";
}
