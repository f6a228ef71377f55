//! References by the values of the row that they name.

use super::{
    requests::{parts, text, values},
    *,
};
use crate::scalar::Values;

#[test]
fn lookups_of_one_shape_are_one_question() {
    let request = tables([table(
        "measurement",
        &json!([
            { "sample": { "name": "a" } },
            { "sample": { "name": "b" } },
            { "sample": { "name": "a", "volume": null } },
            { "sample": "S1" },
            { "sample": "S1" },
        ]),
    )]);
    let catalog = catalog();
    let checked = check(&request, &catalog);
    let questions = checked.questions();
    assert!(!questions.is_empty());
    let shapes: Vec<(usize, usize, usize)> = questions
        .lookups
        .iter()
        .map(|question| {
            (
                question.len,
                question.columns.len(),
                question.null_columns.len(),
            )
        })
        .collect();
    assert_eq!(shapes, [(2, 1, 0), (1, 1, 1)]);
    assert_eq!(questions.ids.len(), 1);
    assert_eq!(questions.ids[0].keys, [text("S1")]);
    let only_lookups = tables([table(
        "measurement",
        &json!([{ "sample": { "name": "a" } }]),
    )]);
    assert!(!check(&only_lookups, &catalog).questions().is_empty());
    let only_ids = tables([table("measurement", &json!([{ "sample": "S1" }]))]);
    assert!(!check(&only_ids, &catalog).questions().is_empty());
    let results = LookupResults {
        ids: vec![vec![true]],
        lookups: vec![
            vec![RowMatch::One(text("A")), RowMatch::One(text("B"))],
            vec![RowMatch::One(text("C"))],
        ],
    };
    let plan = checked.plan(&results, &mut Uuid::nil).unwrap();
    let found = ["A", "B", "C", "S1", "S1"].map(|key| Some(key.into()));
    assert_eq!(
        *values(&plan, 0, "sample").values,
        Values::Text(found.to_vec())
    );
}

#[test]
fn a_lookup_takes_ids_of_references_and_no_labels() {
    let lookup = |value: Value| {
        let rows = json!([{ "numbered": value }]);
        let request = tables([table("remark", &rows)]);
        let catalog = parts();
        check(&request, &catalog).questions().lookups.len()
    };
    assert_eq!(lookup(json!({ "experiment": "E1" })), 1);
    assert_eq!(lookup(json!({ "experiment": "@e" })), 0);
    assert_eq!(lookup(json!({ "label": "@home" })), 1);
}
