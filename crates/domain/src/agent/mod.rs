//! The agent: chats, limits of a run, and the loop of a run as a state machine.
//!
//! A [`Run`] takes the responses of a model one by one and decides what happens next. It does not call the
//! model or a tool: the use case does both, and passes on the outcome.

mod attachment;
mod budget;
mod chat;
mod effects;
mod failure;
mod history;
mod instructions;
mod limits;
mod message;
mod models;
mod output;
mod python;
mod retry;
mod run;
mod text;
mod usage;
mod write_session;

pub use attachment::{
    Attachment, AttachmentType, MAX_ATTACHMENT_BYTES, MAX_ATTACHMENTS, MAX_INLINE_IMAGE,
};
pub use budget::{RunFacts, RunRefusal, UsageMonth, charged};
pub use chat::{
    Chat, ChatFull, ChatMessage, ChatRole, ChatSize, CompletedCall, InvalidPrompt, MAX_CHAT_BYTES,
    MAX_CHAT_FILE_BYTES, MAX_CHAT_MESSAGES, MAX_PROMPT_LENGTH, MAX_TITLE_LENGTH, check_prompt,
    title_of,
};
pub use effects::{
    JOB_ARCHIVED, RUN_QUEUED, SCRIPT_REPLACED, TRAININGS_STOPPED, VERSION_REPLACED, write_effects,
};
pub use failure::{BrokenStream, MAX_PROVIDER_MESSAGE, ModelFailure, RunFailure, provider_message};
pub use history::{MAX_HISTORY_BYTES, history};
pub use instructions::{ASSISTANT_INSTRUCTIONS, instructions};
pub use limits::{AgentLimits, LEASE, MAX_ANSWER_BYTES, RENEW_EVERY, TooManyRuns};
pub use message::{Message, ModelResponse, RequestedCall, StopReason, ToolCall, ToolInput};
pub use models::{ModelChoice, ModelRefusal};
pub use output::{CALL_OUT_OF_TIME, CANCELLED_CALL, ToolOutput, WriteNotAllowed};
pub use python::{
    InvalidPythonInput, MAX_PYTHON_CODE, MAX_PYTHON_INPUT_BYTES, MAX_PYTHON_INPUTS, PYTHON_MEMORY,
    PYTHON_PROCESSES, PYTHON_SCRATCH, PYTHON_TIME_LIMIT, PythonEnd, PythonFigure, PythonOutcome,
    PythonOutput, PythonUnavailable, SHOWN_ERRORS, SHOWN_OUTPUT_PART, SHOWN_TRACEBACK, SHOWN_VALUE,
    check_input_names,
};
pub use retry::{MAX_TRIES, retry_delay};
pub use run::{EndReason, Next, PendingCalls, Run, RunResult};
pub use usage::Usage;
pub use write_session::{ASSISTANT_JOB_NAME, WRITE_SESSION_MINUTES, WRITE_SESSION_PAUSE};
