//! The parts of a server that operations use.

use std::sync::Arc;

use labdata_application::{Services, agent::Agent};

/// The parts of a server that operations use, shared by all of its requests.
#[derive(Clone, Debug)]
pub struct Platform {
    /// Services, for use cases.
    pub services: Arc<Services>,
    /// The agent.
    pub agent: Agent,
}
