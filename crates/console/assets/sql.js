// Rules of the SQL page: parameters of a statement, bars of several rows. Nothing here knows of pages.

/** What becomes of several rows at one place of one group. @type {Record<string, (values: number[]) => number>} */
export const TOGETHER = {
  mean: (values) => values.reduce((sum, it) => sum + it, 0) / values.length,
  sum: (values) => values.reduce((sum, it) => sum + it, 0),
  greatest: (values) => values.reduce((best, it) => Math.max(best, it)),
  smallest: (values) => values.reduce((best, it) => Math.min(best, it)),
};

/**
 * Number of a statement's parameters: the greatest `$n`, else the number of `%s`, outside of its texts.
 * @param {string} statement
 */
export function parameterCount(statement) {
  const rest = statement.replace(/'(?:[^']|'')*'|"[^"]*"|--.*/g, "");
  const numbered = [...rest.matchAll(/\$(\d{1,2})/g)].map((found) => Number(found[1]));
  return numbered.length ? Math.max(...numbered) : (rest.match(/%s/g)?.length ?? 0);
}

/**
 * One bar for all points at the same place. Errors of several rows say nothing of what they become together.
 * @param {{key: any, at: any, y: any, error: any}[]} points by `key`, as places of long numbers are rounded
 * @param {string} how
 */
export function bars(points, how) {
  /** @type {Map<any, {at: any, known: {y: any, error: any}[]}>} */
  const found = new Map(points.map((it) => [it.key, { at: it.at, known: [] }]));
  for (const it of points) {
    if (it.y !== null) {
      found.get(it.key)?.known.push(it);
    }
  }
  return [...found.values()].map(({ at, known }) => ({ at, y: known.length ? TOGETHER[how](known.map((it) => it.y)) : null, error: known.length === 1 ? known[0].error : null }));
}
