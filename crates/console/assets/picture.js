// The tables and their references as a picture.

import { h, s } from "./dom.js";
import { references, written } from "./tables.js";

const WIDTH = 168;
const HEAD = 26;
const LINE = 17;
const GAP = { across: 72, down: 22 };

/** Most columns of a table that its box lists. */
const LISTED = 6;

/**
 * The number of references that lead from a table on, at most; tables that refer to each other in a circle count once.
 * @param {Table} table
 * @param {Table[]} shown
 * @param {Set<string>} passed
 * @returns {number}
 */
function depth(table, shown, passed = new Set()) {
  if (passed.has(table.name)) {
    return 0;
  }
  const further = new Set([...passed, table.name]);
  const targets = references(table).map((column) => shown.find((it) => it.name === column.foreign_key_table_name));
  return Math.max(0, ...targets.map((target) => (target && target !== table ? 1 + depth(target, shown, further) : 0)));
}

/** The columns that a box lists: the references first, as its lines start at them. @param {Table} table */
function listed(table) {
  const refers = references(table);
  const own = written(table).filter((it) => !it.is_primary_key && !refers.includes(it));
  const all = [...refers, ...own];
  return { columns: all.slice(0, LISTED), left: Math.max(0, all.length - LISTED) };
}

/**
 * Draws the organization's tables and the core tables that they refer to, each left of those that refer to it.
 * @param {Table[]} all
 */
export function picture(all) {
  const own = all.filter((table) => table.id !== null);
  const targets = new Set(own.flatMap((table) => references(table).map((column) => column.foreign_key_table_name)));
  const shown = all.filter((table) => table.id !== null || targets.has(table.name));
  /** @type {Table[][]} */
  const ranks = [];
  for (const table of shown) {
    (ranks[depth(table, shown)] ??= []).push(table);
  }
  const height = (/** @type {Table} */ table) => {
    const { columns, left } = listed(table);
    return HEAD + LINE * (columns.length + (left ? 1 : 0)) + 8;
  };
  /** @type {Map<string, {x: number, y: number}>} */
  const at = new Map();
  let bottom = 0;
  for (const [rank, tables] of ranks.entries()) {
    let y = 8;
    for (const table of tables ?? []) {
      at.set(table.name, { x: 8 + rank * (WIDTH + GAP.across), y });
      y += height(table) + GAP.down;
    }
    bottom = Math.max(bottom, y - GAP.down);
  }
  const size = { width: 16 + ranks.length * WIDTH + (ranks.length - 1) * GAP.across, height: bottom + 8 };
  const name = `${shown.length} tables and their references`;
  const svg = s("svg", { ...size, viewBox: `0 0 ${size.width} ${size.height}`, role: "group", "aria-label": name });
  svg.append(...shown.flatMap((table) => lines(table, at)), ...shown.map((table) => box(table, at, height(table))));
  return h("div", { class: "scroll picture", tabindex: "0", role: "region", "aria-label": "Picture of the tables" }, svg);
}

/**
 * @param {Table} table
 * @param {Map<string, {x: number, y: number}>} at
 */
function lines(table, at) {
  const from = /** @type {{x: number, y: number}} */ (at.get(table.name));
  return listed(table).columns.flatMap((column, index) => {
    const to = column.is_foreign_key ? at.get(column.foreign_key_table_name ?? "") : undefined;
    if (!to) {
      return [];
    }
    const y = from.y + HEAD + LINE * (index + 0.5) + 3;
    const end = { x: to.x + WIDTH, y: to.y + HEAD / 2 };
    const bend = Math.max(30, Math.abs(from.x - end.x) / 2);
    const path = `M${from.x},${y}C${from.x - bend},${y} ${end.x + bend},${end.y} ${end.x},${end.y}`;
    return [s("path", { d: path, class: "reference" }), s("circle", { cx: end.x, cy: end.y, r: 3, class: "target" })];
  });
}

/**
 * @param {Table} table
 * @param {Map<string, {x: number, y: number}>} at
 * @param {number} height
 */
function box(table, at, height) {
  const { x, y } = /** @type {{x: number, y: number}} */ (at.get(table.name));
  const { columns, left } = listed(table);
  const short = (/** @type {string} */ text, /** @type {number} */ most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  const text = columns.map((column, index) => {
    const line = { x: x + 10, y: y + HEAD + LINE * (index + 1) - 1, class: column.is_foreign_key ? "refers" : "column" };
    return s("text", line, short(column.name, 22));
  });
  if (left > 0) {
    text.push(s("text", { x: x + 10, y: y + HEAD + LINE * (columns.length + 1) - 1, class: "column" }, `and ${left} more`));
  }
  return s(
    "a",
    { href: `#/tables/${encodeURIComponent(table.name)}`, class: table.semantic_category },
    s("title", {}, table.description ?? table.name),
    s("rect", { x, y, width: WIDTH, height, rx: 6 }),
    s("path", { d: `M${x},${y + HEAD}h${WIDTH}`, class: "rule" }),
    s("text", { x: x + 10, y: y + 17, class: "table" }, short(table.name, 20)),
    ...text,
  );
}
