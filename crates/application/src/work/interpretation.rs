//! Meaning of the end of a script.

use labdata_domain::work::WorkEnd;

/// Meaning of the end of a script.
#[derive(Clone, Debug, PartialEq)]
pub enum Interpretation {
    /// The work ends so.
    Ended(WorkEnd),
    /// The backend lost it; another attempt may succeed.
    LostByBackend,
    /// The worker has lost it.
    LostByWorker,
}
