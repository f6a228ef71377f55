//! Limits of trainings.

use std::time::Duration;

use crate::work::RunLimits;

/// Largest artifact, in bytes.
pub const MAX_ARTIFACT_BYTES: u64 = 5 << 30;

/// Time for reading the dataset, evaluating and packing, besides half the time limit of the fit.
const FIXED_SLACK: Duration = Duration::from_mins(10);

/// Total size of the files of a training, in bytes.
const SCRATCH: u64 = 64 << 30;

/// Number of processes and threads of a training, besides 16 per processor.
const PROCESSES: u32 = 512;

/// Limits and resources of each training, from the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainingLimits {
    /// Time limit of the fit.
    pub time_limit: Duration,
    /// Number of processors.
    pub cpus: u32,
    /// Memory of all processes of a training, in bytes.
    pub memory: u64,
    /// Number of GPUs.
    pub gpus: u32,
}

impl TrainingLimits {
    /// Returns the limits of the run: the fit, and time for everything else.
    #[must_use]
    pub fn of_run(&self) -> RunLimits {
        // The time limit bounds the fit; reading, evaluating and packing come on top.
        let wall_clock = self.time_limit + self.time_limit / 2 + FIXED_SLACK;
        RunLimits {
            preparation: Duration::from_mins(30),
            wall_clock,
            // CPU time counts all threads, so the limit grows with the processors.
            cpu_time: wall_clock.saturating_mul(self.cpus.saturating_add(1)),
            memory: self.memory,
            file_size: 2 * MAX_ARTIFACT_BYTES,
            scratch: SCRATCH,
            // Numeric libraries start a pool of threads per processor.
            processes: PROCESSES.saturating_add(self.cpus.saturating_mul(16)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_time_for_more_than_the_fit() {
        let limits = TrainingLimits {
            time_limit: Duration::from_mins(10),
            cpus: 2,
            memory: 1 << 30,
            gpus: 0,
        };
        let run = limits.of_run();
        assert_eq!(run.wall_clock, Duration::from_mins(25));
        assert_eq!(run.cpu_time, Duration::from_mins(75));
        assert_eq!(run.memory, 1 << 30);
    }
}
