// Python as people read it, and what differs between two scripts.

import { h } from "./dom.js";

const KEYWORDS = new Set(
  (
    "and as assert async await break case class continue def del elif else except finally for from global if import in " +
    "is lambda match nonlocal not or pass raise return try while with yield True False None"
  ).split(" "),
);

/** Comments, strings (of several lines, too), numbers, words. Anything else is between them. */
const TOKENS =
  /(#[^\n]*)|([rbfuRBFU]{0,2}(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))|(\b\d[\w.]*)|([A-Za-z_]\w*)/g;

/** A script with its parts marked. @param {string} code */
export function python(code) {
  const parts = [];
  let end = 0;
  for (const match of code.matchAll(TOKENS)) {
    const [text, comment, string, number, word] = match;
    const kind = comment ? "comment" : string ? "string" : number ? "number" : KEYWORDS.has(word) ? "keyword" : null;
    if (kind) {
      parts.push(code.slice(end, match.index), h("span", { class: kind }, text));
      end = match.index + text.length;
    }
  }
  parts.push(code.slice(end));
  return h("pre", { class: "code", tabindex: "0" }, parts);
}

/** The most lines that are compared line by line: the time grows with the square. */
const COMPARED = 2000;

/**
 * Lines of two texts side by side; a missing side is null.
 * @param {string} before
 * @param {string} after
 * @returns {[string | null, string | null][]}
 */
function differences(before, after) {
  const [a, b] = [before.split("\n"), after.split("\n")];
  if (a.length > COMPARED || b.length > COMPARED) {
    const both = Array.from({ length: Math.max(a.length, b.length) }, (_, index) => index);
    return both.map((index) => [a[index] ?? null, b[index] ?? null]);
  }
  // common[i][j]: the length of the longest common run of lines of a from i and b from j.
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      common[i][j] = a[i] === b[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const lines = /** @type {[string | null, string | null][]} */ ([]);
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push([a[i++], b[j++]]);
    } else if (j >= b.length || (i < a.length && common[i + 1][j] >= common[i][j + 1])) {
      lines.push([a[i++], null]);
    } else {
      lines.push([null, b[j++]]);
    }
  }
  return lines;
}

/**
 * Two scripts side by side, with what was taken and added.
 * @param {[string, string]} names
 * @param {string} before
 * @param {string} after
 */
export function sideBySide(names, before, after) {
  const cell = (/** @type {string | null} */ line, /** @type {string | false} */ kind) => h("td", { class: kind }, line ?? "");
  const row = (/** @type {[string | null, string | null]} */ [left, right]) =>
    h("tr", null, cell(left, right === null && "taken"), cell(right, left === null && "added"));
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Differences" },
    h(
      "table",
      { class: "code differences" },
      h("thead", null, h("tr", null, names.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", null, differences(before, after).map(row)),
    ),
  );
}
