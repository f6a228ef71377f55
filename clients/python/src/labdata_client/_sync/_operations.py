# Generated from ../_async by scripts/generate_sync.py: change that one.
"""Operations of the client."""

from __future__ import annotations

import contextlib
import uuid
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from labdata_client import _frames, _masks
from labdata_client._arguments import count, key_text, listed, local_path, mapping, moment, names, path_part
from labdata_client._batches import (
    Batch,
    Packer,
    Schema,
    Series,
    Tables,
    checked_series,
    needs_schema,
    series_writes,
    table_writes,
)
from labdata_client._environment import PlatformRun, connection
from labdata_client._merging import merged, total_rows
from labdata_client._progress import Progress
from labdata_client._reading import import_fields, options_of
from labdata_client._results import (
    Curves,
    Predictions,
    Preview,
    Record,
    Report,
    Rows,
    WriteResult,
)
from labdata_client._uploads import Source, open_source
from labdata_client._waiting import blocking
from labdata_client.errors import (
    ARROW,
    Forbidden,
    InvalidArgument,
    LabdataError,
    NotFound,
    arrow_of,
    body_of,
)

from . import _curves, _executions, _predictions, _transfers, _writing
from ._transport import Transport

if TYPE_CHECKING:
    import datetime
    import os
    import ssl
    from collections.abc import Iterator, Mapping, Sequence

    from labdata_client._batches import SeriesWrite, TableWrite

PAGE_ROWS = 1000


