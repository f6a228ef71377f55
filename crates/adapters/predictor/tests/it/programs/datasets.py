"""Stores three datasets on the platform at argv[1], and what they contain as JSON."""

import datetime, io, json, sys, urllib.request
import pandas as pd
from sklearn.datasets import load_diabetes, load_wine

def put(path, body):
    urllib.request.urlopen(urllib.request.Request(sys.argv[1] + path, body, method="PUT"))

def store(name, frame, types):
    parquet = io.BytesIO()
    frame.to_parquet(parquet, index=False)
    put(f"/{name}.parquet", parquet.getvalue())
    text = frame.to_json(orient="records", date_format="iso", date_unit="s")
    put(f"/{name}.json", json.dumps({"types": types, "rows": json.loads(text)}).encode())

wine = load_wine(as_frame=True).frame
wine.columns = [name.replace("/", "_") for name in wine.columns]
store("wine", wine, {name: "float" for name in wine.columns if name != "target"})

diabetes = load_diabetes(as_frame=True).frame
store("diabetes", diabetes, {name: "float" for name in diabetes.columns if name != "target"})

rows = range(240)
first = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
store("mixed", pd.DataFrame({
    "number": [row * 0.5 for row in rows],
    "count": pd.array([None if row % 10 == 0 else row % 3 for row in rows], dtype="Int64"),
    "clear": [row % 2 == 0 for row in rows],
    "operator": ["anna" if row % 3 else "ben" for row in rows],
    "at": [first + datetime.timedelta(hours=row) for row in rows],
    "target": ["good" if row % 2 == 0 else "bad" for row in rows],
}), {"number": "float", "count": "integer", "clear": "boolean", "operator": "string",
     "at": "datetime"})
