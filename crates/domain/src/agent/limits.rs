//! Limits of runs.

use time::Duration;

/// Maximum number of bytes of one response of a model: its text and the arguments of its tool calls.
pub const MAX_ANSWER_BYTES: usize = 4 << 20;

/// Time for which a run counts without a sign of life of its server.
pub const LEASE: Duration = Duration::seconds(30);

/// Interval of those signs of life.
pub const RENEW_EVERY: Duration = Duration::seconds(5);

/// Limits of the runs of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentLimits {
    /// Maximum number of steps of a run. A step is one response of the model.
    pub steps: u32,
    /// Maximum number of tool calls of a run.
    pub tool_calls: u32,
    /// Maximum duration of a run.
    pub duration: Duration,
    /// Maximum number of bytes of a tool's output that are stored and displayed to people.
    pub output_bytes: usize,
    /// Maximum number of bytes of a tool's output that the model gets.
    pub model_output_bytes: usize,
    /// Maximum number of bytes of all attachments of a run.
    pub attachment_bytes: u64,
    /// Maximum number of concurrent runs of an organization.
    pub runs_per_organization: u32,
    /// Number of tokens that an organization may use in a month.
    pub monthly_tokens: Option<u64>,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            steps: 25,
            tool_calls: 50,
            duration: Duration::minutes(10),
            output_bytes: 64 << 10,
            model_output_bytes: 16 << 10,
            attachment_bytes: 16 << 20,
            runs_per_organization: 4,
            monthly_tokens: None,
        }
    }
}

/// Refusal: the organization has as many runs as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} agent runs of this organization are in progress; wait until one has ended")]
pub struct TooManyRuns(pub u32);

impl AgentLimits {
    /// Checks that an organization with that many runs in progress may start another.
    ///
    /// # Errors
    /// [`TooManyRuns`].
    pub const fn check_runs(&self, in_progress: u32) -> Result<(), TooManyRuns> {
        if in_progress < self.runs_per_organization {
            Ok(())
        } else {
            Err(TooManyRuns(self.runs_per_organization))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_organization_has_four_runs_at_once() {
        let limits = AgentLimits::default();
        assert_eq!(limits.check_runs(3), Ok(()));
        assert_eq!(limits.check_runs(4), Err(TooManyRuns(4)));
    }
}
