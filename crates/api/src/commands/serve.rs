//! `labdata serve`

use std::{io::IsTerminal, time::Instant};

use super::{output::say, server::RunningServer, signals::Signals};
use crate::settings::Settings;

/// Serves until SIGTERM or SIGINT arrives.
pub(super) async fn serve(
    settings: &Settings,
    no_worker: bool,
    started: Instant,
) -> anyhow::Result<()> {
    // Before the start: a signal during it must stop PostgreSQL as well, not kill this process.
    let mut signals = Signals::watch()?;
    let mut server = tokio::select! {
        server = RunningServer::start(settings, !no_worker) => server?,
        () = signals.arrive() => return Ok(()),
    };
    // An operator who chose the key automates the start, and needs no link. Readers of a journal or a log
    // must not be signed in by it.
    let console = if std::io::stdout().is_terminal() && settings.bootstrap_key.is_none() {
        server.console_link().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "no link to the console could be made");
            None
        })
    } else {
        None
    };
    announce(&server, console.as_deref());
    if settings.follows_host() {
        let bind = settings.bind;
        say(&format!(
            "URLs in responses follow each request's Host, as the bind address {bind} names no host; e-mails \
             and jobs use {}. Set LABDATA_PUBLIC_URL to name one",
            server.url
        ));
    }
    let milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(milliseconds, url = server.url, "ready");
    let ended = tokio::select! {
        ended = server.ended() => ended,
        () = signals.arrive() => Ok(()),
    };
    // Also when the HTTP server failed: the database and the workers still run.
    server.stop().await?;
    tracing::info!("stopped");
    ended
}

/// Prints the key before the URL: a reader that waits for the URL has then seen both.
fn announce(server: &RunningServer, console: Option<&str>) {
    let url = &server.url;
    if let Some(key) = &server.first_key {
        say(&format!(
            "Admin key of the organization `default`, displayed this once:\n{}",
            key.reveal()
        ));
    }
    say(&format!(
        "labdata serves on {url}\nReference of the API: {url}/docs"
    ));
    if let Some(console) = console {
        say(&format!(
            "Console, signed in as the administrator (good once, within 30 minutes):\n{console}"
        ));
    }
}
