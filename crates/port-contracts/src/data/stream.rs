//! Contract of [`labdata_ports::data::DataStore::stream_series`] and
//! [`labdata_ports::data::DataStore::export`].

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use labdata_domain::{
    conflict::Conflict,
    data::read::{ExportPlan, ManySeriesPlan, SeriesSelection, TablePart},
    scalar::{DataType, Values},
};
use labdata_ports::{
    PortError,
    data::{
        parts::{PartSink, StreamError},
        query::SinkClosed,
    },
};
use serde_json::{Map, Value, json};

use crate::{
    Itself,
    catalog::definitions::{column, raw, reference},
    data::lab::{DataHarness, Lab, request, series},
    given::at,
};

/// Parts that a sink took.
#[derive(Debug, Default)]
struct Taken {
    parts: Vec<TablePart>,
    ends: usize,
}

/// A sink that closes after a number of parts.
struct Sink {
    taken: Arc<Mutex<Taken>>,
    left: usize,
}

#[async_trait]
impl PartSink for Sink {
    async fn part(&mut self, part: TablePart) -> Result<(), SinkClosed> {
        self.left = self.left.checked_sub(1).ok_or(SinkClosed)?;
        self.taken.lock().unwrap().parts.push(part);
        Ok(())
    }

    async fn end(&mut self) -> Result<(), SinkClosed> {
        self.taken.lock().unwrap().ends += 1;
        Ok(())
    }
}

async fn lab_with_samples<H: DataHarness>(harness: &H) -> Lab {
    let lab = Lab::with_tables(harness).await;
    let rows = json!([
        {"id": "a", "name": "a", "volume": 1},
        {"id": "b", "name": "b"},
        {"id": "c", "name": "c", "volume": 2},
    ]);
    lab.insert("sample", rows).await;
    for (sample, columns) in [
        ("c", json!({"time": [1, 2], "od": [0.5, null]})),
        ("a", json!({"time": [3]})),
    ] {
        let written = series("curve", json!(sample), columns);
        lab.write(request([], [written])).await.unwrap();
    }
    lab
}

fn selection(change: &Value) -> SeriesSelection {
    let text = |name: &str| change[name].as_str().map(str::to_owned);
    let columns = change["columns"].as_array().map(|columns| {
        let columns = columns.iter().map(|name| name.as_str().unwrap().to_owned());
        columns.collect()
    });
    SeriesSelection {
        table: text("table").unwrap_or_else(|| "curve".to_owned()),
        parent_column: text("parent_column"),
        parents: change["parents"].as_array().cloned(),
        filters: change["filters"].as_object().cloned().unwrap_or_default(),
        columns,
        as_of: None,
    }
}

async fn stream(lab: &Lab, change: Value, left: usize) -> (Result<(), StreamError>, Taken) {
    let catalog = lab.tables().await.visible_to(&lab.rights);
    let plan = ManySeriesPlan::new(&catalog, selection(&change)).unwrap();
    let taken = Arc::<Mutex<Taken>>::default();
    let sink = Sink {
        taken: Arc::clone(&taken),
        left,
    };
    let done = lab
        .data
        .stream_series(lab.organization, &plan, Box::new(sink))
        .await;
    (done, std::mem::take(&mut *taken.lock().unwrap()))
}

async fn export(lab: &Lab, table: &str, left: usize) -> (Result<(), StreamError>, Taken) {
    let catalog = lab.tables().await;
    let plan = ExportPlan::new(&catalog, table, None).unwrap();
    let taken = Arc::<Mutex<Taken>>::default();
    let sink = Sink {
        taken: Arc::clone(&taken),
        left,
    };
    let done = lab
        .data
        .export(lab.organization, &plan, Box::new(sink))
        .await;
    (done, std::mem::take(&mut *taken.lock().unwrap()))
}

fn display(values: &Values) -> Vec<Value> {
    let value = |index| {
        values
            .get(index)
            .map_or(Value::Null, |value| value.to_json())
    };
    (0..values.len()).map(value).collect()
}

