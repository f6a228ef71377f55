"""Reads results of the API with pandas, polars and pyarrow, and holds them to what was written.

usage: readers.py BASE_URL AUTHORIZATION
"""

import io
import json
import math
import sys
import urllib.parse
import urllib.request
from datetime import date, datetime, timezone

import pandas
import polars
import pyarrow
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

BASE, AUTHORIZATION = sys.argv[1:]
JSON, CSV = "application/json", "text/csv"
ARROW, PARQUET = "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet"
LONG = 20_000

# Before its third version, pandas reads numbers of CSV approximately unless it is told.
EXACT = {} if int(pandas.__version__.split(".")[0]) >= 3 else {"float_precision": "round_trip"}

checks = 0


def open_url(method, path, body=None, accept=JSON):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{BASE}/api/v1{path}", data=data, method=method)
    request.add_header("Authorization", AUTHORIZATION)
    request.add_header("Content-Type", "application/json")
    request.add_header("Accept", accept)
    return urllib.request.urlopen(request)


def call(method, path, body=None, accept=JSON):
    with open_url(method, path, body, accept) as answer:
        assert answer.headers["Content-Type"].startswith(accept), answer.headers["Content-Type"]
        return answer.read()


def utc(*parts):
    return datetime(*parts, tzinfo=timezone.utc)


# What is written, by column; every column has a null.
TEXT = ["plain", 'quotes "here", and commas', "line\nbreak\r\nand\ttab", "µ — 酵母 🧫", "NaN", None]
WHOLE = [0, -1, 9_007_199_254_740_993, 9_223_372_036_854_775_807, -9_223_372_036_854_775_808, None]
REAL = [0.0, -1.5, 0.1, 1e-300, 1.7976931348623157e308, None]
FLAG = [True, False, True, False, True, None]
AT = [
    ("2026-03-01T12:00:00Z", utc(2026, 3, 1, 12)),
    ("2026-03-01T12:00:00.5+02:00", utc(2026, 3, 1, 10, 0, 0, 500_000)),
    ("1969-12-31T23:59:59.999999Z", utc(1969, 12, 31, 23, 59, 59, 999_999)),
    ("2026-10-25T01:30:00+01:00", utc(2026, 10, 25, 0, 30)),
    ("1900-01-01T00:00:00-05:00", utc(1900, 1, 1, 5)),
    (None, None),
]
DAY = [date(2024, 2, 29), date(1969, 12, 31), date(1900, 1, 1), date(2026, 3, 1), date(2100, 12, 31), None]
UNIQUE = [f"0191d5a4-0000-7000-8000-00000000000{n}" for n in range(5)] + [None]
DOC = [{"a": [1, 2.5, None]}, [], 'text "quoted"', 7, {"nested": {"µ": True}}, None]

WRITTEN = {
    "label": TEXT,
    "whole": WHOLE,
    "real": REAL,
    "flag": FLAG,
    "at": [text for text, _ in AT],
    "day": [day and day.isoformat() for day in DAY],
    "uid": UNIQUE,
    "doc": DOC,
}
EXPECTED = {**WRITTEN, "at": [at for _, at in AT], "day": DAY}
TYPES = {
    "label": "string", "whole": "integer", "real": "float", "flag": "boolean",
    "at": "datetime", "day": "date", "uid": "uuid", "doc": "json",
}


def write():
    columns = [{"name": name, "data_type": kind} for name, kind in TYPES.items()]
    place = {"name": "place", "data_type": "integer"}
    call("PUT", "/tables/reading", {"semantic_category": "curated", "columns": [place, *columns]})
    parent = {"name": "reading", "data_type": "string", "references": "reading"}
    order = {"name": "order", "data_type": "integer"}
    call("PUT", "/tables/trace", {"semantic_category": "raw", "columns": [parent, order, *columns]})
    rows = [
        {"place": index, **{name: values[index] for name, values in WRITTEN.items()}}
        for index in range(len(TEXT))
    ]
    rows[0]["id"] = "first"
    rows[1]["id"] = "long"
    long = {"real": [n / 8 for n in range(LONG)], "label": [f"point {n}" for n in range(LONG)]}
    call("POST", "/data/write", {
        "tables": [{"table": "reading", "rows": rows}],
        "series": [
            {"table": "trace", "parent": "first", "columns": WRITTEN},
            {"table": "trace", "parent": "long", "columns": long},
        ],
    })


