// What is new: the inbox, runs that need somebody, the newest files and executions.

import { get, sending } from "../api.js";
import { badge, button, h } from "../dom.js";
import { time } from "../format.js";
import { grid } from "../grid.js";
import { watched } from "../list.js";
import { may } from "../rights.js";
import { viewList } from "../views.js";

/** The first page. */
export function home() {
  const part = (/** @type {string} */ name, /** @type {string} */ reason, /** @type {string[]} */ types, /** @type {(again: () => void) => Promise<Node>} */ work) => {
    const place = watched(reason, (type) => types.some((it) => type.startsWith(it)), work);
    place.setAttribute("aria-live", "polite");
    return h("section", null, h("h2", null, name), place);
  };
  const runs = ["job_execution.", "data.written"];
  return [
    h("h1", null, "Home"),
    h("section", null, h("h2", null, "Saved views"), viewList()),
    part("Inbox", "Reading the inbox", ["notification."], notices),
    part("Running, waiting or failed", "Reading the runs", runs, busy),
    h("div", { class: "columns" }, part("Newest executions", "Reading the executions", runs, newest), part("Newest files", "Reading the files", ["file."], uploads)),
  ];
}

/** Pages by the first part of a platform's path. */
const PLACES = /** @type {Record<string, string>} */ ({ jobs: "jobs", "job-executions": "executions", "ml-models": "models", files: "files", tables: "tables", instruments: "instruments" });

/** The page that a notification leads to. @param {string} path of the platform, such as /jobs/<id> */
function address(path) {
  const [, first, ...rest] = path.split("/");
  return PLACES[first] ? `#/${[PLACES[first], ...rest].join("/")}` : null;
}

/** @param {() => void} draw */
async function notices(draw) {
  const all = await get("/notifications?unread=true&limit=10");
  const item = (/** @type {Api["Notification"]} */ it) => {
    const to = address(it.action_url);
    return h(
      "li",
      null,
      h("strong", null, it.title),
      " ",
      h("small", { class: "quiet" }, it.sender.name, ", ", time(it.created_at)),
      it.body ? h("p", null, it.body) : null,
      h("p", { class: "bar" }, to ? h("a", { href: to }, "Open") : null, may("write") ? button("Mark as read", sending("PATCH", `/notifications/${it.id}`, { read: true }, draw)) : null),
    );
  };
  return all.length ? h("ul", { class: "notices" }, all.map(item)) : h("p", { class: "empty" }, "Nothing unread.");
}

const link = (/** @type {Api["JobExecution"]} */ it) => h("a", { href: `#/executions/${it.job_execution_id}` }, it.job_name);

async function busy() {
  const states = ["running", "queued", "failed"];
  const found = await Promise.all(states.map((state) => get(`/job-executions?status=${state}&limit=8`)));
  const row = (/** @type {Api["JobExecution"]} */ it) => [link(it), badge(it.status), time(it.started_at), it.error_message ?? ""];
  return grid(["Job", "Status", "Started", "Message"], found.flat().map(row), "No run is under way, and none has failed.");
}

async function newest() {
  const all = await get("/job-executions?limit=8");
  const row = (/** @type {Api["JobExecution"]} */ it) => [link(it), badge(it.status), time(it.started_at)];
  return grid(["Job", "Status", "Started"], all.map(row), "Nothing has run yet. A script that writes data opens an execution.");
}

async function uploads() {
  const all = await get("/files?limit=8");
  const row = (/** @type {Api["FileRecord"]} */ it) => [h("a", { href: `#/files/${it.file_id}` }, it.file_name), time(it.uploaded_at)];
  return grid(["File", "Uploaded"], all.map(row), "No files yet.");
}
