// SQL logins: PostgreSQL for people's own tools.

import { call, get, post } from "../api.js";
import { destroy, form, h, input, show } from "../dom.js";
import { time } from "../format.js";
import { grid } from "../grid.js";
import { labeled } from "../tables.js";
import { once } from "./people.js";

const REASONS = /** @type {Record<string, string>} */ ({
  expired: "its time has passed",
  user_disabled: "its user was disabled",
  not_shared: "several organizations share this platform",
  role_missing: "its role is missing, as after a restore",
});

const TOOLS = /** @type {Record<string, string>} */ ({ psql: "psql", r: "R", matlab: "MATLAB", duckdb: "DuckDB", grafana: "Grafana" });

/**
 * @param {() => void} draw
 */
export async function sqlLogins(draw) {
  const all = await get("/sql-logins?limit=1000");
  const place = h("div", { "aria-live": "polite" });
  const name = input({ required: true, maxlength: 200, placeholder: "Grafana in the hall" });
  const days = input({ type: "number", min: 1, max: 36500, placeholder: "never" });
  const add = async () => {
    const ends = days.value ? new Date(Date.now() + Number(days.value) * 86_400_000).toISOString() : null;
    const made = await post("/sql-logins", { name: name.value, expires_at: ends });
    const examples = Object.entries(TOOLS).flatMap(([tool, title]) => [h("dt", null, title), h("dd", null, h("code", { class: "secret" }, made.examples[tool]))]);
    show(place, once("Tools connect by this URL, which holds the password and is shown only once.", made.dsn, draw), h("details", null, h("summary", null, "Lines for tools"), h("dl", null, examples)));
  };
  const fields = form(
    [
      ["For", name],
      ["Days until it expires", days],
    ],
    "Make the login",
    add,
  );
  const row = (/** @type {any} */ it) => [
    it.name,
    h("code", null, it.user),
    it.ended_at ? `ended: ${REASONS[it.end_reason] ?? it.end_reason}` : "active",
    it.expires_at ? time(it.expires_at) : "never",
    time(it.created_at),
    destroy("Revoke", `Revoke ${it.name}: its sessions end`, async () => {
      await call("DELETE", `/sql-logins/${it.id}`);
      draw();
    }),
  ];
  const columns = ["For", "User", "State", "Expires", "Made", "Revoke"];
  const none = "There is no SQL login. With one, psql, R, Grafana and other tools read your tables as a PostgreSQL database.";
  return h("div", null, h("details", null, h("summary", null, "New SQL login"), fields), labeled(grid(columns, all.map(row), none), "SQL logins"), place);
}
