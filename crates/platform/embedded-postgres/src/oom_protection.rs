//! Protection of the postmaster from the kernel, which kills a process when memory runs out.
//!
//! If it kills a backend, the postmaster restarts all backends and recovers. If it kills the postmaster,
//! the whole server has to be started again. So the postmaster gets the lowest score, and its children
//! return to the score that this process has. Lowering a score requires `CAP_SYS_RESOURCE`; without it,
//! nothing changes.

use std::fs;
use std::process::Command;

use rustix::process::Pid;

/// File with the score of a process, below `/proc`.
const SCORE: &str = "oom_score_adj";

/// Score of a process that is never killed.
const NEVER: &str = "-1000";

/// Makes the children of a postmaster return to the score of this process.
pub(crate) fn reset_in_children(command: &mut Command) {
    let file = format!("/proc/self/{SCORE}");
    if let Ok(own) = fs::read_to_string(&file) {
        command
            .env("PG_OOM_ADJUST_FILE", file)
            .env("PG_OOM_ADJUST_VALUE", own.trim());
    }
}

/// Protects a postmaster that was started a moment ago.
pub(crate) fn protect(postmaster: Pid) {
    let pid = postmaster.as_raw_nonzero();
    if let Err(error) = fs::write(format!("/proc/{pid}/{SCORE}"), NEVER) {
        tracing::debug!(%error, "the postmaster is not protected when memory runs out");
    }
}
