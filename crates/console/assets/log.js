// What a run prints.

import { failure, h, show } from "./dom.js";
import { keepFollowing } from "./stream.js";

/** The most characters of a log that are shown: the end. */
const SHOWN = 200_000;

/**
 * `<lab-log execution="…">`: what a run prints, as it prints it, read for as long as the element is in the page. Sends the
 * event `ended` when the run has ended.
 */
class Log extends HTMLElement {
  #printed = h("pre", { tabindex: "0", "aria-label": "Log" });
  #state = h("p", { class: "quiet", role: "status" });
  #text = "";
  /** Number of the frame in which more is shown, if any. */
  #due = 0;
  #stop = new AbortController();

  connectedCallback() {
    show(this, this.#printed, this.#state);
    this.#stop = new AbortController();
    this.#read(this.#stop.signal);
  }

  disconnectedCallback() {
    this.#stop.abort();
    cancelAnimationFrame(this.#due);
    this.#due = 0;
  }

  /** @param {AbortSignal} stop */
  async #read(stop) {
    const path = `/job-executions/${this.getAttribute("execution")}/logs?follow=true`;
    const on = (/** @type {import("./stream.js").StreamEvent} */ { name, data }) => {
      if (name === "end") {
        show(this.#state, this.#text ? null : "It printed nothing.");
        this.dispatchEvent(new Event("ended"));
        return true;
      }
      this.#text = (this.#text + data.text).slice(-SHOWN);
      // Once a frame, however much comes.
      this.#due ||= requestAnimationFrame(() => this.#draw());
      return false;
    };
    // A log is sent from its beginning.
    const opened = () => {
      this.#text = "";
      show(this.#state);
    };
    const broken = () => show(this.#state, "The connection broke off. The log is read again…");
    try {
      await keepFollowing(path, on, { stop, opened, broken });
    } catch (error) {
      show(this.#state, failure(error));
    }
  }

  /** Shows what was printed. The view follows the end unless somebody has scrolled back. */
  #draw() {
    this.#due = 0;
    const printed = this.#printed;
    const isAtEnd = printed.scrollHeight - printed.scrollTop - printed.clientHeight < 8;
    show(printed, this.#text);
    if (isAtEnd) {
      printed.scrollTop = printed.scrollHeight;
    }
  }
}

customElements.define("lab-log", Log);

/**
 * The log of a run.
 * @param {string} execution
 * @param {(() => void) | null} ended called when the run ends, if it has not yet
 */
export function log(execution, ended) {
  return h("lab-log", { execution, ended });
}
