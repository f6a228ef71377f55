//! `POST /api/v1/data/write`: a test for each of the specification's rules, on PostgreSQL.

use serde_json::{Value, json};

use super::given::lab;
use crate::{
    on_postgres::{WRITE, paths},
    server::send,
};

/// A body of this size or more is refused (contract §3).
const LIMIT: usize = 4_718_592;

#[tokio::test]
async fn rule_1_rows_are_applied_in_request_order_so_a_later_row_may_point_at_an_earlier_one() {
    let lab = lab().await;
    let written = lab
        .write(json!({
            "tables": [
                { "table": "sample", "rows": [
                    { "_ref": "mother", "name": "mother" },
                    { "_ref": "child", "name": "child", "parent": "@mother" },
                ] },
                { "table": "measurement", "rows": [{ "sample": "@child", "value": 1 }] },
                { "table": "sample", "mode": "upsert", "key": ["name"], "rows": [
                    { "_ref": "same", "name": "mother", "volume": 2 },
                    { "_ref": "new", "name": "new" },
                    { "name": "newer", "parent": "@new" },
                ] },
                { "table": "measurement", "rows": [{ "sample": "@same" }, { "sample": "@new" }] },
            ],
            "series": [{ "table": "curve", "parent": "@same", "columns": { "od": [0.5] } }],
        }))
        .await
        .json(200);
    let refs = &written["refs"];
    assert_eq!(
        refs["same"], refs["mother"],
        "a label on a matched row is that row"
    );
    assert_eq!(written["tables"][0]["ids"][1], refs["child"]);
    let child = lab.rows("sample", json!({ "name": "child" })).await;
    assert_eq!(child[0]["parent"], refs["mother"]);
    let newer = lab.rows("sample", json!({ "name": "newer" })).await;
    assert_eq!(newer[0]["parent"], refs["new"]);
    let mut measured = lab.column("measurement", "sample").await;
    measured.sort_by_key(ToString::to_string);
    let mut expected = vec![
        refs["child"].clone(),
        refs["mother"].clone(),
        refs["new"].clone(),
    ];
    expected.sort_by_key(ToString::to_string);
    assert_eq!(measured, expected);

    let later = lab
        .write(json!({ "tables": [
            { "table": "measurement", "rows": [{ "sample": "@later" }] },
            { "table": "sample", "rows": [
                { "name": "x", "parent": "@later" }, { "_ref": "later", "name": "later", "parent": "@later" }] },
        ] }))
        .await;
    assert_eq!(
        paths(&later),
        [
            "tables[0].rows[0].sample",
            "tables[1].rows[0].parent",
            "tables[1].rows[1].parent"
        ]
    );
}

#[tokio::test]
async fn rule_2_primary_keys_are_generated_when_omitted_and_returned_in_input_order() {
    let lab = lab().await;
    lab.define(
        "plate",
        json!({ "semantic_category": "curated", "columns": [
            { "name": "number", "data_type": "integer", "is_primary_key": true, "is_nullable": false },
            { "name": "label", "data_type": "string" },
        ] }),
    )
    .await;
    let written = lab
        .write(json!({ "tables": [
            { "table": "sample", "rows": [
                { "name": "c" }, { "id": "given", "name": "b" }, { "name": "a" }] },
            { "table": "plate", "rows": [{ "number": 7 }, { "number": -3 }] },
        ] }))
        .await
        .json(200);
    let ids = &written["tables"][0]["ids"];
    assert_eq!(ids[1], "given");
    for (index, name) in ["c", "b", "a"].iter().enumerate() {
        let row = lab.rows("sample", json!({ "name": name })).await;
        assert_eq!(row[0]["id"], ids[index], "{name}");
    }
    assert_eq!(written["tables"][1]["ids"], json!(["7", "-3"]));

    let again = |mode: &str| {
        json!({ "tables": [{ "table": "sample", "mode": mode, "key": ["name"],
            "rows": [{ "name": "a" }, { "name": "c" }, { "name": "b" }] }] })
    };
    let backwards = json!([ids[2], ids[0], ids[1]]);
    for mode in ["upsert", "update", "delete"] {
        let written = lab.write(again(mode)).await.json(200);
        assert_eq!(written["tables"][0]["ids"], backwards, "{mode}");
    }

    let not_generated = lab
        .write(json!({ "tables": [{ "table": "plate", "rows": [{ "label": "x" }] }] }))
        .await;
    assert_eq!(paths(&not_generated), ["tables[0].rows[0]"]);
}

