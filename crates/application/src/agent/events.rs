//! Events of a run.

use labdata_domain::{
    agent::{ModelFailure, RunFailure, RunRefusal, RunResult, ToolCall, ToolOutput, Usage},
    ids::{AgentRunId, ChatId},
};

use crate::Error;

/// Event of a run (contract §9). The last one is [`AgentEvent::Result`] or [`AgentEvent::Error`].
#[derive(Debug)]
pub enum AgentEvent {
    /// The run began.
    RunStarted {
        /// Its id.
        run_id: AgentRunId,
        /// Its model.
        model: String,
        /// The chat that it continues, or will be saved as.
        chat_id: Option<ChatId>,
    },
    /// The model wrote more text.
    TextDelta(String),
    /// A tool is called.
    ToolCall(ToolCall),
    /// A tool has returned.
    ToolResult {
        /// The call.
        call: ToolCall,
        /// Its output, as it is stored.
        output: ToolOutput,
        /// True if the model gets less than all of it.
        is_truncated: bool,
        /// The chat whose files its attachments will be, if the run is saved.
        chat_id: Option<ChatId>,
    },
    /// The tokens of the run so far.
    Usage(Usage),
    /// The run has ended.
    Result(Box<AgentResult>),
    /// The run has failed.
    Error(AgentError),
}

/// Result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentResult {
    /// The response, the tool calls and the tokens.
    pub run: RunResult,
    /// The model.
    pub model: String,
    /// The chat that it is stored in; `None` also if storing failed.
    pub chat_id: Option<ChatId>,
}

/// Why there is no run, or why it failed.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The organization may not start it.
    #[error(transparent)]
    Refused(#[from] RunRefusal),
    /// No model can be asked.
    #[error(transparent)]
    Model(#[from] ModelFailure),
    /// The model gave no usable response in a run that had begun.
    #[error(transparent)]
    Failed(#[from] RunFailure),
    /// The platform refused or failed.
    #[error(transparent)]
    Platform(#[from] Error),
}
