//! A run as a state machine: the next step after each response of the model.

mod end;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use time::{Duration, OffsetDateTime};

pub use end::EndReason;

use super::{
    AgentLimits, ChatMessage, ChatRole, CompletedCall, Message, ModelFailure, ModelResponse,
    RequestedCall, StopReason, ToolCall, ToolInput, ToolOutput, Usage,
    history::for_model,
    text::{storable, storable_value},
};

/// Maximum number of characters of the id and of the name of a tool call.
const MAX_NAME_LENGTH: usize = 200;

/// A run that waits for a response of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    limits: AgentLimits,
    started_at: OffsetDateTime,
    history: Vec<Message>,
    /// The prompt and the responses so far.
    transcript: Vec<ChatMessage>,
    steps: u32,
    calls: u32,
    call_ids: BTreeSet<String>,
    usage: Usage,
}

/// Decision after a response of the model.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Tools are to be called; their outputs lead to the next step.
    Calls(Box<PendingCalls>),
    /// The run has ended.
    End(Box<RunResult>),
}

/// A run that waits for the outputs of tools.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingCalls {
    run: Run,
    text: String,
    calls: Vec<ToolCall>,
}

/// A run that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// The final response. It says so if a limit ended the run.
    pub output: String,
    /// Why it ended.
    pub reason: EndReason,
    /// The tokens that it took.
    pub usage: Usage,
    /// The prompt and the responses, as a chat stores them.
    pub messages: Vec<ChatMessage>,
}

impl RunResult {
    /// All tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &CompletedCall> {
        self.messages.iter().flat_map(|message| &message.tool_calls)
    }
}

impl Run {
    /// Begins a run with a prompt that continues the history.
    #[must_use]
    pub fn start(
        limits: AgentLimits,
        history: Vec<Message>,
        prompt: &str,
        now: OffsetDateTime,
    ) -> Self {
        Self {
            limits,
            started_at: now,
            history,
            transcript: vec![ChatMessage::prompt(prompt, now)],
            steps: 0,
            calls: 0,
            call_ids: BTreeSet::new(),
            usage: Usage::default(),
        }
    }

