// Answers of the agent, which models write in Markdown: the part of CommonMark that they use, and tables. Elements are made
// one by one, so that nothing in an answer becomes markup of its own.

import { grid } from "./grid.js";
import { h } from "./dom.js";

/** The most characters that are formatted. A longer text is shown as it is. */
const LONGEST = 100_000;

/** How deep lists and quotations are nested. */
const DEEPEST = 6;

const FENCE = /^\s*(```+|~~~+)/;
const HEADING = /^#{1,6}\s+(.*?)\s*#*$/;
const RULE = /^\s*([-*_])(\s*\1){2,}\s*$/;
const QUOTE = /^\s*>\s?/;
const ITEM = /^(\s*)([-*+]|(\d{1,9})[.)])\s+/;
const DELIMITERS = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

/**
 * Parts of a line: code, strong and emphasized text, links. Within words an asterisk multiplies. Lengths are bounded, as each
 * begin may be searched to its end.
 */
const INLINE =
  /`([^`]{1,2000})`|\*\*(?=\S)(.{1,2000}?)\*\*|__(?=\S)(.{1,2000}?)__(?!\w)|(?<!\w)\*(?=\S)([^*]{0,2000}[^*\s])\*(?!\w)|(?<!\w)_(?=\S)([^_]{0,2000}[^_\s])_(?!\w)|\[([^[\]]{1,500})\]\((https?:\/\/[^\s)]{1,2000})\)/g;

/**
 * Elements that show a text in Markdown.
 * @param {string} text
 * @returns {HTMLElement[]}
 */
export function markdown(text) {
  if (text.length > LONGEST) {
    return [h("div", { class: "told" }, text)];
  }
  return blocks(text.split(/\r?\n/), 0);
}

/**
 * @param {string[]} lines
 * @param {number} depth
 * @returns {HTMLElement[]}
 */
function blocks(lines, depth) {
  const found = [];
  let at = 0;
  /** The lines from here on that meet a condition. */
  const take = (/** @type {(line: string, index: number) => boolean} */ meets) => {
    const from = at;
    while (at < lines.length && meets(lines[at], at)) {
      at++;
    }
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const line = lines[at];
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    if (line.trim() === "") {
      at++;
    } else if (fence) {
      at++;
      const code = take((it) => !it.trim().startsWith(fence[1]));
      at++;
      found.push(h("pre", { tabindex: "0" }, code.join("\n")));
    } else if (heading) {
      at++;
      found.push(h("p", { class: "heading" }, inline(heading[1])));
    } else if (RULE.test(line)) {
      at++;
      found.push(h("hr"));
    } else if (isTable(lines, at)) {
      const rows = take((it) => it.includes("|")).map(cells);
      const width = rows[0].length;
      const isRight = (/** @type {number} */ index) => /^-+:$/.test(rows[1][index]);
      const cell = (/** @type {string} */ text, /** @type {number} */ index) => (isRight(index) ? h("td", { class: "number" }, inline(text)) : h("span", null, inline(text)));
      const body = rows.slice(2).map((row) => Array.from({ length: width }, (_, index) => cell(row[index] ?? "", index)));
      const head = rows[0].map((name) => h("span", null, inline(name)));
      found.push(grid(head, body, "No rows."));
    } else if (QUOTE.test(line) && depth < DEEPEST) {
      const quoted = take((it) => QUOTE.test(it)).map((it) => it.replace(QUOTE, ""));
      found.push(h("blockquote", null, blocks(quoted, depth + 1)));
    } else if (ITEM.test(line) && depth < DEEPEST) {
      found.push(list(take(isOfList(line)), depth));
    } else {
      // The first line belongs to it, whatever it looks like: it may be nested too deep.
      at++;
      found.push(h("p", null, inline([line, ...take((_, index) => !begins(lines, index))].join("\n"))));
    }
  }
  return found;
}

/**
 * @param {string[]} lines
 * @param {number} at
 */
function begins(lines, at) {
  const line = lines[at];
  return [FENCE, HEADING, RULE, QUOTE, ITEM].some((it) => it.test(line)) || line.trim() === "" || isTable(lines, at);
}

/**
 * @param {string[]} lines
 * @param {number} at
 */
function isTable(lines, at) {
  return lines[at].includes("|") && lines[at + 1]?.includes("-") && DELIMITERS.test(lines[at + 1]) && cells(lines[at]).length === cells(lines[at + 1]).length;
}

/** The cells of a line of a table. @param {string} line */
function cells(line) {
  const inner = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

/**
 * Whether a line belongs to a list: its items, what is indented below them, and empty lines between.
 * @param {string} first its first line
 */
function isOfList(first) {
  const [, indent, , number] = /** @type {RegExpExecArray} */ (ITEM.exec(first));
  let wasEmpty = false;
  return (/** @type {string} */ line) => {
    const item = ITEM.exec(line);
    const isEmpty = line.trim() === "";
    const isItem = item && (item[1].length > indent.length + 1 || (item[3] === undefined) === (number === undefined));
    const continues = !item && !wasEmpty && ![FENCE, HEADING, RULE].some((it) => it.test(line));
    wasEmpty = isEmpty;
    return isEmpty || isItem || (!item && /^\s{2,}/.test(line)) || continues;
  };
}

/**
 * @param {string[]} lines
 * @param {number} depth
 */
function list(lines, depth) {
  const first = /** @type {RegExpExecArray} */ (ITEM.exec(lines[0]));
  const indent = first[1].length;
  /** @type {string[][]} */
  const items = [];
  let inner = 0;
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item && item[1].length <= indent + 1) {
      inner = item[0].length;
      items.push([line.slice(inner)]);
    } else {
      const blank = /^\s*/.exec(line)?.[0].length ?? 0;
      items.at(-1)?.push(line.slice(Math.min(blank, inner)));
    }
  }
  const shown = items.map((item) => h("li", null, blocks(item, depth + 1)));
  return first[3] === undefined ? h("ul", null, shown) : h("ol", { start: first[3] }, shown);
}

/**
 * @param {string} text
 * @returns {(HTMLElement | string)[]}
 */
function inline(text) {
  const found = [];
  let end = 0;
  for (const part of text.matchAll(INLINE)) {
    const [whole, code, strong, strongToo, slanted, slantedToo, words, address] = part;
    found.push(text.slice(end, part.index));
    end = part.index + whole.length;
    if (code !== undefined) {
      found.push(h("code", null, code));
    } else if (strong ?? strongToo) {
      found.push(h("strong", null, inline(strong ?? strongToo)));
    } else if (slanted ?? slantedToo) {
      found.push(h("em", null, inline(slanted ?? slantedToo)));
    } else {
      found.push(h("a", { href: address, rel: "noopener noreferrer" }, words), host(address));
    }
  }
  found.push(text.slice(end));
  return found;
}

/** The host that a link leads to, which its words may hide. @param {string} address */
function host(address) {
  return h("small", { class: "quiet" }, ` (${URL.canParse(address) ? new URL(address).host : address})`);
}
