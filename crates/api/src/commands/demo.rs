//! `labdata demo`

use std::{
    ffi::OsStr,
    fs::{self, File, Permissions},
    net::Ipv4Addr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, bail};
use labdata_domain::work::Isolation;

use super::{
    arguments::Demo, demo_script::DemoScript, output::say, server::RunningServer, signals::Signals,
};
use crate::settings::Settings;

/// The shipped export: simulated growth curves in the Gen5 kinetic layout. Its header states their formula.
const SIMULATED: &str = include_str!("../../../../docs/demo/simulated_growth_curves.txt");
/// File name of [`SIMULATED`].
const SIMULATED_NAME: &str = "simulated_growth_curves.txt";

/// Runs the story on an empty platform, and deletes the platform at the end.
pub(super) async fn demo(
    settings: Settings,
    arguments: &Demo,
    started: Instant,
) -> anyhow::Result<()> {
    // First, so that a wrong path is reported in a moment and not after the start of a database.
    let file = arguments.file.as_deref().map(instrument_file).transpose()?;
    let name = file.as_deref().and_then(Path::file_name);
    let name = name.map_or(SIMULATED_NAME.into(), OsStr::to_string_lossy);
    // Before anything starts: a Ctrl-C from here on still stops PostgreSQL and removes the directory.
    let mut signals = Signals::watch()?;
    // Started as root, PostgreSQL runs as another user, who needs access to the directory.
    let directory = tempfile::Builder::new()
        .prefix("labdata-demo-")
        .permissions(Permissions::from_mode(0o755))
        .tempdir()
        .context("no temporary directory")?;
    // Independent of the umask.
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755))
        .context("the rights of the temporary directory")?;
    let settings = throwaway(settings, directory.path());
    let lab = directory.path().join("lab");
    let serving = async {
        let server = RunningServer::start(&settings, true).await?;
        say(&format!(
            "An empty platform serves on {} after {} ms. Its input: {name}",
            server.url,
            started.elapsed().as_millis()
        ));
        anyhow::Ok(server)
    };
    // Side by side, as each waits for programs and the network.
    let (server, script) = tokio::select! {
        both = async { tokio::join!(serving, DemoScript::prepare(lab)) } => both,
        () = signals.arrive() => return Ok(()),
    };
    let server = server?;
    let outcome = tokio::select! {
        outcome = play(&server, script, file, arguments.exit, started) => outcome,
        () = signals.arrive() => Ok(()),
    };
    // PostgreSQL has its files open in the directory, so it stops before the directory is removed.
    server.stop().await?;
    directory
        .close()
        .context("the temporary directory could not be removed")?;
    outcome
}

/// Runs the script; then, without `exit`, waits forever.
async fn play(
    server: &RunningServer,
    script: anyhow::Result<DemoScript>,
    file: Option<PathBuf>,
    exit: bool,
    started: Instant,
) -> anyhow::Result<()> {
    let url = &server.url;
    let key = server
        .first_key
        .as_ref()
        .context("the platform is not empty")?;
    let script = script?;
    let file = file.map_or_else(|| script.add(SIMULATED_NAME, SIMULATED), Ok)?;
    script
        .run(&file, url, key.reveal())
        .await
        .context("the story ended early")?;
    say(&format!(
        "Every step succeeded, {} ms after the start.",
        started.elapsed().as_millis()
    ));
    if exit {
        return Ok(());
    }
    let console = server.console_link().await?;
    say(&format!(
        "\nlabdata serves on {url} (reference: {url}/docs)\nAdmin key:\n{}\n{}\
         Ctrl-C ends it and removes everything.",
        key.reveal(),
        console.map_or_else(String::new, |console| format!(
            "Console, signed in (good once, within 30 minutes):\n{console}\n"
        ))
    ));
    std::future::pending().await
}

/// Returns the absolute path of a file that can be read.
fn instrument_file(path: &Path) -> anyhow::Result<PathBuf> {
    let fails = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(fails)?;
    if !file.metadata().with_context(fails)?.is_file() {
        bail!("--file takes the path of a file");
    }
    std::path::absolute(path).with_context(fails)
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
        // A free port: the usual one may belong to a server that is in use.
        settings.bind = (Ipv4Addr::LOCALHOST, 0).into();
    }
    settings
}
