//! The state that all handlers share.

use std::sync::Arc;

use labdata_application::Ports;

use crate::http::{metrics::Metrics, public_url::PublicUrl, result_slots::ResultSlots};

/// State of one server, shared by all HTTP workers.
#[derive(Clone)]
pub struct App {
    /// Ports, for use cases.
    pub ports: Ports,
    /// Base of the URLs in answers.
    pub public_url: PublicUrl,
    /// Metrics for Prometheus.
    pub metrics: Metrics,
    /// Limits on results in memory.
    pub(crate) result_slots: Arc<ResultSlots>,
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
            result_slots: Arc::default(),
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
