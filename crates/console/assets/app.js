// The console: who is signed in, and which page is shown.

import { ApiError, call, get, post, whenEnded } from "./api.js";
import { failure, h, show } from "./dom.js";
import { turn } from "./stream.js";
import { admin } from "./pages/admin.js";
import { chat, chats } from "./pages/chat.js";
import { execution, executions } from "./pages/executions.js";
import { file, files } from "./pages/files.js";
import { home } from "./pages/home.js";
import { job, jobs } from "./pages/jobs.js";
import { model, models } from "./pages/models.js";
import { plate, plates } from "./pages/plates.js";
import { query } from "./pages/query.js";
import { keyForm, signIn } from "./pages/sign_in.js";
import { table, tables } from "./pages/tables.js";

/** Pages by the first part of the fragment: of a list, and of one thing in it. */
const PAGES = /** @type {Record<string, {name: string, all: () => Node[], one?: (id: string) => Node[]}>} */ ({
  home: { name: "Home", all: home },
  tables: { name: "Tables", all: tables, one: table },
  plates: { name: "Plates", all: plates, one: plate },
  files: { name: "Files", all: files, one: file },
  executions: { name: "Executions", all: executions, one: execution },
  jobs: { name: "Jobs", all: jobs, one: job },
  models: { name: "Models", all: models, one: model },
  chat: { name: "Chat", all: chats, one: chat },
  sql: { name: "SQL", all: query },
  admin: { name: "Admin", all: admin },
});

const FIRST = "home";

/**
 * @param {Api["Me"]} me
 */
function frame(me) {
  const main = h("main", { id: "main", tabindex: "-1" });
  const links = Object.entries(PAGES).map(([path, page]) => h("a", { href: `#/${path}` }, page.name));
  const leave = async () => {
    try {
      await call("DELETE", "/session");
      start();
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        start();
      } else {
        show(main, failure(error));
      }
    }
  };
  const draw = () => {
    turn();
    const [first, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
    const page = PAGES[first] ?? PAGES[FIRST];
    const one = decoded(rest.join("/"));
    for (const link of links) {
      const isHere = link.textContent === page.name;
      link.toggleAttribute("aria-current", isHere);
      if (isHere) {
        link.setAttribute("aria-current", "page");
      }
    }
    document.title = one ? `${one} · labdata` : `${page.name} · labdata`;
    show(main, ...(one && page.one ? page.one(one) : page.all()));
  };
  whenEnded(() => again(me));
  window.onhashchange = () => {
    draw();
    main.focus();
  };
  show(
    document.body,
    h(
      "header",
      null,
      h("a", { class: "skip", href: "#main", click: skip }, "Skip to the page"),
      h("strong", null, "labdata"),
      h("nav", { "aria-label": "Pages" }, links, h("a", { href: "docs/" }, "API")),
      h("span", { class: "who" }, `${me.user.name}, ${me.organization.name}`),
      h("button", { type: "button", click: leave }, "Sign out"),
    ),
    main,
  );
  draw();
}

/**
 * @param {string} text
 */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * The fragment is the page's address, so the link must not change it.
 * @param {Event} event
 */
function skip(event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

/**
 * Asks for a key over the page, which keeps what was typed into it. True once the same person is signed in again.
 * @param {Api["Me"]} me
 * @returns {Promise<boolean>}
 */
function again(me) {
  return new Promise((resolve) => {
    let isBack = false;
    const entered = (/** @type {Api["Me"]} */ now) => {
      if (now.user.id !== me.user.id || now.organization.id !== me.organization.id) {
        // Nothing of the other one may stay on the page.
        location.reload();
        return;
      }
      isBack = true;
      dialog.close();
    };
    const close = () => {
      dialog.remove();
      resolve(isBack);
    };
    const words = h("p", null, `The session of ${me.user.name} has ended. Sign in again: the page stays as it is.`);
    const dialog = /** @type {HTMLDialogElement} */ (
      h("dialog", { class: "sign-in", "aria-label": "Sign in again", close }, words, keyForm(null, entered))
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}

/**
 * @param {string | null} problem
 */
function ask(problem) {
  window.onhashchange = null;
  whenEnded(null);
  turn();
  document.title = "Sign in · labdata";
  show(document.body, signIn(problem, frame));
  document.getElementById("key")?.focus();
}

async function start() {
  const token = /^#token=(.+)$/.exec(location.hash)?.[1];
  if (token) {
    // Out of the address and the history, before anything else.
    history.replaceState(null, "", location.pathname);
    try {
      frame(await post("/session", { token }));
    } catch (error) {
      ask(error instanceof Error ? error.message : String(error));
    }
    return;
  }
  try {
    frame(await get("/session"));
  } catch (error) {
    ask(error instanceof ApiError && error.status === 401 ? null : String(/** @type {any} */ (error).message));
  }
}

start();
