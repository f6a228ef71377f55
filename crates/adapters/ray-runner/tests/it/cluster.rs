//! The cluster of the tests, and runners on it.

use std::{
    fs,
    sync::atomic::{AtomicU32, Ordering},
};

use labdata_ray_runner::{RayRunner, Settings};
use labdata_test_ray::Cluster;
use tokio::sync::OnceCell;

/// A runner with ids of its own on that cluster.
pub(crate) fn runner(cluster: &Cluster, token: Option<&str>) -> RayRunner {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    RayRunner::new(Settings {
        address: cluster.address().to_owned(),
        token: token.map(str::to_owned),
        namespace: format!("test{}", NEXT.fetch_add(1, Ordering::Relaxed)),
    })
    .unwrap()
}

/// The cluster that most tests share; it ends with this process.
pub(crate) async fn shared() -> &'static Cluster {
    static SHARED: OnceCell<Cluster> = OnceCell::const_new();
    SHARED.get_or_init(|| Cluster::running(4, None)).await
}

/// A runner with ids of its own on the shared cluster.
pub(crate) async fn shared_runner() -> RayRunner {
    runner(shared().await, None)
}

/// How many processes of this machine have that in their command line.
pub(crate) fn processes_with(mark: &str) -> usize {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let line = fs::read(entry.ok()?.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(mark).then_some(())
        })
        .count()
}
