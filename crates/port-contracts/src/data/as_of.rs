//! Contract of [`labdata_ports::data::DataStore`]: tables as they stood at an earlier moment, and numbers of versions.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use labdata_domain::{
    catalog::{KeyedTable, TableDefinition},
    data::{
        history::versions,
        read::{ExportPlan, ManySeriesPlan, RowSelection, SeriesSelection, TablePart},
        restore::OnConflict,
        write::{Mode, SeriesWrite, TableWrite, WriteRequest},
    },
    ids::ExecutionId,
    scalar::KeyValue,
};
use labdata_ports::data::{
    Attribution, Restore, RevertRequest, parts::PartSink, query::SinkClosed,
};
use serde_json::{Map, Value, json};
use time::OffsetDateTime;

use crate::{
    Itself,
    data::{
        lab::{DataHarness, Lab, insert, request, series, table_write},
        restore::{delete, update},
    },
    given::at,
};

/// Writes at a time, under a new execution.
pub(super) async fn write_at(
    lab: &Lab,
    seconds: i64,
    tables: impl IntoIterator<Item = TableWrite>,
    series: impl IntoIterator<Item = SeriesWrite>,
) -> ExecutionId {
    let plan = lab.plan(request(tables, series)).await.unwrap();
    let written = lab.apply(&plan, Lab::new_execution("some job"), at(seconds));
    written.await.unwrap().execution.unwrap()
}

fn rows_of(page: &[labdata_domain::data::read::RowJson]) -> Vec<Map<String, Value>> {
    let rows = page.iter();
    rows.map(|row| serde_json::from_str(row.as_str()).unwrap())
        .collect()
}

/// The rows of a selection, page by page.
pub(super) async fn pages(
    lab: &Lab,
    table: &str,
    selection: RowSelection,
) -> Vec<Map<String, Value>> {
    let mut plan = lab.selection_plan(table, selection).await;
    let mut rows = Vec::new();
    loop {
        let page = lab.read(&plan).await;
        rows.extend(rows_of(&page.rows));
        match page.next {
            Some(next) => plan.after = Some(next),
            None => return rows,
        }
    }
}

/// A column of the samples as they stood.
async fn samples(lab: &Lab, seconds: i64, filters: Value, order: &[&str]) -> Vec<Value> {
    let selection = RowSelection {
        filters: filters.as_object().cloned().unwrap(),
        order_by: order.iter().map(|&name| name.to_owned()).collect(),
        limit: 2,
        as_of: Some(at(seconds)),
        ..RowSelection::default()
    };
    let rows = pages(lab, "sample", selection).await;
    rows.into_iter()
        .map(|mut row| row.remove("name").unwrap())
        .collect()
}

/// Takes the parts of a table.
struct Parts(Arc<Mutex<Vec<TablePart>>>);

#[async_trait]
impl PartSink for Parts {
    async fn part(&mut self, part: TablePart) -> Result<(), SinkClosed> {
        self.0.lock().unwrap().push(part);
        Ok(())
    }

    async fn end(&mut self) -> Result<(), SinkClosed> {
        Ok(())
    }
}