def missing(value):
    return value is None or value is pandas.NaT or value is pandas.NA or (
        isinstance(value, float) and math.isnan(value)
    )


def plain(value):
    """A value as Python has it, whichever library held it."""
    if missing(value):
        return None
    if hasattr(value, "item"):
        value = value.item()
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime()
    return value


def same(what, found, expected):
    global checks
    found = {name: [plain(value) for value in values] for name, values in found.items()}
    if "doc" in found:
        found["doc"] = [None if text is None else json.loads(text) for text in found["doc"]]
    assert list(found) == list(expected), f"{what}: {list(found)}"
    for name, values in expected.items():
        assert found[name] == values, f"{what}, {name}: {found[name]} for {values}"
        kinds = [(type(a), type(b)) for a, b in zip(found[name], values) if name != "doc"]
        assert all(a == b for a, b in kinds), f"{what}, {name}: {kinds}"
    checks += 1


def arrow_types(what, schema, order):
    expected = {
        "label": pyarrow.string(), "whole": pyarrow.int64(), "real": pyarrow.float64(),
        "flag": pyarrow.bool_(), "at": pyarrow.timestamp("us", tz="UTC"), "day": pyarrow.date32(),
        "uid": pyarrow.string(), "doc": pyarrow.string(),
    }
    if order:
        expected = {"order": pyarrow.int64(), **expected}
    assert dict(zip(schema.names, schema.types)) == expected, f"{what}: {schema}"


def read(what, fetch, expected):
    """One result in every form, by every reader."""
    order = "order" in expected
    answer = json.loads(fetch(JSON))
    if "data" in answer:
        found = dict(zip(answer["columns"], map(list, zip(*answer["data"]))))
        assert pandas.DataFrame(answer["data"], columns=answer["columns"]).shape[1] == len(expected)
    else:
        found = answer["columns"]
        assert answer["points"] == len(TEXT)
    # JSON has one kind of number, and texts for what it has no values for.
    found["real"] = [real if real is None else float(real) for real in found["real"]]
    assert all(at is None or at.endswith("Z") for at in found["at"])
    found["at"] = [at and datetime.fromisoformat(at.replace("Z", "+00:00")) for at in found["at"]]
    found["day"] = [day and date.fromisoformat(day) for day in found["day"]]
    found["doc"] = [doc if doc is None else json.dumps(doc) for doc in found["doc"]]
    same(f"{what} as JSON", found, expected)

    table = pyarrow.ipc.open_stream(fetch(ARROW)).read_all()
    arrow_types(what, table.schema, order)
    same(f"{what} as Arrow by pyarrow", table.to_pydict(), expected)
    frame = polars.read_ipc_stream(io.BytesIO(fetch(ARROW)))
    same(f"{what} as Arrow by polars", frame.to_dict(as_series=False), expected)
    # Integers beside nulls stay integers.
    frame = table.to_pandas(types_mapper={pyarrow.int64(): pandas.Int64Dtype()}.get)
    same(f"{what} as Arrow by pandas", frame.to_dict("list"), expected)

    table = pyarrow.parquet.read_table(io.BytesIO(fetch(PARQUET)))
    arrow_types(what, table.schema, order)
    same(f"{what} as Parquet by pyarrow", table.to_pydict(), expected)
    frame = polars.read_parquet(io.BytesIO(fetch(PARQUET)))
    same(f"{what} as Parquet by polars", frame.to_dict(as_series=False), expected)
    frame = pandas.read_parquet(io.BytesIO(fetch(PARQUET)), dtype_backend="numpy_nullable")
    same(f"{what} as Parquet by pandas", frame.to_dict("list"), expected)

    # CSV has no types: each reader is told them.
    options = pyarrow.csv.ConvertOptions(
        strings_can_be_null=True, null_values=[""], quoted_strings_can_be_null=False,
        column_types={"at": pyarrow.timestamp("us", tz="UTC"), "uid": pyarrow.string(), "doc": pyarrow.string()},
    )
    parsing = pyarrow.csv.ParseOptions(newlines_in_values=True)
    table = pyarrow.csv.read_csv(io.BytesIO(fetch(CSV)), parse_options=parsing, convert_options=options)
    same(f"{what} as CSV by pyarrow", table.to_pydict(), expected)
    types = {"whole": polars.Int64, "at": polars.Datetime("us", "UTC"), "day": polars.Date}
    frame = polars.read_csv(io.BytesIO(fetch(CSV)), schema_overrides=types)
    same(f"{what} as CSV by polars", frame.to_dict(as_series=False), expected)
    kinds = {"whole": "Int64", "flag": "boolean"}
    frame = pandas.read_csv(
        io.BytesIO(fetch(CSV)), dtype=kinds, keep_default_na=False, na_values=[""], **EXACT
    )
    frame["at"] = pandas.to_datetime(frame["at"], format="ISO8601", utc=True)
    frame["day"] = [None if missing(day) else date.fromisoformat(day) for day in frame["day"]]
    same(f"{what} as CSV by pandas", frame.to_dict("list"), expected)


