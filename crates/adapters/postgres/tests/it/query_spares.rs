//! Connections that are opened before a query asks for them: each serves one query, and none stays.

use std::time::Duration;

use labdata_ports::data::query::QueryRunner;
use labdata_postgres::PgQueryRunner;
use serde_json::json;

use crate::query_lab::{QueryLab, schema};

async fn until_deleted(lab: &QueryLab, process: i32) {
    for _ in 0..200 {
        if !lab.has_process(process).await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("the connection is still there");
}

#[tokio::test]
async fn a_connection_that_waited_serves_one_query_and_is_gone() {
    let lab = QueryLab::new().await;
    lab.rows("select 1").await;
    let first = lab.spare().await;
    // Until the first query's own connection is gone.
    lab.settle().await;
    // At work it has another name, so this is the one that the spare became.
    let working = "select count(*) from generate_series(1, 20000000)";
    let asking = lab.rows(working);
    let watching = async {
        let query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'labdata query' \
                     AND datname = current_database()";
        for _ in 0..200 {
            if let Some(row) = lab.behind.query_opt(query, &[]).await.expect("a process") {
                return row.get::<_, i32>(0);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("the query does not run");
    };
    let (_, at_work) = tokio::join!(asking, watching);
    assert_eq!(at_work, first);
    until_deleted(&lab, first).await;
    assert_ne!(lab.spare().await, first);
}

#[tokio::test]
async fn a_connection_that_the_server_ended_is_replaced() {
    let lab = QueryLab::new().await;
    lab.rows("select 1").await;
    let spare = lab.spare().await;
    lab.run_behind(&format!("SELECT pg_terminate_backend({spare})"))
        .await;
    until_deleted(&lab, spare).await;
    assert_eq!(lab.rows("select count(*) from sample").await, json!([[3]]));
}

#[tokio::test]
async fn a_connection_of_a_role_that_was_replaced_is_not_used() {
    let lab = QueryLab::new().await;
    lab.rows("select 1").await;
    let spare = lab.spare().await;
    let role = format!("{}_reader", schema(lab.ours));
    lab.run_behind(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
        .await;
    assert_eq!(lab.rows("select count(*) from sample").await, json!([[3]]));
    until_deleted(&lab, spare).await;
}

#[tokio::test]
async fn an_unused_spare_connection_is_closed() {
    let mut lab = QueryLab::new().await;
    lab.runner = lab.runner.with_spares_that_wait(Duration::from_millis(300));
    lab.rows("select 1").await;
    let spare = lab.spare().await;
    until_deleted(&lab, spare).await;
    assert_eq!(lab.spares().await, Vec::<i32>::new());
}

#[tokio::test]
async fn connections_that_wait_go_with_their_runner() {
    let mut lab = QueryLab::new().await;
    lab.rows("select 1").await;
    let spare = lab.spare().await;
    lab.runner = PgQueryRunner::new(lab.database.clone(), &[7; 32]);
    until_deleted(&lab, spare).await;
}

#[tokio::test]
async fn spare_connections_have_the_role_of_their_organization() {
    let lab = QueryLab::new().await;
    lab.rows("select 1").await;
    lab.spare().await;
    let text = labdata_domain::data::query::QueryText::parse("select words from secret");
    let theirs = labdata_ports::data::query::Query {
        text: text.expect("a query"),
        params: Vec::new(),
        limits: crate::query_lab::LIMITS,
        view: None,
    };
    let found = lab.runner.run(lab.theirs, &theirs).await.expect("theirs");
    assert_eq!(found.rows, ["[\"hush\"]"]);
    let refused = lab.runner.run(lab.ours, &theirs).await;
    assert!(refused.is_err(), "{refused:?}");
}
