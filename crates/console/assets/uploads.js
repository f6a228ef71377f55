// Uploads of files of an instrument, by drop or by choice: several at once, large ones too, each with its progress.

import { ApiError, every, post, stored } from "./api.js";
import { failure, h, load, show } from "./dom.js";
import { may, remembered } from "./rights.js";

/** How many files are sent at the same time; the others wait. */
const AT_ONCE = 2;

/**
 * Sends the bytes of a file to a signed URL. A cloud that takes uploads itself has to permit this page.
 * @param {{upload_url: string, headers: Record<string, string>}} target
 * @param {File} file
 * @param {(share: number) => void} progress
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
function put({ upload_url, headers }, file, progress, signal) {
  const address = stored(upload_url);
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    const refuse = (/** @type {string} */ message) => failed(new ApiError(request.status, message, request.getResponseHeader("x-request-id")));
    request.upload.onprogress = (event) => progress(event.loaded / Math.max(event.total, 1));
    request.onload = () => {
      // Errors are XML, of which a document would break the page's policy by a style of its own.
      const said = /<Message>([^<]*)<\/Message>/.exec(request.responseText);
      return request.status < 300 ? done() : refuse(said?.[1] ?? `The storage answered ${request.status}.`);
    };
    const unreachable = address !== upload_url
      ? "The platform cannot be reached."
      : `The storage ${new URL(upload_url).host} takes uploads itself here, and refused this page or cannot be reached. Its CORS rule has to permit PUT from ${location.origin}.`;
    request.onerror = () => refuse(unreachable);
    request.onabort = () => failed(signal.reason);
    signal.addEventListener("abort", () => request.abort());
    request.open("PUT", address);
    for (const [name, value] of Object.entries(headers)) {
      request.setRequestHeader(name, value);
    }
    request.send(file);
  });
}

/**
 * Uploads a file.
 * @param {string} instrument
 * @param {File} file
 * @param {(share: number) => void} progress
 * @param {AbortSignal} signal
 */
async function send(instrument, file, progress, signal) {
  const target = await post("/files/upload-url", {
    file_name: file.name,
    instrument_id: instrument,
    content_type: file.type || null,
  });
  signal.throwIfAborted();
  await put(target, file, progress, signal);
  await post(`/files/${target.file_id}/confirm-upload`);
  return String(target.file_id);
}

/** Files that were dropped on another page. @type {File[]} */
let dropped = [];

/** Keeps files for the page that uploads them. @param {File[]} files */
export function keep(files) {
  dropped = files;
}

/** A place to drop files, which belong to an instrument here; scripts attach theirs to an execution. */
export function uploads() {
  const place = h("section", { "aria-label": "Upload" });
  load(place, "Reading the instruments", async () => {
    const all = await every("/instruments");
    if (all.length === 0) {
      return h("p", { class: "empty" }, "A file belongs to an instrument, and there is none yet: ", may("admin") ? h("a", { href: "#/admin" }, "add one") : "an administrator adds them", ".");
    }
    return zone(all);
  });
  return place;
}

/** Uploads one after the other, some of them at a time. */
function queue() {
  /** @type {(() => Promise<void>)[]} */
  const waiting = [];
  let busy = 0;
  const next = async () => {
    const work = busy < AT_ONCE ? waiting.shift() : undefined;
    if (work) {
      busy += 1;
      await work();
      busy -= 1;
      next();
    }
  };
  return (/** @type {() => Promise<void>} */ work) => {
    waiting.push(work);
    next();
  };
}

/**
 * The choice of the instrument that files are of: the one before, unless it is the only one.
 * @param {{id: string, name: string}[]} instruments
 * @param {() => void} chosen
 */
function instrumentChoice(instruments, chosen) {
  const last = remembered("instrument");
  const known = instruments.length === 1 ? instruments[0].id : last.get();
  const options = instruments.map((it) => h("option", { value: it.id, selected: it.id === known }, it.name));
  const ask = instruments.some((it) => it.id === known) ? null : h("option", { value: "", selected: true }, "choose the instrument…");
  const choose = () => {
    last.set(box.value);
    chosen();
  };
  const box = h("select", { "aria-label": "Instrument", change: choose }, ask, options);
  return box;
}

/** @param {{id: string, name: string}[]} instruments */
function zone(instruments) {
  const told = h("div", { "aria-live": "polite" });
  const choose = h("input", { type: "file", multiple: true, "aria-label": "Files" });
  const list = h("ul", { class: "uploads", "aria-label": "Uploads" });
  const begin = queue();
  const add = (/** @type {Iterable<File>} */ files) => {
    if (instrument.value === "") {
      keep([...dropped, ...files]);
      const count = dropped.length;
      show(told, h("p", { class: "note warns" }, `${count} ${count === 1 ? "file waits" : "files wait"}: choose the instrument that made ${count === 1 ? "it" : "them"}.`));
      instrument.focus();
      return;
    }
    show(told);
    for (const file of files) {
      begin(entry(list, instrument.value, file));
    }
  };
  const send = () => {
    const files = dropped;
    keep([]);
    if (files.length > 0) {
      add(files);
    }
  };
  const instrument = instrumentChoice(instruments, send);
  const over = (/** @type {Event} */ event) => {
    event.preventDefault();
    area.classList.add("over");
  };
  const leave = () => area.classList.remove("over");
  const drop = (/** @type {any} */ event) => {
    event.preventDefault();
    leave();
    add(event.dataTransfer.files);
  };
  choose.addEventListener("change", () => {
    add([...(choose.files ?? [])]);
    choose.value = "";
  });
  send();
  const words = h("span", null, "Drop files here, or choose them:");
  const area = h("div", { class: "drop bar", dragover: over, dragleave: leave, drop }, instrument, words, choose);
  return h("div", null, area, told, list);
}

/**
 * Adds a line for an upload, and returns its work.
 * @param {Element} list
 * @param {string} instrument
 * @param {File} file
 */
function entry(list, instrument, file) {
  const stop = new AbortController();
  const bar = h("progress", { max: 1, value: 0, "aria-label": `Progress of ${file.name}` });
  const cancel = h("button", { type: "button", "aria-label": `Cancel ${file.name}`, click: () => stop.abort() }, "Cancel");
  const state = h("span", { class: "bar inline", role: "status" }, "waits");
  const line = h("li", null, h("span", { class: "name" }, file.name), bar, cancel, state);
  list.append(line);
  const end = (/** @type {import("./dom.js").Child} */ told) => {
    bar.remove();
    cancel.remove();
    show(state, told);
  };
  return async () => {
    const progress = (/** @type {number} */ share) => {
      bar.setAttribute("value", String(share));
      show(state, share < 1 ? `${Math.floor(100 * share)} %` : "is stored");
    };
    try {
      stop.signal.throwIfAborted();
      show(state, "begins");
      const id = await send(instrument, file, progress, stop.signal);
      end(h("a", { href: `#/files/${id}` }, "Stored"));
    } catch (error) {
      end(stop.signal.aborted ? "Cancelled" : failure(error));
    }
  };
}
