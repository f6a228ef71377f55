// The bodies of the API, for the type check of the assets: `just test-openapi` generates `schema` from docs/openapi.json
// beside a copy of this file.

import type { components } from "./schema";

declare global {
  type Api = components["schemas"];

  /** A table as `GET /tools/schema` describes it, and one of its columns. */
  type Table = Api["Table"] & { row_count_estimate: number };
  type Column = Api["TableColumn"];
}
