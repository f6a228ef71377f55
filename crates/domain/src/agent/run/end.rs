//! Reasons why runs end.

use time::Duration;

/// Reason why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The model gave its final response.
    Answered,
    /// The model said nothing.
    Empty,
    /// The response reached the provider's maximum length.
    Length,
    /// The provider withheld the response, or the rest of it.
    Filtered,
    /// It reached its number of steps.
    Steps(u32),
    /// Further tool calls would exceed their number.
    ToolCalls(u32),
    /// It reached its duration.
    Duration(Duration),
    /// Its user cancelled it, or left.
    Cancelled,
    /// The organization has used that many tokens, all that it has for the month.
    Budget(u64),
    /// The model gave no further response.
    Failed,
}

impl EndReason {
    /// Note to the user; `None` for a final response.
    pub(super) fn note(self) -> Option<String> {
        match self {
            Self::Answered => None,
            Self::Empty => Some("(The model gave no response.)".to_owned()),
            Self::Length => Some(
                "(The response is cut off: it reached the maximum length of the model.)".to_owned(),
            ),
            Self::Filtered => Some("(The provider of the model withheld the response.)".to_owned()),
            Self::Steps(steps) => Some(format!(
                "(The run ended after {steps} steps, the limit. This is the state that it had reached.)"
            )),
            Self::ToolCalls(calls) => Some(format!(
                "(The run ended at the limit of {calls} tool calls. This is the state that it had reached.)"
            )),
            Self::Duration(duration) => Some(format!(
                "(The run ended after {} s, the limit. This is the state that it had reached.)",
                duration.whole_seconds()
            )),
            Self::Cancelled => {
                Some("(The run was cancelled. This is the state that it had reached.)".to_owned())
            }
            Self::Budget(tokens) => Some(format!(
                "(The run ended because the organization has used its {tokens} tokens of this month. This is \
                 the state that it had reached.)"
            )),
            Self::Failed => Some("(The run failed.)".to_owned()),
        }
    }
}
