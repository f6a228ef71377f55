// Signing in: with a pasted key. The token of a link is used before any page is shown.

import { get, post } from "../api.js";
import { failure, h, show } from "../dom.js";

/**
 * The form that takes a key.
 * @param {string | null} problem why a link did not work
 * @param {(me: any) => void} entered
 */
export function keyForm(problem, entered) {
  const key = h("input", { id: "key", name: "key", type: "password", autocomplete: "off", required: true, placeholder: "ldk_…" });
  const answer = h("div", { "aria-live": "polite" }, problem ? failure(problem) : null);
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      entered(await post("/session", { api_key: key.value.trim() }));
    } catch (error) {
      show(answer, failure(error));
      key.focus();
    }
  };
  const go = h("button", { class: "primary" }, "Sign in");
  const provider = h("div", null);
  const offer = async () => {
    const link = await providerLink();
    if (link) {
      show(provider, h("p", null, link));
      // Where people have accounts, a key is the exception.
      go.classList.remove("primary");
      if (document.activeElement === key && key.value === "") {
        link.focus();
      }
    }
  };
  // Without a provider, or a response, the key remains.
  offer().catch(() => {});
  return h(
    "div",
    null,
    provider,
    h(
      "form",
      { submit },
      h("label", { for: "key" }, "API key"),
      key,
      go,
      answer,
    ),
    h(
      "p",
      { class: "quiet" },
      "No key at hand? On the platform's machine, ",
      h("code", null, "labdata sign-in"),
      " prints a link that signs you in once.",
    ),
  );
}

/**
 * @param {string | null} problem why a link did not work
 * @param {(me: any) => void} entered
 */
export function signIn(problem, entered) {
  return h("main", { class: "sign-in" }, h("h1", null, "labdata"), keyForm(problem, entered));
}

/** A link to the identity provider, if there is one. */
async function providerLink() {
  const { url } = await get("/session/oidc/about");
  const here = encodeURIComponent(location.pathname + location.search + location.hash);
  return url ? h("a", { class: "provider", href: `${url}?return_to=${here}` }, "Sign in with your institute") : null;
}
