//! Checks and plans of series.

use crate::{data::write::Reason, refusal::ErrorCode};
use std::collections::BTreeSet;

use super::{requests::parts, *};
use crate::scalar::{Scalar, Values};

fn text(value: &str) -> KeyValue {
    KeyValue::Text(value.to_owned())
}

#[test]
fn numbers_that_doubles_do_not_hold_stay_whole() {
    let exact = 1_i64 << 53;
    let mut floats = SeriesValues::Floats(vec![Some(0.5)]);
    floats.push(Cell::Integer(exact));
    assert!(matches!(floats, SeriesValues::Floats(_)), "{floats:?}");
    floats.push(Cell::Integer(exact + 1));
    assert_eq!(*floats.cell(2), Cell::Integer(exact + 1));
}

#[test]
fn the_parent_of_a_series_is_named_as_in_writes_or_as_in_sql() {
    let owned_by = |name: &str| SeriesWrite {
        parent_column: Some(name.to_owned()),
        ..series("link", &json!("E1"), &json!({ "v": [1.0] }))
    };
    for name in ["experiment", "experiment_id"] {
        let plan = plan(&many_series([owned_by(name)])).unwrap();
        assert_eq!(plan.series[0].owner.parent.name, "experiment");
        assert_eq!(plan.series[0].parent, RowKey::Known(text("E1")));
    }
    let problems = plan(&many_series([owned_by("v")])).unwrap_err();
    let expected = Problem::at(
        "series[0].parent_column",
        Reason::new(ErrorCode::UnknownColumn, "\"link\" has no reference \"v\""),
    );
    assert_eq!(problems, [expected]);
}

#[test]
fn the_parent_of_a_series_may_be_a_row_that_the_request_inserts() {
    let request = WriteRequest {
        tables: vec![table(
            "sample",
            &json!([{ "_ref": "a", "id": "S1", "name": "a" }]),
        )],
        series: vec![series("curve", &json!("@a"), &json!({ "od": [1.0] }))],
        ..WriteRequest::default()
    };
    let plan = plan(&request).unwrap();
    assert_eq!(plan.series[0].parent, RowKey::Known(text("S1")));
}

#[test]
fn points_may_reference_rows_of_the_request_and_stored_ones() {
    let request = WriteRequest {
        tables: vec![
            TableWrite {
                mode: Mode::Upsert,
                ..table(
                    "experiment",
                    &json!([{ "_ref": "late", "id": "E1", "name": "a" }]),
                )
            },
            table(
                "experiment",
                &json!([{ "_ref": "known", "id": "E2", "name": "b" }]),
            ),
        ],
        series: vec![SeriesWrite {
            parent_column: Some("sample".to_owned()),
            ..series(
                "link",
                &json!("S1"),
                &json!({ "experiment": ["@known", null, "@late", "E3"], "v": [1, 2, 3, 4] }),
            )
        }],
        ..WriteRequest::default()
    };
    let plan = plan(&request).unwrap();
    let step = &plan.series[0];
    let mut columns = step.columns.iter();
    let column = columns.find(|column| column.column.name == "experiment");
    let column = column.unwrap();
    let known = [Some("E2"), None, None, Some("E3")];
    let known = known.map(|key| key.map(Into::into));
    assert_eq!(*column.values, Values::Text(known.to_vec()));
    let address = RowAddress { table: 0, row: 0 };
    assert_eq!(column.late, [LateKey { index: 2, address }]);
    let done = [TableOutcome {
        ids: vec![text("E1")],
        ..TableOutcome::default()
    }];
    assert!(column.resolve(&[]).is_err());
    let resolved = column.resolve(&done).unwrap();
    assert_eq!(resolved.values.get(2), Some(Scalar::Text("E1".to_owned())));
}

#[test]
fn references_of_points_are_checked_like_those_of_rows() {
    let pair = |carriers: Value| {
        let request = many_series([SeriesWrite {
            parent_column: Some("part".to_owned()),
            ..series("pair", &json!("P1"), &json!({ "carrier": carriers }))
        }]);
        let catalog = parts();
        let checked = check(&request, &catalog);
        let ids = checked.questions().ids.iter();
        let results = LookupResults {
            ids: ids
                .map(|question| vec![true; question.keys.len()])
                .collect(),
            lookups: Vec::new(),
        };
        checked.plan(&results, &mut Uuid::nil)
    };
    let problems = pair(json!([null, "C1", 7, "@nowhere"])).unwrap_err();
    let paths: BTreeSet<&str> = problems
        .iter()
        .filter_map(|problem| problem.path.as_deref())
        .collect();
    let at = |point: usize| format!("series[0].columns.carrier[{point}]");
    assert_eq!(
        paths,
        [at(0), at(2), at(3)].iter().map(String::as_str).collect()
    );
    assert_eq!(problems[0].message, "must not be null");
    // Points need a column of values: the first that is neither reference nor order.
    let plan = pair(json!(["C1", "C2"])).unwrap();
    let step = &plan.series[0];
    let spare = step.columns.iter().find(|it| it.column.name == "v");
    assert_eq!(
        spare.map(|column| &*column.values),
        Some(&Values::Float(vec![None, None]))
    );
    assert_eq!(step.columns.len(), 2);
    let empty = pair(json!([])).unwrap();
    assert_eq!(empty.series[0].columns.len(), 1);
    let given = plan_with_values();
    assert_eq!(given.series[0].columns.len(), 1);
}

/// A series that gives its only column of values.
fn plan_with_values() -> WritePlan {
    let write = SeriesWrite {
        parent_column: Some("sample".to_owned()),
        ..series("link", &json!("S1"), &json!({ "v": [1.0] }))
    };
    plan(&many_series([write])).unwrap()
}

#[test]
fn a_point_that_references_no_stored_row_is_reported_at_its_index() {
    let request = many_series([SeriesWrite {
        parent_column: Some("sample".to_owned()),
        ..series("link", &json!("S1"), &json!({ "experiment": ["E1", "E2"] }))
    }]);
    let catalog = catalog();
    let checked = check(&request, &catalog);
    let results = LookupResults {
        ids: vec![vec![true], vec![true, false]],
        lookups: Vec::new(),
    };
    let problems = checked.plan(&results, &mut Uuid::nil).unwrap_err();
    let text = "no row of \"experiment\" has the id \"E2\"";
    assert_eq!(
        problems,
        [Problem::at(
            "series[0].columns.experiment[1]",
            Reason::new(ErrorCode::ReferenceNotFound, text)
        )]
    );
}
