//! Refused submissions, and a cluster that ends.

use labdata_port_contracts::work::spec;
use labdata_ports::work::runner::{EndReason, JobRunner, RunStatus, RunView, RunnerError};
use labdata_ray_runner::{RayRunner, Settings};
use labdata_test_ray::Cluster;

use crate::cluster;

const TOKEN: &str = "a-token-of-more-than-thirty-two-characters";

fn unavailable<T: std::fmt::Debug>(response: Result<T, RunnerError>) -> String {
    match response {
        Err(RunnerError::Unavailable(reason)) => reason,
        other => panic!("expected Unavailable, got {other:?}"),
    }
}

/// Uses a cluster without processors, so that every job waits.
#[tokio::test]
async fn runs_that_wait_are_cancelled_tokens_are_checked_and_a_lost_cluster_is_unavailable() {
    let cluster = Cluster::running(0, Some(TOKEN)).await;

    let waiting = spec("print('never')\n");
    let stranger = cluster::runner(&cluster, Some("another"));
    let reason = unavailable(stranger.submit(&waiting).await);
    assert!(reason.contains("LABDATA_RAY_TOKEN"), "{reason}");

    let runner = cluster::runner(&cluster, Some(TOKEN));
    runner.submit(&waiting).await.unwrap();
    runner.submit(&waiting).await.unwrap();
    let view = runner.status(waiting.run).await.unwrap();
    assert_eq!(view.status, RunStatus::Preparing);
    runner.cancel(waiting.run).await.unwrap();
    let view = runner.wait(waiting.run, &view).await.unwrap();
    assert_eq!(view.end().unwrap().reason, EndReason::Cancelled);
    runner.reap(waiting.run).await.unwrap();
    assert_eq!(runner.status(waiting.run).await.unwrap(), RunView::lost());

    let left = spec("print('never')\n");
    runner.submit(&left).await.unwrap();
    cluster.end();
    let reason = unavailable(runner.status(left.run).await);
    assert!(reason.contains(cluster.address()), "{reason}");
    unavailable(runner.wait(left.run, &view).await);
    unavailable(runner.submit(&left).await);
    unavailable(runner.logs(left.run, 0).await);
    unavailable(runner.cancel(left.run).await);
    unavailable(runner.reap(left.run).await);
}

#[tokio::test]
async fn a_script_that_is_too_long_for_the_way_is_refused() {
    let nobody = RayRunner::new(Settings {
        access: cluster::access("http://127.0.0.1:1", None),
        namespace: "test".to_owned(),
    })
    .unwrap();
    let lines =
        (0..200_000_u64).map(|line| format!("# {:x}\n", line.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let response = nobody.submit(&spec(&lines.collect::<String>())).await;
    assert!(
        matches!(response, Err(RunnerError::Refused(_))),
        "{response:?}"
    );
}
