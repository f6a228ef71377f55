//! Limits of the server's memory.
#![cfg(target_os = "linux")]

use std::fs;

use crate::support::{data_dir, postmaster, query, servers_of, start};

/// Statements that need several gigabytes, each in another way.
const GREEDY: [&str; 3] = [
    "SELECT array_agg(repeat('x', 50000000)) FROM generate_series(1, 100)",
    "SELECT string_agg(md5(n::text) || repeat('x', 10000), '') OVER () \
     FROM generate_series(1, 1000000) n",
    "WITH t AS MATERIALIZED (SELECT repeat(n::text, 1000000) AS a FROM generate_series(1, 1000) n) \
     SELECT array_agg(a || 'x') FROM t",
];

#[tokio::test]
async fn a_statement_of_several_gigabytes_fails_alone() {
    let directory = data_dir();
    let server = start(directory.path()).await;
    let url = server.database_url();
    let checkpointer = "SELECT pid::text FROM pg_stat_activity WHERE backend_type = 'checkpointer'";
    let before = query(url, checkpointer).await.expect("a process");
    for greedy in GREEDY {
        let refused = query(url, greedy).await.expect_err(greedy);
        // SQLSTATE out_of_memory.
        assert!(refused.contains("53200"), "{refused}");
    }
    // A backend that is killed makes the postmaster restart the checkpointer.
    assert_eq!(query(url, checkpointer).await.as_deref(), Ok(&*before));
    server.stop().await.expect("a stop");
}

#[tokio::test]
async fn a_statement_within_the_limit_runs() {
    let directory = data_dir();
    let server = start(directory.path()).await;
    let large = "SELECT length(string_agg(repeat('x', 1000000), '')) FROM generate_series(1, 60)";
    assert_eq!(
        query(server.database_url(), large).await.as_deref(),
        Ok("60000000")
    );
    server.stop().await.expect("a stop");
}

#[tokio::test]
async fn the_kernel_spares_the_postmaster_and_not_its_children() {
    let directory = data_dir();
    let server = start(directory.path()).await;
    let score = |pid: &str| {
        let score = fs::read_to_string(format!("/proc/{pid}/oom_score_adj"));
        score
            .expect("a score")
            .trim()
            .parse::<i32>()
            .expect("a number")
    };
    let postmaster = postmaster(directory.path()).expect("a postmaster");
    let own = score("self");
    let children = servers_of(directory.path());
    assert!(children.len() > 1);
    for child in children.iter().filter(|pid| **pid != postmaster) {
        assert_eq!(score(&child.to_string()), own);
    }
    let protected = score(&postmaster.to_string());
    // Only a privileged process can protect another.
    let expected = if may_lower_scores() { -1000 } else { own };
    assert_eq!(protected, expected);
    server.stop().await.expect("a stop");
}

/// Returns whether this process has `CAP_SYS_RESOURCE`.
fn may_lower_scores() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let capabilities = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .map(|value| u64::from_str_radix(value.trim(), 16).expect("a number"));
    capabilities.expect("capabilities") & (1 << 24) != 0
}
