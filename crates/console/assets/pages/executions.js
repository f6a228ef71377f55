// Executions: which ran, what one changed, and its revert.

import { get, post, sending } from "../api.js";
import { badge, button, check, destroy, facts, h, load, select, show, titled, toast } from "../dom.js";
import { stringify } from "../exact.js";
import { counted, duration, time } from "../format.js";
import { grid } from "../grid.js";
import { followed, list, pageOf, ticks } from "../list.js";
import { log } from "../log.js";
import { may } from "../rights.js";
import { address, change, values } from "../state.js";
import { restore as restored } from "../tables.js";
import { changedRows } from "./changed_rows.js";

/** Who started an execution. @param {Api["StartedBy"]} by */
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

/** @typedef {{it: Api["JobExecution"], changes: Api["JobExecutionChanges"], job: Api["JobWithCode"] | null, file: Api["FileRecord"] | null, earlier: Api["JobExecutionChanges"] | null}} Run an execution with what it changed and belongs to */

/**
 * @param {string} id
 * @returns {Promise<Run>}
 */
async function readRun(id) {
  const [it, changes] = await Promise.all([get(`/job-executions/${id}`), get(`/job-executions/${id}/changes`)]);
  titled(it.job_name);
  const [job, file, earlier] = await Promise.all([
    it.script_version === null ? null : get(`/jobs/${it.job_id}`).catch(() => null),
    it.trigger_file_id ? get(`/files/${it.trigger_file_id}`).catch(() => null) : null,
    it.retry_of ? get(`/job-executions/${it.retry_of}/changes`) : null,
  ]);
  return { it, changes, job, file, earlier };
}

/** One execution. @param {string} id */
export function execution(id) {
  const live = (/** @type {string} */ type, /** @type {any} */ data) => ticks(type) || data.job_execution_id === id;
  const [chosen, chosenOfEarlier] = [{}, {}];
  const place = followed("Reading the execution", live, () => readRun(id), [
    { of: ({ it, job, file }) => [it, job?.name, file?.file_name], make: head },
    { of: ({ it }) => it.script_version === null, make: ({ it }, again) => (it.script_version === null ? null : h("section", null, h("h2", null, "Log"), log(id, isOpen(it) ? again : null))) },
    { of: ({ changes }) => changes, make: ({ changes }) => h("div", null, h("h2", null, "What it changed"), written(id, changes)) },
    { of: ({ changes }) => changedTables(changes), make: ({ changes }) => h("div", null, changedRows(id, changedTables(changes))) },
    { of: ({ changes }) => changes, make: ({ changes }, again) => (may("write") ? h("section", null, h("h2", null, "Undo"), undo(id, changes, "Preview the revert", again, chosen)) : null), isLasting: true },
    { of: ({ earlier }) => earlier, make: ({ it, earlier }, again) => (it.retry_of && earlier?.tables.length && may("write") ? h("section", null, h("h2", null, "The run before wrote, too"), undo(it.retry_of, earlier, "Revert what the earlier attempt wrote", again, chosenOfEarlier)) : null), isLasting: true },
  ]);
  return [h("p", { class: "crumbs" }, h("a", { href: "#/executions" }, "← Executions")), place];
}

/**
 * Its name and state, what it belongs to, and buttons for what can be done in this state.
 * @param {Run} run
 * @param {() => void} draw
 */
function head({ it, job, file }, draw) {
  const again = async () => {
    const started = await post(`/jobs/${it.job_id}/run`, { parameters: it.parameters ?? {}, file_id: it.trigger_file_id });
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
        isOpen(it) && may("write") ? destroy("Cancel", `Cancel this run of ${it.job_name}`, sending("POST", `/job-executions/${it.job_execution_id}/cancel`, undefined, draw)) : null,
      ),
    ),
    it.error_message ? h("p", { class: "failure" }, it.error_message) : null,
    facts([
      ["Started", time(it.started_at)],
      ["Ended", time(it.completed_at)],
      it.started_at && it.completed_at ? ["Took", took(it)] : null,
      ["By", starter(it.started_by)],
      job ? ["Job", h("span", null, h("a", { href: `#/jobs/${job.id}` }, job.name), `, version ${it.script_version}`)] : null,
      it.trigger_file_id ? ["File", h("a", { href: `#/files/${it.trigger_file_id}` }, file?.file_name ?? it.trigger_file_id)] : null,
      it.retry_of ? ["Retry of", h("a", { href: `#/executions/${it.retry_of}` }, "the run before")] : null,
      it.retried_by ? ["Retried by", h("a", { href: `#/executions/${it.retried_by}` }, "the run after it")] : null,
      ["Id", h("code", null, it.job_execution_id)],
    ]),
    Object.keys(it.parameters ?? {}).length ? h("pre", { tabindex: "0" }, stringify(it.parameters, 2)) : null,
  );
}

