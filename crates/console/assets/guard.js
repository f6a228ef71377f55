// Text that was typed and not saved: leaving its page asks first.

import { h } from "./dom.js";

/** Fields of forms that hold text; a bar's conditions stand in the address. */
const FIELDS = "form:not(.bar) :is(textarea, input:not([type=checkbox], [type=radio], [type=file], [type=search], [type=range], [type=password]))";

/**
 * Whether a text of the page, or of a part of it, is unsaved: it is not what the field held at first, or when it was saved.
 * @param {ParentNode} [within]
 */
export function isUnsaved(within = document) {
  const fields = /** @type {NodeListOf<HTMLInputElement>} */ (within.querySelectorAll(FIELDS));
  // Browsers give the line breaks of a field as \n only.
  return [...fields].some((field) => field.value !== field.defaultValue.replace(/\r\n?/g, "\n"));
}

/** What a form's fields hold is saved. @param {ParentNode} form */
export function saved(form) {
  for (const field of /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("textarea, input:not([type=file])"))) {
    field.defaultValue = field.value;
  }
}

/**
 * Whether what is on the page, or a part of it, may be left; asks if a text is unsaved.
 * @param {ParentNode} [within]
 * @returns {Promise<boolean>}
 */
export async function mayLeave(within) {
  if (!isUnsaved(within)) {
    return true;
  }
  if (document.querySelector("dialog[open].unsaved")) {
    return false;
  }
  return new Promise((resolve) => {
    let leaves = false;
    const answer = (/** @type {boolean} */ yes) => () => {
      leaves = yes;
      dialog.close();
    };
    const close = () => {
      dialog.remove();
      resolve(leaves);
    };
    const stay = h("button", { type: "button", class: "primary", click: answer(false) }, "Stay");
    const leave = h("button", { type: "button", class: "danger", click: answer(true) }, "Leave without saving");
    const dialog = h("dialog", { class: "box unsaved", "aria-label": "Unsaved text", close }, h("p", null, "What you typed is not saved."), h("p", { class: "pages" }, stay, leave));
    document.body.append(dialog);
    dialog.showModal();
    stay.focus();
  });
}
