//! Contract of [`labdata_ports::data::DataStore`]: reads and filters.

use labdata_domain::{
    conflict::Conflict,
    data::read::{SeriesLimits, SeriesPlan},
    scalar::DataType,
};
use labdata_ports::{PortError, data::ReadSeriesError};
use serde_json::{Value, json};

use crate::{
    Itself,
    catalog::definitions::{column, curated, reference},
    data::lab::{DataHarness, Lab, request, series},
    given::at,
};

/// A lab with five samples, `a` to `e`, whose ids are their names.
pub(crate) async fn lab_with_samples<H: DataHarness>(harness: &H) -> Lab {
    let lab = Lab::with_tables(harness).await;
    let rows = json!([
        {"id": "a", "name": "a", "volume": 1, "note": "100% sure"},
        {"id": "b", "name": "b", "volume": 2, "note": "100 sure"},
        {"id": "c", "name": "c", "volume": 3, "note": "SNAKE_case"},
        {"id": "d", "name": "d", "volume": 4, "note": "back\\slash"},
        {"id": "e", "name": "e"},
    ]);
    lab.insert("sample", rows).await;
    lab
}

/// The ids of the rows that meet the filters, ordered.
pub(crate) async fn found(lab: &Lab, table: &str, filters: Value) -> String {
    let mut ids: Vec<String> = lab
        .find(table, filters)
        .await
        .iter()
        .map(|row| row.get("id").and_then(Value::as_str).unwrap().to_owned())
        .collect();
    ids.sort();
    ids.concat()
}

