// Executions: which ran, what one changed, and its revert.

import { get, post, sending } from "../api.js";
import { badge, button, check, destroy, facts, h, load, loaded, select, show, titled, toast } from "../dom.js";
import { stringify } from "../exact.js";
import { counted, duration, time } from "../format.js";
import { grid } from "../grid.js";
import { list, pageOf } from "../list.js";
import { log } from "../log.js";
import { may } from "../rights.js";
import { address, change, values } from "../state.js";
import { restore } from "../tables.js";
import { changedRows } from "./changed_rows.js";

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

const STATES = ["queued", "running", "completed", "failed", "cancelled"];

/**
 * Names of the jobs of executions, by the executions' ids. What cannot be read stays without one.
 * @param {(string | null | undefined)[]} ids
 * @returns {Promise<Map<string, string>>}
 */
export async function executionNames(ids) {
  const wanted = [...new Set(ids.filter((id) => typeof id === "string"))];
  const found = await Promise.all(wanted.map((id) => get(`/job-executions/${id}`).catch(() => null)));
  return new Map(wanted.flatMap((id, index) => (found[index] ? [/** @type {[string, string]} */ ([id, found[index].job_name])] : [])));
}

/** @param {Api["JobExecution"]} it */
function took(it) {
  return it.started_at && it.completed_at ? duration(it.started_at, it.completed_at) : "";
}

/** The list of executions, newest first. */
export function executions() {
  const row = (/** @type {Api["JobExecution"]} */ it) => [
    h("a", { href: `#/executions/${it.job_execution_id}` }, it.job_name),
    badge(it.status),
    time(it.started_at),
    took(it),
    starter(it.started_by),
    it.error_message ?? "",
  ];
  const choose = () => {
    change({ _status: state.value, _page: null }, true);
    listed.again();
  };
  const state = select([["", "any status"], ...STATES.map((it) => /** @type {[string, string]} */ ([it, it]))], values().get("_status") ?? "", { "aria-label": "Status", change: choose });
  const job = values().get("_job");
  const listed = list({
    reason: "Reading the executions",
    one: "execution",
    columns: ["Job", "Status", "Started", "Took", "By", "Message"],
    row,
    empty: () => (state.value || job ? "No execution meets the conditions." : "Nothing has run yet. A script opens an execution, and all that it writes belongs to it."),
    read: (cursor) => pageOf("/job-executions", { status: state.value, job_id: values().get("_job") })(cursor),
    live: (type) => type.startsWith("job_execution.") || type === "data.written",
  });
  const all = () => {
    change({ _job: null, _page: null });
    chip.remove();
    listed.again();
  };
  const chip = h("span", { class: "chip" }, "one job", h("button", { type: "button", "aria-label": "Show the executions of all jobs", click: all }, "×"));
  return [h("h1", null, "Executions"), h("div", { class: "bar" }, state, job ? chip : null), listed.place];
}

/**
 * One execution.
 * @param {string} id
 */
export function execution(id) {
  const place = loaded("Reading the execution", async (draw) => {
    const [it, changes] = await Promise.all([get(`/job-executions/${id}`), get(`/job-executions/${id}/changes`)]);
    titled(it.job_name);
    const [job, file, earlier] = await Promise.all([
      it.script_version === null ? null : get(`/jobs/${it.job_id}`).catch(() => null),
      it.trigger_file_id ? get(`/files/${it.trigger_file_id}`).catch(() => null) : null,
      it.retry_of ? get(`/job-executions/${it.retry_of}/changes`) : null,
    ]);
    const again = async () => {
      const started = await post(`/jobs/${job.id}/run`, { parameters: it.parameters ?? {}, file_id: it.trigger_file_id });
      location.hash = `#/executions/${started.job_execution_id}`;
    };
    return h(
      "div",
      null,
      h(
        "div",
        { class: "heading" },
        h("h1", null, it.job_name, " ", badge(it.status)),
        h(
          "span",
          { class: "actions" },
          job && may("write") && !isOpen(it) ? button("Run again", again) : null,
          isOpen(it) && may("write") ? destroy("Cancel", `Cancel this run of ${it.job_name}`, sending("POST", `/job-executions/${id}/cancel`, undefined, draw)) : null,
        ),
      ),
      it.error_message ? h("p", { class: "failure" }, it.error_message) : null,
      facts([
        ["Started", time(it.started_at)],
        ["Ended", time(it.completed_at)],
        ...(it.started_at && it.completed_at ? [/** @type {[string, string]} */ (["Took", took(it)])] : []),
        ["By", starter(it.started_by)],
        ...(job ? [/** @type {[string, Node]} */ (["Job", h("span", null, h("a", { href: `#/jobs/${job.id}` }, job.name), `, version ${it.script_version}`)])] : []),
        ...(it.trigger_file_id ? [/** @type {[string, Node]} */ (["File", h("a", { href: `#/files/${it.trigger_file_id}` }, file?.file_name ?? it.trigger_file_id)])] : []),
        ...(it.retry_of ? [/** @type {[string, Node]} */ (["Retry of", h("a", { href: `#/executions/${it.retry_of}` }, "the run before")])] : []),
        ...(it.retried_by ? [/** @type {[string, Node]} */ (["Retried by", h("a", { href: `#/executions/${it.retried_by}` }, "the run after it")])] : []),
        ["Id", h("code", null, id)],
      ]),
      Object.keys(it.parameters ?? {}).length ? h("pre", { tabindex: "0" }, stringify(it.parameters, 2)) : null,
      it.script_version === null ? null : h("section", null, h("h2", null, "Log"), log(id, isOpen(it) ? draw : null)),
      h("h2", null, "What it changed"),
      written(id, changes),
      changedRows(id, changes.tables),
      may("write") ? h("section", null, h("h2", null, "Undo"), undo(id, changes, "Preview the revert", draw)) : null,
      earlier?.tables.length && may("write") ? h("section", null, h("h2", null, "The run before wrote, too"), undo(it.retry_of, earlier, "Revert what the earlier attempt wrote", draw)) : null,
    );
  });
  return [h("p", { class: "crumbs" }, h("a", { href: "#/executions" }, "← Executions")), place];
}