/** Names of the tables whose rows an execution changed. @param {Api["JobExecutionChanges"]} changes */
function changedTables(changes) {
  return changes.tables.filter((/** @type {Api["TableChanges"]} */ it) => it.created + it.updated + it.deleted > 0).map((/** @type {Api["TableChanges"]} */ it) => it.table);
}

/** @param {Api["JobExecution"]} it */
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

/** @typedef {{place?: HTMLElement, restores?: boolean, skips?: boolean, isPreviewed?: boolean}} Undoing choices of an undo, and its preview */

/**
 * Preview first, then the revert, which names what it does. With `restore` it brings back what was changed and deleted.
 * @param {string} id
 * @param {Api["JobExecutionChanges"]} changes
 * @param {string} label of the button that shows the preview
 * @param {() => void} draw called when it is reverted
 * @param {Undoing} [chosen] what a person has chosen before the execution changed more
 */
export function undo(id, changes, label, draw, chosen = {}) {
  const place = (chosen.place ??= h("div", { "aria-live": "polite" }));
  const isLossy = changes.tables.some((/** @type {Api["TableChanges"]} */ it) => it.updated || it.deleted);
  const restore = () => {
    chosen.restores = restores.checked;
    chosen.isPreviewed = false;
    show(place);
  };
  const { box: restores, field: restoring } = check("Bring back what it changed and deleted", { checked: chosen.restores ?? isLossy, change: restore });
  const { box: skips, field: skipField } = check("Leave what others have changed since as it is", { checked: chosen.skips, change: () => skip() });
  skipField.hidden = !chosen.skips;
  const skip = () => {
    chosen.skips = skips.checked;
    preview();
  };
  const body = (/** @type {boolean} */ isTrial) => ({ dry_run: isTrial, restore: restores.checked, ...(restores.checked && skips.checked ? { on_conflict: "skip" } : {}) });
  const preview = () => {
    // A button for another choice must not stay below a failure.
    show(place);
    chosen.isPreviewed = true;
    return count();
  };
  const count = () =>
    load(place, "Counting what would be undone", async () => {
      try {
        const found = await post(`/job-executions/${id}/revert`, body(true));
        return consequences(found, changes, restores.checked, revert);
      } catch (error) {
        skipField.hidden = !restores.checked;
        throw error;
      }
    });
  const revert = async () => {
    const found = await post(`/job-executions/${id}/revert`, body(false));
    const again = found.undo_execution_id;
    chosen.isPreviewed = false;
    show(place);
    toast("The execution is reverted.", again ? async () => void (await restored(again), draw()) : undefined);
    draw();
  };
  if (chosen.isPreviewed) {
    count();
  }
  const offer = h("div", { hidden: changes.reverted_at !== null }, h("p", { class: "actions" }, restoring, h("button", { type: "button", click: preview }, label)), skipField, place);
  return changes.reverted_at === null ? offer : reverted(id, changes, offer);
}

/**
 * Says that an execution is reverted. A revert may have been undone, or have left something: then another one is offered.
 * @param {string} id
 * @param {Api["JobExecutionChanges"]} changes
 * @param {HTMLElement} offer
 */
function reverted(id, changes, offer) {
  // A trial knows, also by refusing.
  const isDone = post(`/job-executions/${id}/revert`, { dry_run: true, restore: true }).then((found) => does(found, changes).length === 0, () => false);
  isDone.then((it) => (offer.hidden = it));
  return h("div", null, h("p", null, `Reverted by ${changes.reverted_by?.user.name ?? "somebody"}, `, time(changes.reverted_at), "."), offer);
}

/**
 * What a revert would do, and the button that does it.
 * @param {any} found response of a trial
 * @param {Api["JobExecutionChanges"]} changes
 * @param {boolean} restores
 * @param {() => Promise<void>} revert
 */
function consequences(found, changes, restores, revert) {
  const skipped = found.skipped_count ? `${counted(found.skipped_count, "row")} that it created ${found.skipped_count === 1 ? "has" : "have"} been deleted since.` : null;
  const words = does(found, changes).join(", ");
  if (words === "") {
    return h("p", null, restores ? "Nothing is left to undo. " : "It created nothing that could be deleted. ", skipped);
  }
  const go = button(words.charAt(0).toUpperCase() + words.slice(1), revert, "danger");
  go.setAttribute("data-name", "Revert");
  const warnings = found.warnings.map((/** @type {string} */ it) => h("p", { class: "note warns" }, it.endsWith(".") ? it : `${it}.`));
  return h("div", null, h("p", null, `This will ${words}. `, skipped), ...warnings, go);
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
