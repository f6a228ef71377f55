//! The parts of a server that operations use.

use std::sync::Arc;

use labdata_application::{Error, Ports};
use labdata_domain::{ids::OrganizationId, refusal::Overload};
use labdata_limits::{FairSlots, Slot};

/// The parts of a server that operations use, shared by all of its requests.
#[derive(Clone, Debug)]
pub struct Platform {
    /// Ports, for use cases.
    pub ports: Arc<Ports>,
    /// Limits pages of rows, and of lists, in memory: each counts until its last byte is sent.
    pub pages: Arc<FairSlots<OrganizationId>>,
}

impl Platform {
    /// Waits for permission to hold a page of rows, or of a list, of that organization.
    ///
    /// # Errors
    /// `Unavailable` if too many are held for 10 s.
    pub async fn page_slot(&self, organization: OrganizationId) -> Result<Slot, Error> {
        let slot = self.pages.enter(organization).await;
        slot.ok_or_else(|| {
            Error::refused(Overload::Exhausted {
                retry_after_seconds: 1,
            })
        })
    }
}
