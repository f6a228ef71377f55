//! Contract of [`labdata_ports::data::DataStore::read_series`].

use labdata_domain::{
    data::{
        read::{SeriesColumns, SeriesLimits},
        write::SeriesWrite,
    },
    scalar::{DataType, Values},
};
use labdata_ports::data::ReadSeriesError;
use serde_json::{Value, json};

use crate::{
    Itself,
    catalog::definitions::{column, raw, reference},
    data::lab::{DataHarness, Lab, request, series},
};

const LIMITS: SeriesLimits = SeriesLimits {
    values: 1_000_000,
    bytes: 32 << 20,
};

async fn lab_with_samples<H: DataHarness>(harness: &H) -> Lab {
    let lab = Lab::with_tables(harness).await;
    let rows = json!([{"id": "a", "name": "a"}, {"id": "b", "name": "b"}]);
    lab.insert("sample", rows).await;
    lab
}

async fn write(lab: &Lab, written: SeriesWrite) {
    lab.write(request([], [written])).await.unwrap();
}

/// The series of a sample.
async fn of_sample(lab: &Lab, table: &str, sample: &str) -> SeriesColumns {
    let read = lab.series(table, Some("sample"), sample, LIMITS).await;
    read.unwrap()
}

/// The values of a column as the API shows them.
#[track_caller]
fn display(read: &SeriesColumns, name: &str) -> Vec<Value> {
    let (_, values) = read
        .columns
        .iter()
        .find(|(column, _)| column == name)
        .unwrap();
    assert_eq!(values.len(), read.points, "{name}");
    (0..values.len())
        .map(|index| {
            values
                .get(index)
                .map_or(Value::Null, |value| value.to_json())
        })
        .collect()
}

