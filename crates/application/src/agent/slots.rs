//! Concurrent runs of organizations.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use labdata_domain::{
    agent::{AgentLimits, TooManyRuns},
    ids::OrganizationId,
};

/// Number of runs in progress by organization, in this process. Clones count the same runs.
#[derive(Clone, Debug, Default)]
pub struct RunSlots(Arc<Mutex<HashMap<OrganizationId, u32>>>);

/// A run in progress. It ends with this value.
#[derive(Debug)]
pub(super) struct RunSlot {
    slots: RunSlots,
    organization: OrganizationId,
}

impl RunSlots {
    /// Counts a run of the organization.
    pub(super) fn take(
        &self,
        organization: OrganizationId,
        limits: &AgentLimits,
    ) -> Result<RunSlot, TooManyRuns> {
        let mut runs = self.lock();
        let count = runs.entry(organization).or_default();
        limits.check_runs(*count)?;
        *count += 1;
        Ok(RunSlot {
            slots: self.clone(),
            organization,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<OrganizationId, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunSlot {
    fn drop(&mut self) {
        let mut runs = self.slots.lock();
        let Some(count) = runs.get_mut(&self.organization) else {
            return;
        };
        *count = count.saturating_sub(1);
        if *count == 0 {
            runs.remove(&self.organization);
        }
    }
}
