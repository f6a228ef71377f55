// Keys, users, instruments, and the state of the platform.

import { call, every, get, post, sending } from "../api.js";
import { badge, button, checks, destroy, facts, form, h, input, select, show } from "../dom.js";
import { grouped, time } from "../format.js";
import { grid } from "../grid.js";
import { ticks, watched } from "../list.js";
import { may } from "../rights.js";
import { groups, invitations, lifetime, once, users } from "./people.js";
import { sqlLogins, webhooks } from "./integrations.js";

const SCOPES = ["read", "write", "admin"];

/** The administrator's page. */
export function admin() {
  return [
    h("h1", null, "Admin"),
    ...(may("admin")
      ? [
          section("Keys", "Reading the keys", keys),
          section("Users", "Reading the users", users),
          section("Invitations", "Reading the invitations", invitations),
          section("Groups", "Reading the groups", groups),
          section("Instruments", "Reading the instruments", instruments),
          section("Webhooks", "Reading the webhooks", webhooks),
        ]
      : []),
    section("SQL logins", "Reading the SQL logins", sqlLogins),
    section("Usage and quotas", "Reading the usage", usage),
    section("Health", "Asking the server", health),
    ...(may("admin") ? [section("Doctor", "Checking what the server depends on", doctor)] : []),
  ];
}

/**
 * @param {string} name
 * @param {string} reason
 * @param {(draw: () => void) => Promise<HTMLElement>} work
 */
function section(name, reason, work) {
  return h("section", null, h("h2", null, name), watched(reason, ticks, work));
}

/** @param {() => void} draw */
async function keys(draw) {
  const [all, everybody] = await Promise.all([every("/api-keys"), every("/users")]);
  const names = new Map(everybody.map((/** @type {Api["User"]} */ it) => [it.id, it.name]));
  const row = (/** @type {Api["ApiKey"]} */ it) => [
    it.name,
    h("code", null, it.prefix),
    names.get(it.user_id) ?? "",
    it.scopes.join(", "),
    time(it.last_used_at),
    it.revoked_at ? "revoked" : it.expires_at ? time(it.expires_at) : "never",
    it.revoked_at
      ? ""
      : destroy("Revoke", `Revoke ${it.name}: its clients stop working`, sending("DELETE", `/api-keys/${it.id}`, undefined, draw)),
  ];
  const columns = ["Name", "Prefix", "User", "Scopes", "Last used", "Expires", "Revoke"];
  return h("div", null, addKey(draw, everybody), grid(columns, all.map(row), "There are no keys."));
}

/**
 * @param {() => void} draw
 * @param {Api["User"][]} everybody
 */
function addKey(draw, everybody) {
  const name = input({ required: true, maxlength: 200 });
  const scopes = checks("Scopes", SCOPES.map((scope) => [scope, scope]), ["read"]);
  const { field, end } = lifetime();
  const user = h("select", null, h("option", { value: "" }, "me"), everybody.map((it) => h("option", { value: it.id }, it.email)));
  const made = h("div", { "aria-live": "polite" });
  const add = async () => {
    const key = await post("/api-keys", {
      name: name.value,
      scopes: scopes.value(),
      expires_at: end(),
      user_id: /** @type {HTMLSelectElement} */ (user).value || null,
    });
    show(made, once(`The key ${key.name} is shown only once. Copy it now.`, key.key, draw));
  };
  const fields = form([["Name", name], ["User", user], field], "Create the key", add);
  fields.querySelector("label")?.after(scopes.field);
  return h("details", null, h("summary", null, "New key"), fields, made);
}

/** The readers of files, as choices. */
async function readers() {
  /** @type {[string, string][]} */
  const known = (await get("/readers")).map((/** @type {Api["Reader"]} */ it) => [it.name, `${it.title} (${it.extensions.join(", ")})`]);
  /** @type {[string, string][]} */
  const first = [
    ["", "none: stored as they are"],
    ["auto", "auto: the one that fits"],
  ];
  return [...first, ...known];
}

