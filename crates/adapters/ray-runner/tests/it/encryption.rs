//! A cluster behind a proxy that speaks HTTPS.

use std::path::PathBuf;

use labdata_port_contracts::work::{end_of, log_from, spec};
use labdata_ports::work::runner::{JobRunner, RunnerError};
use labdata_ray_runner::{Access, RayRunner, Settings};
use labdata_test_ray::TlsProxy;

use crate::cluster::shared;

fn runner(proxy: &TlsProxy, ca_file: Option<PathBuf>) -> RayRunner {
    RayRunner::new(Settings {
        access: Access {
            address: proxy.address().to_owned(),
            token: None,
            ca_file,
        },
        namespace: "encrypted".to_owned(),
    })
    .unwrap()
}

#[tokio::test]
async fn a_cluster_with_a_certificate_of_the_given_authority_runs_scripts() {
    let proxy = TlsProxy::start(shared().await.address()).await;
    let runner = runner(&proxy, Some(TlsProxy::authority()));
    let spec = spec("print('encrypted')\n");
    runner.submit(&spec).await.unwrap();
    assert!(end_of(&runner, spec.run).await.succeeded());
    assert_eq!(log_from(&runner, spec.run, 0).await, "encrypted\n");
    runner.reap(spec.run).await.unwrap();
}

#[tokio::test]
async fn someone_between_worker_and_cluster_without_a_trusted_certificate_gets_nothing() {
    let proxy = TlsProxy::start(shared().await.address()).await;
    for ca_file in [Some(TlsProxy::stranger()), None] {
        let runner = runner(&proxy, ca_file);
        match runner.submit(&spec("print('secret')\n")).await {
            Err(RunnerError::Unavailable(reason)) => {
                assert!(reason.contains("LABDATA_RAY_CA_FILE"), "{reason}");
            }
            other => panic!("expected Unavailable, got {other:?}"),
        }
    }
}
