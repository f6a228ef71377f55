//! What other servers announce by NOTIFY: one connection per process listens to all channels.

use std::{
    pin::pin,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use diesel_async::SimpleAsyncConnection;
use futures::StreamExt;
use labdata_ports::{PortError, runs::RunNews};
use tokio::{sync::watch, task::JoinHandle, time::sleep};

use crate::database::{errors::port_error, pool::dedicated};

/// How long a listener waits before it connects again.
const RECONNECT: Duration = Duration::from_secs(1);

/// A channel that this process listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// A run was queued.
    RunQueued,
    /// A run stopped to run.
    RunEnded,
    /// Something happened that triggers may wait for.
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

impl From<RunNews> for Channel {
    fn from(news: RunNews) -> Self {
        match news {
            RunNews::Queued => Self::RunQueued,
            RunNews::Ended => Self::RunEnded,
        }
    }
}

/// How often something came, by channel.
type News = [watch::Sender<u64>; Channel::ALL.len()];

/// Listens as long as anybody is subscribed.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    running: Mutex<Option<(std::sync::Arc<News>, JoinHandle<()>)>>,
}

impl Listener {
    /// Subscribes, and begins to listen where nobody did yet.
    pub(crate) fn subscribe(&self, url: &str, channel: Channel) -> watch::Receiver<u64> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((news, task)) = &*running
            && !task.is_finished()
        {
            return receiver(news, channel);
        }
        let news = std::sync::Arc::new(News::default());
        let receiver = receiver(&news, channel);
        let task = tokio::spawn(keep_listening(url.to_owned(), std::sync::Arc::clone(&news)));
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

async fn keep_listening(url: String, news: std::sync::Arc<News>) {
    loop {
        if let Err(error) = listen(&url, &news).await {
            tracing::warn!(%error, "does not hear of news in the database");
        }
        sleep(RECONNECT).await;
    }
}

/// Listens until the connection breaks.
async fn listen(url: &str, news: &News) -> Result<(), PortError> {
    let mut connection = dedicated(url).await?;
    for channel in Channel::ALL {
        let listen = format!("LISTEN {}", channel.name());
        connection
            .batch_execute(&listen)
            .await
            .map_err(port_error)?;
    }
    // What was announced before is lost: everybody looks once.
    news.iter().for_each(announce);
    let mut heard = pin!(connection.notifications_stream());
    while let Some(heard_of) = heard.next().await {
        let heard_of = heard_of.map_err(port_error)?;
        for (channel, sender) in Channel::ALL.into_iter().zip(news) {
            if heard_of.channel == channel.name() {
                announce(sender);
            }
        }
    }
    Ok(())
}