#[tokio::test]
async fn rule_3_writing_a_series_replaces_the_parents_existing_series() {
    let lab = lab().await;
    lab.insert(
        "sample",
        json!([{ "id": "a", "name": "a" }, { "id": "b", "name": "b" }]),
    )
    .await;
    let series = |parent: &str, values: Value| json!({ "series": [{ "table": "curve", "parent": parent, "columns": { "od": values } }] });
    lab.write(series("b", json!([9]))).await.json(200);
    let first = lab.write(series("a", json!([1, 2, 3]))).await.json(200);
    assert_eq!(
        first["series"],
        json!([{ "table": "curve", "parent_id": "a", "points_written": 3, "points_replaced": 0 }])
    );
    for replaced in [3, 2] {
        let again = lab.write(series("a", json!([4.5, null]))).await.json(200);
        assert_eq!(again["series"][0]["points_replaced"], replaced);
        let points = lab.rows("curve", json!({ "sample": "a" })).await;
        let values: Vec<Value> = points
            .iter()
            .map(|point| json!([point["order"], point["od"]]))
            .collect();
        assert_eq!(
            values,
            [json!([0, 4.5]), json!([1, null])],
            "the server numbers points"
        );
    }
    assert_eq!(lab.rows("curve", json!({ "sample": "b" })).await.len(), 1);

    let filled_in = lab
        .write(json!({ "series": [{ "table": "curve", "parent": "a",
            "columns": { "od": [1], "sample": ["b"] } }] }))
        .await;
    assert_eq!(paths(&filled_in), ["series[0].columns.sample"]);
    let twice = lab
        .write(json!({ "series": [
            { "table": "curve", "parent": "a", "columns": { "od": [1] } },
            { "table": "curve", "parent": { "name": "a" }, "columns": { "od": [1] } }] }))
        .await;
    assert_eq!(paths(&twice), ["series[1].parent"]);
}

#[tokio::test]
async fn rule_4_everything_is_checked_before_anything_is_written_and_all_problems_are_reported() {
    let lab = lab().await;
    let refused = lab
        .write(json!({
            "tables": [
                { "table": "sample", "rows": [{ "name": "fine" }, { "name": 1, "volume": "x" }, {}] },
                { "table": "nothing", "rows": [{}] },
                { "table": "curve", "rows": [{ "od": 1 }] },
                { "table": "measurement", "mode": "update", "key": ["id", "colour"], "rows": [{ "value": 1 }] },
                { "table": "measurement", "rows": [
                    { "sample": "@nobody" }, { "sample": { "name": "nobody" } }, { "sample": "no-id" }, { "size": 1 }] },
            ],
            "series": [
                { "table": "curve", "parent": "no-id", "columns": { "od": [1, "x"], "order": [0] } },
                { "table": "sample", "parent": "no-id", "columns": {} },
            ],
        }))
        .await;
    assert_eq!(
        paths(&refused),
        [
            "tables[0].rows[1].name",
            "tables[0].rows[1].volume",
            "tables[0].rows[2]",
            "tables[1].table",
            "tables[2].table",
            "tables[3].key[1]",
            "tables[3].rows[0]",
            "tables[4].rows[0].sample",
            "tables[4].rows[1].sample",
            "tables[4].rows[2].sample",
            "tables[4].rows[3].size",
            "series[0].columns.order",
            "series[0].parent",
            "series[0].columns.od[1]",
            "series[1].table",
        ]
    );
    assert_eq!(lab.rows("sample", json!({})).await, Vec::<Value>::new());

    let rows: Vec<Value> = (0..150).map(|_| json!({})).collect();
    let many = lab
        .write(json!({ "tables": [{ "table": "sample", "rows": rows }] }))
        .await;
    let errors = many.json(400)["errors"].as_array().unwrap().clone();
    assert_eq!(errors.len(), 101);
    let last = errors[100]["message"].as_str().unwrap();
    assert!(last.contains("50"), "{last}");
}

