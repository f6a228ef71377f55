//! Runs of jobs on the platform.

use crate::Operation;

pub mod backfill;
pub mod logs;
pub mod run_job;

pub(crate) fn operations() -> Vec<Operation> {
    vec![
        logs::operation(),
        run_job::operation(),
        backfill::operation(),
    ]
}
