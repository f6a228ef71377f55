//! Runs job scripts on a Ray cluster, by its job API.
//!
//! A run is a Ray job, whose submission id is made of the run's, so that submitting it twice is
//! one job and any worker of the platform finds it again. The script and its environment travel in
//! the job's environment variables: no shared disk is needed, but whoever may look at the cluster's
//! jobs can read them while Ray remembers the job. What the job does there is `entry.py`, which
//! ships inside.
//!
//! **Invariants.** No state that another worker would need. Nothing is believed of Ray's job but
//! its state; phase, end and output are read from the marks that `entry.py` leaves in its log.

mod api;
mod log;
mod order;
mod runner;

pub use runner::{InvalidSettings, RayRunner, Settings};
