// The computer beside an instrument: its last report, and a band of the last seven days.

import { get } from "../api.js";
import { badge, facts, h, s, stateWords } from "../dom.js";
import { instant, time } from "../format.js";
import { grid } from "../grid.js";
import { ticks, watched } from "../list.js";

/** Length of the band in units of its drawing. */
const LENGTH = 1000;

/** @param {string} id of the instrument */
export function device(id) {
  const live = (/** @type {string} */ type) => ticks(type) || type.startsWith("instrument.");
  const place = watched("Reading the device's status", live, async () => {
    const [status, report] = await Promise.all([get(`/instruments/${id}/device-status`), get(`/instruments/${id}/device`)]);
    if (status.current_status === null) {
      const words = "No computer has reported for this instrument yet. labdata-watch reports every minute while it runs.";
      return h("p", { class: "empty" }, words);
    }
    return h("div", null, now(status, report), band(status), periods(status));
  });
  return h("section", null, h("h2", null, "Its computer"), place);
}

/**
 * @param {Api["DeviceStatus"]} status
 * @param {Api["Device"]} report
 */
function now(status, report) {
  const current = /** @type {Api["CurrentDeviceStatus"]} */ (status.current_status);
  const details = Object.entries(typeof report.detail === "object" && report.detail !== null ? report.detail : {});
  const troubles = details.filter(([, count]) => count).map(([kind, count]) => `${count} ${kind.replaceAll("_", " ")}`);
  const said = typeof report.detail === "string" ? report.detail : troubles.join(", ");
  return facts([
    ["Now", badge(current.value)],
    ["Since", time(current.since)],
    ["Last report", time(report.last_seen)],
    ["Program", report.app_version ?? "–"],
    ["Watches its folder", report.is_watching === null ? "–" : report.is_watching ? "yes" : "no"],
    ["Files that wait", report.queued_files ?? "–"],
    ["Trouble", said || "none"],
  ]);
}

/**
 * The range as a line from left to right. The table below it says the same in words.
 * @param {Api["DeviceStatus"]} status
 */
function band(status) {
  const [start, end] = [Date.parse(status.start_time), Date.parse(status.end_time)];
  const at = (/** @type {string} */ text) => ((Date.parse(text) - start) / Math.max(end - start, 1)) * LENGTH;
  const part = (/** @type {Api["DeviceStatusPeriod"]} */ it) => {
    // One minute of a week is less than a dot, and the one with the trouble should be seen.
    const width = Math.max(at(it.last_seen) - at(it.first_seen), 2);
    const words = `${stateWords(it.status)}, ${instant(it.first_seen)} to ${instant(it.last_seen)}`;
    return s("rect", { class: it.status, x: at(it.first_seen), width, height: 24 }, s("title", {}, words));
  };
  const label = `Status of the computer over the last ${Math.round((end - start) / 86_400_000)} days`;
  const drawing = s("svg", { viewBox: `0 0 ${LENGTH} 24`, preserveAspectRatio: "none", class: "band", role: "img", "aria-label": label }, ...status.statuses.map(part));
  const ends = h("p", { class: "bar band-ends" }, time(status.start_time), time(status.end_time));
  return h("div", null, drawing, ends);
}

/** @param {Api["DeviceStatus"]} status */
function periods(status) {
  const row = (/** @type {Api["DeviceStatusPeriod"]} */ it) => [
    badge(it.status),
    time(it.first_seen),
    time(it.last_seen),
    it.app_version ?? "",
  ];
  const rows = [...status.statuses].reverse().map(row);
  const notes = status.notes.map((/** @type {string} */ note) => h("p", { class: "quiet" }, note));
  return h(
    "details",
    null,
    h("summary", null, "Periods"),
    notes,
    grid(["Status", "From", "To", "Program"], rows, "The computer did not report in this time."),
  );
}
