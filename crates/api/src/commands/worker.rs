//! `labdata worker`

use std::sync::Arc;

use labdata_worker::{Background, NoObserver, TaskObserver};

use super::{output::say, server::checked_worker_settings, signals::Signals};
use crate::{
    compose::DatabaseServer, dependencies::ServerDependencies, http::server::DRAIN_TIMEOUT,
    settings::Settings,
};

/// Runs the background worker until SIGTERM or SIGINT arrives.
pub(super) async fn worker(settings: &Settings) -> anyhow::Result<()> {
    // Before the database: a signal during a long start must stop it, not kill this process.
    let mut signals = Signals::watch()?;
    let database = tokio::select! {
        database = DatabaseServer::open(settings) => database?,
        () = signals.arrive() => return Ok(()),
    };
    let outcome = work(&database, settings, &mut signals).await;
    // Also after a failure, so that an embedded PostgreSQL does not run on.
    database.close().await?;
    outcome
}

async fn work(
    database: &DatabaseServer,
    settings: &Settings,
    signals: &mut Signals,
) -> anyhow::Result<()> {
    let public_url = settings.public_url(settings.bind);
    let services = database
        .services(settings, &public_url, ServerDependencies::of(settings))
        .await?;
    let worker = checked_worker_settings(&services, settings, &public_url).await?;
    // Without an HTTP server there is no `/metrics`.
    let observer: Arc<dyn TaskObserver> = Arc::new(NoObserver);
    let background = Background::start(&services, Some(worker), &observer);
    say("labdata worker is running");
    signals.arrive().await;
    background.stop(DRAIN_TIMEOUT).await;
    Ok(())
}
