//! `labdata demo`

use std::{
    fs::Permissions, net::Ipv4Addr, os::unix::fs::PermissionsExt, path::Path, time::Instant,
};

use anyhow::Context;
use labdata_demo::{SIMULATED, SIMULATED_NAME, tell};
use labdata_domain::work::Isolation;

use super::{arguments::Demo, output::say, server::RunningServer, signals::Signals};
use crate::settings::Settings;

/// Runs the story on an empty platform, and deletes the platform at the end.
pub(super) async fn demo(
    settings: Settings,
    arguments: &Demo,
    started: Instant,
) -> anyhow::Result<()> {
    let (name, bytes) = match &arguments.file {
        Some(path) => instrument_file(path)?,
        None => (SIMULATED_NAME.to_owned(), SIMULATED.as_bytes().to_vec()),
    };
    let mut signals = Signals::watch()?;
    // Started as root, PostgreSQL runs as another user, who needs access to the directory.
    let directory = tempfile::Builder::new()
        .prefix("labdata-demo-")
        .permissions(Permissions::from_mode(0o755))
        .tempdir()
        .context("no temporary directory")?;
    let settings = throwaway(settings, directory.path());
    let server = tokio::select! {
        server = RunningServer::start(&settings, true) => server?,
        () = signals.arrive() => return Ok(()),
    };
    let outcome = tokio::select! {
        outcome = play(&server, &name, &bytes, arguments.exit, started) => outcome,
        () = signals.arrive() => Ok(()),
    };
    server.stop().await?;
    directory
        .close()
        .context("the temporary directory could not be removed")?;
    outcome
}

/// Runs the story; then, without `exit`, waits forever.
async fn play(
    server: &RunningServer,
    name: &str,
    bytes: &[u8],
    exit: bool,
    started: Instant,
) -> anyhow::Result<()> {
    let url = &server.url;
    let key = server
        .first_key
        .as_ref()
        .context("the platform is not empty")?;
    say(&format!(
        "An empty platform serves on {url} after {} ms. Its input: {name}",
        started.elapsed().as_millis()
    ));
    tell(url, key.reveal(), name, bytes, &say)
        .await
        .context("the story ended early")?;
    say(&format!(
        "Every step succeeded, {} ms after the start.",
        started.elapsed().as_millis()
    ));
    if exit {
        return Ok(());
    }
    say(&format!(
        "\nlabdata serves on {url} (reference: {url}/docs)\nAdmin key:\n{}\n{}\
         Ctrl-C ends it and removes everything.",
        key.reveal(),
        server
            .console
            .as_ref()
            .map_or_else(String::new, |console| format!(
                "Console, signed in (good once, within 30 minutes):\n{console}\n"
            ))
    ));
    std::future::pending().await
}

fn instrument_file(path: &Path) -> anyhow::Result<(String, Vec<u8>)> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let name = path
        .file_name()
        .context("--file takes the path of a file")?;
    Ok((name.to_string_lossy().into_owned(), bytes))
}

/// Replaces the settings that refer to existing data.
fn throwaway(settings: Settings, directory: &Path) -> Settings {
    let mut settings = settings;
    directory.clone_into(&mut settings.data_dir);
    settings.database_url = None;
    settings.query_database_url = None;
    settings.storage_url = None;
    settings.direct_uploads = None;
    settings.public_url = None;
    settings.bootstrap_key = None;
    // Only its own script runs, so any machine will do.
    settings.job_isolation.get_or_insert(Isolation::None);
    if !settings.bind_given {
        settings.bind = (Ipv4Addr::LOCALHOST, 0).into();
    }
    settings
}
