// Publishing of a job's script: its status, who may change it, and what differs from the published version.

import { get, sending } from "../api.js";
import { sideBySide } from "../code.js";
import { badge, button, folded, h, loaded } from "../dom.js";
import { may } from "../rights.js";

/**
 * The status of a job's script, with buttons for what the caller may do.
 * @param {Api["JobWithCode"]} it
 * @param {() => void} draw
 */
export function publishing(it, draw) {
  // The version that is on the page: one that somebody saved in between is not published unread.
  const set = (/** @type {string} */ status) => sending("PATCH", `/jobs/${it.id}`, { publish_status: status, version_number: it.version_number }, draw);
  const buttons = [
    may("write") && it.publish_status === "draft" ? button("Ask for review", set("in_review")) : null,
    may("write") && it.publish_status === "in_review" ? button("Back to draft", set("draft")) : null,
    may("admin") && it.publish_status !== "published"
      ? button(`Publish version ${it.version_number}`, set("published"), "primary")
      : null,
  ].filter(Boolean);
  return h(
    "section",
    null,
    h("h2", null, "Publishing"),
    h("p", null, `Version ${it.version_number} is `, badge(it.publish_status), words(it)),
    it.trigger_blocked ? h("p", { class: "failure" }, `The trigger starts nothing: ${it.trigger_blocked}.`) : null,
    buttons.length ? h("p", { class: "bar" }, buttons) : null,
    it.published_version !== null && it.published_version !== it.version_number ? changes(it, it.published_version) : null,
  );
}

/** @param {Api["JobWithCode"]} it */
function words(it) {
  if (it.published_version === null) {
    return ". No version has been published.";
  }
  return it.published_version === it.version_number ? "." : `. Version ${it.published_version} was published last.`;
}

/**
 * @param {Api["JobWithCode"]} it
 * @param {number} published
 */
function changes(it, published) {
  const compare = async () => {
    const before = await get(`/jobs/${it.id}/versions/${published}`);
    return sideBySide([`Version ${published}, published`, `Version ${it.version_number}`], before.code, it.code ?? "");
  };
  return folded(`What differs from version ${published}`, () => loaded("Reading the published version", compare));
}
