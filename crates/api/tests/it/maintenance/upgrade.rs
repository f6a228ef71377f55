//! A database that an earlier version wrote, under the present program.
//!
//! `database-20261123110000.dump` was made with `pg_dump --format=custom` from the database of commit 3b1cbba,
//! whose last migration is in its name, after requests of an ordinary day. Each release adds a dump of its own.

use std::path::Path;

use labdata_embedded_postgres::client_programs;
use labdata_postgres::{Database, DatabaseSettings, inspect, restore, server_major};
use labdata_test_database::TestDatabase;
use reqwest::Method;
use serde_json::{Value, json};

use crate::process::{Program, directory};

/// Key that the earlier version stored the hash of.
const KEY: &str = "ldk_chosen77_0123456789abcdefghijklmnopqrstuvwxyz";

/// Where the tests keep what they download.
const CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/postgresql-cache");

async fn call(program: &Program, method: Method, path: &str, body: &Value) -> Value {
    let request = reqwest::Client::new()
        .request(method, format!("{}/api/v1/{path}", program.url))
        .bearer_auth(KEY)
        .json(body);
    let response = request.send().await.unwrap();
    let (status, body) = (response.status(), response.json().await.unwrap());
    assert_eq!(status, 200, "{path}: {body}");
    body
}

async fn get(program: &Program, path: &str) -> Value {
    call(program, Method::GET, path, &Value::Null).await
}

#[tokio::test]
async fn a_database_of_an_earlier_version_is_brought_up_to_date_with_all_that_it_holds() {
    let (place, own) = (directory(), TestDatabase::unmigrated().await);
    let database = Database::new(own.url(), DatabaseSettings::default()).unwrap();
    let major = server_major(&database).await.unwrap();
    let named = std::env::var_os("LABDATA_PG_BIN_DIR");
    let programs = client_programs(named.as_deref().map(Path::new), CACHE.as_ref(), major).unwrap();
    let dump = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/operations/fixtures/database-20261123110000.dump");
    restore(&database, own.url(), &programs, &dump)
        .await
        .unwrap();
    assert!(inspect(&database).await.unwrap().pending > 0);
    drop(database);

    let program = Program::serve(place.path(), &[("DATABASE_URL", own.url())]);
    let query = json!({"query": "SELECT name, note FROM sample ORDER BY name"});
    let samples = call(&program, Method::POST, "tools/query", &query).await;
    assert_eq!(samples["data"], json!([["A1", "first"], ["B1", null]]));
    let query = json!({"query": "SELECT sum(od600) FROM growth_curve"});
    let points = call(&program, Method::POST, "tools/query", &query).await;
    assert_eq!(points["data"], json!([[0.26]]));

    let jobs = get(&program, "jobs").await;
    let job = jobs.as_array().unwrap().iter();
    let job = job.clone().find(|job| job["name"] == "parse").unwrap();
    let id = job["id"].as_str().unwrap();
    assert_eq!(
        get(&program, &format!("jobs/{id}")).await["code"],
        "print(2)\n"
    );
    let versions = get(&program, &format!("jobs/{id}/versions")).await;
    assert_eq!(versions.as_array().unwrap().len(), 2);
    let files = get(&program, "files").await;
    assert_eq!(files[0]["file_name"], "plate.csv");
    let unread = get(&program, "notifications?unread=true").await;
    assert_eq!(unread[0]["title"], "Plate 7 is done");
    assert_eq!(get(&program, "datasets").await[0]["row_count"], 2);

    // What came later works on what was there before.
    let executions = get(&program, "job-executions").await;
    let executions = executions.as_array().unwrap();
    let execution = executions
        .iter()
        .find(|it| it["job_name"] == "growth curves");
    let execution = execution.unwrap();
    assert_eq!(execution["started_by"]["user"]["email"], "admin@localhost");
    let id = execution["job_execution_id"].as_str().unwrap();
    let changes = get(&program, &format!("job-executions/{id}/changes")).await;
    assert!(
        changes["tables"].as_array().unwrap().len() >= 2,
        "{changes}"
    );
    let session = json!({"api_key": KEY});
    call(&program, Method::POST, "session", &session).await;
    let write = json!({"tables": [{"table": "sample", "rows": [{"name": "C1"}]}]});
    call(&program, Method::POST, "data/write", &write).await;
    let path = format!("job-executions/{id}/revert");
    let reverted = call(&program, Method::POST, &path, &Value::Null).await;
    assert_eq!(reverted["deleted_count"], 2);
    let query = json!({"query": "SELECT name FROM sample"});
    let left = call(&program, Method::POST, "tools/query", &query).await;
    assert_eq!(left["data"], json!([["C1"]]));
}
