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
use labdata_domain::work::WorkKind;
use labdata_ports::{PortError, work::Wakeups};
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
    /// Work of that kind was queued.
    Queued(WorkKind),
    /// Work of that kind stopped running; the payload is its id.
    Ended(WorkKind),
    /// The log of work has grown, or a training has started or reported; the payload is the id of the work.
    WorkChanged,
    /// An event was recorded.
    Event,
    /// An event was added to the log; the payload is its organization.
    EventLog,
    /// A run of the agent is to be cancelled; the payload is its id.
    AgentRunCancelled,
}

impl Channel {
    const ALL: [Self; 8] = [
        Self::Queued(WorkKind::Run),
        Self::Ended(WorkKind::Run),
        Self::Queued(WorkKind::Training),
        Self::Ended(WorkKind::Training),
        Self::WorkChanged,
        Self::Event,
        Self::EventLog,
        Self::AgentRunCancelled,
    ];

    /// The channel's name in PostgreSQL.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Queued(WorkKind::Run) => "labdata_run",
            Self::Ended(WorkKind::Run) => "labdata_run_ended",
            Self::Queued(WorkKind::Training) => "labdata_training",
            Self::Ended(WorkKind::Training) => "labdata_training_ended",
            Self::WorkChanged => "labdata_work_changed",
            Self::Event => "labdata_event",
            Self::EventLog => "labdata_event_log",
            Self::AgentRunCancelled => "labdata_agent_run_cancelled",
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

/// Notifies the listeners on a channel about this work, or these runs of the agent,
/// when the transaction commits.
pub(crate) async fn notify_of(
    connection: &mut AsyncPgConnection,
    channel: Channel,
    ids: &[Uuid],
) -> Result<(), Fault> {
    // A function, because NOTIFY takes no parameters.
    diesel::sql_query("SELECT pg_notify($1, id::text) FROM unnest($2) AS u (id)")
        .bind::<Text, _>(channel.name())
        .bind::<Array<SqlUuid>, _>(ids)
        .execute(connection)
        .await?;
    Ok(())
}

/// A subscription to the notifications of a channel, or about work, a run
/// of the agent, or the events of an organization.
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

type Sender = watch::Sender<u64>;

/// Numbers of notifications.
#[derive(Debug, Default)]
struct News {
    by_channel: [Sender; Channel::ALL.len()],
    /// Of the work, runs of the agent and organizations that have subscribers.
    by_id: Mutex<HashMap<Uuid, Sender>>,
}

impl News {
    fn by_id(&self) -> MutexGuard<'_, HashMap<Uuid, Sender>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn subscribe(&self, channel: Channel) -> watch::Receiver<u64> {
        let [
            run_queued,
            run_ended,
            training_queued,
            training_ended,
            work_changed,
            event,
            event_log,
            agent_run_cancelled,
        ] = &self.by_channel;
        match channel {
            Channel::Queued(WorkKind::Run) => run_queued.subscribe(),
            Channel::Ended(WorkKind::Run) => run_ended.subscribe(),
            Channel::Queued(WorkKind::Training) => training_queued.subscribe(),
            Channel::Ended(WorkKind::Training) => training_ended.subscribe(),
            Channel::WorkChanged => work_changed.subscribe(),
            Channel::Event => event.subscribe(),
            Channel::EventLog => event_log.subscribe(),
            Channel::AgentRunCancelled => agent_run_cancelled.subscribe(),
        }
    }

    fn follow(&self, id: Uuid) -> watch::Receiver<u64> {
        let mut followed = self.by_id();
        // Subscribers do not sign off: the next subscription removes senders without receivers.
        followed.retain(|_, sender| sender.receiver_count() > 0);
        let sender = followed.entry(id).or_default();
        sender.subscribe()
    }

    /// Announces a notification to its channel, and to the followers of the id in its payload.
    fn announce(&self, channel: &str, payload: &str) {
        for (known, sender) in Channel::ALL.into_iter().zip(&self.by_channel) {
            if known.name() == channel {
                announce(sender);
            }
        }
        if let Ok(id) = payload.parse::<Uuid>()
            && let Some(sender) = self.by_id().get(&id)
        {
            announce(sender);
        }
    }

    fn announce_all(&self) {
        self.by_channel.iter().for_each(announce);
        self.by_id().values().for_each(announce);
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

    /// Subscribes to notifications about work, a run of the agent, or an
    /// organization.
    pub(crate) fn follow(
        &self,
        server: &Server,
        runtime: &Handle,
        id: Uuid,
    ) -> watch::Receiver<u64> {
        self.news(server, runtime).follow(id)
    }

    fn news(&self, server: &Server, runtime: &Handle) -> Arc<News> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((news, task)) = &*running
            // The task never returns: it has ended only by a panic, or with its runtime.
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
    // `send` would fail, and not change the value, while there are no receivers.
    sender.send_modify(|count| *count = count.wrapping_add(1));
}

async fn keep_listening(server: Server, news: Arc<News>) {
    loop {
        if let Err(error) = listen(&server, &news).await {
            tracing::warn!(%error, "cannot listen to notifications of the database");
        }
        // Also after an orderly end: a server that shuts down would be asked without a pause.
        sleep(RECONNECT).await;
    }
}

/// Listens until the connection breaks.
async fn listen(server: &Server, news: &News) -> Result<(), PortError> {
    // LISTEN belongs to a session, and sessions of the pool serve other callers.
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