/// The series as `[parent, [values of a column], …]`, the parts of each parent joined.
async fn joined(lab: &Lab, change: Value) -> Value {
    let (done, taken) = stream(lab, change, usize::MAX).await;
    done.unwrap();
    assert_eq!(taken.ends, 1);
    let mut series: Vec<(String, Vec<Vec<Value>>)> = Vec::new();
    for part in taken.parts {
        let parent = part.parent.unwrap().to_string();
        assert!(part.columns.iter().all(|values| values.len() == part.rows));
        let columns = part.columns.iter().map(display);
        match series.last_mut().filter(|(last, _)| *last == parent) {
            Some((_, begun)) => {
                for (all, more) in begun.iter_mut().zip(columns) {
                    all.extend(more);
                }
            }
            None => series.push((parent, columns.collect())),
        }
    }
    json!(series)
}

/// The rows of an export as objects, ordered.
async fn exported(lab: &Lab, table: &str) -> Vec<Value> {
    let (done, taken) = export(lab, table, usize::MAX).await;
    done.unwrap();
    assert_eq!(taken.ends, 1);
    let catalog = lab.tables().await;
    let plan = ExportPlan::new(&catalog, table, None).unwrap();
    let names: Vec<String> = plan
        .columns()
        .into_iter()
        .map(|column| column.name)
        .collect();
    let mut rows = Vec::new();
    for part in taken.parts {
        assert_eq!(part.columns.len(), names.len());
        let columns: Vec<Vec<Value>> = part.columns.iter().map(display).collect();
        for row in 0..part.rows {
            let cells = names.iter().zip(&columns);
            let cells = cells.map(|(name, values)| (name.clone(), values[row].clone()));
            rows.push(Value::Object(cells.collect()));
        }
    }
    rows.sort_by_key(ToString::to_string);
    rows
}

fn sorted(row: Map<String, Value>) -> Value {
    let mut cells: Vec<_> = row.into_iter().collect();
    cells.sort_by(|(left, _), (right, _)| left.cmp(right));
    Value::Object(cells.into_iter().collect())
}

