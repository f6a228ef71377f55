// What the person who is signed in may do. Pages offer nothing that would be refused.

const ALL = ["read", "write", "admin"];

/** Scopes of each role. @type {Record<string, string[]>} */
const ROLES = { viewer: ["read"], member: ["read", "write"], admin: ALL };

let scopes = new Set(ALL);

/** Who is signed in. @type {Api["Me"] | null} */
let signedIn = null;

/** @param {Api["Me"]} me */
export function signedInAs(me) {
  signedIn = me;
  const role = ROLES[/** @type {any} */ (me.user).role] ?? ALL;
  const key = me.api_key?.scopes ?? ALL;
  scopes = new Set(key.filter((scope) => role.includes(scope)));
}

/** @param {"read" | "write" | "admin"} scope */
export function may(scope) {
  return scopes.has(scope);
}

/**
 * What the operator has to set before this server has a feature; null where it is set up.
 * @param {"agent" | "sql_logins"} feature
 */
export function missing(feature) {
  return signedIn?.missing_features.find((it) => it.feature === feature)?.detail ?? null;
}

/** Whether a user is the one who is signed in. @param {string} id */
export function isMe(id) {
  return id === signedIn?.user.id;
}

/**
 * Whether the rows of a table may be written: by the scope, the groups of its access, and the tables of the key.
 * @param {Api["Table"]} table
 */
export function mayWrite({ name, access }) {
  const { user, api_key: key } = /** @type {Api["Me"]} */ (signedIn);
  const groups = access.write ?? [];
  const isOpen = groups.length === 0 || /** @type {string} */ (user.role) === "admin" || groups.some((it) => user.groups.includes(it));
  return may("write") && isOpen && (key?.tables?.includes(name) ?? true);
}

/** What this browser remembers for the person who is signed in, and nobody else. @param {string} name */
export function remembered(name) {
  const key = `labdata-${name}-${signedIn?.organization.id}-${signedIn?.user.id}`;
  return {
    /** @returns {string | null} */
    get: () => {
      try {
        return localStorage.getItem(key);
      } catch {
        return null;
      }
    },
    /** @param {string} value */
    set: (value) => {
      try {
        localStorage.setItem(key, value);
      } catch {
        // A browser without room, or that forbids it, works all the same.
      }
    },
  };
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
