// An editor of scripts: line numbers, Python's colors and indentation, problems at their line, and a question before it is left.

import { python } from "./code.js";
import { h, show } from "./dom.js";

const INDENT = "    ";

/** The text of the line up to the cursor. @param {HTMLTextAreaElement} area */
function begun(area) {
  const before = area.value.slice(0, area.selectionStart);
  return before.slice(before.lastIndexOf("\n") + 1);
}

/** Replaces what is selected. @param {HTMLTextAreaElement} area @param {string} words */
function put(area, words) {
  area.setRangeText(words, area.selectionStart, area.selectionEnd, "end");
  area.dispatchEvent(new Event("input"));
}

/** Lets Tab and Enter indent. After Escape, Tab leaves the field. @param {HTMLTextAreaElement} area */
function indenting(area) {
  let isLeaving = false;
  area.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      isLeaving = true;
      return;
    }
    const line = begun(area);
    if (event.key === "Tab" && !isLeaving && !event.ctrlKey && !event.altKey) {
      event.preventDefault();
      if (!event.shiftKey) {
        put(area, INDENT.slice(line.length % INDENT.length));
      } else if (line.startsWith(" ") && line.trim() === "") {
        area.setSelectionRange(area.selectionStart - Math.min(INDENT.length, line.length), area.selectionStart);
        put(area, "");
      }
    } else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      const indent = /^ */.exec(line)?.[0] ?? "";
      put(area, `\n${indent}${/:\s*(?:#.*)?$/.test(line) ? INDENT : ""}`);
    }
    isLeaving = false;
  });
}

/** @param {string} text */
export function editor(text) {
  const rows = Math.min(40, Math.max(10, text.split("\n").length + 1));
  const area = h("textarea", { class: "code", rows, spellcheck: "false", wrap: "off", "aria-label": "Script" }, text);
  const numbers = h("pre", { class: "numbers", "aria-hidden": "true" });
  // The colors lie below the field, whose own letters are transparent.
  const colors = h("pre", { class: "code", "aria-hidden": "true" });
  const hint = h("small", { class: "quiet" }, "Tab indents; press Escape first to leave the field by Tab.");
  let wrong = 0;
  const draw = () => {
    const count = area.value.split("\n").length;
    const line = (/** @type {number} */ number) => (number === wrong ? h("mark", null, `${number}\n`) : `${number}\n`);
    show(numbers, ...Array.from({ length: count }, (_, index) => line(index + 1)));
    colors.replaceChildren(...python(area.value).childNodes, "\n");
    follow();
  };
  const follow = () => {
    numbers.scrollTop = colors.scrollTop = area.scrollTop;
    colors.scrollLeft = area.scrollLeft;
  };
  area.addEventListener("input", () => {
    wrong = 0;
    draw();
  });
  area.addEventListener("scroll", follow);
  indenting(area);
  draw();
  return {
    element: h("div", { class: "editor" }, h("div", { class: "lines-and-text" }, numbers, colors, area), hint),
    value: () => area.value,
    focus: () => area.focus(),
    /** Marks the line that an error names. @param {unknown} error */
    point: (error) => {
      wrong = Number(/line (\d+)/.exec(error instanceof Error ? error.message : "")?.[1] ?? 0);
      draw();
      if (wrong > 0) {
        const at = area.value.split("\n").slice(0, wrong - 1).join("\n").length + (wrong > 1 ? 1 : 0);
        area.focus();
        area.setSelectionRange(at, at);
      }
    },
  };
}