/// The rows of an export, each as the texts of its values, ordered.
pub(super) async fn exported(lab: &Lab, table: &str, as_of: OffsetDateTime) -> Vec<Vec<String>> {
    let catalog = lab.tables().await;
    let plan = ExportPlan::new(&catalog, table, Some(as_of)).unwrap();
    let parts = Arc::<Mutex<_>>::default();
    let sink = Box::new(Parts(Arc::clone(&parts)));
    lab.data
        .export(lab.organization, &plan, sink)
        .await
        .unwrap();
    let parts = std::mem::take(&mut *parts.lock().unwrap());
    let rows = parts.iter().flat_map(|part| {
        (0..part.rows).map(|row| {
            let values = part.columns.iter().map(|values| values.get(row));
            values
                .map(|value| value.map_or_else(String::new, |value| value.to_json().to_string()))
                .collect()
        })
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    rows.sort();
    rows
}

/// The parents and numbers of points of the series of samples that meet the filters, as they stood.
async fn curves(lab: &Lab, seconds: i64, filters: Value) -> Vec<(String, usize)> {
    let selection = SeriesSelection {
        table: "curve".to_owned(),
        filters: filters.as_object().cloned().unwrap(),
        as_of: Some(at(seconds)),
        ..SeriesSelection::default()
    };
    let catalog = lab.tables().await;
    let plan = ManySeriesPlan::new(&catalog, selection).unwrap();
    let parts = Arc::<Mutex<_>>::default();
    let sink = Box::new(Parts(Arc::clone(&parts)));
    let sent = lab.data.stream_series(lab.organization, &plan, sink).await;
    sent.unwrap();
    let mut points: BTreeMap<String, usize> = BTreeMap::new();
    for part in parts.lock().unwrap().iter() {
        *points
            .entry(part.parent.clone().unwrap().to_string())
            .or_default() += part.rows;
    }
    points.into_iter().collect()
}

async fn keyed(lab: &Lab, table: &str) -> KeyedTable {
    KeyedTable::of(lab.tables().await.table(table).unwrap()).unwrap()
}

/// Numbers and kinds of the versions of a sample, newest first.
async fn sample_versions(lab: &Lab, id: &str) -> Vec<(u64, &'static str)> {
    let key = KeyValue::Text(id.to_owned());
    let table = keyed(lab, "sample").await;
    let history = lab.data.history(lab.organization, &table, &key).await;
    let history = history.unwrap();
    let versions = versions(history.deleted, &history.changes, history.current.as_ref());
    let versions = versions.iter();
    versions
        .map(|it| (it.version, it.operation.as_str()))
        .collect()
}

/// Samples that are created, renamed, deleted and created again, 10 seconds apart.
async fn eventful(harness: &Itself<impl DataHarness>) -> Lab {
    let lab = Lab::with_tables(harness).await;
    let rows = json!([{"id": "a", "name": "a", "volume": 1}, {"id": "b", "name": "b", "volume": 2},
        {"id": "c", "name": "c", "volume": 3}]);
    let measurements =
        json!([{"id": "1", "sample": "a", "value": 1}, {"id": "2", "sample": "b", "value": 2}]);
    let curves = ["a", "b"].map(|id| series("curve", json!(id), json!({"time": [1, 2]})));
    let tables = [insert("sample", rows), insert("measurement", measurements)];
    write_at(&lab, 110, tables, curves).await;
    let renamed = update("sample", json!([{"id": "a", "name": "z", "volume": 9}]));
    write_at(&lab, 120, [renamed], []).await;
    write_at(&lab, 130, [delete("sample", json!([{"id": "b"}]))], []).await;
    let curve = series("curve", json!("a"), json!({"time": [1]}));
    write_at(&lab, 140, [], [curve]).await;
    let again = insert("sample", json!([{"id": "b", "name": "new"}]));
    write_at(&lab, 150, [again], []).await;
    lab
}

pub(super) fn reverting(lab: &Lab, execution: ExecutionId, now: OffsetDateTime) -> RevertRequest {
    let undo = Attribution {
        target: Lab::new_execution("revert"),
        user: lab.user,
        api_key: lab.api_key,
        rights: lab.rights.clone(),
        now,
        source: None,
    };
    RevertRequest {
        now,
        restore: Some(Restore {
            on_conflict: OnConflict::Refuse,
            undo,
        }),
        ..lab.reverting(execution)
    }
}

crate::suite!(
    use data::as_of as data_as_of;

    /// A read shows the rows of that moment, with the values that they then had.
    async fn rows_are_read_as_they_stood(harness: &Itself<impl DataHarness>) {
        let lab = eventful(harness).await;
        for (seconds, expected) in [
            (109, json!([])),
            (110, json!(["c", "b", "a"])),
            (119, json!(["c", "b", "a"])),
            (120, json!(["c", "b", "z"])),
            (130, json!(["c", "z"])),
            (149, json!(["c", "z"])),
            (150, json!(["c", "new", "z"])),
        ] {
            let found = samples(&lab, seconds, json!({}), &[]).await;
            assert_eq!(Value::from(found), expected, "{seconds}");
        }
    }

    /// Filters, order and pages are of the rows as they stood, those of referenced rows as well.
    async fn filters_order_and_pages_are_of_the_rows_as_they_stood(
        harness: &Itself<impl DataHarness>,
    ) {
        let lab = eventful(harness).await;
        let by_volume = samples(&lab, 129, json!({}), &["volume"]).await;
        assert_eq!(by_volume, ["b", "c", "z"]);
        let by_name = samples(&lab, 119, json!({}), &["-name"]).await;
        assert_eq!(by_name, ["c", "b", "a"]);
        assert_eq!(samples(&lab, 119, json!({"name": "a"}), &[]).await, ["a"]);
        assert_eq!(samples(&lab, 120, json!({"name": "a"}), &[]).await, [""; 0]);
        assert_eq!(
            samples(&lab, 129, json!({"volume__gte": 3}), &[]).await,
            ["c", "z"]
        );
        assert_eq!(
            samples(&lab, 129, json!({"id__in": ["b", "a"]}), &[]).await,
            ["b", "z"]
        );
        assert_eq!(samples(&lab, 149, json!({"id": "b"}), &[]).await, [""; 0]);
        for (seconds, filters, expected) in [
            (119, json!({"sample__name": "a"}), json!(["1"])),
            (120, json!({"sample__name": "a"}), json!([])),
            (120, json!({"sample__name": "z"}), json!(["1"])),
            (129, json!({"sample__volume": 2}), json!(["2"])),
            (130, json!({"sample__volume": 2}), json!([])),
        ] {
            let selection = RowSelection {
                filters: filters.as_object().cloned().unwrap(),
                limit: 10,
                as_of: Some(at(seconds)),
                ..RowSelection::default()
            };
            let rows = pages(&lab, "measurement", selection).await;
            let ids: Vec<Value> = rows.iter().map(|row| row["id"].clone()).collect();
            assert_eq!(Value::from(ids), expected, "{seconds} {filters}");
        }
    }

    /// Series that were replaced or deleted are read as they stood, with the execution that wrote them.
    async fn series_are_read_as_they_stood(harness: &Itself<impl DataHarness>) {
        let lab = eventful(harness).await;
        for (seconds, expected) in [
            (109, vec![]),
            (110, vec![("a", 2), ("b", 2), ("c", 0)]),
            (130, vec![("a", 2), ("c", 0)]),
            (140, vec![("a", 1), ("c", 0)]),
            (150, vec![("a", 1), ("b", 0), ("c", 0)]),
        ] {
            let expected: Vec<(String, usize)> = expected
                .into_iter()
                .map(|(id, points)| (id.to_owned(), points))
                .collect();
            assert_eq!(
                curves(&lab, seconds, json!({})).await,
                expected,
                "{seconds}"
            );
        }
        assert_eq!(
            curves(&lab, 119, json!({"name": "a"})).await,
            [("a".to_owned(), 2)]
        );
        assert_eq!(curves(&lab, 129, json!({"name": "a"})).await, []);
        let lengths = [109, 110, 130, 140];
        for (seconds, points) in lengths.into_iter().zip([0, 4, 2, 1]) {
            assert_eq!(
                exported(&lab, "curve", at(seconds)).await.len(),
                points,
                "{seconds}"
            );
        }
        let names = ["sample", "created_by_execution_id"].map(str::to_owned);
        let selection = RowSelection {
            columns: Some(names.to_vec()),
            limit: 10,
            as_of: Some(at(119)),
            ..RowSelection::default()
        };
        let points = pages(&lab, "curve", selection).await;
        assert_eq!(points.len(), 4);
        let of_row = lab.find("sample", json!({"id": "c"})).await;
        for point in points {
            assert_eq!(
                point["created_by_execution_id"],
                of_row[0]["created_by_execution_id"]
            );
        }
    }

    /// An export has the rows of that moment.
    async fn exports_are_of_the_rows_as_they_stood(harness: &Itself<impl DataHarness>) {
        let lab = eventful(harness).await;
        for (seconds, rows) in [(109, 0), (119, 3), (130, 2), (150, 3)] {
            assert_eq!(
                exported(&lab, "sample", at(seconds)).await.len(),
                rows,
                "{seconds}"
            );
        }
        assert!(exported(&lab, "sample", at(120)).await[0].contains(&"\"z\"".to_owned()));
    }

    /// A table is known since it was defined, got a history, or lost changes.
    async fn a_table_is_known_since_its_history_begins(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let since = async |table: &str| lab.data.history_since(lab.organization, table).await;
        assert_eq!(since("sample").await.unwrap(), at(50));
        assert!(since("operation").await.is_ok());
        assert!(since("unknown").await.is_err());
        for (history, seconds) in [(false, 60), (true, 70)] {
            let definition = TableDefinition {
                history,
                ..crate::catalog::definitions::sample()
            };
            let defined = lab
                .catalog
                .define(lab.organization, &definition, at(seconds));
            defined.await.unwrap();
        }
        assert_eq!(since("sample").await.unwrap(), at(70));
        let other = Lab::named(harness, "another lab").await;
        let foreign = other.data.history_since(other.organization, "sample").await;
        assert!(foreign.is_err());
    }

    /// Versions keep their numbers when earlier ones are deleted, and the table is known since then.
    async fn numbers_of_versions_stay(harness: &Itself<impl DataHarness>) {
        let lab = eventful(harness).await;
        let expected = [
            (4, "updated"),
            (3, "updated"),
            (2, "updated"),
            (1, "created"),
        ];
        for (seconds, volume) in [(160, 4), (170, 5)] {
            let rows = json!([{"id": "a", "volume": volume}]);
            write_at(&lab, seconds, [update("sample", rows)], []).await;
        }
        assert_eq!(sample_versions(&lab, "a").await, expected);
        let since = async || {
            lab.data
                .history_since(lab.organization, "sample")
                .await
                .unwrap()
        };
        while lab.data.sweep_history(at(121), 1).await.unwrap() > 0 {}
        assert_eq!(sample_versions(&lab, "a").await, expected[..3]);
        assert_eq!(since().await, at(121));
        while lab.data.sweep_history(at(165), 10).await.unwrap() > 0 {}
        assert_eq!(sample_versions(&lab, "a").await, expected[..2]);
        // The row was deleted, and created again without a change since.
        assert_eq!(sample_versions(&lab, "b").await, [(3, "created")]);
        assert_eq!(since().await, at(165));
        assert_eq!(samples(&lab, 165, json!({"id": "a"}), &[]).await, ["z"]);
        let table = keyed(&lab, "sample").await;
        let key = KeyValue::Text("a".to_owned());
        let forgotten = lab.data.forget_history(lab.organization, &table, &key);
        forgotten.await.unwrap();
        assert_eq!(sample_versions(&lab, "a").await, expected[..1]);
        assert_eq!(since().await, at(170));
    }

    /// A write that restores is recorded so, of a row that exists and of one that is created again.
    async fn a_write_that_restores_is_recorded_as_restored(harness: &Itself<impl DataHarness>) {
        let lab = eventful(harness).await;
        write_at(&lab, 160, [delete("sample", json!([{"id": "c"}]))], []).await;
        let rows =
            json!([{"id": "a", "name": "a", "volume": 1}, {"id": "c", "name": "c", "volume": 3}]);
        let restoring = WriteRequest {
            restores: true,
            ..request([table_write(Mode::Upsert, "sample", rows)], [])
        };
        let plan = lab.plan(restoring).await.unwrap();
        let target = Lab::new_execution("some job");
        let execution = target.execution();
        lab.apply(&plan, target, at(170)).await.unwrap();
        assert_eq!(
            sample_versions(&lab, "a").await,
            [(3, "restored"), (2, "updated"), (1, "created")]
        );
        assert_eq!(
            sample_versions(&lab, "c").await,
            [(3, "restored"), (2, "deleted"), (1, "created")]
        );
        assert_eq!(samples(&lab, 169, json!({}), &[]).await, ["new", "z"]);
        assert_eq!(samples(&lab, 170, json!({}), &[]).await, ["c", "new", "a"]);
        let request = reverting(&lab, execution, at(180));
        lab.data.revert(lab.organization, &request).await.unwrap();
        assert_eq!(samples(&lab, 180, json!({}), &[]).await, ["new", "z"]);
    }
);
