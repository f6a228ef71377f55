// A certified OpenID provider for the tests of sign-in: `node provider.mjs PORT CALLBACK`. A person signs in with the name
// and any password. Prints a line once it listens.

import Provider from "oidc-provider";

const [port, callback] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;

/** @type {Record<string, Record<string, unknown>>} */
const PEOPLE = {
  mia: { name: "Mia", email: "mia@example.org", email_verified: true, groups: ["staff", "lab"] },
  vera: { name: "Vera", email: "vera@example.org", email_verified: true, groups: ["guests"] },
  eve: { name: "Eve", email: "eve@example.org", email_verified: true, groups: ["staff"] },
  una: { name: "Una", email: "una@example.org", email_verified: false, groups: ["lab"] },
};

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "labdata",
      client_secret: "a secret of the test",
      redirect_uris: [callback],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
    },
  ],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"], groups: ["groups"] },
  cookies: { keys: ["a key of the test"] },
  features: { devInteractions: { enabled: true } },
  pkce: { required: () => true },
  issueRefreshToken: async () => true,
  findAccount: (_, id) => (PEOPLE[id] ? { accountId: id, claims: () => ({ sub: id, ...PEOPLE[id] }) } : undefined),
});
provider.listen(Number(port), "127.0.0.1", () => console.log(`listening at ${issuer}`));
