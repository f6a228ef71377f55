// Integrations: webhooks with what was sent to them, and SQL logins for people's own tools.

import { every, get, post, sending } from "../api.js";
import { badge, button, destroy, form, h, input, load, select, show } from "../dom.js";
import { time } from "../format.js";
import { grid } from "../grid.js";
import { missing } from "../rights.js";
import { lifetime, once } from "./people.js";

const FORMATS = /** @type {[string, string][]} */ ([
  ["standard", "Standard Webhooks"],
  ["slack", "Slack"],
  ["teams", "Teams"],
]);

/** Deliveries that are listed. */
const DELIVERIES = 50;

/** @param {() => void} draw */
export async function webhooks(draw) {
  const all = await every("/webhooks");
  const place = h("div", { "aria-live": "polite" });
  const [address, events, format] = [input({ type: "url", required: true }), input({ required: true, value: "*", placeholder: "file.confirmed, job_execution.failed" }), select(FORMATS)];
  const add = async () => {
    const it = await post("/webhooks", { url: address.value, events: events.value.split(/[,\s]+/).filter(Boolean), format: format.value, enabled: true });
    show(place, once("The receiver verifies deliveries by this secret, which is shown only once.", it.secret, draw));
  };
  const fields = form([["Address", address], ["Events", events], ["Format", format]], "Add the webhook", add);
  const set = (/** @type {any} */ it, /** @type {boolean} */ enabled) => sending("PATCH", `/webhooks/${it.id}`, { enabled }, draw);
  const rotate = (/** @type {any} */ it) => async () => {
    const { secret } = await post(`/webhooks/${it.id}/rotate`);
    show(place, once("The new secret, which is shown only once. The one before signs for 24 hours more.", secret, draw));
  };
  const row = (/** @type {any} */ it) => [
    h("span", { class: "told" }, it.url),
    it.events.join(", "),
    it.enabled ? "enabled" : "disabled",
    h(
      "span",
      { class: "bar inline" },
      button("Deliveries", async () => deliveries(it, place)),
      button("Test", sending("POST", `/webhooks/${it.id}/test`, undefined, () => deliveries(it, place))),
      it.enabled ? button("Disable", set(it, false)) : button("Enable", set(it, true)),
      destroy("New secret", "Make a new secret", rotate(it)),
      destroy("Delete", `Delete the webhook to ${it.url}`, sending("DELETE", `/webhooks/${it.id}`, undefined, draw)),
    ),
  ];
  const columns = ["Address", "Events", "State", "Actions"];
  const none = "There is no webhook. One tells a service of yours what happens here: files that arrive, runs that end, rows that are written.";
  return h("div", null, h("details", null, h("summary", null, "New webhook"), fields), grid(columns, all.map(row), none, "Webhooks"), place);
}

/**
 * @param {any} webhook
 * @param {Element} place
 */
function deliveries(webhook, place) {
  const path = `/webhooks/${webhook.id}/deliveries`;
  load(place, "Reading the deliveries", async () => {
    const all = await get(`${path}?limit=${DELIVERIES}`);
    const row = (/** @type {any} */ it) => [
      it.type,
      time(it.at),
      badge(it.status),
      it.attempts,
      it.response_status,
      it.error ?? "",
      button("Send again", sending("POST", `${path}/${it.id}/resend`, undefined, () => deliveries(webhook, place))),
    ];
    return h("div", { class: "asking" }, h("h3", null, `${all.length < DELIVERIES ? "Deliveries" : `The newest ${DELIVERIES} deliveries`} to ${webhook.url}`), grid(["Event", "When", "Status", "Tries", "Answer", "Error", "Send again"], all.map(row), "Nothing was sent yet.", "Deliveries"));
  });
}

const REASONS = /** @type {Record<string, string>} */ ({
  expired: "its time has passed",
  user_disabled: "its user was disabled",
  not_shared: "several organizations share this platform",
  role_missing: "its role is missing, as after a restore",
});

const TOOLS = /** @type {Record<string, string>} */ ({ psql: "psql", r: "R", matlab: "MATLAB", duckdb: "DuckDB", grafana: "Grafana" });

/** @param {() => void} draw */
export async function sqlLogins(draw) {
  const all = await every("/sql-logins");
  const place = h("div", { "aria-live": "polite" });
  const name = input({ required: true, maxlength: 200, placeholder: "Grafana in the hall" });
  const { field, end } = lifetime();
  const add = async () => {
    const made = await post("/sql-logins", { name: name.value, expires_at: end() });
    const examples = Object.entries(TOOLS).flatMap(([tool, title]) => [h("dt", null, title), h("dd", null, h("code", { class: "secret" }, made.examples[tool]))]);
    show(place, once("Tools connect by this URL, which holds the password and is shown only once.", made.dsn, draw), h("details", null, h("summary", null, "Lines for tools"), h("dl", null, examples)));
  };
  const fields = form([["For", name], field], "Make the login", add);
  const row = (/** @type {any} */ it) => [
    it.name,
    h("code", null, it.user),
    it.ended_at ? `ended: ${REASONS[it.end_reason] ?? it.end_reason}` : "active",
    it.expires_at ? time(it.expires_at) : "never",
    time(it.created_at),
    destroy("Revoke", `Revoke ${it.name}: its sessions end`, sending("DELETE", `/sql-logins/${it.id}`, undefined, draw)),
  ];
  const columns = ["For", "User", "State", "Expires", "Made", "Revoke"];
  const none = "There is no SQL login. With one, psql, R, Grafana and other tools read your tables as a PostgreSQL database.";
  const why = missing("sql_logins");
  const offer = why ? h("p", { class: "empty" }, `No login can be made: ${why}.`) : h("details", null, h("summary", null, "New SQL login"), fields);
  return h("div", null, offer, why && all.length === 0 ? null : grid(columns, all.map(row), none, "SQL logins"), place);
}
