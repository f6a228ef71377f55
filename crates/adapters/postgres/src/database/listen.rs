//! Notifications of other servers by NOTIFY: one connection per process listens to all channels.

use std::{
    pin::pin,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use futures::StreamExt;
use labdata_ports::{
    PortError,
    runs::{RunNews, Wakeups},
};
use tokio::{sync::watch, task::JoinHandle, time::sleep};

use crate::database::{
    connect::dedicated,
    errors::{Fault, port_error},
    server::Server,
};

/// Wait before a listener connects again.
const RECONNECT: Duration = Duration::from_secs(1);

/// A channel that this process listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// A run was queued.
    RunQueued,
    /// A run stopped running.
    RunEnded,
    /// An event was recorded.
    Event,
}

impl Channel {
    const ALL: [Self; 3] = [Self::RunQueued, Self::RunEnded, Self::Event];

    /// The channel's name in PostgreSQL.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::RunQueued => "labdata_run",
            Self::RunEnded => "labdata_run_ended",
            Self::Event => "labdata_event",
        }
    }
}

/// Notifies the listeners on a channel when the transaction commits.
pub(crate) async fn notify(
    connection: &mut AsyncPgConnection,
    channel: Channel,
) -> Result<(), Fault> {
    diesel::sql_query(format!("NOTIFY {}", channel.name()))
        .execute(connection)
        .await?;
    Ok(())
}

/// A subscription to the notifications of a channel.
pub(crate) struct ChannelSubscription(pub(crate) watch::Receiver<u64>);

#[async_trait]
impl Wakeups for ChannelSubscription {
    async fn next(&mut self) {
        // The listener lives as long as the database; without it there are no more notifications.
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl From<RunNews> for Channel {
    fn from(news: RunNews) -> Self {
        match news {
            RunNews::Queued => Self::RunQueued,
            RunNews::Ended => Self::RunEnded,
        }
    }
}

/// Number of notifications by channel.
type News = [watch::Sender<u64>; Channel::ALL.len()];

/// The listening task, started by the first subscription.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    running: Mutex<Option<(std::sync::Arc<News>, JoinHandle<()>)>>,
}

impl Listener {
    /// Subscribes, and starts the task unless it runs.
    pub(crate) fn subscribe(&self, server: &Server, channel: Channel) -> watch::Receiver<u64> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((news, task)) = &*running
            && !task.is_finished()
        {
            return receiver(news, channel);
        }
        let news = std::sync::Arc::new(News::default());
        let receiver = receiver(&news, channel);
        let listening = keep_listening(server.clone(), std::sync::Arc::clone(&news));
        let task = tokio::spawn(listening);
        *running = Some((news, task));
        receiver
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let running = self.running.get_mut();
        if let Some((_, task)) = running.unwrap_or_else(PoisonError::into_inner) {
            task.abort();
        }
    }
}

fn receiver(news: &News, channel: Channel) -> watch::Receiver<u64> {
    let [queued, ended, event] = news;
    match channel {
        Channel::RunQueued => queued.subscribe(),
        Channel::RunEnded => ended.subscribe(),
        Channel::Event => event.subscribe(),
    }
}

fn announce(sender: &watch::Sender<u64>) {
    sender.send_modify(|count| *count = count.wrapping_add(1));
}

async fn keep_listening(server: Server, news: std::sync::Arc<News>) {
    loop {
        if let Err(error) = listen(&server, &news).await {
            tracing::warn!(%error, "cannot listen to notifications of the database");
        }
        sleep(RECONNECT).await;
    }
}

/// Listens until the connection breaks.
async fn listen(server: &Server, news: &News) -> Result<(), PortError> {
    let mut connection = dedicated(server).await?;
    for channel in Channel::ALL {
        let listen = format!("LISTEN {}", channel.name());
        connection
            .batch_execute(&listen)
            .await
            .map_err(port_error)?;
    }
    // Earlier notifications are lost: every subscriber looks once.
    news.iter().for_each(announce);
    let mut notifications = pin!(connection.notifications_stream());
    while let Some(notification) = notifications.next().await {
        let notification = notification.map_err(port_error)?;
        for (channel, sender) in Channel::ALL.into_iter().zip(news) {
            if notification.channel == channel.name() {
                announce(sender);
            }
        }
    }
    Ok(())
}
