"""Executions: what a script writes and uploads, attributed and reverted as a unit."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from labdata_client._html import table as html_table
from labdata_client._results import Record, Rows, WriteResult
from labdata_client.errors import LabdataError

from . import _executions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from labdata_client._batches import Series, Tables
    from labdata_client._uploads import Source

    from ._operations import AsyncOperations

_log = logging.getLogger("labdata_client")


class AsyncExecution:
    """An execution: open within its `with` block, then completed, or failed after an exception.

    Inside a run on the platform, it is that run, which the platform itself ends.
    """

    def __init__(
        self,
        lab: AsyncOperations,
        *,
        job_name: str | None,
        job_id: str | None,
        timeout_minutes: int | None,
        revert_on_error: bool,
    ) -> None:
        self._lab = lab
        self._fields = {"job_name": job_name, "job_id": job_id, "timeout_minutes": timeout_minutes}
        self._revert_on_error = revert_on_error
        self._record: Record = Record()
        self._is_platform_run = False
        self._counts: dict[str, dict[str, int]] = {}

    @property
    def id(self) -> str:
        """The execution's id."""
        if not self._record:
            message = "the execution is not open: use it in a with block"
            raise LabdataError(message)
        return self._record["job_execution_id"]

    @property
    def job_execution_id(self) -> str:
        """The execution's id."""
        return self.id

    @property
    def status(self) -> str | None:
        """State, as of the last request about it."""
        return self._record.get("status")

    async def open(self) -> AsyncExecution:
        """Open the execution without a `with` block; `close` ends it."""
        run = self._lab.platform_run
        if run is not None:
            self._is_platform_run = True
            self._record = await self._lab.get_execution(run.job_execution_id)
        else:
            self._record = await _executions.start(self._lab.transport, self._fields)
        return self

    async def close(self, status: str = "completed") -> None:
        """End the execution as `completed` or `failed`."""
        if self._is_platform_run:
            return
        self._record = await _executions.end(self._lab.transport, self.id, status)

    async def changes(self) -> Record:
        """Return what this execution has changed so far."""
        return await self._lab.changes(self.id)

    async def revert(
        self, *, dry_run: bool = False, restore: bool = False, on_conflict: str | None = None
    ) -> Record:
        """Delete the rows and series that this execution created; see `Lab.revert`."""
        return await self._lab.revert(self.id, dry_run=dry_run, restore=restore, on_conflict=on_conflict)

    async def write(
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
    ) -> WriteResult:
        """Write rows and series under this execution; the arguments are those of the client's `write`."""
        result = await self._lab.write(
            tables,
            series,
            mode=mode,
            key=key,
            on_match=on_match,
            cascade=cascade,
            parent_column=parent_column,
            dry_run=dry_run,
            return_rows=return_rows,
            job_execution_id=self.id,
        )
        if not dry_run:
            self._count(result)
        return result

    async def import_file(
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
        **reading: Any,
    ) -> Record:
        """Import a file under this execution; the arguments are those of the client's `import_file`."""
        result = await self._lab.import_file(
            table,
            source,
            mode=mode,
            key=key,
            columns=columns,
            lookups=lookups,
            linked=linked,
            blank=blank,
            on_match=on_match,
            name=name,
            dry_run=dry_run,
            job_execution_id=self.id,
            **reading,
        )
        if not dry_run:
            for written in result["tables"]:
                counts = self._counts.setdefault(written["table"], {"created": 0, "updated": 0, "deleted": 0})
                for action in ("created", "updated"):
                    counts[action] = counts.get(action, 0) + written[action]
        return result

    async def upload(
        self,
        source: Source,
        *,
        name: str | None = None,
        instrument: str | None = None,
        content_type: str | None = None,
        idempotency_key: str | None = None,
    ) -> Record:
        """Upload a file under this execution and return its record."""
        return await self._lab.upload(
            source,
            name=name,
            instrument=instrument,
            content_type=content_type,
            idempotency_key=idempotency_key,
            job_execution_id=self.id,
        )

    async def annotate(
        self,
        file: str | Mapping[str, Any],
        annotations: Sequence[Mapping[str, Any]],
        *,
        idempotency_key: str | None = None,
    ) -> Rows:
        """Save masks of an image under this execution, whose revert deletes them."""
        return await self._lab.annotate(
            file, annotations, idempotency_key=idempotency_key, job_execution_id=self.id
        )

    async def __aenter__(self) -> AsyncExecution:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            await self.close()
            return
        if self._revert_on_error:
            try:
                await self.revert()
            except LabdataError as failure:
                _log.warning("execution %s could not be reverted: %s", self.id, failure)
        if not self._is_platform_run:
            self._record = await _executions.fail(self._lab.transport, self.id) or self._record

    def _count(self, result: WriteResult) -> None:
        for entry in result.tables:
            counts = self._counts.setdefault(entry["table"], {"created": 0, "updated": 0, "deleted": 0})
            for name in counts:
                counts[name] += entry[name]
        for entry in result.series:
            counts = self._counts.setdefault(entry["table"], {"points": 0})
            counts["points"] = counts.get("points", 0) + entry["points_written"]

    def __repr__(self) -> str:
        return f"<execution {self._record.get('job_execution_id', 'not open')} {self.status or ''}>"

    def _repr_html_(self) -> str:
        names = ("created", "updated", "deleted", "points")
        rows: list[list[Any]] = [
            [table, *(counts.get(name) for name in names)] for table, counts in self._counts.items()
        ]
        caption = f"{self._record.get('job_name', 'Execution')}: {self.status or 'not open'}"
        return html_table(("table", *names), rows, caption=caption)
