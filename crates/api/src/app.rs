//! The state that all handlers share.

use std::{sync::Arc, time::Duration};

use labdata_application::{Error, Ports, agent::Agent};
use labdata_domain::{ids::OrganizationId, refusal::Overload};
use labdata_limits::{FairSlots, Slot};
use labdata_operations::Platform;

use crate::http::{
    metrics::Metrics, public_url::PublicUrl, rate_limit::RateLimit, security_headers::ContentPolicy,
};

/// Maximum number of results of one organization in memory.
const RESULTS_OF_ONE: usize = 4;

/// Maximum number of results of all organizations in memory.
const RESULTS_OF_ALL: usize = 16;

/// Maximum number of pages of rows, and of lists, of one organization in memory. More than its share of
/// the connections: reads that are small wait for connections only.
const PAGES_OF_ONE: usize = 12;

/// Maximum number of pages of rows, and of lists, of all organizations in memory.
const PAGES_OF_ALL: usize = 36;

/// Maximum number of series of one organization that are read and encoded at a time. Each takes memory
/// and a processor.
const SERIES_OF_ONE: usize = 3;

/// Maximum number of series of all organizations that are read and encoded at a time.
const SERIES_OF_ALL: usize = 4;

/// Maximum number of snapshots of one organization that are taken at a time. Each takes a thread, up to
/// 200 MiB of memory, and for queries a connection to the database.
const SNAPSHOTS_OF_ONE: usize = 2;

/// Maximum number of snapshots of all organizations that are taken at a time.
const SNAPSHOTS_OF_ALL: usize = 4;

/// Maximum number of tables of one organization that are sent while they are read. Each holds a
/// connection to the database.
const STREAMS_OF_ONE: usize = 2;

/// Maximum number of tables of all organizations that are sent while they are read.
const STREAMS_OF_ALL: usize = 4;

/// Default of [`App::stall`].
pub const STALL: Duration = Duration::from_secs(30);

/// Default of [`App::request_timeout`].
pub const REQUEST_TIMEOUT: Duration = Duration::from_mins(15);

/// Maximum number of logs, trainings and event streams of one organization that are followed at a time.
const FOLLOWERS_OF_ONE: usize = 32;

/// Maximum number of logs, trainings and event streams of all organizations that are followed at a time.
const FOLLOWERS_OF_ALL: usize = 128;

/// Maximum number of MCP requests of one organization that are answered at a time.
const MCP_REQUESTS_OF_ONE: usize = 8;

/// Maximum number of MCP requests of all organizations that are answered at a time.
const MCP_REQUESTS_OF_ALL: usize = 32;

/// Maximum number of files of one organization that are received for imports at a time. Each takes up to
/// 100 MiB of the disk.
const SPOOLED_OF_ONE: usize = 4;

/// Maximum number of files of all organizations that are received for imports at a time.
const SPOOLED_OF_ALL: usize = 32;

/// Maximum number of files of one organization that are imported at a time. Each takes up to 700 MiB of
/// memory.
const IMPORTS_OF_ONE: usize = 1;

/// Maximum number of files of all organizations that are imported at a time.
const IMPORTS_OF_ALL: usize = 3;

/// Time after which a refused follower is to try again, in seconds.
const FOLLOW_LATER: u32 = 10;

/// State of one server, shared by all HTTP workers.
#[derive(Clone)]
pub struct App {
    /// Ports, for use cases.
    pub ports: Arc<Ports>,
    /// The parts that operations use.
    pub platform: Arc<Platform>,
    /// The agent.
    pub agent: Agent,
    /// Base of the URLs in answers.
    pub public_url: PublicUrl,
    /// Metrics for Prometheus.
    pub metrics: Metrics,
    /// Time that a client may keep an answer waiting.
    pub stall: Duration,
    /// Maximum time until a request is answered, except for requests with files.
    pub request_timeout: Duration,
    /// What pages may do.
    pub content_policy: ContentPolicy,
    /// Limits the requests of each key.
    pub rate_limit: RateLimit,
    /// Limits results in memory: each counts until its last byte is sent.
    results: Arc<FairSlots<OrganizationId>>,
    /// Limits series that are read and encoded.
    series: Arc<FairSlots<OrganizationId>>,
    /// Limits snapshots that are taken.
    snapshots: Arc<FairSlots<OrganizationId>>,
    /// Limits tables that are sent while they are read.
    streams: Arc<FairSlots<OrganizationId>>,
    /// Limits logs, trainings and event streams that are followed.
    followers: Arc<FairSlots<OrganizationId>>,
    /// Limits MCP requests.
    mcp_requests: Arc<FairSlots<OrganizationId>>,
    /// Limits received files of imports.
    spooled: Arc<FairSlots<OrganizationId>>,
    /// Limits imports.
    imports: Arc<FairSlots<OrganizationId>>,
}

