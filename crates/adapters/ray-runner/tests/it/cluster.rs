//! Shared cluster of the tests, and runners on it.

use std::{
    fs,
    sync::atomic::{AtomicU32, Ordering},
};

use labdata_ray_runner::{Access, RayRunner, Settings};
use labdata_test_ray::Cluster;
use tokio::sync::OnceCell;

/// Creates a runner on that cluster, with a unique prefix of ids.
pub(crate) fn runner(cluster: &Cluster, token: Option<&str>) -> RayRunner {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    RayRunner::new(Settings {
        access: access(cluster.address(), token),
        namespace: format!("test{}", NEXT.fetch_add(1, Ordering::Relaxed)),
    })
    .unwrap()
}

/// Returns the access to a cluster without encryption.
pub(crate) fn access(address: &str, token: Option<&str>) -> Access {
    Access {
        address: address.to_owned(),
        token: token.map(str::to_owned),
        ca_file: None,
    }
}

/// Returns the cluster that most tests share. It ends with this process.
pub(crate) async fn shared() -> &'static Cluster {
    static SHARED: OnceCell<Cluster> = OnceCell::const_new();
    SHARED.get_or_init(|| Cluster::running(4, None)).await
}

/// Creates a runner on the shared cluster, with a unique prefix of ids.
pub(crate) async fn shared_runner() -> RayRunner {
    runner(shared().await, None)
}

/// Counts the processes of this machine with that text in their command line.
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
