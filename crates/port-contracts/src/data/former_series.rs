//! Contract of [`labdata_ports::data::DataStore`]: earlier values of series, of all types.

use labdata_domain::{
    catalog::{ColumnDefinition, TableDefinition},
    data::{read::RowSelection, write::SeriesWrite},
    scalar::DataType,
};
use serde_json::{Map, Value, json};
use time::OffsetDateTime;

use crate::{
    Itself,
    catalog::{
        definitions::{column, raw, reference},
        scripted::texts,
    },
    data::{
        as_of::{pages, write_at},
        lab::{DataHarness, Lab, series},
        restore::{restore, write},
    },
    given::at,
};

/// Columns without a value, of which there are more than a function of PostgreSQL has arguments.
const UNUSED: usize = 101;

/// A table of series with a column of each type.
fn trace() -> TableDefinition {
    let order = column("order", DataType::Integer);
    let types = texts().map(|(data_type, ..)| column(&format!("of_{data_type}"), data_type));
    let texts = ["key", "s"].map(|name| column(name, DataType::Text));
    let unused = (0..UNUSED).map(|index| column(&format!("unused_{index}"), DataType::String));
    let columns = [reference("sample"), order]
        .into_iter()
        .chain(types)
        .chain(texts)
        .chain(unused);
    raw("trace", columns.collect())
}

/// A lab with that table and a sample.
async fn traced(harness: &Itself<impl DataHarness>) -> Lab {
    let lab = Lab::with_tables(harness).await;
    lab.define(&trace()).await.unwrap();
    lab.insert("sample", json!([{"id": "s", "name": "s"}]))
        .await;
    lab
}

/// Six points with values of each type and nulls, in an order of their own.
fn of_each_type() -> SeriesWrite {
    let mut columns = Map::new();
    columns.insert("order".to_owned(), json!([1, 5, 2, 9, 30, 31]));
    columns.insert(
        "key".to_owned(),
        json!(["ä\"\\", null, "", "{", "NULL", "é"]),
    );
    columns.insert("s".to_owned(), json!([null, null, null, null, null, null]));
    for (data_type, mut values, _) in texts() {
        values.insert(0, Value::Null);
        values.resize(6, Value::Null);
        columns.insert(format!("of_{data_type}"), json!(values));
    }
    series("trace", json!("s"), Value::Object(columns))
}

async fn points(lab: &Lab, as_of: Option<OffsetDateTime>) -> Vec<Map<String, Value>> {
    let selection = RowSelection {
        limit: 10,
        as_of,
        ..RowSelection::default()
    };
    pages(lab, "trace", selection).await
}

crate::suite!(
    use data::former_series as data_former_series;

    /// A replaced series returns with every value, and so does the one that replaced it.
    async fn values_of_all_types_return(harness: &Itself<impl DataHarness>) {
        let lab = traced(harness).await;
        write(&lab, [], [of_each_type()]).await;
        let before = points(&lab, None).await;
        assert_eq!(before.len(), 6);
        let other = json!({"of_integer": [1, 2], "s": ["a", "b"]});
        let mut execution = write(&lab, [], [series("trace", json!("s"), other)]).await;
        let after = points(&lab, None).await;
        for expected in [&before, &after, &before] {
            let report = restore(&lab, execution).await.unwrap();
            assert_eq!(&points(&lab, None).await, expected);
            execution = report.undo_execution.unwrap();
        }
        let empty = series("trace", json!("s"), json!({"of_float": []}));
        let execution = write(&lab, [], [empty]).await;
        assert!(points(&lab, None).await.is_empty());
        restore(&lab, execution).await.unwrap();
        assert_eq!(points(&lab, None).await, before);
    }

    /// Series from before and after a change of a column are read as they stood, with the column as it is now.
    async fn series_from_before_a_renaming_are_read(harness: &Itself<impl DataHarness>) {
        let lab = traced(harness).await;
        let mut expected = Vec::new();
        let mut write = async |seconds, series| {
            write_at(&lab, seconds, [], [series]).await;
            expected.push((at(seconds + 5), points(&lab, None).await));
        };
        let of = |name: &str| {
            let columns = Value::from_iter([(name, json!([0.5, null]))]);
            series("trace", json!("s"), columns)
        };
        write(110, of_each_type()).await;
        write(120, of("of_float")).await;
        let mut definition = trace();
        for column in &mut definition.columns {
            if column.name == "of_float" {
                *column = ColumnDefinition {
                    name: "measured".to_owned(),
                    renamed_from: Some(column.name.clone()),
                    ..column.clone()
                };
            }
        }
        lab.define(&definition).await.unwrap();
        write(130, of("measured")).await;
        write(140, of("measured")).await;
        for (moment, mut points_then) in expected {
            for point in &mut points_then {
                if let Some(value) = point.remove("of_float") {
                    point.insert("measured".to_owned(), value);
                }
            }
            assert_eq!(points(&lab, Some(moment)).await, points_then, "{moment}");
        }
    }
);