crate::suite!(
    use data::stream as data_stream;

    /// Columns in the order of the table; a parent without points has an empty part.
    async fn series_come_in_the_order_of_the_named_parents(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let columns = json!(["order", "time", "od"]);
        let named = joined(
            &lab,
            json!({"parents": ["c", "b", "a"], "columns": columns}),
        )
        .await;
        let expected = json!([
            ["c", [[0, 1], [1, 2], [0.5, null]]],
            ["b", [[], [], []]],
            ["a", [[0], [3], [null]]],
        ]);
        assert_eq!(named, expected);
        let none = joined(&lab, json!({"parents": []})).await;
        assert_eq!(none, json!([]));
    }

    /// All rows match where there is no condition.
    async fn series_of_matching_parents_come_by_ascending_key(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let parents = async |filters: Value| {
            let series = joined(&lab, json!({"filters": filters, "columns": ["time"]})).await;
            let parents = series.as_array().unwrap().iter();
            let parents = parents.map(|series| series[0].as_str().unwrap().to_owned());
            parents.collect::<String>()
        };
        assert_eq!(parents(json!({})).await, "abc");
        assert_eq!(parents(json!({"volume__gte": 1})).await, "ac");
        assert_eq!(parents(json!({"name__in": ["b", "c"]})).await, "bc");
        assert_eq!(parents(json!({"name": "none"})).await, "");
    }

    /// Columns that a table has and a request does not name are not read.
    async fn chosen_columns_come_in_their_order(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let read = async |columns: Value| {
            joined(&lab, json!({"parents": ["c"], "columns": columns})).await
        };
        assert_eq!(read(json!(["od"])).await, json!([["c", [[0.5, null]]]]));
        assert_eq!(
            read(json!(["time", "order"])).await,
            json!([["c", [[1, 2], [0, 1]]]])
        );
    }

    /// In a table with several references, rows of different parents may have the same key.
    async fn only_points_of_the_parents_reference_are_streamed(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let columns = vec![
            reference("sample"),
            reference("carrier"),
            column("x", DataType::Float),
        ];
        lab.define(&raw("signal", columns)).await.unwrap();
        lab.insert("carrier", json!([{"id": "a", "name": "plate"}]))
            .await;
        for (parent_column, value) in [("sample", 1), ("carrier", 2)] {
            let mut written = series("signal", json!("a"), json!({ "x": [value] }));
            written.parent_column = Some(parent_column.to_owned());
            lab.write(request([], [written])).await.unwrap();
            let read = json!({"table": "signal", "parent_column": parent_column, "columns": ["x"]});
            let read = joined(&lab, read).await;
            assert_eq!(read[0], json!(["a", [[value]]]), "{parent_column}");
        }
    }

    /// The first one that is missing, in the order of the request.
    async fn a_missing_parent_is_named_before_any_part(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let parents = json!({"parents": ["c", "nobody", "a", "neither"]});
        let (done, taken) = stream(&lab, parents, usize::MAX).await;
        assert_eq!(done.unwrap_err().to_string(), "parent \"nobody\" not found");
        assert_eq!((taken.parts.len(), taken.ends), (0, 0));
    }

    /// The same table and key in another organization is another row.
    async fn parents_of_another_organization_are_missing(harness: &Itself<impl DataHarness>) {
        lab_with_samples(harness).await;
        let other = Lab::named(harness, "other").await;
        other.define_tables().await;
        let (done, _) = stream(&other, json!({"parents": ["a"]}), usize::MAX).await;
        assert!(matches!(done, Err(StreamError::NoParent(_))), "{done:?}");
        assert_eq!(joined(&other, json!({})).await, json!([]));
        let (done, taken) = export(&other, "curve", usize::MAX).await;
        done.unwrap();
        assert!(taken.parts.iter().all(|part| part.rows == 0));
    }

    /// With a hidden table of parents, rows without points are as rows that do not exist.
    async fn of_hidden_parents_those_with_points_exist(harness: &Itself<impl DataHarness>) {
        let mut lab = lab_with_samples(harness).await;
        lab.narrow("curve").await;
        let all = json!([["a", [[3]]], ["c", [[1, 2]]]]);
        assert_eq!(joined(&lab, json!({"columns": ["time"]})).await, all);
        let named = json!({"parents": ["c", "a"], "columns": ["time"]});
        let named = joined(&lab, named).await;
        assert_eq!(named, json!([["c", [[1, 2]]], ["a", [[3]]]]));
        for missing in ["b", "nobody"] {
            let (done, taken) = stream(&lab, json!({"parents": ["a", missing]}), usize::MAX).await;
            match done {
                Err(StreamError::NoParent(key)) => assert_eq!(key.to_string(), missing),
                other => panic!("{other:?}"),
            }
            assert_eq!(taken.parts.len(), 0);
        }
    }

    /// Points keep their order across parts.
    async fn long_series_come_in_bounded_parts(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let times: Vec<u32> = (0..20_000).collect();
        let written = series("curve", json!("b"), json!({ "time": times }));
        lab.write(request([], [written])).await.unwrap();
        let read = joined(&lab, json!({"parents": ["b", "a"], "columns": ["time"]})).await;
        assert_eq!(read, json!([["b", [times]], ["a", [[3]]]]));
    }

    /// The values are those of a read of rows, for columns of every type.
    async fn a_table_is_exported_with_all_columns(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let columns = DataType::ALL
            .into_iter()
            .map(|data_type| column(&format!("a_{data_type}"), data_type));
        let columns = columns.chain([reference("sample")]).collect();
        lab.define(&crate::catalog::definitions::curated("everything", columns))
            .await
            .unwrap();
        let rows = json!([
            {
                "id": "x", "a_string": "it's", "a_text": "", "a_integer": i64::MAX, "a_float": 0.1, "a_boolean": true,
                "a_datetime": "2026-03-01T12:00:00.000001Z", "a_date": "2026-03-01",
                "a_uuid": "0189c0de-0000-7000-8000-000000000001", "a_json": {"a": [1, null]}, "sample": "a",
            },
            {"id": "y"},
        ]);
        lab.insert("everything", rows).await;
        for table in ["everything", "sample"] {
            let found = lab.find(table, json!({})).await.into_iter();
            let mut found: Vec<Value> = found.map(sorted).collect();
            found.sort_by_key(ToString::to_string);
            let exported = exported(&lab, table).await.into_iter();
            let exported = exported.map(|row| sorted(row.as_object().unwrap().clone()));
            assert_eq!(exported.collect::<Vec<_>>(), found, "{table}");
        }
    }

    /// One row per point, as a read of rows has them.
    async fn points_are_exported_with_their_references(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let found = lab.find("curve", json!({})).await;
        let number = |row: &Value, name: &str| row[name].as_f64();
        let mut rows = Vec::new();
        for row in exported(&lab, "curve").await {
            let sample = row["sample"].as_str().unwrap().to_owned();
            rows.push((
                sample,
                number(&row, "order"),
                number(&row, "time"),
                number(&row, "od"),
            ));
        }
        let mut expected = Vec::new();
        for row in found {
            let row = Value::Object(row);
            let sample = row["sample"].as_str().unwrap().to_owned();
            expected.push((
                sample,
                number(&row, "order"),
                number(&row, "time"),
                number(&row, "od"),
            ));
        }
        let by_place = |left: &(String, Option<f64>, _, _), right: &(String, Option<f64>, _, _)| {
            (&left.0, left.1).partial_cmp(&(&right.0, right.1)).unwrap()
        };
        rows.sort_by(by_place);
        expected.sort_by(by_place);
        assert_eq!(rows.len(), 3);
        assert_eq!(rows, expected);
    }

    /// The sink learns the end.
    async fn a_table_without_rows_ends_at_once(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        for table in ["sample", "curve", "experiment"] {
            assert!(exported(&lab, table).await.is_empty(), "{table}");
        }
    }

    /// It is not ended, and the failure is known.
    async fn a_sink_that_takes_no_more_ends_the_read(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let (done, taken) = stream(&lab, json!({}), 1).await;
        assert!(matches!(done, Err(StreamError::Closed(_))), "{done:?}");
        assert_eq!((taken.parts.len(), taken.ends), (1, 0));
        let (done, taken) = export(&lab, "sample", 0).await;
        assert!(matches!(done, Err(StreamError::Closed(_))), "{done:?}");
        assert_eq!((taken.parts.len(), taken.ends), (0, 0));
    }

    /// A read that was given up holds nothing.
    async fn the_store_answers_after_abandoned_reads(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        for _ in 0..40 {
            let (done, _) = stream(&lab, json!({}), 1).await;
            assert!(done.is_err());
            let (done, _) = stream(&lab, json!({"parents": ["nobody"]}), 1).await;
            assert!(done.is_err());
        }
        assert_eq!(lab.count("sample").await, 3);
        assert_eq!(exported(&lab, "curve").await.len(), 3);
    }

    /// Before any part.
    async fn streams_of_a_dropped_table_conflict(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let catalog = lab.tables().await;
        let table = ExportPlan::new(&catalog, "curve", None).unwrap();
        let many = ManySeriesPlan::new(&catalog, selection(&json!({}))).unwrap();
        let dropped = lab
            .catalog
            .drop_table(lab.organization, "curve", true, at(150));
        dropped.await.unwrap();
        let taken = Arc::<Mutex<Taken>>::default();
        let sink = || {
            let taken = Arc::clone(&taken);
            Box::new(Sink { taken, left: 10 })
        };
        let (data, organization) = (&lab.data, lab.organization);
        let exported = data.export(organization, &table, sink()).await;
        let streamed = data.stream_series(organization, &many, sink()).await;
        for result in [exported, streamed] {
            match result {
                Err(StreamError::Port(PortError::Conflict(Conflict::TablesChanged))) => {}
                other => panic!("expected TablesChanged, got {other:?}"),
            }
        }
        assert!(taken.lock().unwrap().parts.is_empty());
    }
);
