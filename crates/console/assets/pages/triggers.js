// What starts a job by itself.

import { call, every, get, post, sending } from "../api.js";
import { button, check, destroy, form, h, input, labeled, load, loaded, paused, select, show, toast } from "../dom.js";
import { stringify } from "../exact.js";
import { counted } from "../format.js";
import { grid } from "../grid.js";

/** Pause in typing after which a schedule is previewed, in ms. */
const PAUSE = 250;

const CATEGORIES = /** @type {[string, string][]} */ ([
  ["file_uploaded", "when a file arrives"],
  ["job_completed", "after another job"],
  ["schedule", "on a schedule"],
]);

/** A trigger in words. @param {Api["JobTrigger"]} trigger */
export function triggerWords(trigger) {
  const it = /** @type {Record<string, any>} */ (trigger.conditions);
  if (trigger.category === "schedule") {
    return `at ${it.cron} (${it.timezone ?? "UTC"})`;
  }
  if (trigger.category === "job_completed") {
    return `after another job (${(it.statuses ?? ["completed"]).join(" or ")})`;
  }
  const what = it.file_name_pattern ?? (it.file_extensions ?? []).join(", ");
  return what ? `when a file arrives: ${what}` : "when a file arrives";
}

/**
 * The editor of a job's trigger.
 * @param {Api["JobWithCode"]} job
 * @param {() => void} draw
 */
export function triggerForm(job, draw) {
  return loaded("Reading jobs and instruments", async () => {
    const [instruments, jobs] = await Promise.all([every("/instruments"), get("/jobs")]);
    const category = select(CATEGORIES, job.trigger?.category);
    const details = h("div", { class: "grouped" });
    let read = () => /** @type {{conditions: any, instrument?: string | null}} */ ({ conditions: {} });
    const change = () => {
      const now = job.trigger?.category === category.value ? job.trigger : { conditions: {} };
      const made = conditions(category.value, now, instruments, jobs.filter((/** @type {Api["Job"]} */ it) => it.id !== job.id));
      show(details, ...made.fields);
      read = made.read;
    };
    category.addEventListener("change", change);
    change();
    const save = async () => {
      const { trigger: now } = await get(`/jobs/${job.id}`);
      if (stringify(now) !== stringify(job.trigger)) {
        throw new Error("Somebody else has changed the trigger since it was shown, so nothing was saved. Load the page to see it as it is now.");
      }
      const { conditions, instrument } = read();
      await call("PATCH", `/jobs/${job.id}`, {
        trigger_enabled: true,
        trigger_category: category.value,
        trigger_conditions: conditions,
        trigger_instrument_id: instrument ?? null,
      });
      draw();
    };
    const remove = sending("PATCH", `/jobs/${job.id}`, { trigger_enabled: false }, draw);
    const fields = form([["It runs", category]], job.trigger ? "Save the trigger" : "Set the trigger", save);
    fields.querySelector("label")?.after(details);
    return h(
      "div",
      null,
      h("p", null, job.trigger ? `It runs ${triggerWords(job.trigger)}.` : "It runs by hand only."),
      h("details", null, h("summary", null, job.trigger ? "Change" : "Run it by itself"), fields),
      job.trigger ? destroy("Remove the trigger", `Let ${job.name} run by hand only`, remove) : null,
    );
  });
}

/**
 * Runs of a job for files that arrived before its trigger, or whose run failed: counted first.
 * @param {Api["JobWithCode"]} job
 * @param {() => void} draw
 */