#[tokio::test]
async fn rule_5_keys_are_matched_as_each_table_write_is_applied() {
    let lab = lab().await;
    let written = lab
        .write(json!({ "tables": [
            { "table": "sample", "rows": [{ "name": "a" }] },
            { "table": "sample", "mode": "update", "key": ["name"], "rows": [{ "name": "a", "volume": 1.5 }] },
            { "table": "sample", "mode": "upsert", "key": ["name"], "on_match": "fill_missing",
              "rows": [{ "name": "a", "volume": 2, "note": "filled" }, { "name": "b" }] },
            { "table": "sample", "mode": "delete", "key": ["name"], "rows": [{ "name": "b" }] },
        ] }))
        .await
        .json(200);
    let counts: Vec<Value> = written["tables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|table| json!([table["created"], table["updated"], table["deleted"]]))
        .collect();
    assert_eq!(
        counts,
        [
            json!([1, 0, 0]),
            json!([0, 1, 0]),
            json!([1, 1, 0]),
            json!([0, 0, 1])
        ]
    );
    let rows = lab.rows("sample", json!({})).await;
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (&rows[0]["volume"], &rows[0]["note"]),
        (&json!(1.5), &json!("filled"))
    );
}

#[tokio::test]
async fn rule_5_any_failure_rolls_back_the_whole_request() {
    let lab = lab().await;
    lab.insert("sample", json!([{ "id": "a", "name": "a" }]))
        .await;
    let executions = "/api/v1/job-executions";
    let before = lab.client.get(executions).await.json(200);
    let insert = json!({ "table": "sample", "rows": [{ "name": "b" }] });
    for (last, expected) in [
        (
            json!({ "table": "sample", "mode": "update", "key": ["name"], "rows": [{ "name": "nobody" }] }),
            json!("tables[1].rows[0]"),
        ),
        (
            json!({ "table": "sample", "mode": "delete", "rows": [{ "id": "a" }, { "id": "nobody" }] }),
            json!("tables[1].rows[1]"),
        ),
        // Only the database can judge it.
        (
            json!({ "table": "sample", "rows": [{ "name": "a" }] }),
            Value::Null,
        ),
    ] {
        let refused = lab
            .write(
                json!({ "tables": [insert, last], "job_name": "a job of its own",
                "series": [{ "table": "curve", "parent": "a", "columns": { "od": [1] } }] }),
            )
            .await;
        assert_eq!(paths(&refused), [expected]);
    }
    assert_eq!(lab.column("sample", "name").await, ["a"]);
    assert_eq!(lab.rows("curve", json!({})).await.len(), 0);
    assert_eq!(lab.client.get(executions).await.json(200), before);
    let jobs = lab.client.get("/api/v1/jobs?name=a%20job%20of%20its%20own");
    assert_eq!(jobs.await.json(200), json!([]));
}

#[tokio::test]
async fn rule_6_a_lookup_must_match_exactly_one_row_that_existed_before_the_request() {
    let lab = lab().await;
    lab.insert(
        "sample",
        json!([{ "id": "a", "name": "a", "volume": 1 }, { "name": "b", "volume": 1 }, { "name": "c" }]),
    )
    .await;
    let refused = lab
        .write(json!({
            "tables": [
                { "table": "sample", "rows": [{ "name": "new" }] },
                { "table": "measurement", "rows": [
                    { "sample": { "name": "a" } },
                    { "sample": { "name": "new" } },
                    { "sample": { "volume": 1 } },
                    { "sample": { "colour": "red" } },
                    { "sample": {} },
                ] },
            ],
            "series": [{ "table": "curve", "parent": { "name": "new" }, "columns": { "od": [] } }],
        }))
        .await;
    assert_eq!(
        paths(&refused),
        [
            "tables[1].rows[1].sample",
            "tables[1].rows[2].sample",
            "tables[1].rows[3].sample",
            "tables[1].rows[4].sample",
            "series[0].parent",
        ]
    );
    lab.write(json!({
        "tables": [{ "table": "measurement", "rows": [
            { "sample": { "name": "a" } }, { "sample": { "volume": 1, "name": "a" } },
            { "sample": { "name": "a", "note": null } }] }],
        "series": [{ "table": "curve", "parent": { "name": "a" }, "columns": { "od": [1] } }],
    }))
    .await
    .json(200);
    assert_eq!(lab.column("measurement", "sample").await, ["a", "a", "a"]);
    assert_eq!(lab.column("curve", "sample").await, ["a"]);
}

