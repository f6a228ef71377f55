//! The state that all handlers share.

use std::sync::Arc;

use labdata_application::{Error, Ports};
use labdata_domain::ids::OrganizationId;
use labdata_fair_slots::{FairSlots, Slot};

use crate::http::{metrics::Metrics, public_url::PublicUrl};

/// Maximum number of results of one organization in memory.
const RESULTS_OF_ONE: usize = 4;

/// Maximum number of results of all organizations in memory.
const RESULTS_OF_ALL: usize = 16;

/// State of one server, shared by all HTTP workers.
#[derive(Clone)]
pub struct App {
    /// Ports, for use cases.
    pub ports: Ports,
    /// Base of the URLs in answers.
    pub public_url: PublicUrl,
    /// Metrics for Prometheus.
    pub metrics: Metrics,
    /// Limits results in memory: each counts until its last byte is sent.
    results: Arc<FairSlots<OrganizationId>>,
}

impl App {
    /// Creates the state of a server.
    ///
    /// # Errors
    /// When the metrics cannot be registered, which is a bug in [`Metrics`].
    pub fn new(ports: Ports, public_url: PublicUrl) -> Result<Self, prometheus::Error> {
        Ok(Self {
            ports,
            public_url,
            metrics: Metrics::new()?,
            results: Arc::new(FairSlots::new(RESULTS_OF_ONE, RESULTS_OF_ALL)),
        })
    }

    /// Waits for permission to hold a result of that organization.
    ///
    /// # Errors
    /// [`Error::Exhausted`] if too many are held for 10 s.
    pub(crate) async fn result_slot(&self, organization: OrganizationId) -> Result<Slot, Error> {
        let slot = self.results.enter(organization).await;
        slot.ok_or(Error::Exhausted {
            retry_after_seconds: 1,
        })
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App")
            .field("public_url", &self.public_url)
            .finish_non_exhaustive()
    }
}
