//! A mixed load of every kind of endpoint, with a ledger of every acknowledged change that is compared
//! at the end with what the platform holds.
//!
//! **Invariants.** An HTTP client only: it knows the platform's API and no crate of the platform. Every
//! value depends on the seed and on the order of responses.

mod action;
mod actions;
mod client;
mod events;
mod ledger;
mod load;
mod memory;
mod options;
mod random;
mod report;
mod setup;
mod statistics;
mod verify;

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use futures::future::join_all;

use crate::{
    actions::{Mix, executions},
    client::Client,
    events::Follower,
    load::{Connection, Load},
    memory::Memory,
    setup::Lab,
};
pub use crate::{
    options::{Options, Weight},
    random::Random,
    report::Report,
};

/// Pause after an action that sent nothing.
const IDLE: Duration = Duration::from_millis(1);

/// Produces the load and checks the ledger.
///
/// # Errors
/// When tables, instruments and jobs of the load cannot be created.
pub async fn run(options: Options) -> anyhow::Result<Report> {
    let client = || Client::new(&options.urls, &options.key, options.retry);
    let run = mark(options.seed);
    let follower = Follower::start(Arc::new(client()?)).await;
    let lab = Lab::prepare(&client()?, &run).await?;
    let load = Arc::new(Load::new(options.clone(), client()?, run, lab));
    let watched: Vec<_> = options.pids.iter().map(|pid| Memory::watch(*pid)).collect();
    let began = Instant::now();
    let mix = Mix::of(&options);
    let connections = (0..options.connections).map(|number| {
        let connection = Connection::new(&load, number);
        tokio::spawn(serve(connection, mix.clone()))
    });
    for ended in join_all(connections.collect::<Vec<_>>()).await {
        ended?;
    }
    let duration = began.elapsed();
    let memory = watched.into_iter().map(|(memory, task)| {
        task.abort();
        memory
    });
    let memory = memory.collect();
    let differences = verify::verify(&load, &follower, &client()?).await;
    Ok(Report {
        duration,
        summary: load.client.statistics.summary(),
        memory,
        changes: load.ledger.counts(),
        differences,
    })
}

/// Acts until the load ends.
async fn serve(mut connection: Connection, mix: Mix) {
    let load = Arc::clone(&connection.load);
    let tag = connection.tag();
    connection.execution = executions::open(&load, &tag).await.unwrap_or_default();
    while Instant::now() < load.ends_at {
        match mix.draw(&mut connection.random) {
            Some(action) => actions::run(action, &mut connection).await,
            None => return,
        }
        tokio::time::sleep(IDLE).await;
    }
    if !connection.execution.is_empty() {
        executions::close(&load, &connection.execution).await;
    }
}

/// The mark of a load: different for every load, and part of names of tables.
#[expect(
    clippy::disallowed_methods,
    reason = "names must differ between loads; no test depends on them"
)]
fn mark(seed: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let milliseconds = now.unwrap_or_default().as_millis();
    format!("l{seed:x}t{milliseconds:x}")
}
