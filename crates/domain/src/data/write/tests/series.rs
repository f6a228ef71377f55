//! The rules of series.

use crate::{data::write::Reason, refusal::ErrorCode};
use serde_json::json;

use super::{many_series, paths, plan, series};
use crate::data::write::Problem;

#[test]
fn series_problems_have_paths_too() {
    assert_eq!(
        paths(&many_series([
            series(
                "curve",
                &json!("S1"),
                &json!({ "od": [1.0, "x", null], "t": [1, 2] })
            ),
            series("curve", &json!(null), &json!({ "od": [1.0] })),
            series("sample", &json!("S1"), &json!({})),
            series(
                "curve",
                &json!("S2"),
                &json!({ "t": [1.0], "sample": ["S2"] })
            ),
            series("link", &json!("S2"), &json!({ "v": [1.0] })),
            series(
                "curve",
                &json!("S3"),
                &json!({ "od": [1.0, 2.0], "order": [4, 4] })
            ),
        ])),
        [
            "series[0].columns.t",
            "series[0].columns.od[1]",
            "series[0].columns.od[2]",
            "series[1].parent",
            "series[2].table",
            "series[3].columns.sample",
            "series[3].columns",
            "series[4].parent_column",
            "series[5].columns.order[1]",
        ]
    );
}

#[test]
fn a_second_series_for_the_same_parent_is_a_problem() {
    let one = || series("curve", &json!("S1"), &json!({ "od": [1.0] }));
    let second = |index: usize| {
        Problem::at(
            format!("series[{index}].parent"),
            Reason::new(
                ErrorCode::DuplicateSeries,
                "series[0] writes the same parent's series in \"curve\"; put all points into one",
            ),
        )
    };
    assert_eq!(
        plan(&many_series([one(), one(), one()])).unwrap_err(),
        [second(1), second(2)]
    );
}

#[test]
fn every_list_shorter_than_the_longest_is_a_problem() {
    let short = Problem::at(
        "series[0].columns.od",
        Reason::new(
            ErrorCode::LengthMismatch,
            "has 1 values, but \"t\" has 2; all lists must have the same length",
        ),
    );
    let write = series(
        "curve",
        &json!("S1"),
        &json!({ "od": [1.0], "t": [1.0, 2.0] }),
    );
    assert_eq!(plan(&many_series([write])).unwrap_err(), [short]);
}

#[test]
fn a_value_of_the_wrong_type_or_null_in_the_order_column_is_one_problem() {
    let order = json!({ "od": [1, 2, 3, 4, 5], "order": ["x", "y", null, 0, 0] });
    let problems = plan(&many_series([series("curve", &json!("S1"), &order)])).unwrap_err();
    let at = |point: usize, code, message: &str| {
        let reason = Reason::new(code, message);
        Problem::at(format!("series[0].columns.order[{point}]"), reason)
    };
    assert_eq!(
        problems,
        [
            at(
                0,
                ErrorCode::WrongType,
                "must be a whole number of 64 bits, not a string"
            ),
            at(
                1,
                ErrorCode::WrongType,
                "must be a whole number of 64 bits, not a string"
            ),
            at(2, ErrorCode::MissingValue, "must not be null"),
            at(
                4,
                ErrorCode::DuplicateKey,
                "the place 0 is given twice in this series"
            ),
        ]
    );
}

#[test]
fn a_wrong_value_of_a_required_column_is_one_problem() {
    let columns = json!({ "od": ["x", null, true], "t": ["y", null, 1] });
    assert_eq!(
        paths(&many_series([series("curve", &json!("S1"), &columns)])),
        [
            "series[0].columns.od[0]",
            "series[0].columns.od[1]",
            "series[0].columns.od[2]",
            "series[0].columns.t[0]",
        ]
    );
}

#[test]
fn whole_numbers_in_a_float_series_stay_numbers() {
    let planned = plan(&many_series([series(
        "curve",
        &json!("S1"),
        &json!({ "od": [1, 2.5], "t": [1, null] }),
    )]))
    .unwrap();
    let values: Vec<&crate::scalar::Values> = planned.series[0]
        .columns
        .iter()
        .map(|column| &*column.values)
        .collect();
    assert_eq!(
        values,
        [
            &crate::scalar::Values::Float(vec![Some(1.0), Some(2.5)]),
            &crate::scalar::Values::Float(vec![Some(1.0), None])
        ]
    );
}
