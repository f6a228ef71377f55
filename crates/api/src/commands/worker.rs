//! `labdata worker`

use labdata_worker::Background;

use super::{output::say, signals::Signals};
use crate::{
    compose::{DatabaseServer, run_worker},
    settings::Settings,
};

/// Runs the background worker until SIGTERM or SIGINT arrives.
pub(super) async fn worker(settings: &Settings) -> anyhow::Result<()> {
    let mut signals = Signals::watch()?;
    let database = tokio::select! {
        database = DatabaseServer::open(settings) => database?,
        () = signals.arrive() => return Ok(()),
    };
    let outcome = work(&database, settings, &mut signals).await;
    database.close().await?;
    outcome
}

async fn work(
    database: &DatabaseServer,
    settings: &Settings,
    signals: &mut Signals,
) -> anyhow::Result<()> {
    let public_url = settings.public_url(settings.bind);
    let platform = database.ports(settings, &public_url).await?;
    let runs = run_worker(settings, &public_url)?;
    let background = Background::start(platform.ports, platform.mailer, &public_url, runs);
    say("labdata worker is running");
    signals.arrive().await;
    background.stop().await;
    Ok(())
}
