//! Notifications of other servers by NOTIFY: one connection per process listens to all channels.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use diesel::sql_types::{Array, Text, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use futures::StreamExt;
use labdata_domain::ids::ExecutionId;
use labdata_ports::{
    PortError,
    runs::{RunNews, Wakeups},
};
use tokio::{runtime::Handle, sync::watch, task::JoinHandle, time::sleep};
use uuid::Uuid;

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
    /// A run stopped running; the payload is its execution.
    RunEnded,
    /// The log of a run has grown; the payload is its execution.
    RunLog,
    /// An event was recorded.
    Event,
}

impl Channel {
    const ALL: [Self; 4] = [Self::RunQueued, Self::RunEnded, Self::RunLog, Self::Event];

    /// The channel's name in PostgreSQL.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::RunQueued => "labdata_run",
            Self::RunEnded => "labdata_run_ended",
            Self::RunLog => "labdata_run_log",
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

/// Notifies the listeners on a channel about these executions when the transaction commits.
pub(crate) async fn notify_of(
    connection: &mut AsyncPgConnection,
    channel: Channel,
    executions: &[Uuid],
) -> Result<(), Fault> {
    diesel::sql_query("SELECT pg_notify($1, id::text) FROM unnest($2) AS u (id)")
        .bind::<Text, _>(channel.name())
        .bind::<Array<SqlUuid>, _>(executions)
        .execute(connection)
        .await?;
    Ok(())
}

/// A subscription to the notifications of a channel, or about an execution.
pub(crate) struct Subscription(pub(crate) watch::Receiver<u64>);

#[async_trait]
impl Wakeups for Subscription {
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

type Sender = watch::Sender<u64>;

/// Numbers of notifications.
#[derive(Debug, Default)]
struct News {
    by_channel: [Sender; Channel::ALL.len()],
    /// Of the executions that have subscribers.
    by_execution: Mutex<HashMap<Uuid, Sender>>,
}

impl News {
    fn by_execution(&self) -> MutexGuard<'_, HashMap<Uuid, Sender>> {
        self.by_execution
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn subscribe(&self, channel: Channel) -> watch::Receiver<u64> {
        let [queued, ended, log, event] = &self.by_channel;
        match channel {
            Channel::RunQueued => queued.subscribe(),
            Channel::RunEnded => ended.subscribe(),
            Channel::RunLog => log.subscribe(),
            Channel::Event => event.subscribe(),
        }
    }

    fn follow(&self, execution: ExecutionId) -> watch::Receiver<u64> {
        let mut followed = self.by_execution();
        followed.retain(|_, sender| sender.receiver_count() > 0);
        let sender = followed.entry(execution.as_uuid()).or_default();
        sender.subscribe()
    }

    /// Announces a notification to its channel, and to the followers of the execution in its payload.
    fn announce(&self, channel: &str, payload: &str) {
        for (known, sender) in Channel::ALL.into_iter().zip(&self.by_channel) {
            if known.name() == channel {
                announce(sender);
            }
        }
        if let Ok(execution) = payload.parse::<Uuid>()
            && let Some(sender) = self.by_execution().get(&execution)
        {
            announce(sender);
        }
    }

    fn announce_all(&self) {
        self.by_channel.iter().for_each(announce);
        self.by_execution().values().for_each(announce);
    }
}

/// The listening task, started by the first subscription.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    running: Mutex<Option<(Arc<News>, JoinHandle<()>)>>,
}

impl Listener {
    /// Subscribes to a channel, and starts the task on that runtime unless it runs.
    pub(crate) fn subscribe(
        &self,
        server: &Server,
        runtime: &Handle,
        channel: Channel,
    ) -> watch::Receiver<u64> {
        self.news(server, runtime).subscribe(channel)
    }

    /// Subscribes to notifications about an execution.
    pub(crate) fn follow(
        &self,
        server: &Server,
        runtime: &Handle,
        execution: ExecutionId,
    ) -> watch::Receiver<u64> {
        self.news(server, runtime).follow(execution)
    }

    fn news(&self, server: &Server, runtime: &Handle) -> Arc<News> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((news, task)) = &*running
            && !task.is_finished()
        {
            return Arc::clone(news);
        }
        let news = Arc::<News>::default();
        let listening = keep_listening(server.clone(), Arc::clone(&news));
        *running = Some((Arc::clone(&news), runtime.spawn(listening)));
        news
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

fn announce(sender: &Sender) {
    sender.send_modify(|count| *count = count.wrapping_add(1));
}

async fn keep_listening(server: Server, news: Arc<News>) {
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
    news.announce_all();
    let mut notifications = pin!(connection.notifications_stream());
    while let Some(notification) = notifications.next().await {
        let notification = notification.map_err(port_error)?;
        news.announce(&notification.channel, &notification.payload);
    }
    Ok(())
}