def query(sql, params=()):
    return lambda accept: call("POST", "/tools/query", {"query": sql, "params": list(params)}, accept)


def series(parent):
    path = f"/tools/series/trace?{urllib.parse.urlencode({'parent': parent})}"
    return lambda accept: call("GET", path, None, accept)


def read_what_only_queries_have():
    fetch = query(
        "select 12.50::numeric as price, 'NaN'::float8 as none, "
        "'2026-03-01 12:00'::timestamp as local, array[1, 2] as list, 3::smallint as small"
    )
    assert json.loads(fetch(JSON))["data"] == [[12.5, None, "2026-03-01T12:00:00", [1, 2], 3]]
    expected = {
        "price": [12.5], "none": [None],
        "local": ["2026-03-01T12:00:00"], "list": ["[1,2]"], "small": [3],
    }
    same("a query's own as Arrow", pyarrow.ipc.open_stream(fetch(ARROW)).read_all().to_pydict(), expected)
    frame = polars.read_parquet(io.BytesIO(fetch(PARQUET)))
    same("a query's own as Parquet", frame.to_dict(as_series=False), expected)
    nothing = query("select name, 1 as n from experiment where false")
    table = pyarrow.ipc.open_stream(nothing(ARROW)).read_all()
    assert table.num_rows == 0 and table.schema.names == ["name", "n"]
    assert polars.read_parquet(io.BytesIO(nothing(PARQUET))).shape == (0, 2)
    assert pandas.read_csv(io.BytesIO(nothing(CSV))).shape == (0, 2)


def read_a_long_one():
    """Comes in several pieces, and is read from the answer as it comes."""
    path = "/tools/series/trace?parent=long"
    expected = [n / 8 for n in range(LONG)]
    with open_url("GET", path, accept=ARROW) as answer:
        assert answer.headers["Transfer-Encoding"] == "chunked"
        batches = list(pyarrow.ipc.open_stream(answer))
    assert len(batches) > 1
    assert [value for batch in batches for value in batch["real"].to_pylist()] == expected
    frame = polars.read_parquet(io.BytesIO(call("GET", path, None, PARQUET)))
    assert frame["real"].to_list() == expected
    assert frame["order"].to_list() == list(range(LONG))
    with open_url("GET", path, accept=CSV) as answer:
        frame = pandas.read_csv(answer, **EXACT)
    assert frame["real"].to_list() == expected
    assert frame["label"].to_list() == [f"point {n}" for n in range(LONG)]
    columns = json.loads(call("GET", path))["columns"]
    assert columns["real"] == expected and columns["flag"] == [None] * LONG
    rows = query("select \"order\", real from trace where reading_id = %s and \"order\" < 10000 order by 1", ["long"])
    found = json.loads(rows(JSON))["data"]
    assert found == [[n, n / 8] for n in range(10_000)]
    frame = polars.read_ipc_stream(io.BytesIO(rows(ARROW)))
    assert frame["real"].to_list() == expected[:10_000]


write()
names = ", ".join(TYPES)
read("rows", query(f"select {names} from reading order by place"), EXPECTED)
numbered = {"order": list(range(len(TEXT))), **EXPECTED}
read("points", query(f"select \"order\", {names} from trace where reading_id = %s order by 1", ["first"]), numbered)
read("a series", series("first"), numbered)
read_what_only_queries_have()
read_a_long_one()
print(f"{checks} tables were read as they were written")
