//! The parts of a server that operations use.

use std::sync::Arc;

use labdata_application::{Error, Services, agent::Agent, slots::Work};
use labdata_domain::ids::OrganizationId;
use labdata_limits::Slot;

/// The parts of a server that operations use, shared by all of its requests.
#[derive(Clone, Debug)]
pub struct Platform {
    /// Services, for use cases.
    pub ports: Arc<Services>,
    /// The agent.
    pub agent: Agent,
}

impl Platform {
    /// Waits for permission to hold a page of rows, or of a list, of that organization.
    ///
    /// # Errors
    /// `Unavailable` if too many are held for 10 s.
    pub async fn page_slot(&self, organization: OrganizationId) -> Result<Slot, Error> {
        self.ports.slots.enter(Work::Page, organization).await
    }
}
