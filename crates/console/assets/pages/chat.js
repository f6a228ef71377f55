// The agent: questions, answers, and what it did for them.

import { every, get, sending } from "../api.js";
import { destroy, failure, h, loaded, show, titled } from "../dom.js";
import { stringify } from "../exact.js";
import { time } from "../format.js";
import { chart } from "../figure.js";
import { grid } from "../grid.js";
import { ticks, watched } from "../list.js";
import { markdown } from "../markdown.js";
import { missing } from "../rights.js";
import { follow } from "../stream.js";
import { undo } from "./executions.js";

/** The list of chats, and a new question. */
export function chats() {
  const place = watched("Reading the chats", ticks, async (draw) => {
    const row = (/** @type {Api["AgentChat"]} */ it) => [
      h("a", { href: `#/chat/${it.id}` }, it.title),
      time(it.updated_at),
      destroy("Delete", `Delete the chat “${it.title}” and its files`, sending("DELETE", `/agent/chats/${it.id}`, undefined, draw)),
    ];
    return grid(["Chat", "Last question", "Delete"], (await every("/agent/chats")).map(row), "No chats yet. Ask about your tables, files and runs.");
  });
  const answers = h("div", { class: "chat" });
  return [h("h1", null, "Chat"), answers, question(null, answers), h("h2", null, "Earlier chats"), place];
}

/** One chat. @param {string} id */
export function chat(id) {
  const title = h("h1", null, "Chat");
  let before = "";
  const messages = watched("Reading the chat", ticks, async () => {
    const it = await get(`/agent/chats/${id}`);
    const now = stringify(it.messages);
    if (now === before) {
      return undefined;
    }
    before = now;
    show(title, it.title);
    titled(it.title);
    const reverts = new Map();
    return h("div", null, it.messages.map((/** @type {Api["AgentMessage"]} */ one) => message(one, id, reverts)));
  });
  messages.classList.add("chat");
  return [h("p", { class: "crumbs" }, h("a", { href: "#/chat" }, "← Chats")), title, messages, question(id, messages)];
}

/**
 * @param {Api["AgentMessage"]} it
 * @param {string} chat
 * @param {Map<string, HTMLElement>} reverts
 */
function message(it, chat, reverts) {
  const calls = it.tool_calls.map((/** @type {Api["AgentToolCall"]} */ tool) => toolCall(tool, chat, reverts));
  // Words before a call say what it is for.
  const words = it.role === "user" ? h("div", { class: "told" }, it.content) : h("div", { class: "answer" }, markdown(it.content ?? ""));
  return bubble(it.role, h("div", null, it.content ? words : null, calls));
}

/**
 * @param {string} role
 * @param {HTMLElement} content
 */
function bubble(role, content) {
  return h("article", { class: role, "aria-label": role === "user" ? "You" : "The agent" }, content);
}

/**
 * What the agent did, folded.
 * @param {Api["AgentToolCall"]} it
 * @param {string | null} chat null while the answer is not complete
 * @param {Map<string, HTMLElement>} reverts by the execution that the calls of a run write under; an element moves to
 *   the last of them
 */
function toolCall(it, chat, reverts) {
  const output = /** @type {any} */ (it.output ?? null);
  const run = /** @type {string | undefined} */ (it.tool_name === "write_data" ? output?.job_execution_id : undefined);
  if (run && chat && !reverts.has(run)) {
    reverts.set(run, revert(run));
  }
  const state = it.output === undefined ? "…" : it.is_error ? " failed" : "";
  return h(
    "div",
    null,
    h(
      "details",
      { class: "tool" },
      h("summary", null, `${it.tool_name}${state}`),
      h("p", { class: "quiet" }, "Input"),
      h("pre", { tabindex: "0" }, text(it.input)),
      it.output === undefined ? null : h("p", { class: "quiet" }, "Output"),
      it.output === undefined ? null : shown(output),
    ),
    figures(output, chat),
    run ? reverts.get(run) : null,
  );
}

/** What a run of the agent wrote, and its revert. @param {string} run */
function revert(run) {
  return loaded("Reading what it wrote", async (draw) => {
    const changes = await get(`/job-executions/${run}/changes`);
    const link = h("a", { href: `#/executions/${run}` }, "What this run wrote");
    return h("div", null, h("p", null, link), undo(run, changes, "Revert what this run wrote", draw));
  });
}

/** @param {any} value */
function text(value) {
  return typeof value === "string" ? value : stringify(value, 2);
}

/** An output: a result of a query as a table, anything else as it is. @param {any} output */
function shown(output) {
  const isTable = Array.isArray(output?.columns) && Array.isArray(output?.data) && output.data.every(Array.isArray);
  return isTable ? grid(output.columns.map(String), output.data, "No rows.") : h("pre", { tabindex: "0" }, text(output));
}

/**
 * Figures that a snippet of Python drew. They are files of the chat, stored when the answer is complete.
 * @param {any} output
 * @param {string | null} chat null while the answer is not complete
 */
