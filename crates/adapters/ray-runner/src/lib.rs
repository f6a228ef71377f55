//! Runs job scripts on a Ray cluster, through its job API.
//!
//! A run is a Ray job. The submission id is derived from the run's id, so that a repeated submission
//! creates no second job, and any worker of the platform finds the job. The script and its
//! environment are passed in the job's environment variables: no shared disk is needed, but everyone
//! with access to the cluster's jobs can read them while Ray retains the job's record. So the environment
//! contains a one-time nonce in place of the run's key. The job runs `entry.py`, which is embedded in
//! this crate.
//!
//! **Invariants.** No state that another worker would need. Only the state of Ray's job is used;
//! phase, end and output are read from the markers that `entry.py` writes to its log.

mod job;
mod log;
mod runner;

pub use labdata_ray_client::{Access, check_address, check_authorities};
pub use runner::{InvalidSettings, RayRunner, Settings};
