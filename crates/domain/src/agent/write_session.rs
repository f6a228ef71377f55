//! Writes of an assistant that belong together.
//!
//! An assistant calls tools one by one, and its protocol has no sessions. Its writes belong together while
//! they come with one API key and without a long pause: they fall under one execution.

use time::Duration;

/// Pause after which a session has ended.
pub const WRITE_SESSION_PAUSE: Duration = Duration::minutes(15);

/// Maximum duration of a session in minutes.
pub const WRITE_SESSION_MINUTES: u32 = 24 * 60;

/// Name of the job that writes of assistants are recorded under.
pub const ASSISTANT_JOB_NAME: &str = "Assistant";