    /// The messages that the model continues.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        let own = self.transcript.iter();
        let own = own.flat_map(|message| for_model(message, &self.limits));
        self.history.iter().cloned().chain(own).collect()
    }

    /// The tokens so far.
    #[must_use]
    pub const fn usage(&self) -> Usage {
        self.usage
    }

    /// The time that the run has left; zero when it is over.
    #[must_use]
    pub fn time_left(&self, now: OffsetDateTime) -> Duration {
        (self.started_at + self.limits.duration - now).max(Duration::ZERO)
    }

    /// Decides on a response of the model:
    ///
    /// - A response without tool calls ends the run.
    /// - A response with tool calls ends it too if it is the last step, or if the calls would exceed
    ///   their limit: no tool is called whose output the model would not see.
    /// - A call that comes twice with its id counts once. An id of another call is replaced.
    #[must_use]
    pub fn answered(mut self, response: ModelResponse, now: OffsetDateTime) -> Next {
        self.steps = self.steps.saturating_add(1);
        self.usage = self.usage.plus(response.usage);
        let text = storable(&response.text);
        let calls = self.accept(response.tool_calls);
        let added = u32::try_from(calls.len()).unwrap_or(u32::MAX);
        let reason = if calls.is_empty() {
            match response.stop {
                StopReason::Complete if text.trim().is_empty() => EndReason::Empty,
                StopReason::Complete => EndReason::Answered,
                StopReason::Length => EndReason::Length,
                StopReason::Filtered => EndReason::Filtered,
            }
        } else if self.steps >= self.limits.steps {
            // No step is left that could read the outputs of these calls.
            EndReason::Steps(self.limits.steps)
        } else if self.calls.saturating_add(added) > self.limits.tool_calls {
            EndReason::ToolCalls(self.limits.tool_calls)
        } else if self.time_left(now).is_zero() {
            EndReason::Duration(self.limits.duration)
        } else {
            // All calls of a response run or none: providers refuse a history with a call that has no result.
            self.calls += added;
            return Next::Calls(Box::new(PendingCalls {
                run: self,
                text,
                calls,
            }));
        };
        Next::End(Box::new(self.end(&text, reason, now)))
    }

    /// Reason to end a run that has no time left.
    #[must_use]
    pub const fn out_of_time(&self) -> EndReason {
        EndReason::Duration(self.limits.duration)
    }

    /// Ends the run before its final response, with the text of a response that is incomplete.
    #[must_use]
    pub fn stop(self, reason: EndReason, text: &str, now: OffsetDateTime) -> RunResult {
        self.end(&storable(text), reason, now)
    }

    /// Ends a run whose model gave no further response, with the text of a response that is incomplete. Its chat holds
    /// the question, what was done, and why there is no more.
    #[must_use]
    pub fn fail(self, failure: &ModelFailure, text: &str, now: OffsetDateTime) -> RunResult {
        let note = storable(&format!("(The run failed: {failure}.)"));
        self.end_with(&storable(text), EndReason::Failed, Some(note), now)
    }

    fn end(self, text: &str, reason: EndReason, now: OffsetDateTime) -> RunResult {
        self.end_with(text, reason, reason.note(), now)
    }

    fn end_with(
        mut self,
        text: &str,
        reason: EndReason,
        note: Option<String>,
        now: OffsetDateTime,
    ) -> RunResult {
        // A response that says nothing hides no earlier one.
        let earlier = || {
            let responses = self.transcript.iter().rev();
            let mut texts = responses.filter(|message| message.role == ChatRole::Assistant);
            texts.find_map(|message| Some(message.content.trim()).filter(|text| !text.is_empty()))
        };
        let said = Some(text.trim()).filter(|text| !text.is_empty());
        let output = match (said.or_else(earlier), note) {
            (Some(said), None) => said.to_owned(),
            (Some(said), Some(note)) => format!("{said}\n\n{note}"),
            (None, note) => note.unwrap_or_default(),
        };
        self.transcript.push(ChatMessage {
            role: ChatRole::Assistant,
            content: output.clone(),
            tool_calls: Vec::new(),
            created_at: now,
        });
        RunResult {
            output,
            reason,
            usage: self.usage,
            messages: self.transcript,
        }
    }

    /// The calls of a response, each with an id that no other call of the run has.
    fn accept(&mut self, requested: Vec<RequestedCall>) -> Vec<ToolCall> {
        let mut of_response = Vec::new();
        let mut calls = Vec::new();
        for request in requested {
            // Providers may send a call twice. Another call of the same id is a call all the same: without a result for
            // it the model would wait.
            if !request.id.is_empty() && of_response.contains(&request) {
                continue;
            }
            of_response.push(request.clone());
            // Shortened first: two long ids may begin alike.
            let id = self.unique_id(&shortened(&request.id));
            self.call_ids.insert(id.clone());
            calls.push(ToolCall {
                id,
                name: shortened(&request.name),
                input: ToolInput::parse(&request.arguments),
                provider_data: request.provider_data.map(storable_value),
            });
        }
        calls
    }

    fn unique_id(&self, wanted: &str) -> String {
        if !wanted.is_empty() && !self.call_ids.contains(wanted) {
            return wanted.to_owned();
        }
        // Some providers count ids from 0 in each response, and a repeated one would name two results.
        let base = if wanted.is_empty() { "call" } else { wanted };
        let mut number = self.call_ids.len();
        loop {
            let id = format!("{base}_{number}");
            if !self.call_ids.contains(&id) {
                return id;
            }
            number += 1;
        }
    }
}

impl PendingCalls {
    /// The calls, in the order in which they are made.
    #[must_use]
    pub fn calls(&self) -> &[ToolCall] {
        &self.calls
    }

    /// The run itself, for its figures.
    #[must_use]
    pub const fn run(&self) -> &Run {
        &self.run
    }

    /// Takes the outputs, one per call in the same order; a missing one is an error. The run then
    /// waits for the next response.
    #[must_use]
    pub fn completed(self, outputs: Vec<ToolOutput>, now: OffsetDateTime) -> Run {
        let Self {
            mut run,
            text,
            calls,
        } = self;
        let mut outputs = outputs.into_iter();
        let completed = calls.into_iter().map(|call| CompletedCall {
            call,
            output: outputs
                .next()
                // Every call needs a result, also where the run stopped before it.
                .unwrap_or_else(|| ToolOutput::error("the tool was not called".to_owned()))
                .stored(&run.limits),
        });
        let message = ChatMessage {
            role: ChatRole::Assistant,
            content: text,
            tool_calls: completed.collect(),
            created_at: now,
        };
        run.transcript.push(message);
        run
    }

    /// Ends the run before its further calls. The outputs are those of the calls that were made.
    #[must_use]
    pub fn stop(
        self,
        reason: EndReason,
        outputs: Vec<ToolOutput>,
        now: OffsetDateTime,
    ) -> RunResult {
        self.completed(outputs, now).stop(reason, "", now)
    }
}

fn shortened(name: &str) -> String {
    storable(name).chars().take(MAX_NAME_LENGTH).collect()
}