export function oldFiles(job, draw) {
  const only = select([["never_run", "those it has not run for"], ["failed", "those whose last run failed"], ["all", "all that its trigger takes"]]);
  const [from, to] = [input({ type: "date" }), input({ type: "date" })];
  const said = h("div", { "aria-live": "polite" });
  const instant = (/** @type {string} */ day, add = 0) => {
    const at = new Date(`${day}T00:00`);
    at.setDate(at.getDate() + add);
    return day ? at.toISOString() : null;
  };
  const ask = (/** @type {boolean} */ isTrial) => post(`/jobs/${job.id}/backfill`, { only: only.value, uploaded_from: instant(from.value), uploaded_to: instant(to.value, 1), dry_run: isTrial });
  const run = async () => {
    const { count } = await ask(false);
    toast(`${counted(count, "run")} queued.`);
    draw();
  };
  const look = async () => {
    const { count } = await ask(true);
    show(said, count ? button(`Run it over ${counted(count, "file")}`, run, "primary") : h("p", { class: "empty" }, "No file meets the conditions."));
  };
  const fields = form([["Files", only], ["Uploaded from", from], ["to", to]], "Count the files", look);
  fields.addEventListener("input", () => show(said));
  return h("div", null, fields, said);
}

/**
 * The next ticks of the schedule in two fields, while somebody types.
 * @param {HTMLInputElement} cron
 * @param {HTMLInputElement} zone
 */
function preview(cron, zone) {
  const place = h("div", { class: "ticks", "aria-live": "polite" });
  const draw = () =>
    load(place, "Reading the schedule", async () => {
      const query = new URLSearchParams({ cron: cron.value, timezone: zone.value || "UTC" });
      return ticks((await get(`/triggers/preview?${query}`)).next_ticks, zone.value || "UTC");
    });
  const wait = paused(PAUSE, draw);
  cron.addEventListener("input", wait);
  zone.addEventListener("input", wait);
  draw();
  return place;
}

/**
 * @param {string[]} times
 * @param {string} zone of the schedule
 */
function ticks(times, zone) {
  const local = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const zones = [...new Set([zone, local, "UTC"])];
  const at = (/** @type {string} */ text, /** @type {string} */ timeZone) => {
    const date = new Date(text);
    const year = date.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
    const parts = /** @type {const} */ ({ weekday: "short", year, month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
    return h("time", { datetime: text, title: text }, date.toLocaleString(undefined, { timeZone, ...parts }));
  };
  const head = (/** @type {string} */ name) => `Next in ${name}${name === local ? " (yours)" : ""}`;
  return grid(zones.map(head), times.map((text) => zones.map((name) => at(text, name))), "It never runs.");
}

/**
 * Fields of the conditions of a category.
 * @param {string} category
 * @param {any} trigger
 * @param {Api["Instrument"][]} instruments
 * @param {Api["Job"][]} jobs
 */
function conditions(category, trigger, instruments, jobs) {
  const now = trigger.conditions ?? {};
  if (category === "schedule") {
    const cron = input({ required: true, value: now.cron ?? "0 6 * * 1-5" });
    const zone = input({ value: now.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone });
    return {
      fields: [
        labeled("Cron: minute, hour, day, month, weekday", cron),
        labeled("Time zone", zone),
        preview(cron, zone),
      ],
      read: () => ({ conditions: { cron: cron.value, timezone: zone.value } }),
    };
  }
  if (category === "job_completed") {
    const source = select(jobs.map((it) => [it.id, it.name]), now.source_job_id);
    const failed = check("also when it failed", { checked: (now.statuses ?? []).includes("failed") });
    return {
      fields: [labeled("After", source), failed.field],
      read: () => ({
        conditions: { source_job_id: source.value, statuses: failed.box.checked ? ["completed", "failed"] : ["completed"] },
      }),
    };
  }
  const instrument = select([["", "any instrument"], ...instruments.map((it) => /** @type {[string, string]} */ ([it.id, it.name]))], trigger.instrument_id ?? "");
  const pattern = input({ value: now.file_name_pattern, placeholder: "plate*.xlsx" });
  const extensions = input({ value: (now.file_extensions ?? []).join(", "), placeholder: "csv, txt" });
  const list = (/** @type {string} */ text) => text.split(",").map((part) => part.trim()).filter(Boolean);
  return {
    fields: [
      labeled("From", instrument),
      labeled("Name like", pattern),
      labeled("Extensions", extensions),
    ],
    read: () => ({
      // Conditions that this form does not know stay as they are.
      conditions: {
        ...now,
        file_name_pattern: pattern.value || null,
        file_extensions: extensions.value ? list(extensions.value) : null,
      },
      instrument: instrument.value || null,
    }),
  };
}
