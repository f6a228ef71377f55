//! Queries that need more memory than the server gives them.
#![cfg(target_os = "linux")]

use std::{cell::Cell, time::Duration};

use labdata_domain::data::query::QueryText;
use labdata_ports::data::query::{Query, QueryRunner};
use serde_json::json;

use crate::{
    query_attacks::start_of_server,
    query_lab::{LIMITS, QueryLab},
    texts,
};

/// Queries that need several gigabytes, each in another way: as many as one organization may run at a
/// time.
const GREEDY: [&str; 4] = [
    "select array_agg(repeat('x', 50000000)) from generate_series(1, 100)",
    "select string_agg(repeat('x', 10000000), ',') from generate_series(1, 400)",
    "select jsonb_agg(repeat('x', 50000000)) from generate_series(1, 100)",
    "select length(repeat('x', 700000000) || repeat('y', 300000000))",
];

#[tokio::test]
async fn queries_of_several_gigabytes_fail_while_another_tenant_works() {
    let lab = QueryLab::new().await;
    let query = Query {
        text: QueryText::parse("select count(*) from sample").expect("a query"),
        params: Vec::new(),
        limits: LIMITS,
        view: None,
    };
    let started = start_of_server(&lab).await;
    let responses = Cell::new(0);
    let work = async {
        loop {
            let result = lab.runner.run(lab.theirs, &query).await;
            assert_eq!(result.expect("rows of another tenant").rows, ["[3]"]);
            responses.set(responses.get() + 1);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let attack = futures::future::join_all(GREEDY.map(|greedy| lab.refusal(greedy)));
    let refusals = tokio::select! {
        refusals = attack => refusals,
        () = work => Vec::new(),
    };
    assert!(responses.get() > 0, "the other tenant gets no answer");
    assert_eq!(refusals, ["the query needs too much memory"; 4]);
    lab.settle().await;
    assert_eq!(lab.rows("select count(*) from sample").await, json!([[3]]));
    // The kernel's kill of one process would have restarted all of them.
    assert_eq!(start_of_server(&lab).await, started);
}

#[tokio::test]
async fn a_query_allocates_no_memory_that_no_limit_counts() {
    let lab = QueryLab::new().await;
    let role = lab.as_role().await;
    // Hash tables of parallel joins are in shared memory.
    let query = "SELECT pg_catalog.current_setting('enable_parallel_hash')";
    assert_eq!(texts(&role, query).await, ["off"]);
}
