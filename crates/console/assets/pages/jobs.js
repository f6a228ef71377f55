// Jobs: their scripts and versions, runs by hand and triggers.

import { call, every, get, post, sending } from "../api.js";
import { python, sideBySide } from "../code.js";
import { badge, button, destroy, folded, form, h, input, load, loaded, opens, show, titled } from "../dom.js";
import { editor } from "../editor.js";
import { time } from "../format.js";
import { mayLeave } from "../guard.js";
import { grid } from "../grid.js";
import { followed, ticks, watched } from "../list.js";
import { may, where } from "../rights.js";
import { address } from "../state.js";
import { sql } from "../tables.js";
import { filePicker, parameters } from "./parameters.js";
import { publishing } from "./publishing.js";
import { oldFiles, triggerForm, triggerWords } from "./triggers.js";

const EXAMPLE = `# /// script
# dependencies = ["labdata-client"]
# ///
import labdata_client

lab = labdata_client.connect()
print(lab.tables())
`;

/** The list of jobs. */
export function jobs() {
  const place = watched("Reading the jobs", (type) => type.startsWith("job_execution.") || type === "data.written", async () => {
    // An execution that a script elsewhere opens leaves a job of its name, which has no script here.
    const [all, { data }] = await Promise.all([get("/jobs"), sql("select job_id from job_execution group by 1 having count(script_version) = 0")]);
    const elsewhere = new Set(data.flat());
    const isName = (/** @type {Api["Job"]} */ it) => elsewhere.has(it.id) && !it.trigger && it.publish_status === "draft" && it.parameter_definitions.length === 0;
    const row = (/** @type {Api["Job"]} */ it) => [
      h("a", { href: `#/jobs/${it.id}` }, it.name),
      it.description ?? "",
      it.trigger ? triggerWords(it.trigger) : "by hand",
      badge(it.publish_status),
    ];
    const none = ["There is no job yet. A job is a Python script that the platform runs: by hand, on a schedule or when a file arrives. ", may("write") ? opens("Write the first job", make) : null];
    const columns = ["Job", "Description", "Runs", "Script"];
    const names = all.filter(isName);
    const others = h("details", null, h("summary", null, `Names of what scripts elsewhere wrote (${names.length})`), grid(columns.slice(0, 2), names.map((/** @type {Api["Job"]} */ it) => row(it).slice(0, 2)), "", "Names of executions"));
    return h("div", null, grid(columns, all.filter((/** @type {Api["Job"]} */ it) => !isName(it)).map(row), none), names.length ? others : null);
  });
  const name = input({ required: true, maxlength: 200 });
  const code = editor(EXAMPLE);
  const add = async () => {
    try {
      const job = await post("/jobs", { name: name.value, code: code.value() });
      location.hash = `#/jobs/${job.id}`;
    } catch (error) {
      code.point(error);
      throw error;
    }
  };
  const fields = form([["Name", name], ["Script", code.element]], "Create the job", add);
  const make = h("details", null, h("summary", null, "New job"), fields);
  return [h("h1", null, "Jobs"), may("write") ? make : "", place];
}

/** One job. @param {string} id */
export function job(id) {
  const read = async () => {
    /** @type {Api["JobWithCode"]} */
    const it = await get(`/jobs/${id}`);
    titled(it.name);
    return it;
  };
  const writes = may("write");
  // Parts of a job that has a script.
  const scripted = (/** @type {(it: Api["JobWithCode"], again: () => void) => Node | null} */ make) => (/** @type {Api["JobWithCode"]} */ it, /** @type {() => void} */ again) => (it.code === null ? null : make(it, again));
  const place = followed("Reading the job", ticks, read, [
    { of: (it) => [it.name, it.archived, it.description, it.code === null], make: head },
    { of: (it) => [it.code === null, it.parameter_definitions], make: scripted((it) => (writes ? run(it) : null)) },
    { of: (it) => it.version_number, make: scripted(script) },
    { of: (it) => [it.version_number, it.published_version, it.publish_status, it.trigger_blocked], make: scripted(publishing) },
    { of: (it) => [it.code === null, it.trigger], make: scripted((it, again) => h("section", null, h("h2", null, "Trigger"), writes ? triggerForm(it, again) : h("p", null, it.trigger ? triggerWords(it.trigger) : "It runs by hand."))) },
    { of: (it) => it.trigger?.category, make: (it, again) => h("section", null, h("h2", null, "Runs"), writes && it.trigger?.category === "file_uploaded" ? folded("Run over old files", () => oldFiles(it, again)) : null, runs(id)) },
    { of: (it) => [it.name, it.archived], make: (it, again) => (writes ? archiving(it, again) : null) },
  ]);
  return [h("p", { class: "crumbs" }, h("a", { href: "#/jobs" }, "← Jobs")), place];
}

