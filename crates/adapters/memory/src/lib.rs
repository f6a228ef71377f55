//! In-memory fakes of the ports, for tests, examples and embedding.
//!
//! One [`Memory`] is shared by all fakes, as one database is by the repositories of a real adapter:
//! an execution that one of them closed is closed for every other too.
//!
//! **Invariants.** Every fake passes the suites of `labdata-port-contracts`. State is plain
//! vectors and maps behind one lock that is never held across an `await`, so each method is
//! atomic. A fake is obviously right rather than fast. No clock and no randomness but what callers
//! pass in, or [`FixedClock`], [`StepClock`] and [`SequentialIds`] make up.
//!
//! ```
//! use labdata_domain::{ids::OrganizationId, jobs::{Job, JobName}, people::tenancy::Organization};
//! use labdata_memory::{FixedClock, InMemoryJobRepository, InMemoryTenancyRepository, Memory, SequentialIds};
//! use labdata_ports::{Clock, IdSource, jobs::JobRepository, people::tenancy::TenancyRepository};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), labdata_ports::PortError> {
//! let (memory, clock, ids) = (Memory::new(), FixedClock::default(), SequentialIds::default());
//! let lab = Organization {
//!     id: ids.next_id().into(),
//!     name: "lab".to_owned(),
//!     created_at: clock.now(),
//! };
//! let lab = InMemoryTenancyRepository::new(&memory).ensure_organization(&lab).await?;
//! let name = JobName::parse("parse plates").expect("a name");
//! let job = Job::new(ids.next_id().into(), name, clock.now());
//! let jobs = InMemoryJobRepository::new(&memory);
//! assert_eq!(jobs.ensure(lab.id, &job).await?, job);
//! assert!(jobs.get(OrganizationId::new(ids.next_id()), job.id).await.is_err());
//! # Ok(())
//! # }
//! ```

mod agent;
mod audit;
mod catalog;
mod clock;
mod data;
mod events;
mod executions;
mod files;
mod idempotency;
mod ids;
mod instruments;
mod jobs;
mod maintenance;
mod memory;
mod models;
mod notifications;
mod outward;
mod paging;
mod people;
mod ports;
mod reading;
mod trash;
mod triggers;
mod work;

pub use agent::{
    InMemoryAgentRunRepository, InMemoryChatRepository, InMemoryWriteSessions, ScriptedModel,
    ScriptedPython, ScriptedResponse,
};
pub use audit::InMemoryAuditLog;
pub use catalog::InMemoryCatalogStore;
pub use clock::{FixedClock, StepClock};
pub use data::InMemoryDataStore;
pub use data::queries::NoQueryRunner;
pub use data::saved_views::InMemorySavedViewRepository;
pub use events::InMemoryEventLog;
pub use executions::InMemoryExecutionRepository;
pub use files::InMemoryFileRepository;
pub use files::signer::InMemoryUrlSigner;
pub use files::{
    blob::InMemoryBlobStore,
    faulty::{FaultMoment, FaultyBlobStore},
};
pub use idempotency::{InMemoryIdempotency, InMemoryUnits};
pub use ids::SequentialIds;
pub use instruments::{
    InMemoryInstrumentRepository, ScriptedFileReader, devices::InMemoryDeviceRepository,
    images::InMemoryAnnotationRepository,
};
pub use jobs::InMemoryJobRepository;
pub use maintenance::dependencies::InMemoryDependencyChecks;
pub use maintenance::disk_reserve::InMemoryDiskReserve;
pub use maintenance::{InMemoryPeriodicTaskStore, InMemoryStoreHealth};
pub use memory::Memory;
pub use models::records::InMemoryModelRepository;
pub use models::trainings::InMemoryTrainingStore;
pub use models::{InMemoryDatasetRepository, InMemoryPredictor};
pub use notifications::InMemoryNotificationRepository;
pub use outward::sql_logins::InMemorySqlLoginRepository;
pub use outward::webhooks::InMemoryWebhookRepository;
pub use people::InMemoryApiKeyRepository;
pub use people::groups::InMemoryGroupRepository;
pub use people::invitations::InMemoryInvitationRepository;
pub use people::oidc::InMemoryOidcStore;
pub use people::sessions::InMemorySessionRepository;
pub use people::tenancy::InMemoryTenancyRepository;
pub use ports::{ports, repositories};
pub use reading::ThreadTableReader;
pub use trash::InMemoryTrashStore;
pub use triggers::InMemoryTriggerStore;
pub use work::logs::InMemoryWorkLogStore;
pub use work::runner::InMemoryJobRunner;
pub use work::{InMemoryRunKeys, InMemoryWorkQueue};
