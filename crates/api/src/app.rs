//! The state that all handlers share.

use std::{sync::Arc, time::Duration};

use labdata_application::{Services, agent::Agent};
use labdata_operations::Platform;

use crate::http::{
    metrics::Metrics, public_url::PublicUrl, rate_limit::RateLimit, security_headers::ContentPolicy,
};

/// Default of [`App::stall`].
pub const STALL: Duration = Duration::from_secs(30);

/// Default of [`App::request_timeout`].
pub const REQUEST_TIMEOUT: Duration = Duration::from_mins(15);

/// State of one server, shared by all HTTP workers.
#[derive(Clone)]
pub struct App {
    /// Services, for use cases.
    pub services: Arc<Services>,
    /// The parts that operations use.
    pub platform: Arc<Platform>,
    /// Base of the URLs in responses.
    pub public_url: PublicUrl,
    /// Metrics for Prometheus.
    pub metrics: Metrics,
    /// Time that a client may keep a response waiting.
    pub stall: Duration,
    /// Maximum time until a request is answered, except for requests with files.
    pub request_timeout: Duration,
    /// Permissions of pages.
    pub content_policy: ContentPolicy,
    /// Limits the requests of each key.
    pub rate_limit: RateLimit,
}

impl App {
    /// Creates the state of a server.
    ///
    /// # Errors
    /// When the metrics cannot be registered, which is a bug in [`Metrics`].
    pub fn new(
        services: Services,
        agent: Agent,
        public_url: PublicUrl,
    ) -> Result<Self, prometheus::Error> {
        let metrics = Metrics::new()?;
        let agent = Agent {
            observer: Arc::new(metrics.clone()),
            ..agent
        };
        let services = Arc::new(services);
        let platform = Platform {
            services: Arc::clone(&services),
            agent,
        };
        Ok(Self {
            services,
            platform: Arc::new(platform),
            public_url,
            metrics,
            stall: STALL,
            request_timeout: REQUEST_TIMEOUT,
            content_policy: ContentPolicy::default(),
            rate_limit: RateLimit::default(),
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
