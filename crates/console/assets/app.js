// The console: who is signed in, and which page is shown.

import { ApiError, call, get, post, whenEnded } from "./api.js";
import { failure, h, show, titled } from "./dom.js";
import { isUnsaved, mayLeave } from "./guard.js";
import { palette, shortcuts } from "./keys.js";
import { may, missing, signedInAs } from "./rights.js";
import { moved, parts } from "./state.js";
import { turn } from "./stream.js";
import { keyForm, signIn } from "./pages/sign_in.js";

/** @typedef {{all: () => (Node | string)[], one?: (id: string) => (Node | string)[]}} Page of a list, and of one of its entries */

/**
 * Pages by the first part of the fragment. A page's modules are read when it is shown for the first time: over a slow
 * network all of them would hold up the first one.
 * @type {Record<string, {name: string, load: () => Promise<Page>}>}
 */
const PAGES = {
  home: { name: "Home", load: () => import("./pages/home.js").then((it) => ({ all: it.home })) },
  tables: { name: "Tables", load: () => import("./pages/tables.js").then((it) => ({ all: it.tables, one: it.table })) },
  plates: { name: "Plates", load: () => import("./pages/plates.js").then((it) => ({ all: it.plates, one: it.plate })) },
  files: { name: "Files", load: () => import("./pages/files.js").then((it) => ({ all: it.files, one: it.file })) },
  instruments: { name: "Instruments", load: () => import("./pages/instruments.js").then((it) => ({ all: it.instruments, one: it.instrument })) },
  executions: { name: "Executions", load: () => import("./pages/executions.js").then((it) => ({ all: it.executions, one: it.execution })) },
  jobs: { name: "Jobs", load: () => import("./pages/jobs.js").then((it) => ({ all: it.jobs, one: it.job })) },
  models: { name: "Models", load: () => import("./pages/models.js").then((it) => ({ all: it.models, one: it.model })) },
  chat: { name: "Chat", load: () => import("./pages/chat.js").then((it) => ({ all: it.chats, one: it.chat })) },
  sql: { name: "SQL", load: () => import("./pages/query.js").then((it) => ({ all: it.query })) },
  trash: { name: "Trash", load: () => import("./pages/trash.js").then((it) => ({ all: it.trash })) },
  admin: { name: "Admin", load: () => import("./pages/admin.js").then((it) => ({ all: it.admin })) },
};

/** Pages whose modules have been read. @type {Map<string, Page>} */
const LOADED = new Map();

const FIRST = "home";

/** Pages in the order in which they stand beside the page. @type {[string, string[]][]} */
const GROUPS = [
  ["Data", ["home", "plates", "tables", "files", "instruments", "sql", "trash"]],
  ["Work", ["executions", "jobs", "models", "chat"]],
  ["Organization", ["admin"]],
];

/** Administrators read on the page of the chat what has to be set. @param {string} path */
function isOffered(path) {
  return path !== "chat" || missing("agent") === null || may("admin");
}

/** @param {Api["Me"]} me */
function frame(me) {
  signedInAs(me);
  const main = h("main", { id: "main", tabindex: "-1" });
  const offered = Object.fromEntries(Object.entries(PAGES).filter(([path]) => isOffered(path)));
  const { menu, nav, mark } = navigation(offered);
  const draw = drawing(main, mark);
  const find = h("button", { type: "button", class: "find", title: "Ctrl+K", click: () => palette(offered) }, "Search…", h("kbd", { "aria-hidden": "true" }, "Ctrl K"));
  whenEnded(() => again(me));
  shortcuts(offered);
  follow(() => {
    draw();
    main.focus();
  });
  show(
    document.body,
    h(
      "header",
      null,
      h("a", { class: "skip", href: "#main", click: skip }, "Skip to the page"),
      h("div", { class: "brand" }, h("strong", null, "labdata"), menu),
      find,
      nav,
      h("div", { class: "who" }, h("span", { title: me.user.email }, me.user.name), h("span", { class: "quiet" }, me.organization.name), h("button", { type: "button", click: () => leave(main) }, "Sign out")),
    ),
    main,
  );
  draw();
}

/**
 * The links to the pages, in groups, and the button that opens them on a phone.
 * @param {Record<string, {name: string}>} offered
 */
