//! Writes of a caller from whom a referenced table is hidden.

use std::sync::Arc;

use serde_json::json;

use super::{catalog, series, table};
use crate::{
    catalog::TableIdentity,
    data::write::{LookupResults, WriteRequest, check},
    people::rights::Rights,
};

#[test]
fn only_null_refers_to_a_hidden_table() {
    let tables = ["measurement", "curve", "link"].map(TableIdentity::parse);
    let rights = Rights::admin().narrowed_to(Some(&tables));
    let view = Arc::new(catalog()).visible_to(&rights);
    let request = WriteRequest {
        tables: vec![table(
            "measurement",
            &json!([{"sample": "S1"}, {"sample": {"name": "a"}}, {"sample": "@x"}]),
        )],
        series: vec![series("curve", &json!("S1"), &json!({"od": [1.0]}))],
        ..WriteRequest::default()
    };
    let problems = check(&request, &view)
        .plan(&LookupResults::default(), &mut uuid::Uuid::nil)
        .unwrap_err();
    let paths: Vec<_> = problems
        .iter()
        .filter_map(|it| it.path.as_deref())
        .collect();
    assert_eq!(
        paths,
        [
            "tables[0].rows[0].sample",
            "tables[0].rows[1].sample",
            "tables[0].rows[2].sample",
            "series[0].parent",
        ]
    );
    for problem in problems {
        let message = problem.message;
        assert!(
            message.contains("a table that you may not read"),
            "{message}"
        );
        assert!(!message.contains('"'), "{message}");
    }
}
