// Users with their roles, the groups that they are in, and invitations.

import { call, every, post, sending } from "../api.js";
import { button, checks, destroy, failure, form, h, input, select, show } from "../dom.js";
import { time } from "../format.js";
import { grid } from "../grid.js";
import { isMe } from "../rights.js";

const ROLES = /** @type {[string, string][]} */ ([
  ["viewer", "viewer: reads"],
  ["member", "member: reads and writes"],
  ["admin", "admin: everything"],
]);

/**
 * A secret link or key, which is shown once.
 * @param {string} words what to do with it
 * @param {string} secret
 * @param {() => void} done
 */
export function once(words, secret, done) {
  const text = h("code", { class: "secret" }, secret);
  const said = h("span", { role: "status" });
  const copy = async () => {
    await navigator.clipboard.writeText(secret);
    show(said, "Copied.");
  };
  return h("div", null, h("p", null, words), h("p", { class: "bar" }, text, button("Copy", copy), said, h("button", { type: "button", click: done }, "I have it")));
}

/** A field for the time after which a key or login ends, and the moment that it says; null for never. */
export function lifetime() {
  const days = input({ type: "number", min: 1, max: 36500, placeholder: "never" });
  const end = () => (days.value ? new Date(Date.now() + Number(days.value) * 86_400_000).toISOString() : null);
  return { field: /** @type {[string, HTMLElement]} */ (["Days until it expires", days]), end };
}

/** @param {() => void} draw */
export async function users(draw) {
  const all = await every("/users");
  const change = (/** @type {any} */ it, /** @type {any} */ body) => sending("PATCH", `/users/${it.id}`, body, draw);
  const role = (/** @type {any} */ it) => {
    const place = h("span", { class: "bar inline" });
    const box = select(ROLES.map(([value]) => [value, value]), it.role, { "aria-label": `Role of ${it.name}` });
    box.addEventListener("change", () => show(place, box, button("Set", change(it, { role: box.value }), "primary")));
    show(place, box);
    return place;
  };
  const row = (/** @type {any} */ it) => [
    it.name,
    it.email,
    role(it),
    (it.groups ?? []).join(", "),
    time(it.created_at),
    it.disabled_at ? h("span", null, "disabled ", time(it.disabled_at)) : "active",
    // Who is signed in would lose the page with it.
    isMe(it.id) ? "" : it.disabled_at ? button("Enable", change(it, { disabled: false })) : destroy("Disable", `Disable ${it.name}: their keys and sessions stop`, change(it, { disabled: true })),
  ];
  const [email, name, as] = [input({ type: "email", required: true }), input({ maxlength: 200 }), select(ROLES, "member")];
  const add = async () => {
    await post("/users", { email: email.value, name: name.value || null, role: as.value });
    draw();
  };
  const more = form([["E-mail", email], ["Name", name], ["Role", as]], "Add the user", add);
  const way = h("p", { class: "quiet" }, "A user signs in with a key of their own, by an invitation, or by a link of `labdata sign-in --user`.");
  return h(
    "div",
    null,
    h("details", null, h("summary", null, "New user"), more, way),
    grid(["Name", "E-mail", "Role", "Groups", "Added", "State", "Change"], all.map(row), "There are no users.", "Users"),
  );
}

/** @param {() => void} draw */
export async function groups(draw) {
  const [all, everybody] = await Promise.all([every("/groups"), every("/users")]);
  const names = new Map(everybody.map((/** @type {any} */ it) => [it.id, it.name]));
  const place = h("div", { "aria-live": "polite" });
  const members = (/** @type {any} */ it) => async () => {
    const chosen = checks(`Members of ${it.name}`, everybody.map((/** @type {any} */ user) => [user.id, user.name]), it.members);
    const save = async () => {
      const now = (await every("/groups")).find((/** @type {any} */ other) => other.id === it.id);
      if (String(now?.members) !== String(it.members)) {
        throw new Error("Somebody else has changed the group since its members were read, so nothing was saved. Load the page again.");
      }
      await call("PATCH", `/groups/${it.id}`, { members: chosen.value() });
      draw();
    };
    show(place, h("div", { class: "asking" }, chosen.field, button("Save the members", save, "primary")));
  };
  const row = (/** @type {any} */ it) => [
    it.name,
    it.members.map((/** @type {string} */ id) => names.get(id) ?? id).join(", "),
    button("Members", members(it)),
    destroy("Delete", `Delete the group ${it.name}`, sending("DELETE", `/groups/${it.id}`, undefined, draw)),
  ];
  const name = input({ required: true, maxlength: 200 });
  const add = async () => {
    await post("/groups", { name: name.value });
    draw();
  };
  const words = "Tables can be kept to groups: Change the table, on its page, names who reads and who writes it.";
  return h(
    "div",
    null,
    h("details", null, h("summary", null, "New group"), form([["Name", name]], "Add the group", add)),
    h("p", { class: "quiet" }, words),
    grid(["Group", "Members", "Change", "Delete"], all.map(row), "There are no groups: everybody of the organization sees every table.", "Groups"),
    place,
  );
}

/** @param {() => void} draw */
export async function invitations(draw) {
  const [all, known] = await Promise.all([every("/invitations"), every("/groups")]);
  const [email, as] = [input({ type: "email", required: true }), select(ROLES, "member")];
  const chosen = checks("Groups", known.map((/** @type {any} */ it) => [it.name, it.name]), []);
  const made = h("div", { "aria-live": "polite" });
  const add = async () => {
    const it = await post("/invitations", { email: email.value, role: as.value, groups: chosen.value() });
    const words = it.email_sent ? `An e-mail with this link is on its way to ${it.email}.` : `Send this link to ${it.email}.`;
    show(made, it.email_error ? failure(`No e-mail was sent: ${it.email_error}.`) : null, once(`${words} It is good for 7 days and one use, and is shown only once.`, it.url, draw));
  };
  const fields = form([["E-mail", email], ["Role", as]], "Make the invitation", add);
  if (known.length > 0) {
    fields.querySelector("label:last-of-type")?.after(chosen.field);
  }
  const row = (/** @type {any} */ it) => [
    it.email,
    it.role,
    it.groups.join(", "),
    time(it.expires_at),
    destroy("Withdraw", `Withdraw the invitation of ${it.email}`, sending("DELETE", `/invitations/${it.id}`, undefined, draw)),
  ];
  return h(
    "div",
    null,
    h("details", null, h("summary", null, "Invite a colleague"), fields),
    made,
    grid(["E-mail", "Role", "Groups", "Good until", "Withdraw"], all.map(row), "Nobody is invited at present.", "Invitations"),
  );
}