function navigation(offered) {
  const links = new Map(Object.entries(offered).map(([path, { name }]) => [path, h("a", { href: `#/${path}` }, name)]));
  const group = (/** @type {[string, string[]]} */ [name, paths]) =>
    h("div", { class: "group" }, h("p", { id: `nav-${name}` }, name), h("ul", { "aria-labelledby": `nav-${name}` }, paths.filter(isOffered).map((path) => h("li", null, links.get(path)))));
  const nav = h("nav", { "aria-label": "Pages", id: "pages" }, GROUPS.map(group), h("p", null, h("a", { href: "docs/" }, "API reference")));
  const open = () => {
    const isOpen = nav.classList.toggle("open");
    menu.setAttribute("aria-expanded", String(isOpen));
  };
  const menu = h("button", { type: "button", class: "menu", "aria-expanded": "false", "aria-controls": "pages", click: open }, "Menu");
  /** Marks the page that is shown. @param {string} path */
  const mark = (path) => {
    for (const [other, element] of links) {
      element.removeAttribute("aria-current");
      if (other === path) {
        element.setAttribute("aria-current", "page");
      }
    }
    nav.classList.remove("open");
    menu.setAttribute("aria-expanded", "false");
  };
  return { menu, nav, mark };
}

/**
 * A function that draws the page of the address.
 * @param {HTMLElement} main
 * @param {(path: string) => void} mark
 */
function drawing(main, mark) {
  /** Numbers the drawings, so that a page that is read slowly does not replace a later one. */
  let drawn = 0;
  return () => {
    turn();
    const { page: first, one } = parts();
    const path = PAGES[first] ? first : FIRST;
    const page = PAGES[path];
    mark(path);
    titled(one ? null : page.name);
    const mine = ++drawn;
    const put = (/** @type {Page} */ loaded) => show(main, ...(one && loaded.one ? loaded.one(one) : loaded.all()));
    const known = LOADED.get(path);
    if (known) {
      put(known);
      return;
    }
    // What the page before would still do ends as it leaves the document.
    show(main);
    page.load().then(
      (loaded) => {
        LOADED.set(path, loaded);
        // Another page may have been chosen in the meantime.
        if (mine === drawn) {
          put(loaded);
          (window.requestIdleCallback ?? setTimeout)(readAhead);
        }
      },
      () => mine === drawn && show(main, failure("The page cannot be read. Is the platform running? Then load it again.")),
    );
  };
}

/** Follows the address, unless somebody stays for the sake of unsaved text. @param {() => void} arrived */
function follow(arrived) {
  let before = location.hash;
  window.onhashchange = async () => {
    const wanted = location.hash;
    if (wanted === before) {
      return;
    }
    if (isUnsaved()) {
      // The address is that of the page that is still shown.
      history.replaceState(null, "", before);
      if (!(await mayLeave())) {
        return;
      }
      history.pushState(null, "", wanted);
    }
    before = wanted;
    arrived();
  };
  // A step within a page's view changes the address without leading to another page.
  moved(() => (before = location.hash));
}

/** Ends the session. @param {HTMLElement} main */
async function leave(main) {
  if (!(await mayLeave())) {
    return;
  }
  try {
    await call("DELETE", "/session");
    ended();
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) {
      ended();
    } else {
      show(main, failure(error));
    }
  }
}

/** Reads the modules of every page, so that the next one is there at once and offline. */
function readAhead() {
  const pages = Object.entries(PAGES).map(async ([path, { load }]) => LOADED.set(path, await load()));
  const all = [...pages, import("./palette.js"), import("./uploads.js")];
  // What cannot be read now says so when it is used.
  Promise.allSettled(all);
}

/** Somebody else is next: nothing may stay in the address, on the page or in its modules. */
function ended() {
  history.replaceState(null, "", location.pathname);
  document.body.replaceChildren();
  location.reload();
}

/** The fragment is the page's address, so the link must not change it. @param {Event} event */
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
        ended();
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
    const dialog = h("dialog", { class: "sign-in", "aria-label": "Sign in again", close }, words, keyForm(null, entered));
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** @param {string | null} problem */
function ask(problem) {
  // A link that is pasted here changes the fragment alone.
  window.onhashchange = () => tokenOf(location.hash) && start();
  whenEnded(null);
  turn();
  document.title = "Sign in · labdata";
  show(document.body, signIn(problem, frame));
  document.getElementById("key")?.focus();
}

/** The token of a link that signs in. @param {string} hash */
function tokenOf(hash) {
  return /^#token=(.+)$/.exec(hash)?.[1];
}

async function start() {
  const token = tokenOf(location.hash);
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

/** A file that is dropped beside its place does not replace the console. */
function takeDrops() {
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    const files = [...(event.dataTransfer?.files ?? [])];
    if (event.defaultPrevented) {
      return;
    }
    event.preventDefault();
    if (files.length > 0 && may("write") && document.querySelector("nav")) {
      import("./uploads.js").then(({ keep }) => {
        keep(files);
        location.hash = "#/files";
        if (parts().page === "files") {
          window.dispatchEvent(new HashChangeEvent("hashchange"));
        }
      });
    }
  });
}

window.addEventListener("beforeunload", (event) => isUnsaved() && event.preventDefault());
takeDrops();
start();
