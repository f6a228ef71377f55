//! Drops databases whose tests have ended.

use std::{
    sync::mpsc::{Sender, SyncSender, channel, sync_channel},
    thread,
    time::Duration,
};

use tokio_postgres::{Client, NoTls};

/// Longest wait of a test for its database to be dropped.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A thread with a separate runtime: that of a test may be about to end.
pub(crate) struct Janitor {
    requests: Sender<(String, SyncSender<()>)>,
}

impl Janitor {
    pub(crate) fn start(url: String) -> Self {
        let (requests, to_do) = channel::<(String, SyncSender<()>)>();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                let Ok(client) = connect(&url).await else {
                    return;
                };
                while let Ok((name, done)) = to_do.recv() {
                    remove(&client, &name).await;
                    // The test may have stopped waiting.
                    let _ = done.send(());
                }
            });
        });
        Self { requests }
    }

    /// Drops a database with its connections, and waits for it: otherwise tests could fill the RAM
    /// disk. A database that cannot be dropped ends with the server.
    pub(crate) fn remove(&self, name: &str) {
        let (done, deleted) = sync_channel(1);
        if self.requests.send((name.to_owned(), done)).is_ok() {
            let _ = deleted.recv_timeout(TIMEOUT);
        }
    }
}

async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Ignores failures: at worst they fill the disk.
async fn remove(client: &Client, name: &str) {
    let _ = client
        .batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
        .await;
}