/** @param {Api["JobWithCode"]} it */
function head(it) {
  return h(
    "div",
    null,
    h("h1", null, it.name, it.archived ? h("span", { class: "badge cancelled" }, "archived") : null),
    it.description ? h("p", null, it.description) : null,
    it.code === null ? h("p", { class: "empty" }, "It has no script: scripts elsewhere write in its name.") : null,
  );
}

/**
 * @param {Api["JobWithCode"]} it
 * @param {() => void} draw
 */
function archiving(it, draw) {
  const archive = sending("PATCH", `/jobs/${it.id}`, { archived: !it.archived }, draw);
  const go = it.archived ? button("Bring the job back", archive) : destroy("Archive", `Archive ${it.name}: its trigger stops, its data stays`, archive);
  return h("section", null, h("h2", null, it.archived ? "Bring back" : "Archive"), go);
}

/** @param {Api["JobWithCode"]} it */
function run(it) {
  const file = filePicker();
  const { fields, values } = parameters(it.parameter_definitions);
  const go = async () => {
    const started = await post(`/jobs/${it.id}/run`, { parameters: values(), file_id: file.value() });
    location.hash = `#/executions/${started.job_execution_id}`;
  };
  return h("section", null, h("h2", null, "Run now"), form([...fields, ["File", file.field]], "Run", go, "permanent"));
}

/**
 * The script, its editor and its versions.
 * @param {Api["JobWithCode"]} it
 * @param {() => void} draw
 */
function script(it, draw) {
  const shown = h("div", null, python(it.code ?? ""));
  const edit = () => {
    const code = editor(it.code ?? "");
    const save = async () => {
      const now = await get(`/jobs/${it.id}`);
      if (now.version_number !== it.version_number) {
        throw new Error(`Version ${now.version_number} of the script was saved since you began, so nothing was saved. Copy your text, load the page, and put it into the newest version.`);
      }
      try {
        await call("PATCH", `/jobs/${it.id}`, { code: code.value() });
      } catch (error) {
        code.point(error);
        throw error;
      }
      draw();
    };
    const fields = form([["Script", code.element]], "Save as a new version", save);
    const discard = async () => (await mayLeave(shown)) && show(shown, python(it.code ?? ""));
    show(shown, fields, h("button", { type: "button", click: discard }, "Discard"));
    code.focus();
  };
  const heading = h("h2", null, `Script, version ${it.version_number}`);
  return h("section", null, heading, where("write", () => h("p", null, h("button", { type: "button", click: async () => (await mayLeave(shown)) && edit() }, "Edit"))), shown, versions(it));
}

/** @param {Api["JobWithCode"]} it */
function versions(it) {
  const place = h("div", { "aria-live": "polite" });
  const compare = (/** @type {number} */ number) => () =>
    load(place, "Reading the version", async () => {
      const older = await get(`/jobs/${it.id}/versions/${number}`);
      return sideBySide([`Version ${number}`, `Version ${it.version_number}`], older.code, it.code ?? "");
    });
  const list = () =>
    loaded("Reading the versions", async () => {
      const all = await every(`/jobs/${it.id}/versions`);
      const row = (/** @type {Api["JobVersion"]} */ version) => [
        version.version_number,
        time(version.created_at),
        version.is_current ? "current" : button("Compare", async () => void compare(version.version_number)()),
      ];
      return grid(["Version", "Saved", "Compare with the current one"], all.map(row), "There is one version.");
    });
  return folded("Versions", () => h("div", null, list(), place));
}

/** @param {string} id */
function runs(id) {
  return watched("Reading the runs", (type) => type.startsWith("job_execution."), async () => {
    const all = await get(`/job-executions?job_id=${id}&limit=20`);
    const row = (/** @type {Api["JobExecution"]} */ it) => [
      h("a", { href: `#/executions/${it.job_execution_id}` }, time(it.started_at)),
      badge(it.status),
      it.script_version,
      it.error_message ?? "",
    ];
    const more = h("p", null, h("a", { href: address("executions", "", { _job: id }) }, "All its executions"));
    return h("div", null, grid(["Started", "Status", "Version", "Message"], all.map(row), "It has not run yet."), all.length ? more : null);
  });
}