crate::suite!(
    use data::read as data_read;

    /// Every type but json can be filtered by equality and by a list of values.
    async fn a_filter_of_every_type_finds_equal_values(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        let columns = DataType::ALL
            .into_iter()
            .map(|data_type| column(data_type.as_str(), data_type));
        lab.define(&curated("everything", columns.collect()))
            .await
            .unwrap();
        let rows = json!([
            {
                "id": "x", "string": "it's", "text": "", "integer": i64::MAX, "float": 0.1, "boolean": true,
                "datetime": "2026-03-01T12:00:00.000001Z", "date": "2026-03-01",
                "uuid": "0189c0de-0000-7000-8000-000000000001",
            },
            {
                "id": "y", "string": "its", "text": " ", "integer": i64::MAX - 1, "float": 0.2, "boolean": false,
                "datetime": "2026-03-01T12:00:00Z", "date": "2026-03-02",
                "uuid": "0189c0de-0000-7000-8000-000000000002",
            },
        ]);
        lab.insert("everything", rows.clone()).await;
        for (name, value) in rows[0].as_object().unwrap() {
            assert_eq!(
                found(&lab, "everything", json!({ name.as_str(): value })).await,
                "x",
                "{name}"
            );
            let list = format!("{name}__in");
            assert_eq!(
                found(&lab, "everything", json!({ list.as_str(): [value] })).await,
                "x",
                "{name}"
            );
            let other = &rows[1][name];
            assert_eq!(
                found(&lab, "everything", json!({ list.as_str(): [value, other] })).await,
                "xy"
            );
            assert_eq!(
                found(&lab, "everything", json!({ list.as_str(): [] })).await,
                ""
            );
        }
        let other_offset = json!({"datetime": "2026-03-01T13:00:00+01:00"});
        assert_eq!(found(&lab, "everything", other_offset).await, "y");
    }

    /// Greater and less, with and without the bound itself; null is neither.
    async fn comparisons_bound_what_is_found(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        for (filters, expected) in [
            (json!({"volume__gt": 2}), "cd"),
            (json!({"volume__gte": 2}), "bcd"),
            (json!({"volume__lt": 2}), "a"),
            (json!({"volume__lte": 2}), "ab"),
            (json!({"volume__gt": 1, "volume__lt": 4}), "bc"),
            (json!({"name__gte": "d"}), "de"),
            (json!({"created_at__gt": "2025-01-01T00:00:00Z"}), "abcde"),
            (json!({"created_at__lt": "2025-01-01T00:00:00Z"}), ""),
        ] {
            assert_eq!(
                found(&lab, "sample", filters.clone()).await,
                expected,
                "{filters}"
            );
        }
    }

    /// Null equals nothing, is in no list, and is found by `__isnull` or by asking for null.
    async fn null_is_found_by_asking_for_it_only(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        for (filters, expected) in [
            (json!({"volume__isnull": true}), "e"),
            (json!({"volume__isnull": false}), "abcd"),
            (json!({"volume": null}), "e"),
            (json!({"volume": 0}), ""),
            (json!({"note__contains": ""}), "abcd"),
        ] {
            assert_eq!(
                found(&lab, "sample", filters.clone()).await,
                expected,
                "{filters}"
            );
        }
    }

    /// Case does not matter, and `%`, `_` and `\` stand for themselves.
    async fn a_part_of_a_text_is_found_to_the_letter(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        for (part, expected) in [
            ("100", "ab"),
            ("%", "a"),
            ("0% S", "a"),
            ("_", "c"),
            ("snake_", "c"),
            ("\\", "d"),
            ("CK\\SL", "d"),
            ("z", ""),
        ] {
            assert_eq!(
                found(&lab, "sample", json!({ "note__contains": part })).await,
                expected,
                "{part}"
            );
        }
    }

    /// A filter may look at the row that a reference points at, and at the one behind that.
    async fn filters_follow_references(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        lab.define(&curated("remark", vec![reference("measurement")]))
            .await
            .unwrap();
        let rows = json!([{"id": "1", "sample": "a"}, {"id": "2", "sample": "b"}, {"id": "3"}, {"id": "4", "sample": "e"}]);
        lab.insert("measurement", rows).await;
        lab.insert(
            "remark",
            json!([{"id": "r", "measurement": "2"}, {"id": "s", "measurement": "3"}, {"id": "t"}]),
        )
        .await;
        for (table, filters, expected) in [
            ("measurement", json!({"sample": "a"}), "1"),
            ("measurement", json!({"sample_id": "a"}), "1"),
            ("measurement", json!({"sample__name": "b"}), "2"),
            ("measurement", json!({"sample__volume__gte": 1}), "12"),
            (
                "measurement",
                json!({"sample__name__in": ["a", "e", "z"]}),
                "14",
            ),
            ("measurement", json!({"sample__isnull": true}), "3"),
            ("remark", json!({"measurement__sample__name": "b"}), "r"),
            ("remark", json!({"measurement__sample": "b"}), "r"),
            (
                "remark",
                json!({"measurement__sample__note__contains": "SURE"}),
                "r",
            ),
        ] {
            assert_eq!(
                found(&lab, table, filters.clone()).await,
                expected,
                "{filters}"
            );
        }
    }

    /// Rows meet every filter, not one of them.
    async fn all_filters_hold_together(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        assert_eq!(
            found(
                &lab,
                "sample",
                json!({"note__contains": "sure", "volume": 2})
            )
            .await,
            "b"
        );
        assert_eq!(
            found(
                &lab,
                "sample",
                json!({"note__contains": "sure", "volume": 3})
            )
            .await,
            ""
        );
        assert_eq!(found(&lab, "sample", json!({})).await, "abcde");
    }

    /// Points are found by their own columns, their order and their parents.
    async fn points_are_filtered_like_rows(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let curves = [
            series(
                "curve",
                json!("a"),
                json!({"time": [0, 1, 2], "od": [0.1, 0.2, null]}),
            ),
            series(
                "curve",
                json!("b"),
                json!({"time": [0, 1], "od": [0.3, 0.4]}),
            ),
        ];
        lab.write(request([], curves)).await.unwrap();
        for (filters, count) in [
            (json!({}), 5),
            (json!({"sample": "a"}), 3),
            (json!({"sample_id__in": ["b", "c"]}), 2),
            (json!({"sample__volume": 2}), 2),
            (json!({"order": 0}), 2),
            (json!({"order__gte": 1, "sample__name": "a"}), 2),
            (json!({"od__gt": 0.15}), 3),
            (json!({"od__isnull": true}), 1),
            (json!({"time__in": [0, 2]}), 3),
            (json!({"sample": "c"}), 0),
        ] {
            assert_eq!(
                lab.find("curve", filters.clone()).await.len(),
                count,
                "{filters}"
            );
        }
    }

    /// The conflict tells the caller to plan the read again.
    async fn reads_of_a_dropped_table_conflict(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let curve = series("curve", json!("a"), json!({"time": [1]}));
        lab.write(request([], [curve])).await.unwrap();
        let catalog = lab.tables().await;
        let rows = lab.read_plan("curve", json!({}), 10).await;
        let one = SeriesPlan::new(&catalog, "curve", None, "a").unwrap();
        let dropped = lab
            .catalog
            .drop_table(lab.organization, "curve", true, at(150));
        dropped.await.unwrap();
        let (data, organization) = (&lab.data, lab.organization);
        let limits = SeriesLimits {
            values: 10,
            bytes: 1000,
        };
        match data.read(organization, &rows).await {
            Err(PortError::Conflict(Conflict::TablesChanged)) => {}
            other => panic!("expected TablesChanged, got {other:?}"),
        }
        match data.read_series(organization, &one, limits).await {
            Err(ReadSeriesError::Port(PortError::Conflict(Conflict::TablesChanged))) => {}
            other => panic!("expected TablesChanged, got {other:?}"),
        }
    }
);
