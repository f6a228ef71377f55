//! A primary that dies under load, and its synchronous standby that takes over.

use std::time::{Duration, Instant};

use super::{lab::Cluster, members::Member, replicated::ReplicatedPostgres};
use crate::work::platform_runs::KEY;

/// Duration of the load, and the time after its first writes at which the primary dies, in seconds.
const SECONDS: (u64, u64) = (18, 3);

/// Time without a primary.
const OUTAGE: Duration = Duration::from_secs(2);

/// Time in which the servers recover once there is a primary again.
const RECOVERY: Duration = Duration::from_secs(10);

#[expect(
    clippy::print_stdout,
    reason = "shown with --nocapture, and when the test fails"
)]
#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_a_synchronous_standby_is_promoted() {
    let mut database = ReplicatedPostgres::start().await;
    let mut cluster = Cluster::start(2, 1, &database.url(), &[]).await;
    let load = cluster.load(SECONDS.0, 7).await;
    tokio::time::sleep(Duration::from_secs(SECONDS.1)).await;

    database.kill_primary();
    let down = Instant::now();
    tokio::time::sleep(OUTAGE).await;
    for server in cluster.members.iter().filter_map(Member::url) {
        let request = reqwest::Client::new().get(format!("{server}/api/v1/files"));
        let response = request.bearer_auth(KEY).send().await.unwrap();
        assert_eq!(response.status(), 503);
        assert!(
            response.headers().contains_key("retry-after"),
            "{response:?}"
        );
    }
    database.promote_standby().await;
    let without_primary = down.elapsed();
    let report = load.await.unwrap().unwrap();

    println!("{without_primary:?} without a primary\n{report}");
    assert!(report.problems().is_empty(), "{report}");
    assert_eq!(report.responses(500), 0, "{report}");
    assert!(report.responses(503) > 0, "{report}");
    let gap = report.longest_gap();
    assert!(gap > OUTAGE && gap < without_primary + RECOVERY, "{gap:?}");
    cluster.assert_alive();
}
