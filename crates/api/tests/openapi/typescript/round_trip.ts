// Writes, reads and reverts with the generated client: LABDATA_BASE_URL and LABDATA_API_KEY name the server.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "./labdata.ts";

const api = createClient<paths>({
  baseUrl: process.env.LABDATA_BASE_URL!,
  headers: { Authorization: `Bearer ${process.env.LABDATA_API_KEY!}` },
});

const defined = await api.PUT("/api/v1/tables/{name}", {
  params: { path: { name: "typescript_sample" } },
  body: {
    semantic_category: "curated",
    columns: [
      { name: "name", data_type: "string", is_unique: true },
      { name: "volume", data_type: "float" },
    ],
  },
});
assert.equal(defined.error, undefined);

const rows = [
  { name: "A1", volume: 150 },
  { name: "A2", volume: null },
];
const written = await api.POST("/api/v1/data/write", {
  body: { job_name: "TypeScript round trip", tables: [{ table: "typescript_sample", rows }] },
});
assert.deepEqual(written.data?.tables.map((table) => table.created), [2], JSON.stringify(written.error));

async function read() {
  const read = await api.POST("/api/v1/tools/read", {
    body: {
      target_type: "table",
      target_name: "typescript_sample",
      columns: ["name", "volume"],
      order_by: ["name"],
    },
  });
  return read.data;
}
assert.deepEqual(await read(), rows);

const instrument = await api.POST("/api/v1/instruments", { body: { name: "TypeScript reader" } });
const instrument_id = instrument.data?.id;
assert(instrument_id, JSON.stringify(instrument.error));
const uploaded = await api.POST("/api/v1/files", {
  body: { file: "A1\t0.08\n", instrument_id },
  bodySerializer: ({ file, instrument_id }) => {
    const form = new FormData();
    form.append("file", new Blob([file], { type: "text/plain" }), "plate-12.txt");
    form.append("instrument_id", instrument_id ?? "");
    return form;
  },
});
assert.equal(uploaded.data?.file_name, "plate-12.txt", JSON.stringify(uploaded.error));
const listed = await api.GET("/api/v1/files", { params: { query: { instrument_id } } });
assert.deepEqual(listed.data?.map((file) => file.file_id), [uploaded.data.file_id]);

const execution_id = written.data?.job_execution_id;
assert(execution_id);
const reverted = await api.POST("/api/v1/job-executions/{execution_id}/revert", {
  params: { path: { execution_id } },
  body: {},
});
assert(reverted.data && "deleted_count" in reverted.data, JSON.stringify(reverted.error));
assert.equal(reverted.data.deleted_count, 2);
assert.deepEqual(await read(), []);
