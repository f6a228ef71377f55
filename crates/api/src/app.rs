//! What one server is made of.

use std::sync::Arc;

use async_trait::async_trait;
use labdata_application::Ports;

use crate::http::metrics::Metrics;

/// Everything that handlers need, shared by all workers.
#[derive(Clone)]
pub struct App {
    /// The ports that use cases work on.
    pub ports: Ports,
    /// Where clients reach this server, without a slash at the end.
    pub public_url: String,
    /// Tells whether what the platform stands on answers.
    pub readiness: Arc<dyn Readiness>,
    /// Figures for Prometheus.
    pub metrics: Metrics,
}

impl App {
    /// A server's state.
    ///
    /// # Errors
    /// When the figures cannot be set up: a mistake in [`Metrics`].
    pub fn new(
        ports: Ports,
        public_url: impl Into<String>,
        readiness: Arc<dyn Readiness>,
    ) -> Result<Self, prometheus::Error> {
        let public_url = public_url.into().trim_end_matches('/').to_owned();
        Ok(Self {
            ports,
            public_url,
            readiness,
            metrics: Metrics::new()?,
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

/// Whether what the platform stands on answers.
#[async_trait]
pub trait Readiness: Send + Sync {
    /// Asks the database and the storage.
    ///
    /// # Errors
    /// Which of them does not answer, for people.
    async fn check(&self) -> Result<(), String>;
}

/// Always ready: for servers that stand on nothing outside their process.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysReady;

#[async_trait]
impl Readiness for AlwaysReady {
    async fn check(&self) -> Result<(), String> {
        Ok(())
    }
}
