// What the person who is signed in may do. Pages offer nothing that would be refused.

const ALL = ["read", "write", "admin"];

/** Scopes of each role. @type {Record<string, string[]>} */
const ROLES = { viewer: ["read"], member: ["read", "write"], admin: ALL };

let scopes = new Set(ALL);

/** Id of the user who is signed in. */
let user = "";

/**
 * @param {Api["Me"]} me
 */
export function signedInAs(me) {
  user = me.user.id;
  const role = ROLES[/** @type {any} */ (me.user).role] ?? ALL;
  const key = me.api_key?.scopes ?? ALL;
  scopes = new Set(key.filter((scope) => role.includes(scope)));
}

/**
 * @param {"read" | "write" | "admin"} scope
 */
export function may(scope) {
  return scopes.has(scope);
}

/**
 * Whether a user is the one who is signed in.
 * @param {string} id
 */
export function isMe(id) {
  return id === user;
}

/**
 * What `make` returns, for those who may use it.
 * @template T
 * @param {"read" | "write" | "admin"} scope
 * @param {() => T} make
 * @returns {T | null}
 */
export function where(scope, make) {
  return may(scope) ? make() : null;
}
