"""Reading the series of many rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labdata_client import _frames
from labdata_client._results import Curves
from labdata_client.errors import LabdataError, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from labdata_client._batches import Schema

    from ._lab import AsyncLab

ARROW = "application/vnd.apache.arrow.stream"
PATH = "/tools/series"


@dataclass(frozen=True)
class CurvesRequest:
    """The curves that are asked for."""

    table: str
    parents: list[Any] | None
    filters: dict[str, Any]
    columns: list[str] | None
    parent_column: str | None

    def body(self) -> dict[str, Any]:
        """Body of the request for all of them."""
        fields = {
            "table": self.table,
            "parents": self.parents,
            "filters": self.filters or None,
            "columns": self.columns,
            "parent_column": self.parent_column,
        }
        return {name: value for name, value in fields.items() if value is not None}


async def read(lab: AsyncLab, request: CurvesRequest, schema: Schema) -> Curves:
    """Read all curves by one request, or by one per parent from a platform without that operation."""
    references = schema.references(request.table)
    parent_name = request.parent_column or next(iter(references), "parent")
    types = schema.types(request.table)
    headers = {"Accept": ARROW} if _frames.has_arrow() else None
    try:
        response = await lab.transport.request("POST", PATH, json=request.body(), headers=headers)
    except NotFound as error:
        if not await _is_missing(lab, error):
            raise
        curves = await _one_by_one(lab, request, schema, parent_name)
        return Curves(parent_name=parent_name, curves=curves, parents=request.parents, types=types)
    if response.headers.get("Content-Type", "").startswith(ARROW):
        return Curves(parent_name=parent_name, stream=response.content, parents=request.parents)
    return Curves(parent_name=parent_name, curves=response.json(), parents=request.parents, types=types)


async def _is_missing(lab: AsyncLab, error: NotFound) -> bool:
    """Whether 404 was about the path, and not about a table or a parent."""
    if error.detail != "Not Found":
        return False
    described = await lab.request("GET", "/openapi.json")
    return f"/api/v1{PATH}" not in described["paths"]


async def _one_by_one(
    lab: AsyncLab, request: CurvesRequest, schema: Schema, parent_name: str
) -> list[dict[str, Any]]:
    parents = request.parents
    if parents is None:
        parents = await _matching_parents(lab, request, schema, parent_name)
    elif request.filters:
        message = "series: give parents or conditions, not both"
        raise LabdataError(message)
    curves: list[dict[str, Any]] = []
    for parent in parents:
        params: dict[str, Any] = {"parent": parent}
        if request.parent_column is not None:
            params["parent_column"] = request.parent_column
        curve = await lab.request("GET", f"{PATH}/{request.table}", params=params)
        curve["columns"] = _chosen(curve["columns"], request.columns)
        curves.append(curve)
    return curves


async def _matching_parents(
    lab: AsyncLab, request: CurvesRequest, schema: Schema, parent_name: str
) -> list[Any]:
    table = schema.references(request.table).get(parent_name)
    key = schema.primary_key(table) if table is not None else None
    if table is None or key is None:
        message = f"series: {request.table!r} has no reference {parent_name!r}"
        raise LabdataError(message)
    rows = await lab.read(table, filters=request.filters)
    return sorted(row[key] for row in rows)


def _chosen(columns: dict[str, list[Any]], names: Sequence[str] | None) -> dict[str, list[Any]]:
    return columns if names is None else {name: columns[name] for name in names}
