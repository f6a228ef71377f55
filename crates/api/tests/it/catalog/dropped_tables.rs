//! Reading the schema while tables are dropped.

use std::sync::atomic::{AtomicBool, Ordering};

use labdata_postgres::DatabaseSettings;
use serde_json::json;

use crate::on_postgres::OnPostgres;

/// Tables that are defined and dropped, one after another.
const TABLES: usize = 60;

/// Readers of the schema at a time.
const READERS: usize = 4;

#[tokio::test]
async fn the_schema_is_read_while_tables_are_dropped() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let is_over = AtomicBool::new(false);
    let dropping = async {
        for number in 0..TABLES {
            let name = format!("t{number}");
            let columns = json!([{"name": "a", "data_type": "integer"}]);
            let definition = json!({"semantic_category": "curated", "columns": columns});
            lab.define(&name, definition).await;
            let path = format!("/api/v1/tables/{name}");
            let dropped = lab.client.delete(&path).await;
            assert_eq!(dropped.status, reqwest::StatusCode::NO_CONTENT);
        }
        is_over.store(true, Ordering::Relaxed);
    };
    let readers = (0..READERS).map(|_| async {
        while !is_over.load(Ordering::Relaxed) {
            lab.client.get("/api/v1/tools/schema").await.json(200);
        }
    });
    futures::join!(dropping, futures::future::join_all(readers));
}
