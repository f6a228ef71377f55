// The bodies of the API, for the type check of the assets: `just test-openapi` generates `schema` from docs/openapi.json
// beside a copy of this file.

import type { components } from "./schema";

declare global {
  type Api = components["schemas"];
}
