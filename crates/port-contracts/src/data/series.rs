//! Contract of [`labdata_ports::data::DataStore`]: series.

use labdata_domain::{
    catalog::{ColumnDefinition, SystemColumn},
    data::write::{LABEL_KEY, Mode, Problem, Reason, SeriesOutcome, SeriesWrite, TableWrite},
    refusal::ErrorCode,
    scalar::{DataType, KeyValue},
};
use serde_json::{Value, json};

use crate::{
    Itself,
    assertions::by_value,
    catalog::definitions::{column, raw, reference},
    data::{
        lab::{
            DataHarness, Lab, assert_problems, assert_problems_are, dangling, insert,
            labelled_sample, request, series, table_write, writing_time,
        },
        modify::by,
    },
};

/// A lab with the samples `a` and `b`.
async fn lab_with_samples<H: DataHarness>(harness: &H) -> Lab {
    let lab = Lab::with_tables(harness).await;
    lab.insert(
        "sample",
        json!([{"id": "a", "name": "a"}, {"id": "b", "name": "b"}]),
    )
    .await;
    lab
}

/// Writes series, which succeeds.
async fn write(lab: &Lab, series: impl IntoIterator<Item = SeriesWrite>) -> Vec<SeriesOutcome> {
    lab.write(request([], series)).await.unwrap().series
}

/// The values of a column of a parent's points, in the order in which they are read.
async fn points(lab: &Lab, parent: &str, column: &str) -> Vec<Value> {
    let mut points = lab.find("curve", json!({ "sample": parent })).await;
    points
        .iter_mut()
        .map(|point| point.remove(column).unwrap())
        .collect()
}

