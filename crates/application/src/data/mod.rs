//! Rows and series: write, revert, read, query.

mod as_of;
pub mod execution_changes;
pub mod export_table;
pub mod import_file;
pub mod import_table;
pub mod query_data;
pub mod read_many_series;
pub mod read_rows;
pub mod read_series;
pub mod revert_execution;
pub mod row_history;
pub mod saved_views;
pub mod sweep_history;
pub mod write_data;

/// Number of attempts to plan against tables that keep changing.
const MAX_PLANS: usize = 10;

/// Plans and reads, and again if the tables have changed between the two. A macro, as the futures of
/// closures are not known to be `Send`.
macro_rules! planned_anew {
    ($read:expr) => {{
        let mut plans = 1;
        loop {
            match $read.await {
                Err(Error::Refused(refusal))
                    if refusal.code == labdata_domain::refusal::ErrorCode::TablesChanged =>
                {
                    if plans == MAX_PLANS {
                        break Err(Error::busy());
                    }
                    plans += 1;
                }
                outcome => break outcome,
            }
        }
    }};
}
use planned_anew;

#[cfg(test)]
mod tests;
