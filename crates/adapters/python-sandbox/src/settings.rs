//! Settings of the sandbox of snippets.

use std::time::Duration;

use labdata_domain::agent::PYTHON_TIME_LIMIT;

/// Configuration of a [`SnippetSandbox`](crate::SnippetSandbox).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnippetSettings {
    /// Maximum number of snippets that run at once, at least 1.
    pub concurrency: usize,
    /// Time limit of a snippet.
    pub time_limit: Duration,
    /// Time that a caller waits for the packages while they are installed.
    pub timeout: Duration,
}

impl Default for SnippetSettings {
    fn default() -> Self {
        Self {
            concurrency: 4,
            time_limit: PYTHON_TIME_LIMIT,
            timeout: Duration::from_mins(3),
        }
    }
}

impl SnippetSettings {
    /// Returns the number of snippets of one organization that run at once: never all, unless there is
    /// only one.
    pub(crate) fn of_one_organization(self) -> usize {
        self.concurrency.saturating_sub(1).clamp(1, 2)
    }
}