crate::suite!(
    use data::series as data_series;

    /// The columns of the table and nothing else come back, one row per point, null where it was.
    async fn a_series_reads_back_point_by_point(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let columns = json!({"time": [0, 0.5, 1], "od": [0.1, null, 0.3]});
        let outcome = write(&lab, [series("curve", json!("a"), columns)]).await;
        let expected = SeriesOutcome {
            table: "curve".to_owned(),
            parent: KeyValue::Text("a".to_owned()),
            points_written: 3,
            points_replaced: 0,
        };
        assert_eq!(outcome, [expected]);
        assert_eq!(points(&lab, "a", "time").await, [0.0, 0.5, 1.0]);
        assert_eq!(
            points(&lab, "a", "od").await,
            [json!(0.1), Value::Null, json!(0.3)]
        );
        let point = lab.find("curve", json!({"order": 1})).await.remove(0);
        let names: Vec<&String> = point
            .keys()
            .filter(|name| SystemColumn::from_name(name).is_none())
            .collect();
        assert_eq!(names, ["od", "order", "sample", "time"]);
        assert_eq!(point.get("sample"), Some(&json!("a")));
    }

    /// The order column is 0, 1, 2, … where the series leaves it out, and as given otherwise.
    async fn points_are_counted_from_zero_unless_they_say(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let given = json!({"time": [0, 1, 2], "order": [5, 7, i64::MAX]});
        write(
            &lab,
            [
                series("curve", json!("a"), json!({"time": [0, 1, 2]})),
                series("curve", json!("b"), given),
            ],
        )
        .await;
        assert_eq!(points(&lab, "a", "order").await, [0, 1, 2]);
        assert_eq!(points(&lab, "b", "order").await, [5, 7, i64::MAX]);
        // Places keep their values in any order of reading.
        let mixed = json!({"time": [0, 1, 2], "order": [2, -1, 0]});
        write(&lab, [series("curve", json!("b"), mixed)]).await;
        for (order, time) in [(2, 0.0), (-1, 1.0), (0, 2.0)] {
            let point = lab
                .find("curve", json!({"sample": "b", "order": order}))
                .await
                .remove(0);
            assert_eq!(by_value(point["time"].clone()), json!(time));
        }
    }

    /// Without an order column, points are read in the order in which they were written.
    async fn a_raw_table_without_order_keeps_the_order_of_points(
        harness: &Itself<impl DataHarness>,
    ) {
        let lab = lab_with_samples(harness).await;
        lab.define(&raw(
            "spectrum",
            vec![reference("sample"), column("x", DataType::Integer)],
        ))
        .await
        .unwrap();
        let values: Vec<i64> = (0..5_000).map(|number| number * 7 % 5_000).collect();
        write(&lab, [series("spectrum", json!("a"), json!({"x": values}))]).await;
        let plan = lab
            .read_plan("spectrum", json!({"sample": "a"}), 5_000)
            .await;
        let read: Vec<i64> = lab
            .read(&plan)
            .await
            .rows
            .iter()
            .map(|row| {
                serde_json::from_str::<Value>(row.as_str()).unwrap()["x"]
                    .as_i64()
                    .unwrap()
            })
            .collect();
        assert_eq!(read, values);
    }

    /// Points may hold values of every type, and references to other rows.
    async fn points_of_every_type_read_back_as_written(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let mut columns: Vec<ColumnDefinition> = DataType::ALL
            .into_iter()
            .map(|data_type| column(&format!("a_{data_type}"), data_type))
            .collect();
        columns.push(reference("sample"));
        columns.push(reference("carrier"));
        lab.define(&raw("everything", columns)).await.unwrap();
        lab.insert(
            "carrier",
            json!([{"id": "p", "name": "plate p"}, {"id": "q", "name": "plate q"}]),
        )
        .await;
        let given = json!({
            "a_string": ["it's", null, ""], "a_text": ["\"", "{}", null], "a_integer": [i64::MIN, 0, null],
            "a_float": [0.1, 1e308, null], "a_boolean": [true, null, false],
            "a_datetime": ["2026-03-01T12:00:00Z", null, "2026-03-01T12:00:01Z"],
            "a_date": [null, "2024-02-29", "0001-01-01"],
            "a_uuid": ["0189c0de-0000-7000-8000-000000000001", null, null],
            "a_json": [{"a": [1]}, null, "x"],
        });
        let mut columns = given.clone();
        columns["carrier"] = json!(["p", {"name": "plate q"}, null]);
        let parent = Some("sample".to_owned());
        write(
            &lab,
            [SeriesWrite {
                parent_column: parent,
                ..series("everything", json!("a"), columns)
            }],
        )
        .await;
        let read = lab.find("everything", json!({})).await;
        assert_eq!(read.len(), 3);
        for (name, values) in given.as_object().unwrap() {
            let read: Vec<&Value> = read.iter().map(|point| point.get(name).unwrap()).collect();
            let written: Vec<&Value> = values.as_array().unwrap().iter().collect();
            // Points whose carriers differ may be stored apart, so only one carrier's keep their order.
            for value in written {
                assert!(
                    read.contains(&value),
                    "{name}: {value} is not among {read:?}"
                );
            }
        }
        let point = lab
            .find("everything", json!({"carrier__name": "plate q"}))
            .await
            .remove(0);
        assert_eq!(
            (&point["a_text"], &point["a_float"]),
            (&json!("{}"), &json!(1e308))
        );
        assert_eq!(
            lab.find("everything", json!({"carrier__isnull": true}))
                .await
                .len(),
            1
        );
    }

    /// A label or a key that the request itself gives may be the parent.
    async fn a_series_may_belong_to_a_row_of_the_same_request(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let rows = insert(
            "sample",
            json!([labelled_sample("a"), {"id": "my-b", "name": "b"}]),
        );
        let both = [
            series("curve", json!("@a"), json!({"time": [1]})),
            series("curve", json!("my-b"), json!({"time": [2, 3]})),
        ];
        let outcome = lab.write(request([rows], both)).await.unwrap();
        let parents: Vec<String> = outcome
            .series
            .iter()
            .map(|series| series.parent.to_string())
            .collect();
        assert_eq!(parents, [lab.sample("a").await, "my-b".to_owned()]);
        assert_eq!(
            lab.find("curve", json!({"sample__name": "a"})).await.len(),
            1
        );
        assert_eq!(points(&lab, "my-b", "time").await, [2.0, 3.0]);
    }

    /// Repeating a write is safe: the parent has the new points, and only those.
    async fn a_series_replaces_the_parents_earlier_one(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        for (written, replaced) in [(3, 0), (3, 3), (2, 3), (4, 2)] {
            let times: Vec<u64> = (0..written).collect();
            let outcome = write(
                &lab,
                [series("curve", json!("a"), json!({ "time": times }))],
            )
            .await;
            let outcome = outcome.first().unwrap();
            assert_eq!(
                (outcome.points_written, outcome.points_replaced),
                (written, replaced)
            );
            let times: Vec<f64> = times
                .into_iter()
                .map(|time| f64::from(u32::try_from(time).unwrap()))
                .collect();
            assert_eq!(points(&lab, "a", "time").await, times);
        }
    }

    /// A series of empty lists, or of none, leaves its parent without points.
    async fn a_series_without_points_only_removes(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        write(&lab, [series("curve", json!("a"), json!({"time": [0, 1]}))]).await;
        let outcome = write(&lab, [series("curve", json!("a"), json!({"time": []}))]).await;
        let outcome = outcome.first().unwrap();
        assert_eq!((outcome.points_written, outcome.points_replaced), (0, 2));
        assert_eq!(lab.count("curve").await, 0);
    }

    /// Only the same parent's points in the same table are replaced.
    async fn series_of_other_parents_and_tables_stay(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        lab.define(&raw(
            "spectrum",
            vec![reference("sample"), column("x", DataType::Float)],
        ))
        .await
        .unwrap();
        let three = [
            series("curve", json!("a"), json!({"time": [1]})),
            series("curve", json!("b"), json!({"time": [2]})),
            series("spectrum", json!("a"), json!({"x": [3]})),
        ];
        write(&lab, three).await;
        let outcome = write(&lab, [series("curve", json!("a"), json!({"time": [4, 5]}))]).await;
        assert_eq!(outcome.first().unwrap().points_replaced, 1);
        assert_eq!(points(&lab, "a", "time").await, [4.0, 5.0]);
        assert_eq!(points(&lab, "b", "time").await, [2.0]);
        assert_eq!(lab.column("spectrum", "x").await, [3.0]);
    }

    /// In a raw table with several references, each may own series.
    async fn series_of_two_references_are_separate(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let columns = vec![
            reference("sample"),
            reference("carrier"),
            column("x", DataType::Float),
        ];
        lab.define(&raw("signal", columns)).await.unwrap();
        lab.insert("carrier", json!([{"id": "a", "name": "a plate"}]))
            .await;
        let of = |column: &str, values: Value| SeriesWrite {
            parent_column: Some(column.to_owned()),
            ..series("signal", json!("a"), json!({ "x": values }))
        };
        write(
            &lab,
            [of("sample", json!([1, 2])), of("carrier", json!([3]))],
        )
        .await;
        let outcome = write(&lab, [of("carrier", json!([4]))]).await;
        assert_eq!(outcome.first().unwrap().points_replaced, 1);
        assert_eq!(lab.column("signal", "x").await, [1.0, 2.0, 4.0]);
        assert_eq!(lab.find("signal", json!({"carrier": "a"})).await.len(), 1);
    }

    /// A parent that is deleted between planning and applying the write is a problem.
    async fn a_series_of_a_row_that_went_is_a_problem(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let execution = lab
            .insert("sample", json!([{"id": "a", "name": "a"}]))
            .await;
        let late = request([], [series("curve", json!("a"), json!({"time": [1]}))]);
        let plan = lab.plan(late).await.unwrap();
        lab.revert(execution).await.unwrap();
        assert_problems_are(
            lab.apply(&plan, Lab::new_execution("some job"), writing_time())
                .await,
            &[dangling("curve", "curve_sample_id_fkey", "sample_id", "a")],
        );
        assert_eq!(lab.count("curve").await, 0);
    }

    /// Two labels of matched rows that are the same row cannot both have a series.
    async fn labels_that_turn_out_to_be_one_row_have_one_series(
        harness: &Itself<impl DataHarness>,
    ) {
        let lab = lab_with_samples(harness).await;
        let upsert = |label: &str, key: &str, row: Value| {
            let mut row = row;
            row[LABEL_KEY] = json!(label);
            let write = table_write(Mode::Upsert, "sample", json!([row]));
            by(&[key], write)
        };
        let rows = [
            upsert("by id", "id", json!({"id": "a", "name": "a"})),
            upsert("by name", "name", json!({"name": "a"})),
        ];
        let curves = ["@by id", "@by name"]
            .map(|parent| series("curve", json!(parent), json!({"time": [1]})));
        assert_problems_are(
            lab.write(request(rows, curves)).await,
            &[Problem::at(
                "series[1].parent",
                Reason::new(
                    ErrorCode::DuplicateSeries,
                    "series[0] writes the same parent's series in \"curve\"; put all points into one",
                ),
            )],
        );
        assert_eq!(lab.count("curve").await, 0);
    }

    /// A failed write leaves the series that it would have replaced unchanged.
    async fn a_failed_write_leaves_the_stored_series(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        write(&lab, [series("curve", json!("a"), json!({"time": [1, 2]}))]).await;
        let plan = lab
            .plan(request(
                [insert("sample", json!([{"name": "c"}]))],
                [series("curve", json!("a"), json!({"time": [3]}))],
            ))
            .await
            .unwrap();
        lab.insert("sample", json!([{"name": "c"}])).await;
        assert_problems(
            lab.apply(&plan, Lab::new_execution("some job"), writing_time())
                .await,
        );
        assert_eq!(points(&lab, "a", "time").await, [1.0, 2.0]);
    }

    /// A dry run counts what it would replace, and replaces nothing.
    async fn a_dry_run_leaves_the_stored_series(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        write(&lab, [series("curve", json!("a"), json!({"time": [1, 2]}))]).await;
        let mut dry = request([], [series("curve", json!("a"), json!({"time": [3]}))]);
        dry.dry_run = true;
        let outcome = lab.write(dry).await.unwrap();
        let outcome = outcome.series.first().unwrap();
        assert_eq!((outcome.points_written, outcome.points_replaced), (1, 2));
        assert_eq!(points(&lab, "a", "time").await, [1.0, 2.0]);
    }

    /// A write of the maximum number of values succeeds, and none is lost or moved.
    async fn a_quarter_million_values_are_one_write(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let times: Vec<u32> = (0..125_000).collect();
        let values: Vec<f64> = times.iter().map(|time| f64::from(*time) / 8.0).collect();
        let outcome = write(
            &lab,
            [series(
                "curve",
                json!("a"),
                json!({"time": times, "od": values}),
            )],
        )
        .await;
        assert_eq!(outcome.first().unwrap().points_written, 125_000);
        for place in [0, 1, 4_095, 4_096, 8_191, 65_536, 124_999] {
            let point = lab
                .find("curve", json!({"sample": "a", "order": place}))
                .await
                .remove(0);
            let expected = (json!(f64::from(place)), json!(f64::from(place) / 8.0));
            assert_eq!(
                (
                    by_value(point["time"].clone()),
                    by_value(point["od"].clone())
                ),
                expected
            );
        }
        assert_eq!(
            lab.find("curve", json!({"od__gte": 15_624.5})).await.len(),
            4
        );
    }

    /// Points may name the id under which the same request upserts their row, by any key that matches it.
    async fn points_name_the_id_of_a_row_that_is_upserted_by_another_key(
        harness: &Itself<impl DataHarness>,
    ) {
        let lab = lab_with_samples(harness).await;
        let both = |id: &str| {
            let row = json!([{"id": id, "name": "new"}]);
            let write = TableWrite {
                key: Some(vec!["name".to_owned()]),
                ..table_write(Mode::Upsert, "sample", row)
            };
            request([write], [series("curve", json!(id), json!({"time": [1]}))])
        };
        for replaced in [0, 1] {
            let outcome = lab.write(both("new-1")).await.unwrap();
            assert_eq!(outcome.series.first().unwrap().points_replaced, replaced);
        }
        let problems = assert_problems(lab.write(both("new-2")).await);
        let codes: Vec<_> = problems.iter().map(|problem| problem.code).collect();
        assert_eq!(codes, [ErrorCode::ColumnNotWritable]);
        assert_eq!(lab.count("curve").await, 1);
    }
);