function figures(output, chat) {
  const all = Array.isArray(output?.figures) ? output.figures : [];
  return all.map((/** @type {any} */ it) => {
    const name = String(it.name);
    if (!chat || !it.file_id) {
      return h("p", { class: "quiet" }, `${name}: shown when the answer is complete.`);
    }
    const address = `api/v1/agent/chats/${encodeURIComponent(chat)}/files/${encodeURIComponent(it.file_id)}`;
    const link = h("p", null, h("a", { href: address, download: true }, `Download ${name}`));
    const shown = String(it.media_type).startsWith("image/") ? h("img", { src: address, alt: name }) : chart(address, name);
    return h("figure", null, shown, link);
  });
}

/** What was typed while the first answer of a chat came, for the page of that chat. @type {string | null} */
let carried = null;

/**
 * The form that asks. The answer is shown as it comes.
 * @param {string | null} chat
 * @param {HTMLElement} place
 */
function question(chat, place) {
  const prompt = h("textarea", { class: "prose", rows: 3, required: true, "aria-label": "Question", placeholder: "Which samples grew fastest?" });
  if (carried !== null) {
    prompt.value = carried;
    carried = null;
    // Once the page is there, and has had the focus.
    setTimeout(() => prompt.focus());
  }
  const ask = h("button", { class: "primary" }, "Ask");
  const stop = h("button", { type: "button", hidden: true }, "Stop");
  const bar = h("p", { class: "bar" }, ask, stop, h("small", { class: "quiet" }, "Ctrl+Enter asks, too."));
  const begin = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const asked = prompt.value;
    const told = h("div", { class: "answer" }, h("span", { class: "quiet" }, "The agent thinks…"));
    const calls = h("div", null);
    const shown = h("div", { class: "asking", "aria-live": "polite" }, calls, told);
    place.append(bubble("user", h("div", { class: "told" }, asked)), bubble("assistant", shown));
    prompt.value = "";
    const ending = new AbortController();
    stop.onclick = () => ending.abort();
    ask.setAttribute("disabled", "");
    stop.removeAttribute("hidden");
    try {
      const now = await answer(asked, chat, { calls, told, stop: ending.signal });
      // Whoever has gone to another page meanwhile stays there.
      if (now && now !== chat && place.isConnected) {
        [carried, prompt.value] = [prompt.value, ""];
        location.hash = `#/chat/${now}`;
      }
      shown.classList.remove("asking");
    } catch (error) {
      show(told, failure(error));
      // To ask once more takes no typing.
      prompt.value ||= asked;
    }
    ask.removeAttribute("disabled");
    stop.setAttribute("hidden", "");
  };
  const key = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      begin(event);
    }
  };
  const why = missing("agent");
  return why ? h("p", { class: "empty" }, `Nothing can be asked: ${why}.`) : h("form", { submit: begin, keydown: key }, prompt, bar);
}

/**
 * Asks and shows; returns the chat's id.
 * @param {string} prompt
 * @param {string | null} chat
 * @param {{calls: HTMLElement, told: HTMLElement, stop: AbortSignal}} shownIn
 */
async function answer(prompt, chat, { calls, told, stop }) {
  const tools = /** @type {Map<string, any>} */ (new Map());
  let [id, words] = [chat, ""];
  const shownAt = /** @type {Map<string, HTMLElement>} */ (new Map());
  const reverts = new Map();
  // Alone, so that other calls stay folded or open as they are.
  const draw = (/** @type {string} */ tool, /** @type {string | null} */ stored = null) => {
    const drawn = toolCall(tools.get(tool), stored, reverts);
    const last = shownAt.get(tool);
    last ? last.replaceWith(drawn) : calls.append(drawn);
    shownAt.set(tool, drawn);
  };
  /** @type {unknown} */
  let problem = null;
  const on = (/** @type {any} */ { data }) => {
    if (data.type === "run_started") {
      id = data.chat_id ?? id;
    } else if (data.type === "text_delta") {
      words += data.delta;
      show(told, ...markdown(words));
    } else if (data.type === "tool_call") {
      tools.set(data.tool_call_id, { ...data, output: undefined });
      draw(data.tool_call_id);
    } else if (data.type === "tool_result") {
      tools.set(data.tool_call_id, { ...tools.get(data.tool_call_id), ...data });
      draw(data.tool_call_id);
    } else if (data.type === "result") {
      show(told, ...markdown(data.result.output));
      // Null if the answer could not be saved: there is no chat to go to, then.
      id = data.result.chat_id ?? chat;
      for (const tool of tools.keys()) {
        draw(tool, data.result.chat_id);
      }
    } else if (data.type === "error") {
      problem = new Error(data.error);
    }
  };
  await follow("/agent/runs", on, { method: "POST", body: { prompt, chat_id: chat, stream: true, save: true }, stop });
  if (problem) {
    throw problem;
  }
  if (stop.aborted) {
    show(told, ...markdown(words), h("p", { class: "quiet" }, "Stopped."));
    return chat;
  }
  return id;
}