/** @param {() => void} draw */
async function instruments(draw) {
  const all = await every("/instruments");
  const row = (/** @type {Api["Instrument"]} */ it) => [
    h("a", { href: `#/instruments/${it.id}` }, it.name),
    it.instrument_type ?? "",
    it.description ?? "",
    reading(it),
    time(it.created_at),
    destroy("Delete", `Delete the instrument ${it.name}`, sending("DELETE", `/instruments/${it.id}`, undefined, draw)),
  ];
  const [name, kind, description] = [input({ required: true }), input(), input()];
  const zones = h("datalist", { id: "time-zones" }, Intl.supportedValuesOf("timeZone").map((it) => h("option", { value: it })));
  const reader = select(await readers());
  const zone = input({ list: "time-zones", value: Intl.DateTimeFormat().resolvedOptions().timeZone });
  const add = async () => {
    await post("/instruments", {
      name: name.value,
      instrument_type: kind.value || null,
      description: description.value || null,
      reader: reader.value || null,
      timezone: zone.value || null,
    });
    draw();
  };
  const more = form([["Name", name], ["Type", kind], ["Description", description], ["Reader of its files", reader], ["Time zone of its files", zone]], "Add the instrument", add);
  more.append(zones);
  // The reader and the zone of an instrument, which can be changed in place.
  function reading(/** @type {Api["Instrument"]} */ it) {
    const [chosen, place] = [reader.cloneNode(true), input({ list: "time-zones", size: 12, value: it.timezone ?? "" })];
    if (!(chosen instanceof HTMLSelectElement)) {
      return "";
    }
    chosen.value = it.reader ?? "";
    chosen.setAttribute("aria-label", `Reader of ${it.name}`);
    place.setAttribute("aria-label", `Time zone of ${it.name}`);
    const save = async () => {
      await call("PATCH", `/instruments/${it.id}`, { reader: chosen.value, timezone: place.value });
      draw();
    };
    return h("span", null, chosen, " ", place, " ", button("Save", save));
  }
  const columns = ["Name", "Type", "Description", "Reader and time zone", "Added", "Delete"];
  const none = "There is no instrument yet. Files that are uploaded by hand or by labdata-watch belong to one.";
  return h("div", null, h("details", null, h("summary", null, "New instrument"), more), grid(columns, all.map(row), none));
}

async function usage() {
  const [agent, storage] = await Promise.all([get("/agent/usage"), get("/files/usage")]);
  const megabytes = (/** @type {number} */ bytes) => `${(bytes / 1e6).toLocaleString("en-US", { maximumFractionDigits: 1 })} MB`;
  return h(
    "div",
    null,
    facts([
      ["Files and datasets", share(storage.used_bytes, storage.quota_bytes, megabytes)],
      [`Tokens of the agent in ${agent.month}`, share(agent.total_tokens, agent.token_budget, grouped)],
      ["Token budget resets", time(agent.resets_at)],
    ]),
    h("p", { class: "quiet" }, "The operator sets both limits: LABDATA_STORAGE_QUOTA and LABDATA_AGENT_MONTHLY_TOKENS."),
  );
}

/**
 * What is used of what is allowed.
 * @param {number} used
 * @param {number | null} allowed
 * @param {(count: number) => string} format
 */
function share(used, allowed, format) {
  if (allowed === null) {
    return `${format(used)}, no limit`;
  }
  const words = `${format(used)} of ${format(allowed)}`;
  return h("span", { class: "bar inline" }, h("meter", { max: allowed, value: used, high: 0.9 * allowed, "aria-label": words }), words);
}

async function health() {
  const asked = performance.now();
  const answer = await fetch("readyz");
  const took = Math.round(performance.now() - asked);
  const said = await answer.json();
  return h(
    "div",
    null,
    facts([
      ["Server and database", answer.ok ? badge("ready", "completed") : badge(said.detail, "failed")],
      ["Response time", `${took} ms`],
    ]),
    h("p", { class: "quiet" }, h("a", { href: "metrics" }, "Metrics"), " are in the format of Prometheus."),
  );
}

/** What is shown of each state of a dependency. */
const STATES = {
  ok: () => badge("works", "completed"),
  unused: () => badge("not set up", "cancelled"),
  failed: () => badge("does not work", "failed"),
};

/** What the server depends on, as `labdata doctor` names it. */
async function doctor() {
  const report = await get("/dependencies");
  const found = /** @type {Api["Dependency"][]} */ (report.dependencies);
  const failed = found.filter((it) => it.state === "failed").map((it) => it.name);
  const advice = failed.length
    ? h("p", { class: "failure" }, `To be fixed: ${failed.join(", ")}. The operator finds the reason, and what to do, by \`labdata doctor\` on the server's machine.`)
    : null;
  return h("div", null, advice, facts(found.map((it) => [it.name, STATES[it.state]()])), h("p", { class: "quiet" }, "Checked ", time(report.checked_at), "."));
}