crate::suite!(
    use data::read_series as data_read_series;

    /// Every column but the parent's own, in the order in which the points were written.
    async fn a_series_is_read_column_by_column(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let columns = json!({"time": [0, 0.5, 1], "od": [0.1, null, 0.3], "order": [2, 7, 5]});
        write(&lab, series("curve", json!("a"), columns)).await;
        write(&lab, series("curve", json!("b"), json!({"time": [9, 10]}))).await;
        let read = of_sample(&lab, "curve", "a").await;
        assert_eq!(read.points, 3);
        let mut names: Vec<&str> = read.columns.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["od", "order", "time"]);
        assert_eq!(display(&read, "time"), [json!(0), json!(0.5), json!(1)]);
        assert_eq!(display(&read, "od"), [json!(0.1), Value::Null, json!(0.3)]);
        assert_eq!(display(&read, "order"), [2, 7, 5]);
        assert_eq!(
            display(&of_sample(&lab, "curve", "b").await, "order"),
            [0, 1]
        );
    }

    /// Columns that a series did not give, and those that the table got later, hold nulls.
    async fn a_column_that_a_series_lacks_is_null(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let spectrum = |more: Option<DataType>| {
            let mut columns = vec![
                reference("sample"),
                column("x", DataType::Integer),
                column("y", DataType::Float),
            ];
            columns.extend(more.map(|data_type| column("later", data_type)));
            raw("spectrum", columns)
        };
        lab.define(&spectrum(None)).await.unwrap();
        write(&lab, series("spectrum", json!("a"), json!({"x": [1, 2]}))).await;
        lab.define(&spectrum(Some(DataType::Text))).await.unwrap();
        let read = of_sample(&lab, "spectrum", "a").await;
        assert_eq!(display(&read, "x"), [1, 2]);
        assert_eq!(display(&read, "y"), [Value::Null, Value::Null]);
        assert_eq!(display(&read, "later"), [Value::Null, Value::Null]);
    }

    /// Values of every type and references to other rows are read back unchanged.
    async fn values_of_every_type_are_read_as_columns(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let mut columns: Vec<_> = DataType::ALL
            .into_iter()
            .map(|data_type| column(&format!("a_{data_type}"), data_type))
            .collect();
        columns.push(reference("sample"));
        columns.push(reference("carrier"));
        lab.define(&raw("everything", columns)).await.unwrap();
        let plates = json!([{"id": "p", "name": "p"}, {"id": "q", "name": "q"}]);
        lab.insert("carrier", plates).await;
        let given = json!({
            "a_string": ["it's", null, ""], "a_text": ["\"", "{}", null], "a_integer": [i64::MIN, 0, null],
            "a_float": [0.1, 1e308, null], "a_boolean": [true, null, false],
            "a_datetime": ["2026-03-01T12:00:00.000001Z", null, "1926-03-01T12:00:01Z"],
            "a_date": [null, "2024-02-29", "0001-01-01"],
            "a_uuid": ["0189c0de-0000-7000-8000-000000000001", null, null],
            "a_json": [{"a": [1]}, null, "x"], "carrier": ["p", "p", null],
        });
        let written = SeriesWrite {
            parent_column: Some("sample".to_owned()),
            ..series("everything", json!("a"), given.clone())
        };
        write(&lab, written).await;
        let read = of_sample(&lab, "everything", "a").await;
        for (name, values) in given.as_object().unwrap() {
            assert_eq!(&Value::from(display(&read, name)), values, "{name}");
        }
    }

    /// In a table with several references, rows of different parents may have the same key.
    async fn only_points_of_the_requested_reference_are_read(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let columns = vec![
            reference("sample"),
            reference("carrier"),
            column("x", DataType::Float),
        ];
        lab.define(&raw("signal", columns)).await.unwrap();
        lab.insert("carrier", json!([{"id": "a", "name": "plate"}]))
            .await;
        for (parent_column, value) in [("sample", 1.0), ("carrier", 2.0)] {
            let written = SeriesWrite {
                parent_column: Some(parent_column.to_owned()),
                ..series("signal", json!("a"), json!({ "x": [value] }))
            };
            write(&lab, written).await;
        }
        for (parent_column, value) in [("sample", 1.0), ("carrier", 2.0)] {
            let read = lab.series("signal", Some(parent_column), "a", LIMITS).await;
            assert_eq!(display(&read.unwrap(), "x"), [value]);
        }
    }

    /// It has all columns, with no values.
    async fn a_row_without_points_has_an_empty_series(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let read = of_sample(&lab, "curve", "a").await;
        assert_eq!(read.points, 0);
        assert!(read.columns.iter().all(|(_, values)| values.is_empty()));
        assert!(
            read.columns
                .iter()
                .any(|(name, values)| name == "time" && matches!(values, Values::Float(_)))
        );
    }

    /// An empty series differs from the series of a missing row.
    async fn a_series_of_a_missing_row_is_refused(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let read = lab.series("curve", None, "nobody", LIMITS).await;
        assert!(matches!(read, Err(ReadSeriesError::NoParent)), "{read:?}");
    }

    /// The limit of values counts every column.
    async fn a_series_above_the_limits_is_not_read(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        write(&lab, series("curve", json!("a"), json!({"time": [1, 2]}))).await;
        let columns = of_sample(&lab, "curve", "a").await.columns.len();
        let limited = |values| SeriesLimits { values, ..LIMITS };
        let enough = lab.series("curve", None, "a", limited(2 * columns)).await;
        assert_eq!(enough.unwrap().points, 2);
        let fewer = limited(2 * columns - 1);
        let read = lab.series("curve", None, "a", fewer).await;
        assert!(
            matches!(read, Err(ReadSeriesError::TooLarge(_))),
            "{read:?}"
        );
    }

    /// The same table and key in another organization is another row.
    async fn a_series_of_another_organization_is_not_found(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        write(&lab, series("curve", json!("a"), json!({"time": [1]}))).await;
        let other = Lab::named(harness, "other").await;
        other.define_tables().await;
        let read = other.series("curve", None, "a", LIMITS).await;
        assert!(matches!(read, Err(ReadSeriesError::NoParent)), "{read:?}");
    }

    /// Points keep their order in every storage layout.
    async fn a_long_series_comes_in_its_order(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let times: Vec<u32> = (0..20_000).collect();
        let written = series("curve", json!("a"), json!({ "time": times }));
        write(&lab, written).await;
        let read = of_sample(&lab, "curve", "a").await;
        assert_eq!(display(&read, "time"), times);
        assert_eq!(display(&read, "order"), times);
    }

    /// The counts come in the catalog's order; a raw table's are its points.
    async fn rows_and_points_of_small_tables_are_counted(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        write(
            &lab,
            series("curve", json!("a"), json!({"time": [1, 2, 3]})),
        )
        .await;
        let catalog = lab.tables().await;
        let counts = lab
            .data
            .row_counts(lab.organization, &catalog)
            .await
            .unwrap();
        let counted: Vec<(&str, u64)> = catalog
            .tables()
            .iter()
            .map(|table| table.name.as_str())
            .zip(counts.iter().copied())
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(counts.len(), catalog.tables().len());
        assert_eq!(counted.len(), 2, "{counted:?}");
        assert!(counted.contains(&("sample", 2)) && counted.contains(&("curve", 3)));
    }
);
