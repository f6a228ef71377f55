//! `POST /api/v1/tools/read`

use labdata_postgres::DatabaseSettings;
use serde_json::{Value, json};

use crate::on_postgres::OnPostgres;

const READ: &str = "/api/v1/tools/read";

async fn lab() -> OnPostgres {
    let lab = OnPostgres::with_tables(DatabaseSettings::default()).await;
    let rows = json!([
        { "id": "a", "name": "A", "volume": 1.5 },
        { "id": "b", "name": "B" },
        { "id": "c", "name": "C", "volume": 0.5 },
        { "id": "d", "name": "D", "volume": 1.5 },
        { "id": "e", "name": "E" },
    ]);
    lab.insert("sample", rows).await;
    lab
}

fn body(table: &str, change: &Value) -> Value {
    let mut body = json!({ "target_name": table, "target_type": "table" });
    let fields = change.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(fields);
    body
}

#[tokio::test]
async fn the_pages_of_an_order_follow_each_other() {
    let lab = lab().await;
    let asked = body(
        "sample",
        &json!({ "columns": ["name", "volume"], "order_by": ["-volume", "name"], "limit": 2 }),
    );
    let (mut rows, mut next) = (Vec::new(), Some(READ.to_owned()));
    while let Some(path) = next {
        let page = lab.client.post(&path, &asked).await;
        rows.extend(page.json(200).as_array().unwrap().clone());
        next = page.next();
    }
    let expected = json!([
        { "name": "B", "volume": null },
        { "name": "E", "volume": null },
        { "name": "A", "volume": 1.5 },
        { "name": "D", "volume": 1.5 },
        { "name": "C", "volume": 0.5 },
    ]);
    assert_eq!(Value::from(rows), expected);
}

#[tokio::test]
async fn a_cursor_is_refused_with_another_order() {
    let lab = lab().await;
    let asked = body("sample", &json!({ "order_by": ["volume"], "limit": 2 }));
    let next = lab.client.post(READ, &asked).await.next().unwrap();
    for order_by in [json!([]), json!(["-volume"]), json!(["volume", "name"])] {
        let other = body("sample", &json!({ "order_by": order_by, "limit": 2 }));
        let refused = lab.client.post(&next, &other).await.detail(400);
        assert_eq!(refused, "the cursor belongs to another list");
    }
    lab.client.post(&next, &asked).await.json(200);
}

#[tokio::test]
async fn wrong_columns_and_orders_are_refused() {
    let lab = lab().await;
    for (change, reported) in [
        (
            json!({ "columns": ["name", "nme"], "order_by": ["-nme"] }),
            "columns \"nme\": \"sample\" has no such column; order_by \"-nme\": \"sample\" has no such column",
        ),
        (
            json!({ "columns": ["name", "name"] }),
            "columns \"name\": named twice",
        ),
        (
            json!({ "order_by": ["sample__name"] }),
            "order_by \"sample__name\": \"sample\" has no such column",
        ),
        (
            json!({ "order_by": ["name; drop table sample"] }),
            "order_by \"name; drop table sample\": \"sample\" has no such column",
        ),
    ] {
        let refused = lab.client.post(READ, &body("sample", &change)).await;
        assert_eq!(refused.detail(400), reported);
    }
    for (change, kind, place) in [
        (json!({ "columns": [] }), "too_short", "body.columns"),
        (json!({ "columns": "name" }), "list_type", "body.columns"),
        (json!({ "columns": [7] }), "string_type", "body.columns.0"),
        (
            json!({ "order_by": vec!["name"; 9] }),
            "too_long",
            "body.order_by",
        ),
    ] {
        let refused = lab.client.post(READ, &body("sample", &change)).await;
        assert_eq!(refused.problems(), [(kind.to_owned(), place.to_owned())]);
    }
}
