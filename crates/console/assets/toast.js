// Short words about what was done, with its undo.

import { failure, h, show } from "./dom.js";

/** Time for which a message stays, in ms; one with an undo stays longer. */
const SHORT = 6000;
const LONG = 60_000;

/** Most messages at a time. */
const MOST = 3;

const place = h("div", { class: "toasts", role: "status", "aria-live": "polite" });

/**
 * @param {string} words
 * @param {() => Promise<void>} [undo]
 */
export function toast(words, undo) {
  if (!place.isConnected) {
    document.body.append(place);
  }
  const close = () => element.remove();
  const back = async () => {
    show(element, "Undoing…");
    try {
      await undo?.();
      close();
    } catch (error) {
      show(element, failure(error), h("button", { type: "button", click: close }, "Close"));
    }
  };
  const element = h(
    "div",
    { class: "toast" },
    h("span", null, words),
    undo ? h("button", { type: "button", click: back }, "Undo") : null,
    h("button", { type: "button", class: "plain", "aria-label": "Close the message", click: close }, "×"),
  );
  place.append(element);
  [...place.children].slice(0, -MOST).forEach((it) => it.remove());
  setTimeout(close, undo ? LONG : SHORT);
}
