// A SQL statement and its result.

import { post } from "../api.js";
import { h, load } from "../dom.js";
import { grid } from "../grid.js";

/** The last statement, for as long as the page is open. */
let last = "select table_name from information_schema.tables where table_schema not like 'pg_%' order by 1";

/** The SQL box. */
export function query() {
  const text = /** @type {HTMLTextAreaElement} */ (
    h("textarea", { "aria-label": "SQL", rows: "6", spellcheck: "false" }, last)
  );
  const place = h("div", { "aria-live": "polite" });
  const run = (/** @type {Event} */ event) => {
    event.preventDefault();
    last = text.value;
    load(place, "The query runs, for 15 s at most", async () => {
      const began = performance.now();
      const result = await post("/tools/query", { query: text.value });
      const took = Math.round(performance.now() - began);
      const count = result.data.length;
      return h(
        "div",
        null,
        h("p", { class: "quiet" }, `${count} ${count === 1 ? "row" : "rows"} in ${took} ms`),
        grid(result.columns, result.data, "The result has no rows."),
      );
    });
  };
  const key = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      run(event);
    }
  };
  text.addEventListener("keydown", key);
  return [
    h("h1", null, "SQL"),
    h(
      "form",
      { submit: run },
      text,
      h(
        "p",
        null,
        h("button", { class: "primary" }, "Run"),
        " ",
        h("small", { class: "quiet" }, "Ctrl+Enter. One SELECT over your organization's tables."),
      ),
    ),
    place,
  ];
}
