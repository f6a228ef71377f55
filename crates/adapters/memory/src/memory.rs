//! The state that all fakes share.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use futures::channel::mpsc;
use labdata_domain::{
    agent::{Usage, UsageMonth},
    audit::AuditEntry,
    data::saved_view::SavedView,
    executions::{Execution, started_by::StartedBy},
    files::{File, ObjectKey},
    ids::{ApiKeyId, ExecutionId, JobId, OrganizationId, UserId},
    instruments::{Instrument, images::Annotation},
    jobs::{Job, ScriptVersion},
    models::{Dataset, DatasetMask, TrainingBackend},
    notifications::Preferences,
    outward::{
        sql_logins::SqlLogin,
        webhooks::{Delivery, OutboxEvent, Webhook},
    },
    people::{
        ApiKey,
        group::Group,
        invitation::Invitation,
        session::{Session, SignInLink},
        tenancy::{Organization, User},
    },
    refusal::Resource,
    triggers::event::Event,
    work::WorkId,
};
use labdata_ports::{
    Clock, PortError, files::blob::Granted, outward::webhooks::DisabledWebhook,
    people::oidc::ProviderSession,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    FixedClock,
    agent::{AgentRunRow, ChatRow, WriteSessionRow},
    data::tables::Tables,
    events::row::EventRow,
    idempotency,
    instruments::devices::Devices,
    maintenance::TaskSchedule,
    models::rows::VersionRow,
    notifications::rows::{NoticeRow, NotificationRow},
    people::oidc::AccountRow,
    trash::TrashRow,
    work::{
        rows::{Log, WorkRow},
        subscribers::Subscriber,
    },
};

/// A store in memory. Clones are the same store.
#[derive(Clone)]
pub struct Memory {
    state: Arc<Mutex<State>>,
    /// Clock of leases.
    clock: Arc<dyn Clock>,
}

/// Declares a fake over the shared store.
macro_rules! fake {
    ($(#[$doc:meta])+ pub struct $Fake:ident;) => {
        $(#[$doc])+
        #[derive(Clone, Debug)]
        pub struct $Fake {
            memory: $crate::Memory,
        }

        impl $Fake {
            /// The fake over that store.
            #[must_use]
            pub fn new(memory: &$crate::Memory) -> Self {
                Self {
                    memory: memory.clone(),
                }
            }
        }
    };
}
pub(crate) use fake;

/// Something that belongs to an organization.
#[derive(Clone, Debug)]
pub(crate) struct Owned<T> {
    pub(crate) organization: OrganizationId,
    pub(crate) thing: T,
}

/// Everything that is stored.
#[derive(Clone, Default)]
pub(crate) struct State {
    pub(crate) organizations: Vec<Organization>,
    pub(crate) users: Vec<User>,
    pub(crate) groups: Vec<Group>,
    pub(crate) invitations: Vec<Invitation>,
    pub(crate) saved_views: Vec<SavedView>,
    /// Entries of the audit logs, oldest first.
    pub(crate) audit_log: Vec<Owned<AuditEntry>>,
    pub(crate) secrets: BTreeMap<String, [u8; 32]>,
    pub(crate) api_keys: Vec<ApiKey>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) sign_in_links: Vec<SignInLink>,
    /// Hashes of used sign-ins with a provider, and when they end.
    pub(crate) used_attempts: Vec<([u8; 32], OffsetDateTime)>,
    /// Accounts of users at providers.
    pub(crate) accounts: Vec<AccountRow>,
    /// Sessions that a provider began.
    pub(crate) provider_sessions: Vec<ProviderSession>,
    pub(crate) instruments: Vec<Owned<Instrument>>,
    pub(crate) devices: Devices,
    pub(crate) annotations: Vec<Owned<Annotation>>,
    pub(crate) datasets: Vec<Owned<Dataset>>,
    /// Masks of datasets.
    pub(crate) dataset_masks: Vec<Owned<DatasetMask>>,
    /// The versions of models, by number within a model.
    pub(crate) model_versions: Vec<Owned<VersionRow>>,
    pub(crate) training_backends: BTreeMap<Uuid, TrainingBackend>,
    pub(crate) chats: Vec<ChatRow>,
    pub(crate) agent_runs: Vec<AgentRunRow>,
    pub(crate) agent_usage: BTreeMap<(OrganizationId, UsageMonth), Usage>,
    pub(crate) write_sessions: Vec<WriteSessionRow>,
    pub(crate) jobs: Vec<Owned<Job>>,
    /// The versions of each job's script, oldest first.
    pub(crate) scripts: BTreeMap<JobId, Vec<ScriptVersion>>,
    /// When the schedule of a job's trigger ticks next.
    pub(crate) ticks: BTreeMap<JobId, OffsetDateTime>,
    pub(crate) executions: Vec<Owned<Execution>>,
    pub(crate) started_by: BTreeMap<ExecutionId, StartedBy>,
    /// Work that waits or runs.
    pub(crate) work: BTreeMap<WorkId, WorkRow>,
    pub(crate) logs: BTreeMap<(OrganizationId, WorkId), Log>,
    pub(crate) subscribers: Vec<Subscriber>,
    /// Followers of work, and of events, by organization.
    pub(crate) followers: Vec<(Uuid, mpsc::UnboundedSender<()>)>,
    pub(crate) tables: BTreeMap<OrganizationId, Tables>,
    pub(crate) files: Vec<Owned<File>>,
    pub(crate) trash: Vec<Owned<TrashRow>>,
    pub(crate) objects: BTreeMap<(OrganizationId, ObjectKey), Bytes>,
    pub(crate) notifications: Vec<NotificationRow>,
    /// Ends whose notices are to be delivered, oldest first.
    pub(crate) notices: Vec<NoticeRow>,
    pub(crate) events: Vec<Event>,
    /// Subscribers to signals of events.
    pub(crate) event_subscribers: Vec<mpsc::UnboundedSender<()>>,
    /// Number of events recorded so far.
    pub(crate) events_so_far: u128,
    /// The event log, in order.
    pub(crate) event_log: Vec<EventRow>,
    /// Number of events logged so far.
    pub(crate) logged_so_far: u64,
    pub(crate) sql_logins: Vec<Owned<SqlLogin>>,
    pub(crate) webhooks: Vec<Owned<Webhook>>,
    /// Events whose deliveries are yet to be made, oldest first.
    pub(crate) webhook_outbox: Vec<Owned<OutboxEvent>>,
    /// Deliveries to webhooks, oldest first.
    pub(crate) deliveries: Vec<Owned<Delivery>>,
    /// Number of deliveries of events stored so far.
    pub(crate) deliveries_so_far: u128,
    /// Disabled webhooks of which administrators are not notified yet.
    pub(crate) disabled_webhooks: Vec<DisabledWebhook>,
    /// Responses by organization, API key, operation and idempotency key.
    pub(crate) responses: BTreeMap<(OrganizationId, ApiKeyId, String, String), idempotency::Slot>,
    pub(crate) periodic_tasks: BTreeMap<String, TaskSchedule>,
    pub(crate) preferences: BTreeMap<UserId, Preferences>,
    /// Every permission that a URL was given, by the number in the URL.
    pub(crate) granted: Vec<Granted>,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without what is stored, secrets among it.
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            state: Arc::default(),
            clock: Arc::new(FixedClock::default()),
        }
    }
}

