//! Fields of jobs in bodies. The use cases check the rest of their rules.

use labdata_domain::{
    jobs::{MAX_CODE_LENGTH, MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH},
    patterns,
};
use labdata_request_body::{Reader, readers::text};

/// Reads a name.
pub(super) fn name() -> impl Reader<Output = String> {
    text(1..=MAX_NAME_LENGTH).with("pattern", patterns::ONE_LINE)
}

/// Reads a script. An empty one is Python too.
pub(super) fn code() -> impl Reader<Output = String> {
    text(..=MAX_CODE_LENGTH)
}

/// Reads a description. An empty one clears it.
pub(super) fn description() -> impl Reader<Output = String> {
    text(..=MAX_DESCRIPTION_LENGTH)
}