class Operations:
    """Operations of one platform, with one key."""

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 120.0,
        retry_seconds: float = 120.0,
        progress: bool | None = None,
        verify: bool | ssl.SSLContext = True,
    ) -> None:
        found = connection(base_url, api_key)
        self.platform_run: PlatformRun | None = found.platform_run
        """The run on the platform that this script is, with its file and parameters; else None."""
        self.transport = Transport(found, timeout=timeout, retry_seconds=retry_seconds, verify=verify)
        self._progress = progress
        self._cached_schema: Schema | None = None
        self._core_tables: set[str] = set()
        self._instruments: dict[str, str] = {}

    # --- any operation ------------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        creates: bool = False,
    ) -> Any:
        """Call any operation by its path below `/api/v1` and return the answer's JSON.

        `creates=True` sends an `Idempotency-Key`, so that a retry has no second effect.
        """
        method, path = key_text(method, "method"), key_text(path, "path")
        given = None if params is None else mapping(params, "params")
        response = self.transport.request(method, path, json=json, params=given, creates=creates)
        return body_of(response) if response.content else None

    # --- executions ---------------------------------------------------------------------------------------

    def get_execution(self, job_execution_id: str) -> Record:
        """Return the record of an execution."""
        return Record(self.request("GET", f"/job-executions/{job_execution_id}"))

    def changes(self, job_execution_id: str) -> Record:
        """Return what an execution changed: rows and points by table, files, and who reverted it.

        Each table has the counts and the first 100 ids of the rows created, updated and deleted.
        """
        return Record(self.request("GET", f"/job-executions/{job_execution_id}/changes"))

    def revert(
        self,
        job_execution_id: str,
        *,
        dry_run: bool = False,
        restore: bool = False,
        on_conflict: str | None = None,
    ) -> Record:
        """Delete the rows and series that an execution created, and return counts and warnings.

        `restore=True` also gives updated and deleted rows and replaced series back;
        `on_conflict="skip"` leaves what another execution changed since, which is an error otherwise. The
        result's `undo_execution_id` can be reverted in turn. `dry_run=True` changes nothing: it returns
        what the revert would, or fails as it would.
        """
        body: dict[str, Any] = {"dry_run": dry_run, "restore": restore}
        if on_conflict is not None:
            body["on_conflict"] = on_conflict
        return Record(self.request("POST", f"/job-executions/{job_execution_id}/revert", json=body))

    def history(self, table: str, row_id: str | int, *, limit: int | None = None) -> list[Record]:
        """Return the versions of a row, newest first: what changed, when, and by which execution."""
        path = f"/tables/{path_part(table, 'table')}/rows/{path_part(row_id, 'row_id')}/history"
        parameters = {} if limit is None else {"limit": count(limit, "limit")}
        return [Record(version) for version in self.request("GET", path, params=parameters)]

    def restore(
        self, table: str, row_id: str | int, version: int, *, job_execution_id: str | None = None
    ) -> Record:
        """Give a row the values of an earlier version; a deleted row is created again."""
        path = f"/tables/{path_part(table, 'table')}/rows/{path_part(row_id, 'row_id')}/restore"
        body = {"version": version, "job_execution_id": job_execution_id}
        return Record(self.request("POST", path, json=body))

    def trash(self, *, limit: int | None = None) -> list[Record]:
        """Return the files, tables and columns that were deleted and can be restored, newest first."""
        parameters = {} if limit is None else {"limit": count(limit, "limit")}
        return [Record(entry) for entry in self.request("GET", "/trash", params=parameters)]

    def restore_from_trash(self, entry_id: str) -> Record:
        """Restore a deleted file, table or column as it was; `entry_id` is that of its entry in the trash.

        Tables and columns need the scope `admin`. Where something else has the name by now, a
        `Conflict` says so.
        """
        return Record(self.request("POST", f"/trash/{path_part(entry_id, 'entry_id')}/restore"))

    def logs(self, run_id: str) -> str:
        """Return what a run on the platform has written so far; `run_id` is its execution's id."""
        response = self.transport.request("GET", f"/job-executions/{run_id}/logs")
        return response.text

    def backfill(
        self,
        job: str,
        *,
        file_ids: Sequence[str] | None = None,
        instrument: str | None = None,
        uploaded_from: datetime.datetime | str | None = None,
        uploaded_to: datetime.datetime | str | None = None,
        only: str = "all",
        dry_run: bool = False,
    ) -> Record:
        """Queue one run of a job per file that its file trigger would have taken, oldest first.

        `job` is a name or an id. Files are those of an instrument (name or id), uploaded from
        `uploaded_from` on and before `uploaded_to`, or the `file_ids` whatever the trigger. `only` restricts
        them to files that have `never_run`, or whose last run `failed`. Returns `count`, the first 100
        `files` and the `execution_ids`; `dry_run=True` queues nothing.
        """
        body: dict[str, Any] = {
            "file_ids": None if file_ids is None else names(file_ids, "file_ids"),
            "uploaded_from": uploaded_from,
            "uploaded_to": uploaded_to,
            "only": only,
            "dry_run": dry_run,
        }
        if instrument is not None:
            body["instrument_id"] = self.instrument_id(instrument)
        job_id = self._id_of("job", "/jobs", job)
        given = {name: value for name, value in body.items() if value is not None}
        return Record(self.request("POST", f"/jobs/{job_id}/backfill", json=given, creates=True))

    def _id_of(self, kind: str, path: str, name: str) -> str:
        """Return the id of a record of a list that is given by name or id."""
        name = key_text(name, kind)
        with contextlib.suppress(ValueError):
            return str(uuid.UUID(name))
        known = self._list(path, {}, None)
        ids = [record["id"] for record in known if record["name"] == name]
        if not ids:
            names = ", ".join(repr(record["name"]) for record in known) or "none"
            message = f"no {kind} {name!r}; there are: {names}"
            raise LabdataError(message)
        return ids[0]

    # --- files --------------------------------------------------------------------------------------------

    def upload(
        self,
        source: Source,
        *,
        name: str | None = None,
        instrument: str | None = None,
        job_execution_id: str | None = None,
        content_type: str | None = None,
        source_type: str | None = None,
        idempotency_key: str | None = None,
    ) -> Record:
        """Upload a path, bytes or an open binary file, and return the file's record.

        A file belongs to an instrument (its name or id), to an execution, or to both. Large files are
        streamed in constant memory.
        """
        if job_execution_id is None and self.platform_run is not None:
            job_execution_id = self.platform_run.job_execution_id
        fields = {"job_execution_id": job_execution_id, "source_type": source_type}
        if instrument is not None:
            fields["instrument_id"] = self.instrument_id(instrument)
        given = {name: value for name, value in fields.items() if value is not None}
        opened = blocking(lambda: open_source(source, name, content_type))
        try:
            return _transfers.upload(
                self.transport, opened, given, idempotency_key=idempotency_key, progress=self._progress
            )
        finally:
            opened.close()

    def download(self, file_id: str, to: str | os.PathLike[str] | None = None) -> Path:
        """Download a file to a path or into a directory, by default the working directory."""
        target = None if to is None else local_path(to)
        return _transfers.download(self.transport, file_id, target, progress=self._progress)

    def files(
        self,
        query: str | None = None,
        *,
        instrument: str | None = None,
        extensions: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> Rows:
        """List files, newest first; `query` is a part of the name."""
        params: dict[str, Any] = {"query": query}
        if extensions is not None:
            params["extensions"] = ",".join(
                key_text(name, "extensions") for name in names(extensions, "extensions")
            )
        if instrument is not None:
            params["instrument_id"] = self.instrument_id(instrument)
        return self._list("/files", params, limit)

    def annotations(self, file: str | Mapping[str, Any]) -> Rows:
        """List the annotations of an image, given by its file's id or record, oldest first."""
        path = f"/images/{path_part(_masks.image_id(file), 'file')}/annotations"
        return Rows(body_of(self.transport.request("GET", path)))

    def annotate(
        self,
        file: str | Mapping[str, Any],
        annotations: Sequence[Mapping[str, Any]],
        *,
        job_execution_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Rows:
        """Save masks of an image, all or none, and return them in the same order.

        An annotation has a `mask` and a `label`, and may have `is_human_vetted`. A mask is white on
        transparent and as large as the image: the path or the bytes of a PNG, its base64, or an array that
        is true where the label is. What `predict` returns as annotations can be given as it is.
        """
        if job_execution_id is None and self.platform_run is not None:
            job_execution_id = self.platform_run.job_execution_id
        masks = [_masks.annotation(given) for given in listed(annotations, "annotations")]
        body: dict[str, Any] = {"annotations": masks}
        if job_execution_id is not None:
            body["job_execution_id"] = job_execution_id
        path = f"/images/{path_part(_masks.image_id(file), 'file')}/annotations"
        response = self.transport.request(
            "POST", path, json=body, creates=True, idempotency_key=idempotency_key
        )
        return Rows(body_of(response))

    def instruments(self) -> Rows:
        """List the instruments."""
        return self._list("/instruments", {}, None)

    def instrument_id(self, instrument: str) -> str:
        """Return the id of an instrument given by name or id."""
        instrument = key_text(instrument, "instrument")
        if instrument in self._instruments:
            return self._instruments[instrument]
        with contextlib.suppress(ValueError):
            return str(uuid.UUID(instrument))
        try:
            known = self.instruments()
        except Forbidden:
            # A key that uploads need not read.
            params = {"name": instrument}
            found = self.request("GET", "/instruments/by-name", params=params)
            self._instruments[instrument] = found["id"]
            return found["id"]
        self._instruments = {record[field]: record["id"] for field in ("name", "id") for record in known}
        if instrument not in self._instruments:
            names = ", ".join(repr(record["name"]) for record in known) or "none"
            message = f"no instrument {instrument!r}; there are: {names}"
            raise LabdataError(message)
        return self._instruments[instrument]

    def heartbeat(
        self,
        instrument: str,
        *,
        status: str = "online",
        app_version: str | None = None,
        is_watching: bool | None = None,
        queued_files: int | None = None,
        detail: Any = None,
    ) -> None:
        """Report that the computer beside an instrument is alive, as `labdata-watch` does every minute.

        `status="error"` says that something is wrong there; `detail` is a text or a small dict of counts.
        """
        body = {
            "status": status,
            "app_version": app_version,
            "is_watching": is_watching,
            "queued_files": queued_files,
            "detail": detail,
        }
        instrument_id = self.instrument_id(instrument)
        self.request("POST", f"/instruments/{instrument_id}/heartbeat", json=body)

    def device_status(
        self,
        instrument: str,
        *,
        start_time: datetime.datetime | str | None = None,
        end_time: datetime.datetime | str | None = None,
    ) -> Record:
        """Return when the computer beside an instrument was online: the last seven days unless told.

        `current_status` is None if it has never reported; `statuses` are periods, oldest first.
        """
        times = {"start_time": start_time, "end_time": end_time}
        params = {name: moment(time, name) for name, time in times.items() if time is not None}
        instrument_id = self.instrument_id(instrument)
        path = f"/instruments/{instrument_id}/device-status"
        return Record(self.request("GET", path, params=params))

    def _list(self, path: str, params: Mapping[str, Any], limit: int | None) -> Rows:
        given = {name: value for name, value in params.items() if value is not None}
        limit = count(limit, "limit")
        found: list[dict[str, Any]] = []
        size = PAGE_ROWS if limit is None else min(limit, PAGE_ROWS)
        for page in self.transport.pages("GET", path, params={**given, "limit": size}):
            found.extend(page)
            if limit is not None and len(found) >= limit:
                break
        return Rows(found[:limit])

    # --- tables -------------------------------------------------------------------------------------------

    def tables(self) -> Rows:
        """List the tables with their columns."""
        entries = self.request("GET", "/tools/schema")
        self._cached_schema = Schema(entries)
        return Rows(entries)

    def define_table(
        self,
        name: str,
        columns: Sequence[Mapping[str, Any]],
        *,
        semantic_category: str = "curated",
        description: str | None = None,
        unique_together: Sequence[Sequence[str]] | None = None,
        renamed_from: str | None = None,
        access: Mapping[str, Sequence[str]] | None = None,
        ensure: bool = False,
        mode: str | None = None,
    ) -> Record:
        """Create a table, or change it to be as defined; the same definition again changes nothing.

        `access={"read": [...], "write": [...]}` names the groups that may read and write it; `{}` opens it to
        everyone, and without it the access stays.

        `ensure=True` adds missing columns and changes nothing else, for which a key needs the write
        scope only: a script may call it each time it starts.
        """
        if ensure:
            mode = "ensure"
        body = {
            "renamed_from": renamed_from,
            "semantic_category": semantic_category,
            "columns": columns,
            "description": description,
            "unique_together": unique_together,
            "access": access,
        }
        given = {field: value for field, value in body.items() if value is not None}
        params = {} if mode is None else {"mode": mode}
        entry = self.request("PUT", f"/tables/{path_part(name, 'name')}", json=given, params=params)
        self._cached_schema = None
        return Record(entry)

    def _schema(self, *tables: str) -> Schema:
        """Return the schema, as of the first use unless it lacks one of these tables."""
        if self._cached_schema is None or any(table not in self._cached_schema for table in tables):
            self.tables()
        return cast("Schema", self._cached_schema)

    def _types(self, table: str, columns: Sequence[str]) -> dict[str, str]:
        """Return the types of a table's columns, the given ones among them."""
        types = (self._schema(table)).types(table)
        if types and not types.keys() >= set(columns):
            # Another client has added columns since the schema was read.
            self._cached_schema = None
            types = (self._schema(table)).types(table)
        return types

    # --- writing ------------------------------------------------------------------------------------------

    def write(
        self,
        tables: Tables | None = None,
        series: Series | None = None,
        *,
        mode: str | None = None,
        key: Sequence[str] | None = None,
        on_match: str | None = None,
        cascade: bool | None = None,
        parent_column: str | Mapping[str, str] | None = None,
        dry_run: bool = False,
        return_rows: bool = False,
        job_execution_id: str | None = None,
        job_name: str | None = None,
    ) -> WriteResult:
        """Write rows and series.

        `tables` is `{table: rows}`, rows being a frame or an iterable of mappings, or a list of table
        writes as the API has them. `series` is `{table: {parent: {column: values}}}`, the parent being a
        key or `@label`, or `{table: frame}` with the parent's column in the frame.

        A write that fits one request is one transaction. A larger one is cut into batches, each a
        transaction, under one execution, so that reverting the execution undoes all of them.
        """
        options = {"mode": mode, "key": key, "on_match": on_match, "cascade": cascade}
        writes = table_writes({} if tables is None else tables, options)
        series = {} if series is None else checked_series(series)
        schema = self._schema(*cast("Mapping[str, Any]", series)) if needs_schema(series) else None
        self._find_json_columns(writes)
        points: Iterator[SeriesWrite] = series_writes(series, parent_column, schema)
        packer = Packer(writes, points)
        run = self.platform_run
        execution_id = job_execution_id or (run.job_execution_id if run is not None else None)
        envelope: dict[str, Any] = {}
        if dry_run:
            envelope["dry_run"] = True
        if return_rows:
            envelope["return_rows"] = True
        if execution_id is not None:
            envelope["job_execution_id"] = execution_id
        elif job_name is not None:
            envelope["job_name"] = job_name
        written = [write.table for write in writes]
        batch = packer.next_batch({}, None)
        self._check_texts(batch)
        total = total_rows([write.rows for write in writes])
        if packer.exhausted:
            return merged(written, [_writing.send(self.transport, batch, envelope)])
        if dry_run:
            message = "a dry run checks one request, and this write needs several: check a part of it"
            raise InvalidArgument(message)
        if execution_id is not None:
            return self._send_all(packer, batch, envelope, written, total)
        envelope.pop("job_name", None)
        opened = (_executions.start(self.transport, {"job_name": job_name})).job_execution_id
        envelope["job_execution_id"] = opened
        try:
            result = self._send_all(packer, batch, envelope, written, total)
        except BaseException:
            _executions.fail(self.transport, opened)
            raise
        _executions.end(self.transport, opened, "completed")
        return result

    def _send_all(
        self,
        packer: Packer,
        batch: Batch,
        envelope: Mapping[str, Any],
        tables: Sequence[str],
        total: int | None,
    ) -> WriteResult:
        results: list[tuple[Batch, dict[str, Any]]] = []
        refs: dict[str, str] = {}
        with Progress(self._progress, "write", " rows", total) as bar:
            try:
                while True:
                    sent = _writing.send(self.transport, batch, envelope)
                    bar.advance(batch.rows)
                    results.append(sent)
                    refs.update(sent[1]["refs"])
                    if packer.exhausted:
                        return merged(tables, results)
                    batch = packer.next_batch(refs, self._schema(*tables) if refs else None)
                    self._check_texts(batch)
            except LabdataError as error:
                if results:
                    _writing.mark_written(
                        error, [batch for batch, _ in results], envelope["job_execution_id"]
                    )
                raise

    def _find_json_columns(self, writes: Sequence[TableWrite]) -> None:
        """Find the columns whose texts are JSON in frames and results of queries."""
        for write in writes:
            if write.has_json_texts:
                # A key that writes need not read.
                with contextlib.suppress(Forbidden):
                    types = self._types(write.table, write.column_names())
                    write.json_columns = frozenset(name for name, kind in types.items() if kind == "json")

    def _check_texts(self, batch: Batch) -> None:
        """Refuse texts of objects and lists for JSON columns, which would store them as texts."""
        for (table, column), path in batch.json_texts.items():
            try:
                types = self._types(table, [column])
            except Forbidden:
                message = (
                    f"{path} is the text of an object or a list, and this key cannot read whether the column"
                    " is JSON, which would store it as text"
                )
                warnings.warn(message, stacklevel=3)
                continue
            if types.get(column) == "json":
                message = (
                    f"{path} is the text of an object or a list: give the value itself, json.loads(text)"
                )
                raise InvalidArgument(message)

    def import_file(
        self,
        table: str,
        source: Source,
        *,
        mode: str = "insert",
        key: str | Sequence[str] | None = None,
        columns: Mapping[str, str | None] | None = None,
        lookups: Mapping[str, str] | None = None,
        linked: Sequence[Mapping[str, Any]] | None = None,
        blank: str | None = None,
        on_match: str | None = None,
        name: str | None = None,
        dry_run: bool = False,
        job_execution_id: str | None = None,
        job_name: str | None = None,
        **reading: Any,
    ) -> Record:
        """Write the rows of a file into a table, in one transaction.

        `source` is a path, bytes or an open binary file: a delimited text, an Excel workbook (.xlsx) or
        Parquet, by its content.
        `columns` maps headers to columns, or to None to leave them out; other headers are for the column of
        their name. `lookups` maps references to the unique column of the referenced table that the cells
        hold; unless given, they hold its key or its only unique text. `linked` are tables to whose rows
        those of the file refer, made of the same lines: `{"table": "plate", "columns": {"Plate":
        "barcode"}}`, besides `key`, `of`, `reference` and `on_match`; one that another linked table refers
        to comes first. `blank` is "keep" (default of upserts) or "null", `on_match` "overwrite" or
        "fill_missing". `reading` are the options of `preview_file`. The platform reads the cells, and names
        the lines of what it refuses (`WriteRefused.problems`). Returns `job_execution_id`, `created`,
        `updated`, `columns`, `tables` with the same counts of all tables, the `file_id` under which the
        file is stored, and `reading`, all options as they were used.
        """
        if job_execution_id is None and self.platform_run is not None:
            job_execution_id = self.platform_run.job_execution_id
        fields = import_fields(
            mode=mode,
            key=key,
            columns=columns,
            lookups=lookups,
            linked=linked,
            blank=blank,
            on_match=on_match,
            dry_run=dry_run,
            job_execution_id=job_execution_id,
            job_name=job_name,
        )
        opened = blocking(lambda: open_source(source, name, None))
        path = f"/tables/{path_part(table, 'table')}/import"
        return _transfers.send_table(
            self.transport, path, opened, {**fields, **options_of(reading)}, creates=True
        )

    def preview_file(self, source: Source, *, name: str | None = None, **reading: Any) -> Preview:
        """Return how a delimited text, an Excel workbook or a Parquet file would be read; nothing is stored.

        `reading` are options by name: `encoding`, `delimiter`, `decimal`, `thousands`, `sheet`, `header_row`,
        `last_row`, `null_values`, `timezone`, `date_format`, `text_numbers` and others of the API; the
        attribute `reading` of the result holds all as they were used, and can be passed again. Also returns
        `columns`, the first 50 `rows`, `row_count`, `sheets`, and `doubts`: what an import would refuse, each
        with `options` that settle it. Of a large file only the first cells are read: `row_count` is
        then None, and `rows_read` says how many rows that were.
        """
        opened = blocking(lambda: open_source(source, name, None))
        path = "/tools/preview-table"
        fields = options_of(reading)
        return Preview(_transfers.send_table(self.transport, path, opened, fields, creates=False))

    # --- reading ------------------------------------------------------------------------------------------

    def read(
        self,
        table: str,
        *,
        filters: Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        order_by: str | Sequence[str] | None = None,
        limit: int | None = None,
        as_of: datetime.datetime | str | None = None,
        **conditions: Any,
    ) -> Rows:
        """Return the rows of a table that meet all conditions, such as `name__contains="A"`.

        The pages are followed to the end unless `limit` is given. `filters` takes conditions on columns
        whose names are taken here (`limit`, `columns`, …). `as_of`, a moment with its time zone, returns the
        rows as they stood then.
        """
        table, limit = key_text(table, "table"), count(limit, "limit")
        body: dict[str, Any] = {
            "target_name": table,
            "filters": {**mapping(filters, "filters"), **conditions},
            "limit": PAGE_ROWS if limit is None else min(limit, PAGE_ROWS),
        }
        if columns is not None:
            columns = names(columns, "columns")
            body["columns"] = columns
        if order_by is not None:
            body["order_by"] = names(order_by, "order_by")
        if as_of is not None:
            body["as_of"] = as_of
        found: list[dict[str, Any]] = []
        if table in self._core_tables:
            self._collect({**body, "target_type": "core-table"}, found, limit)
        else:
            try:
                self._collect({**body, "target_type": "table"}, found, limit)
            except NotFound:
                self._collect({**body, "target_type": "core-table"}, found, limit)
                self._core_tables.add(table)
        types = (self._schema(*([] if table in self._core_tables else [table]))).types(table)
        read = list(found[0]) if found else list(columns or types)
        if types:
            types = self._types(table, read)
        else:
            # The schema leaves out the platform's own tables, whose times are named so.
            types = {name: "datetime" for name in read if name.endswith("_at")}
        return Rows(found[:limit], columns=read, types=types)

    def _collect(self, body: Mapping[str, Any], found: list[dict[str, Any]], limit: int | None) -> None:
        for page in self.transport.pages("POST", "/tools/read", json=body):
            found.extend(page)
            if limit is not None and len(found) >= limit:
                return

    def query(self, sql: str, params: Sequence[Any] | None = None) -> Rows:
        """Run one SELECT; `params` fill `%s` or `$1`. JSON values and arrays come as texts."""
        body: dict[str, Any] = {"query": sql}
        if params is not None:
            body["params"] = listed(params, "params")
        response = self.transport.request("POST", "/tools/query", json=body, headers={"Accept": ARROW})
        return Rows.from_arrow(arrow_of(response))

    def sql_login(self, name: str, *, expires_at: str | None = None) -> Record:
        """Make a login of PostgreSQL for your own tools, with your rights, read only.

        `login["dsn"]` is the URL that psycopg, ADBC and SQLAlchemy read, `login["examples"]` has lines for
        others. It holds the password, which is given this once.
        """
        return self.request("POST", "/sql-logins", json={"name": name, "expires_at": expires_at})

    def series(
        self,
        table: str,
        parents: Sequence[Any] | None = None,
        *,
        filters: Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        parent_column: str | None = None,
        as_of: datetime.datetime | str | None = None,
        **conditions: Any,
    ) -> Curves:
        """Return the series of many rows of a raw table at once.

        `parents` are primary keys; the curves come in their order, empty where a row has no points.
        Otherwise the conditions choose among the parent rows, as `read` does, and rows without points
        are left out. With `as_of` rows and curves are those of that moment.
        """
        table = key_text(table, "table")
        schema = self._schema(table)
        wanted = {**mapping(filters, "filters"), **conditions}
        request = _curves.CurvesRequest(
            table=table,
            parents=None if parents is None else names(parents, "parents"),
            filters=wanted,
            columns=None if columns is None else names(columns, "columns"),
            parent_column=None if parent_column is None else key_text(parent_column, "parent_column"),
            as_of=as_of,
        )
        return _curves.read(self.transport, request, schema)

    def export(
        self,
        table: str,
        to: str | os.PathLike[str] | None = None,
        *,
        file_format: str | None = None,
        as_of: datetime.datetime | str | None = None,
    ) -> Path:
        """Save a whole table, as of one moment, as CSV, an Arrow stream or Parquet.

        `to` is a path or a directory, by default the working directory. The end of its name (`.csv`,
        `.arrow`, `.arrows`, `.parquet`) chooses the format unless `file_format` does (`csv`, `arrow`,
        `parquet`). With `as_of` the table is saved as it stood at that moment.
        """
        target = local_path("." if to is None else to)
        return _transfers.export(
            self.transport, table, target, file_format, as_of=as_of, progress=self._progress
        )

    # --- models -------------------------------------------------------------------------------------------

    def predict(
        self,
        model: str | None = None,
        data: _frames.Rows = (),
        *,
        model_id: str | None = None,
        pixel_threshold: float | None = None,
        min_region_pixels: int | None = None,
        max_hole_pixels: int | None = None,
        min_confidence: float | None = None,
    ) -> Predictions:
        """Predict rows, or a frame, with the active version of a model, given by name or by `model_id`.

        The other parameters are thresholds of a segmentation, whose `annotations` can be given to `annotate`.
        """
        target: dict[str, Any] = {"ml_model_name": model} if model_id is None else {"ml_model_id": model_id}
        thresholds = {
            "pixel_threshold": pixel_threshold,
            "min_region_pixels": min_region_pixels,
            "max_hole_pixels": max_hole_pixels,
            "min_confidence": min_confidence,
        }
        target |= {name: value for name, value in thresholds.items() if value is not None}
        rows = list(_frames.rows(data))
        return _predictions.predict(self.transport, target, rows, progress=self._progress)

    def create_dataset(
        self,
        name: str,
        *,
        query: str | None = None,
        file_id: str | None = None,
        label: str | None = None,
        annotated: bool = False,
        description: str | None = None,
        options: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Record:
        """Make a dataset of a query, of a file, or of images with vetted masks of a label (`annotated`)."""
        fields = {
            "name": name,
            "query": query,
            "file_id": file_id,
            "label": label,
            "annotated": annotated or None,
            "description": description,
            "options": options,
        }
        given = {field: value for field, value in fields.items() if value is not None}
        response = self.transport.request(
            "POST", "/datasets", json=given, creates=True, idempotency_key=idempotency_key
        )
        return Record(body_of(response))

    def report(self, model: str, *, version_number: int | None = None) -> Report:
        """Return the page of results of a model, given by name or id: of its active version by default."""
        model_id = self._id_of("model", "/ml-models", model)
        params = {} if version_number is None else {"version_number": version_number}
        response = self.transport.request("GET", f"/ml-models/{model_id}/report", params=params)
        return Report(response.text)
