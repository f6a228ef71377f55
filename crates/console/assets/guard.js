// Text that was typed and not saved: leaving its page asks first.

import { h } from "./dom.js";

/** Questions whether something is unsaved; those of pages that are gone say no. @type {Set<() => boolean>} */
const questions = new Set();

/**
 * Watches a field until it leaves the page or is saved.
 * @param {HTMLInputElement | HTMLTextAreaElement} field
 * @returns {() => void} what is in the field is saved
 */
export function watch(field) {
  let saved = field.value;
  const question = () => field.isConnected && field.value !== saved;
  questions.add(question);
  return () => {
    saved = field.value;
  };
}

/** Whether something on the page is unsaved. */
export function isUnsaved() {
  return [...questions].some((question) => question());
}

/** The page was left. */
export function forget() {
  questions.clear();
}

window.addEventListener("beforeunload", (event) => {
  if (isUnsaved()) {
    event.preventDefault();
  }
});

/**
 * Asks whether the page may be left.
 * @returns {Promise<boolean>}
 */
export function mayLeave() {
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
    const dialog = /** @type {HTMLDialogElement} */ (
      h("dialog", { class: "box", "aria-label": "Unsaved text", close }, h("p", null, "What you typed is not saved."), h("p", { class: "pages" }, stay, leave))
    );
    document.body.append(dialog);
    dialog.showModal();
    stay.focus();
  });
}
