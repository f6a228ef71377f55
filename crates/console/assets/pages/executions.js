// Executions: which ran, what one changed, and its revert.

import { call, get, post } from "../api.js";
import { button, destroy, facts, h, load, time } from "../dom.js";
import { stringify } from "../exact.js";
import { grid } from "../grid.js";
import { log } from "../log.js";
import { changedRows } from "./changed_rows.js";

/**
 * @param {string} status
 */
export function badge(status) {
  return h("span", { class: `badge ${status}` }, status);
}

/**
 * Who started an execution.
 * @param {Api["StartedBy"]} by
 */
function starter(by) {
  if (by.trigger_id) {
    return "a trigger";
  }
  return by.api_key ? `${by.user.name} (${by.api_key.name})` : by.user.name;
}

/** The list of executions, newest first. */
export function executions() {
  const place = h("div", null);
  const row = (/** @type {Api["JobExecution"]} */ it) => [
    h("a", { href: `#/executions/${it.job_execution_id}` }, it.job_name),
    badge(it.status),
    time(it.started_at),
    starter(it.started_by),
    it.error_message ?? "",
  ];
  const page = async (/** @type {string} */ address, /** @type {boolean} */ isFirst) => {
    const { body, next } = await call("GET", address);
    const more = next ? h("button", { type: "button", click: () => turn(next, false) }, "Older") : null;
    const back = isFirst ? null : h("button", { type: "button", click: first }, "Newest");
    const empty = "Nothing has run yet. A script opens an execution, and all that it writes belongs to it.";
    return h(
      "div",
      null,
      grid(["Job", "Status", "Started", "By", "Message"], body.map(row), empty),
      h("p", { class: "pages" }, back, more),
    );
  };
  const turn = (/** @type {string} */ address, /** @type {boolean} */ isFirst) =>
    load(place, "Reading the executions", () => page(address, isFirst));
  const first = () => turn("/job-executions?limit=50", true);
  first();
  return [h("h1", null, "Executions"), place];
}

/**
 * One execution.
 * @param {string} id
 */
export function execution(id) {
  const place = h("div", null);
  const cancel = async () => {
    await post(`/job-executions/${id}/cancel`);
    draw();
  };
  const draw = () =>
    load(place, "Reading the execution", async () => {
      const [it, changes] = await Promise.all([get(`/job-executions/${id}`), get(`/job-executions/${id}/changes`)]);
      return h(
        "div",
        null,
        h("h1", null, it.job_name, " ", badge(it.status)),
        it.error_message ? h("p", { class: "failure" }, it.error_message) : null,
        facts([
          ["Started", time(it.started_at)],
          ["Ended", time(it.completed_at)],
          ["By", starter(it.started_by)],
          ["Id", h("code", null, id)],
        ]),
        Object.keys(it.parameters ?? {}).length ? h("pre", { tabindex: "0" }, stringify(it.parameters, 2)) : null,
        isOpen(it) ? h("p", null, destroy("Cancel", `Cancel this run of ${it.job_name}`, cancel)) : null,
        it.script_version === null ? null : h("section", null, h("h2", null, "Log"), log(id, isOpen(it) ? draw : null)),
        h("h2", null, "What it changed"),
        written(changes),
        changedRows(id, changes.tables),
        h("h2", null, "Undo"),
        undo(id, changes, "Preview the revert", draw),
      );
    });
  draw();
  return [h("p", null, h("a", { href: "#/executions" }, "← Executions")), place];
}

/**
 * @param {Api["JobExecution"]} it
 */
function isOpen(it) {
  return it.status === "running" || it.status === "queued";
}

/**
 * @param {Api["JobExecutionChanges"]} changes
 */
function written(changes) {
  const row = (/** @type {Api["TableChanges"]} */ it) => [
    h("a", { href: `#/tables/${encodeURIComponent(it.table)}` }, it.table),
    it.created,
    it.updated,
    it.deleted,
    it.series_points,
  ];
  const files = changes.files.map((/** @type {Api["ExecutionFile"]} */ file) => h("li", null, h("a", { href: `#/files/${file.id}` }, file.file_name)));
  return h(
    "div",
    null,
    grid(["Table", "Created", "Updated", "Deleted", "Points"], changes.tables.map(row), "It wrote no rows."),
    files.length ? h("ul", null, files) : null,
  );
}

/**
 * Preview first, then the revert, which names what it destroys.
 * @param {string} id
 * @param {Api["JobExecutionChanges"]} changes
 * @param {string} label of the button that shows the preview
 * @param {() => void} draw called when it is reverted
 */
export function undo(id, changes, label, draw) {
  if (changes.reverted_at) {
    const by = changes.reverted_by?.user.name ?? "somebody";
    return h("p", null, `Reverted by ${by}, `, time(changes.reverted_at), ".");
  }
  const place = h("div", { "aria-live": "polite" });
  const preview = () =>
    load(place, "Counting what would be deleted", async () => {
      const { warnings } = await post(`/job-executions/${id}/revert`, { dry_run: true });
      const gone = changes.tables.filter((/** @type {Api["TableChanges"]} */ it) => it.created || it.series_points);
      const words = gone.map((/** @type {Api["TableChanges"]} */ it) =>
        it.created
          ? `${it.created.toLocaleString()} ${it.created === 1 ? "row" : "rows"} of ${it.table}`
          : `${it.series_points.toLocaleString()} points of ${it.table}`,
      );
      if (words.length === 0) {
        return h("p", null, "It created nothing that could be undone.");
      }
      return h(
        "div",
        null,
        h("p", null, `This deletes ${words.join(", ")}.`),
        ...warnings.map((/** @type {string} */ it) => h("p", { class: "quiet" }, `${it}.`)),
        button(`Delete ${words.join(", ")}`, revert, "danger"),
      );
    });
  const revert = async () => {
    await post(`/job-executions/${id}/revert`);
    draw();
  };
  return h("div", null, h("button", { type: "button", click: preview }, label), place);
}
