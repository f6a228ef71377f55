// The trash: what was deleted and can come back.

import { post, sending } from "../api.js";
import { button, destroy, h, toast } from "../dom.js";
import { grouped, time } from "../format.js";
import { list, pageOf } from "../list.js";
import { may } from "../rights.js";

/** The deleted files, tables and columns. */
export function trash() {
  const restore = (/** @type {any} */ it) => async () => {
    await post(`/trash/${it.id}/restore`);
    toast(`${it.name} is back.`);
    listed.again();
  };
  const row = (/** @type {any} */ it) => [
    it.name,
    it.kind,
    time(it.deleted_at),
    it.deleted_by?.user?.name ?? it.deleted_by?.name ?? "",
    time(it.purge_at),
    it.size_bytes === null ? "" : `${grouped(Math.ceil(it.size_bytes / 1024))} kB`,
    ...(may("write") ? [may(it.kind === "file" ? "write" : "admin") ? button("Restore", restore(it)) : ""] : []),
    ...(may("admin") ? [destroy("Purge", `Purge ${it.name} for good`, sending("DELETE", `/trash/${it.id}`, undefined, () => listed.again()))] : []),
  ];
  const listed = list({
    reason: "Reading the trash",
    one: "entry",
    columns: ["Name", "Kind", "Deleted", "By", "Kept until", "Size", ...(may("write") ? ["Restore"] : []), ...(may("admin") ? ["Purge"] : [])],
    row,
    empty: () => "The trash is empty. Deleted files, tables and columns are kept here for some time.",
    read: pageOf("/trash", {}),
    live: (type) => type.startsWith("file.") || type === "table.changed",
  });
  return [h("h1", null, "Trash"), listed.place];
}
