"""Reading the series of many rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labdata_client._results import Curves
from labdata_client.errors import ARROW, arrow_of

if TYPE_CHECKING:
    import datetime

    from labdata_client._batches import Schema

    from ._transport import AsyncTransport

PATH = "/tools/series"


@dataclass(frozen=True)
class CurvesRequest:
    """The curves that are asked for."""

    table: str
    parents: list[Any] | None
    filters: dict[str, Any]
    columns: list[str] | None
    parent_column: str | None
    as_of: datetime.datetime | str | None = None

    def body(self) -> dict[str, Any]:
        """Body of the request for all of them."""
        fields = {
            "table": self.table,
            "parents": self.parents,
            "filters": self.filters or None,
            "columns": self.columns,
            "parent_column": self.parent_column,
            "as_of": self.as_of,
        }
        return {name: value for name, value in fields.items() if value is not None}


async def read(transport: AsyncTransport, request: CurvesRequest, schema: Schema) -> Curves:
    """Read all curves by one request."""
    parent_name = request.parent_column or next(iter(schema.references(request.table)), "parent")
    response = await transport.request("POST", PATH, json=request.body(), headers={"Accept": ARROW})
    return Curves.from_arrow(
        arrow_of(response),
        parent_name=parent_name,
        parents=request.parents,
        key_type=schema.types(request.table).get(parent_name),
    )