impl Memory {
    /// An empty store, whose clock stands still.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same store, with leases that end by that clock.
    #[must_use]
    pub fn on_clock(&self, clock: Arc<dyn Clock>) -> Self {
        Self {
            state: Arc::clone(&self.state),
            clock,
        }
    }

    /// The time of the store.
    pub(crate) fn now(&self) -> OffsetDateTime {
        self.clock.now()
    }

    /// The state, for one atomic effect.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Refuses an organization that does not exist, where a database has a foreign key.
    pub(crate) fn require_organization(&self, id: OrganizationId) -> Result<(), PortError> {
        let exists = self
            .organizations
            .iter()
            .any(|organization| organization.id == id);
        if exists {
            Ok(())
        } else {
            Err(PortError::NotFound(Resource::Organization))
        }
    }

    /// Refuses a user that the organization does not have.
    pub(crate) fn require_user(
        &self,
        organization: OrganizationId,
        user: UserId,
    ) -> Result<(), PortError> {
        let mut users = self.users.iter();
        if users.any(|other| other.organization == organization && other.id == user) {
            Ok(())
        } else {
            Err(PortError::NotFound(Resource::User))
        }
    }

    /// The organization's tables.
    pub(crate) fn tables_mut(
        &mut self,
        organization: OrganizationId,
    ) -> Result<&mut Tables, PortError> {
        self.require_organization(organization)?;
        Ok(self.tables.entry(organization).or_default())
    }

    /// The organization's job of that id.
    pub(crate) fn job(&self, organization: OrganizationId, id: JobId) -> Result<&Job, PortError> {
        owned(&self.jobs, organization)
            .find(|job| job.id == id)
            .ok_or(PortError::NotFound(Resource::Job))
    }

    /// The organization's execution of that id.
    pub(crate) fn execution_mut(
        &mut self,
        organization: OrganizationId,
        id: ExecutionId,
    ) -> Result<&mut Execution, PortError> {
        self.executions
            .iter_mut()
            .filter(|execution| execution.organization == organization)
            .map(|execution| &mut execution.thing)
            .find(|execution| execution.id == id)
            .ok_or(PortError::NotFound(Resource::Execution))
    }

    /// Stores a new execution.
    pub(crate) fn add_execution(
        &mut self,
        organization: OrganizationId,
        execution: &Execution,
        started_by: StartedBy,
    ) {
        self.started_by.insert(execution.id, started_by);
        self.executions.push(Owned {
            organization,
            thing: execution.clone(),
        });
    }

    /// User, key or trigger that started an execution.
    pub(crate) fn started_by(&self, id: ExecutionId) -> Result<StartedBy, PortError> {
        let starter = self.started_by.get(&id).copied();
        starter.ok_or_else(|| PortError::Corrupt(format!("{id} was started by no user")))
    }
}

/// Items of the organization.
pub(crate) fn owned<T>(
    things: &[Owned<T>],
    organization: OrganizationId,
) -> impl Iterator<Item = &T> {
    things
        .iter()
        .filter(move |owned| owned.organization == organization)
        .map(|owned| &owned.thing)
}
