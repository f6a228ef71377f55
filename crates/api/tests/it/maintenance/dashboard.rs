//! The dashboard for Grafana: it shows what the server exposes.

use std::{collections::BTreeSet, time::Duration};

use labdata_ports::Clock as _;
use labdata_worker::TaskObserver as _;
use serde_json::Value;

use crate::server::TestServer;

const DASHBOARD: &str = include_str!("../../../../../docs/deploy/grafana-dashboard.json");

/// Names of metrics in an expression.
fn metrics_of(expression: &str) -> BTreeSet<String> {
    expression
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| word.starts_with("labdata_") || word.starts_with("process_"))
        .map(str::to_owned)
        .collect()
}

/// Labels by which the expression groups.
fn groups_of(expression: &str) -> BTreeSet<String> {
    let lists = expression.split("by (").skip(1);
    lists
        .filter_map(|rest| rest.split_once(')'))
        .flat_map(|(labels, _)| labels.split(", ").map(str::to_owned))
        .collect()
}

#[tokio::test]
async fn the_dashboard_names_metrics_and_labels_that_the_server_exposes() {
    let server = TestServer::start().await;
    server.anonymous().get("/healthz").await.json(200);
    let now = server.clock.now();
    server
        .metrics
        .succeeded("expire_work", now, Duration::from_millis(3));
    server
        .metrics
        .failed("expire_work", Duration::from_millis(3));
    let exposed = server.anonymous().get("/metrics").await.text;
    let samples = |metric: &str| {
        let starts = [format!("{metric}{{"), format!("{metric} ")];
        exposed
            .lines()
            .filter(|line| starts.iter().any(|start| line.starts_with(start)))
            .collect::<Vec<_>>()
    };
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut displayed = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            let metrics = metrics_of(expression);
            assert!(!metrics.is_empty(), "{expression}");
            for metric in &metrics {
                let samples = samples(metric);
                assert!(!samples.is_empty(), "{metric} is not in\n{exposed}");
                for label in groups_of(expression) {
                    let label = format!("{label}=\"");
                    let has_label = samples.iter().any(|sample| sample.contains(&label));
                    assert!(has_label, "{metric} has no {label} in {expression}");
                }
            }
            displayed.extend(metrics);
        }
    }
    // And everything that it exposes is shown.
    for line in exposed
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
    {
        let metric = line.split(' ').next().unwrap();
        let is_displayed = displayed
            .iter()
            .any(|displayed| displayed.starts_with(metric));
        assert!(is_displayed, "no panel shows {metric}");
    }
}