#[tokio::test]
async fn rule_7_reverting_deletes_created_rows_with_their_series_and_undoes_nothing_else() {
    let lab = lab().await;
    lab.insert(
        "sample",
        json!([{ "id": "old", "name": "old", "volume": 1 }, { "id": "gone", "name": "gone" }]),
    )
    .await;
    lab.write(
        json!({ "series": [{ "table": "curve", "parent": "old", "columns": { "od": [1] } }] }),
    )
    .await
    .json(200);
    let written = lab
        .write(json!({
            "tables": [
                { "table": "sample", "rows": [{ "_ref": "new", "name": "new" }, { "name": "lost" }] },
                { "table": "measurement", "rows": [{ "sample": "@new" }, { "sample": "old" }] },
                { "table": "sample", "mode": "update", "rows": [{ "id": "old", "volume": 2.5 }] },
                { "table": "sample", "mode": "delete", "rows": [{ "id": "gone" }] },
            ],
            "series": [
                { "table": "curve", "parent": "@new", "columns": { "od": [1, 2, 3] } },
                { "table": "curve", "parent": "old", "columns": { "od": [5.5, 6.5] } },
            ],
        }))
        .await
        .json(200);
    lab.write(
        json!({ "tables": [{ "table": "sample", "mode": "delete", "key": ["name"],
        "rows": [{ "name": "lost" }] }] }),
    )
    .await
    .json(200);
    let reverted = lab.revert(&written).await;
    assert_eq!(
        (
            &reverted["deleted_count"],
            &reverted["raws_deleted_count"],
            &reverted["skipped_count"]
        ),
        (&json!(3), &json!(3), &json!(1))
    );
    let warnings = reverted["warnings"].as_array().unwrap();
    assert_eq!(
        warnings.len(),
        4,
        "an update, a delete, a series and a replaced one: {warnings:?}"
    );
    let rows = lab.rows("sample", json!({})).await;
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (&rows[0]["name"], &rows[0]["volume"]),
        (&json!("old"), &json!(2.5)),
        "updates stay"
    );
    assert_eq!(lab.rows("measurement", json!({})).await.len(), 0);
    assert_eq!(lab.column("curve", "od").await, [5.5, 6.5]);

    let again = lab.revert(&written).await;
    assert_eq!(
        (&again["deleted_count"], &again["skipped_count"]),
        (&json!(0), &json!(0))
    );
}

#[tokio::test]
async fn a_row_that_was_changed_since_it_was_read_is_refused() {
    let lab = lab().await;
    let row = json!({ "id": "a", "name": "a", "volume": 1 });
    lab.write(json!({ "tables": [{ "table": "sample", "rows": [row] }] }))
        .await
        .json(200);
    let read = lab.rows("sample", json!({ "id": "a" })).await.remove(0);
    let write = |mode: &str, row: Value| {
        let mut row = row;
        row["_if_updated_at"] = read["updated_at"].clone();
        json!({ "tables": [{ "table": "sample", "mode": mode, "rows": [row] }] })
    };
    let change = write("update", json!({ "id": "a", "volume": 2 }));
    lab.write(change.clone()).await.json(200);
    let deletion = write("delete", json!({ "id": "a" }));
    let upsert = write("upsert", json!({ "id": "a", "name": "a" }));
    for refused in [change, deletion, upsert] {
        let body = lab.write(refused).await.json(400);
        let problem = &body["errors"][0];
        assert_eq!(problem["path"], "tables[0].rows[0]");
        assert_eq!(problem["code"], "changed_since");
    }
    assert_eq!(lab.column("sample", "volume").await, [2.0]);
    // A row that the write would create was not read, and so is not compared.
    let created = write("upsert", json!({ "id": "b", "name": "b" }));
    lab.write(created).await.json(200);
}

#[tokio::test]
async fn rule_8_the_body_must_be_under_4_5_mb() {
    let lab = lab().await;
    let body = |size: usize| {
        let mut body = br#"{"tables":[{"table":"sample","rows":[{"name":"a"}]}]"#.to_vec();
        body.resize(size - 1, b' ');
        body.push(b'}');
        body
    };
    for size in [LIMIT, LIMIT + 1] {
        lab.client.post_raw(WRITE, body(size)).await.detail(413);
    }
    let chunks = futures::stream::iter(vec![Ok::<_, std::io::Error>(body(LIMIT))]);
    let request = lab
        .client
        .request(reqwest::Method::POST, WRITE)
        .header("content-type", "application/json")
        .body(reqwest::Body::wrap_stream(chunks));
    send(request).await.detail(413);
    assert_eq!(lab.rows("sample", json!({})).await.len(), 0);
    let fits = lab.client.post_raw(WRITE, body(LIMIT - 1)).await;
    assert_eq!(fits.json(200)["tables"][0]["created"], 1);
}
