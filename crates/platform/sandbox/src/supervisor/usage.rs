//! Limits of a whole run, which the supervisor enforces because the kernel limits single processes.

use super::{disk_usage::DiskUsage, memory_usage, processes};
use crate::{
    launch::LaunchRequest,
    spec::{EndCause, Isolation, Limits},
};

/// Measurement of what a run uses.
pub(super) struct Usage {
    isolation: Isolation,
    limits: Limits,
    disk: DiskUsage,
}

impl Usage {
    pub(super) fn new(request: &LaunchRequest) -> Self {
        Self {
            isolation: request.isolation,
            limits: request.limits,
            disk: DiskUsage::new(request.measured.clone()),
        }
    }

    /// Returns the limit that the run exceeds, if any.
    pub(super) fn exceeded(&mut self) -> Option<EndCause> {
        let found = processes::of_run(self.isolation);
        let threads: u64 = found.iter().map(|process| process.threads).sum();
        if threads > u64::from(self.limits.processes) {
            return Some(EndCause::Processes);
        }
        if memory_usage::exceeds(self.isolation, &found, self.limits.memory) {
            return Some(EndCause::Memory);
        }
        if self.disk.is_disk_almost_full() {
            return Some(EndCause::DiskFull);
        }
        let used = self.disk.measure(&found, self.limits.scratch);
        used.is_some_and(|used| used > self.limits.scratch)
            .then_some(EndCause::Scratch)
    }
}
