// Calls of the public API, in the name of the session.

import { parse, stringify } from "./exact.js";

/** An answer that is an error. */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   * @param {string | null} request
   * @param {{path: string | null, message: string}[]} problems with the places that they concern
   */
  constructor(status, message, request, problems = []) {
    super(message);
    this.status = status;
    this.request = request;
    this.problems = problems;
  }
}

/**
 * Where in a request a problem is, as people see it: `tables[0].rows[2].owner` is `row 3, owner`.
 * @param {string} path
 */
function placeOf(path) {
  const [, row, column] = /^tables\[\d+\](?:\.rows\[(\d+)\])?\.?(.*)$/s.exec(path) ?? [null, undefined, path];
  return [Number(row) > 0 ? `row ${Number(row) + 1}` : "", column].filter(Boolean).join(", ");
}

/**
 * A problem in words.
 * @param {string} path
 * @param {string} message
 */
function placed(path, message) {
  const place = placeOf(path);
  return place ? `${place}: ${message}` : message;
}

/**
 * The sentences of an error's body.
 * @param {any} body
 * @param {number} status
 * @returns {string}
 */
export function told(body, status) {
  if (Array.isArray(body?.errors)) {
    return body.errors.map((/** @type {any} */ it) => placed(it.path ?? "", it.message)).join("\n");
  }
  if (Array.isArray(body?.detail)) {
    return body.detail.map((/** @type {any} */ it) => placed(it.loc.slice(1).join("."), it.msg.replace("Value error, ", ""))).join("\n");
  }
  return body?.detail ? String(body.detail) : `The platform answered ${status}.`;
}

/** Asks for a new session; null where nobody is signed in. @type {(() => Promise<boolean>) | null} */
let renew = null;

/** The question that is open. @type {Promise<boolean> | null} */
let renewing = null;

/**
 * Sets what happens when the session has ended.
 * @param {(() => Promise<boolean>) | null} work resolves to true once there is a new session of the same person
 */
export function whenEnded(work) {
  renew = work;
}

/** Asks once for all requests that were refused; fails if nobody signs in. */
export async function renewed() {
  renewing ??= (renew?.() ?? Promise.resolve(false)).finally(() => {
    renewing = null;
  });
  if (!(await renewing)) {
    throw new ApiError(401, "You are no longer signed in, so nothing was read or written. Try it again to sign in.", null);
  }
}

/**
 * Sends a request and returns the answer's body and the address of the next page.
 * @param {string} method
 * @param {string} path below /api/v1
 * @param {any} [body]
 * @returns {Promise<{body: any, next: string | null}>}
 */
export async function call(method, path, body) {
  const isForm = body instanceof FormData;
  let response;
  try {
    response = await fetch(`api/v1${path}`, {
      method,
      credentials: "same-origin",
      headers: body === undefined || isForm ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : isForm ? body : stringify(body),
    });
  } catch {
    throw new ApiError(0, "The platform cannot be reached. Is it running, and is this machine on its network?", null);
  }
  if (response.status === 401 && path !== "/session") {
    await renewed();
    return call(method, path, body);
  }
  const text = await response.text();
  const read = text && response.headers.get("content-type")?.includes("json") ? parse(text) : null;
  if (!response.ok) {
    throw new ApiError(response.status, told(read, response.status), response.headers.get("x-request-id"), read?.errors);
  }
  const next = /<([^>]+)>;\s*rel="next"/.exec(response.headers.get("link") ?? "");
  return { body: read, next: next ? below(next[1]) : null };
}

/**
 * The path of an address below /api/v1. The platform may name itself otherwise than the browser called it, as 127.0.0.1
 * and localhost, and a session is good for one name.
 * @param {string} address
 */
function below(address) {
  const url = new URL(address, location.href);
  return url.pathname.replace(/^.*?\/api\/v1(?=\/)/, "") + url.search;
}

/**
 * The address of a signed URL for this page: of one of the platform's own, only the path is kept.
 * @param {string} signed
 */
export function stored(signed) {
  const url = new URL(signed);
  const own = /\/(storage\/.*)$/.exec(url.pathname);
  return own ? own[1] + url.search : signed;
}

/** The body of an answer. @param {string} path */
export async function get(path) {
  return (await call("GET", path)).body;
}

/**
 * Every entry of a list, over all its pages.
 * @param {string} path
 * @returns {Promise<any[]>}
 */
export async function every(path) {
  const found = [];
  /** @type {string | null} */
  let at = `${path}${path.includes("?") ? "&" : "?"}limit=1000`;
  while (at) {
    const { body, next } = await call("GET", at);
    found.push(...body);
    at = next;
  }
  return found;
}

/**
 * A request for a button, after which the page is read again.
 * @param {string} method
 * @param {string} path
 * @param {any} body
 * @param {() => void} done
 */
export function sending(method, path, body, done) {
  return async () => {
    await call(method, path, body);
    done();
  };
}

/**
 * @param {string} path
 * @param {any} [body]
 */
export async function post(path, body) {
  return (await call("POST", path, body)).body;
}
