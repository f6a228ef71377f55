// Saved views: addresses of the console under a name, for everyone of the organization.

import { every, post, sending } from "./api.js";
import { button, destroy, form, h, input, load, loaded, toast } from "./dom.js";
import { time } from "./format.js";
import { grid } from "./grid.js";
import { isMe, may } from "./rights.js";

/** @returns {Promise<Api["SavedView"][]>} */
export async function savedViews() {
  const all = await every("/saved-views");
  return all.sort((/** @type {Api["SavedView"]} */ one, /** @type {Api["SavedView"]} */ other) => one.name.localeCompare(other.name));
}

/**
 * A form that saves the view that is shown, with the address that it has when the form is sent; null for those who may not.
 * @param {() => void} [done]
 */
export function saveView(done = () => {}) {
  if (!may("write")) {
    return null;
  }
  const name = input({ required: true, maxlength: 200 });
  const pinned = input({ type: "checkbox" });
  const save = async () => {
    const view = await post("/saved-views", { name: name.value.trim(), address: location.hash, is_pinned: pinned.checked });
    details.removeAttribute("open");
    name.value = "";
    toast(`"${view.name}" is saved${view.is_pinned ? " and pinned on Home" : ""}.`, sending("DELETE", `/saved-views/${view.id}`, undefined, done));
    done();
  };
  const fields = form([["Name of the view", name], ["Pinned on Home", pinned]], "Save the view", save);
  const details = h("details", null, h("summary", null, "Save this view"), h("p", { class: "quiet" }, "Everyone of your organization finds it on Home and by Ctrl+K, with these filters and choices."), fields);
  return details;
}

/** A link to a view. @param {Api["SavedView"]} view */
function viewLink(view) {
  return h("a", { href: view.address }, view.name);
}

/** The views that are pinned, and all of them folded. */
export function viewList() {
  return loaded("Reading the saved views", async (draw) => {
    const all = await savedViews();
    const pinned = all.filter((view) => view.is_pinned);
    if (all.length === 0) {
      return h("p", { class: "empty" }, `No saved view yet.${may("write") ? " A table, the plates and the SQL page offer to save what they show." : ""}`);
    }
    const every = h("details", null, h("summary", null, `All saved views (${all.length})`), manage(all, draw));
    const links = h("ul", { class: "pinned", "aria-label": "Pinned views" }, pinned.map((view) => h("li", null, viewLink(view))));
    return h("div", null, pinned.length ? links : null, every);
  });
}

/**
 * All views, with what their owners and administrators may do.
 * @param {Api["SavedView"][]} all
 * @param {() => void} draw
 */
function manage(all, draw) {
  const row = (/** @type {Api["SavedView"]} */ view) => {
    const isOwn = may("admin") || (may("write") && isMe(view.created_by));
    return [
      viewLink(view),
      /^#\/([a-z]+)/.exec(view.address)?.[1] ?? "",
      time(view.created_at),
      isOwn ? button(view.is_pinned ? "Unpin" : "Pin", sending("PATCH", `/saved-views/${view.id}`, { is_pinned: !view.is_pinned }, draw)) : view.is_pinned ? "pinned" : "",
      isOwn ? destroy("Delete", `Delete "${view.name}"`, sending("DELETE", `/saved-views/${view.id}`, undefined, draw)) : "",
    ];
  };
  return grid(["View", "Page", "Saved", "Home", "Delete"], all.map(row), "", "Saved views");
}

/**
 * Fills a place with the views of a page.
 * @param {Element} place
 * @param {string} page
 */
export function viewsOf(place, page) {
  return load(place, "Reading the saved views", async () => {
    const own = (await savedViews()).filter((view) => view.address.startsWith(`#/${page}?`));
    return own.length ? h("ul", { class: "statements" }, own.map((view) => h("li", null, viewLink(view)))) : h("p", { class: "empty" }, "None yet.");
  });
}