/**
 * @param {Api["JobExecution"]} it
 */
function isOpen(it) {
  return it.status === "running" || it.status === "queued";
}

/**
 * @param {string} id
 * @param {Api["JobExecutionChanges"]} changes
 */
function written(id, changes) {
  const row = (/** @type {Api["TableChanges"]} */ it) => [
    h("a", { href: `#/tables/${encodeURIComponent(it.table)}` }, it.table),
    it.created,
    it.updated,
    it.deleted,
    it.series_points,
    it.series_points && !changes.reverted_at ? h("a", { href: address("plates", it.table, { _run: id }) }, "Plot what it wrote") : "",
  ];
  const files = changes.files.map((/** @type {Api["ExecutionFile"]} */ file) => h("li", null, h("a", { href: `#/files/${file.id}` }, file.file_name)));
  return h(
    "div",
    null,
    grid(["Table", "Created", "Updated", "Deleted", "Points", "Curves"], changes.tables.map(row), "It wrote no rows."),
    files.length ? h("ul", null, files) : null,
  );
}

/**
 * Preview first, then the revert, which names what it does. With `restore` it brings back what was changed and deleted.
 * @param {string} id
 * @param {Api["JobExecutionChanges"]} changes
 * @param {string} label of the button that shows the preview
 * @param {() => void} draw called when it is reverted
 */
export function undo(id, changes, label, draw) {
  const place = h("div", { "aria-live": "polite" });
  const isLossy = changes.tables.some((/** @type {Api["TableChanges"]} */ it) => it.updated || it.deleted);
  const { box: restores, field: restoring } = check("Bring back what it changed and deleted", { checked: isLossy, change: () => show(place) });
  const { box: skips, field: skipField } = check("Leave what others have changed since as it is", { change: () => preview() });
  skipField.hidden = true;
  const body = (/** @type {boolean} */ isTrial) => ({ dry_run: isTrial, restore: restores.checked, ...(restores.checked && skips.checked ? { on_conflict: "skip" } : {}) });
  const preview = () => {
    // A button for another choice must not stay below a failure.
    show(place);
    return load(place, "Counting what would be undone", async () => {
      try {
        const found = await post(`/job-executions/${id}/revert`, body(true));
        const skipped = found.skipped_count ? `${counted(found.skipped_count, "row")} that it created ${found.skipped_count === 1 ? "has" : "have"} been deleted since.` : null;
        const words = does(found, changes).join(", ");
        if (words === "") {
          return h("p", null, restores.checked ? "Nothing is left to undo. " : "It created nothing that could be deleted. ", skipped);
        }
        return h(
          "div",
          null,
          h("p", null, `This will ${words}. `, skipped),
          ...found.warnings.map((/** @type {string} */ it) => h("p", { class: "note warns" }, it.endsWith(".") ? it : `${it}.`)),
          button(words.charAt(0).toUpperCase() + words.slice(1), revert, "danger"),
        );
      } catch (error) {
        skipField.hidden = !restores.checked;
        throw error;
      }
    });
  };
  const revert = async () => {
    const found = await post(`/job-executions/${id}/revert`, body(false));
    const again = found.undo_execution_id;
    toast("The execution is reverted.", again ? async () => void (await restore(again), draw()) : undefined);
    draw();
  };
  const offer = h("div", { hidden: changes.reverted_at !== null }, h("p", { class: "actions" }, restoring, h("button", { type: "button", click: preview }, label)), skipField, place);
  if (changes.reverted_at === null) {
    return offer;
  }
  // A revert may have been undone, or have left something: a trial knows, also by refusing.
  const isDone = post(`/job-executions/${id}/revert`, { dry_run: true, restore: true }).then((found) => does(found, changes).length === 0, () => false);
  isDone.then((it) => (offer.hidden = it));
  return h("div", null, h("p", null, `Reverted by ${changes.reverted_by?.user.name ?? "somebody"}, `, time(changes.reverted_at), "."), offer);
}

/**
 * What a revert does, in words.
 * @param {any} found its response
 * @param {Api["JobExecutionChanges"]} changes
 */
function does(found, changes) {
  const of = (/** @type {"created" | "series_points"} */ what) => {
    const names = changes.tables.filter((/** @type {Api["TableChanges"]} */ it) => it[what]).map((/** @type {Api["TableChanges"]} */ it) => it.table);
    return names.length ? ` of ${names.join(", ")}` : "";
  };
  return [
    found.deleted_count ? `delete ${counted(found.deleted_count, "row")}${of("created")}` : "",
    found.raws_deleted_count ? `delete ${counted(found.raws_deleted_count, "point")}${of("series_points")}` : "",
    found.annotations_deleted_count ? `delete ${counted(found.annotations_deleted_count, "mask")} of images` : "",
    found.restored_count ? `restore ${counted(found.restored_count, "row")}` : "",
    found.raws_restored_count ? `restore ${counted(found.raws_restored_count, "point")}` : "",
  ].filter(Boolean);
}