impl App {
    /// Creates the state of a server.
    ///
    /// # Errors
    /// When the metrics cannot be registered, which is a bug in [`Metrics`].
    pub fn new(
        ports: Ports,
        agent: Agent,
        public_url: PublicUrl,
    ) -> Result<Self, prometheus::Error> {
        let metrics = Metrics::new()?;
        let agent = Agent {
            observer: Arc::new(metrics.clone()),
            ..agent
        };
        let ports = Arc::new(ports);
        let pages = Arc::new(FairSlots::new(PAGES_OF_ONE, PAGES_OF_ALL));
        let platform = Platform {
            ports: Arc::clone(&ports),
            pages,
        };
        Ok(Self {
            ports,
            platform: Arc::new(platform),
            agent,
            public_url,
            metrics,
            stall: STALL,
            request_timeout: REQUEST_TIMEOUT,
            content_policy: ContentPolicy::default(),
            rate_limit: RateLimit::default(),
            results: Arc::new(FairSlots::new(RESULTS_OF_ONE, RESULTS_OF_ALL)),
            series: Arc::new(FairSlots::new(SERIES_OF_ONE, SERIES_OF_ALL)),
            snapshots: Arc::new(FairSlots::new(SNAPSHOTS_OF_ONE, SNAPSHOTS_OF_ALL)),
            streams: Arc::new(FairSlots::new(STREAMS_OF_ONE, STREAMS_OF_ALL)),
            followers: Arc::new(FairSlots::new(FOLLOWERS_OF_ONE, FOLLOWERS_OF_ALL)),
            mcp_requests: Arc::new(FairSlots::new(MCP_REQUESTS_OF_ONE, MCP_REQUESTS_OF_ALL)),
            spooled: Arc::new(FairSlots::new(SPOOLED_OF_ONE, SPOOLED_OF_ALL)),
            imports: Arc::new(FairSlots::new(IMPORTS_OF_ONE, IMPORTS_OF_ALL)),
        })
    }

    /// Waits for permission to hold a result of that organization.
    ///
    /// # Errors
    /// `Unavailable` if too many are held for 10 s.
    pub(crate) async fn result_slot(&self, organization: OrganizationId) -> Result<Slot, Error> {
        enter(&self.results, organization).await
    }

    /// Waits for permission to hold a page of rows, or of a list, of that organization.
    ///
    /// # Errors
    /// `Unavailable` if too many are held for 10 s.
    pub(crate) async fn page_slot(&self, organization: OrganizationId) -> Result<Slot, Error> {
        self.platform.page_slot(organization).await
    }

    /// Waits for the organization's turn to read and encode a series.
    ///
    /// # Errors
    /// `Unavailable` if others take 10 s.
    pub(crate) async fn series_turn(&self, organization: OrganizationId) -> Result<Slot, Error> {
        enter(&self.series, organization).await
    }

    /// Waits for the organization's turn to take a snapshot.
    ///
    /// # Errors
    /// `Unavailable` if others take 10 s.
    pub(crate) async fn snapshot_turn(&self, organization: OrganizationId) -> Result<Slot, Error> {
        enter(&self.snapshots, organization).await
    }

    /// Waits for the organization's turn to be sent a table while it is read. It counts as a result too.
    ///
    /// # Errors
    /// `Unavailable` if others take 10 s.
    pub(crate) async fn stream_slots(
        &self,
        organization: OrganizationId,
    ) -> Result<(Slot, Slot), Error> {
        let result = self.result_slot(organization).await?;
        Ok((result, enter(&self.streams, organization).await?))
    }

    /// Waits for the organization's turn to have an MCP request answered.
    ///
    /// # Errors
    /// `Unavailable` if others take 10 s.
    pub(crate) async fn mcp_turn(&self, organization: OrganizationId) -> Result<Slot, Error> {
        enter(&self.mcp_requests, organization).await
    }

    /// Waits for room on the disk for a file that the organization imports.
    ///
    /// # Errors
    /// `Unavailable` if too many are received for 10 s.
    pub(crate) async fn spool_slot(&self, organization: OrganizationId) -> Result<Slot, Error> {
        enter(&self.spooled, organization).await
    }

    /// Waits for the organization's turn to import a file.
    ///
    /// # Errors
    /// `Unavailable` if others take 10 s.
    pub(crate) async fn import_turn(&self, organization: OrganizationId) -> Result<Slot, Error> {
        enter(&self.imports, organization).await
    }

    /// Permission to follow a log, a training or the events of that organization. Does not wait, as
    /// followers stay long.
    ///
    /// # Errors
    /// `Unavailable` if too many are followed.
    pub(crate) fn follower_slot(&self, organization: OrganizationId) -> Result<Slot, Error> {
        let slot = self.followers.try_enter(organization);
        slot.ok_or_else(|| {
            Error::refused(Overload::Exhausted {
                retry_after_seconds: FOLLOW_LATER,
            })
        })
    }
}

async fn enter(
    slots: &FairSlots<OrganizationId>,
    organization: OrganizationId,
) -> Result<Slot, Error> {
    slots.enter(organization).await.ok_or_else(|| {
        Error::refused(Overload::Exhausted {
            retry_after_seconds: 1,
        })
    })
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App")
            .field("public_url", &self.public_url)
            .finish_non_exhaustive()
    }
}
