// Changes of a table's definition, in words.

/**
 * @typedef {{words: string, isLoss?: boolean}} Change
 */

/**
 * What a changed definition of a column means, in words.
 * @param {Column} before
 * @param {any} after
 * @returns {Change[]}
 */
export function columnChanges(before, after) {
  const name = before.name;
  const value = (/** @type {any} */ it) => (it === null || it === undefined || it === "" ? "none" : `"${it}"`);
  const text = (/** @type {string} */ what, /** @type {any} */ from, /** @type {any} */ to) => ((from ?? "") === (to ?? "") ? [] : [{ words: `${name}: ${what} ${value(from)} → ${value(to)}` }]);
  const rule = (/** @type {boolean} */ from, /** @type {boolean} */ to, /** @type {string} */ set, /** @type {string} */ taken) => (from === to ? [] : [{ words: `${name} ${to ? set : taken}` }]);
  return [
    ...(after.name === name ? [] : [{ words: `${name} is called ${after.name}; its values stay. Scripts and saved queries that say ${name} have to follow.` }]),
    ...(after.data_type === before.data_type ? [] : [{ words: `${name}: ${before.data_type} becomes ${after.data_type}, if every stored value converts exactly` }]),
    ...text("label", before.label, after.label),
    ...text("unit", before.unit, after.unit).map((it) => ({ words: `${it.words}. The stored numbers stay as they are.` })),
    ...text("description", before.description, after.description),
    ...rule(!before.is_nullable, !after.is_nullable, "is required, if every row has a value", "may be empty"),
    ...rule(before.is_unique, after.is_unique, "has to be unique, if all stored values differ", "need not be unique"),
  ];
}

/**
 * What a changed access of a table means, in words.
 * @param {{read?: string[], write?: string[]}} before
 * @param {{read: string[], write: string[]}} after
 * @returns {Change[]}
 */
export function accessChanges(before, after) {
  const who = (/** @type {string[]} */ groups) => (groups.length ? `${groups.join(", ")} and administrators` : "everyone of the organization");
  const changed = (/** @type {string[] | undefined} */ from, /** @type {string[]} */ to) => [...(from ?? [])].sort().join("\n") !== [...to].sort().join("\n");
  return [
    ...(changed(before.read, after.read) ? [{ words: `The table is read by ${who(after.read)}${after.read.length && after.write.length ? ", and by who writes it" : ""}. For others it does not exist.` }] : []),
    ...(changed(before.write, after.write) ? [{ words: `The table is written by ${who(after.write)}, as far as they read it.` }] : []),
  ];
}
