//! The loop of a run: asks the model, calls its tools, and asks again until it has a response.

use std::{pin::pin, sync::Arc};

use futures::{
    FutureExt, SinkExt, StreamExt,
    channel::mpsc,
    future::{self, BoxFuture, Either, Shared, select},
};
use labdata_domain::{
    agent::{
        BrokenStream, CALL_OUT_OF_TIME, CANCELLED_CALL, Chat, ChatMessage, EndReason, Message,
        ModelFailure, ModelResponse, Next, PendingCalls, Run, RunFailure, RunResult, ToolOutput,
        Usage, UsageMonth, charged, instructions,
    },
    executions::AgentEnd,
    ids::{AgentRunId, ChatId},
    people::{actor::Actor, scope::Scope},
};
use labdata_ports::agent::{ModelRequest, ResponsePart, ToolDefinition};
use time::OffsetDateTime;

use super::{
    Agent, AgentEvent, AgentResult,
    chat_files::StoredFiles,
    lease::Lease,
    tools::{RunWrites, ToolContext},
};
use crate::Services;

/// The chat that a run is stored in.
#[derive(Clone, Debug)]
pub(super) enum ChatTarget {
    None,
    Existing(ChatId),
    New(Chat),
}

impl ChatTarget {
    const fn id(&self) -> Option<ChatId> {
        match self {
            Self::None => None,
            Self::Existing(id) => Some(*id),
            Self::New(chat) => Some(chat.id),
        }
    }
}

/// Outcome of a request to the model.
enum Asked {
    Answered(ModelResponse),
    /// The run ends.
    Stopped(EndReason),
}

/// A run whose model gave no further response.
struct FailedRun {
    /// Result of the run until then.
    run: RunResult,
    failure: ModelFailure,
}

/// Completes once, for all that wait for it.
pub(super) type Signal = Shared<BoxFuture<'static, ()>>;

/// Signals that end a run while it waits for its model, a tool or its caller.
#[derive(Clone)]
pub(super) struct Signals {
    /// The run is to be cancelled.
    pub(super) cancelled: Signal,
    /// The time of the run is over. A timer, because a provider may keep a response open for hours
    /// without sending any part of it.
    pub(super) out_of_time: Signal,
}

impl Signals {
    fn never() -> Self {
        let never = future::pending().boxed().shared();
        Self {
            cancelled: never.clone(),
            out_of_time: never,
        }
    }
}

/// The signal that came before the outcome of the work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Interruption {
    Cancelled,
    OutOfTime,
}

impl Interruption {
    fn reason(self, run: &Run) -> EndReason {
        match self {
            Self::Cancelled => EndReason::Cancelled,
            Self::OutOfTime => run.out_of_time(),
        }
    }

    /// Output of a call that it interrupted.
    fn output(self) -> ToolOutput {
        let text = match self {
            Self::Cancelled => CANCELLED_CALL,
            Self::OutOfTime => CALL_OUT_OF_TIME,
        };
        ToolOutput::error(text.to_owned())
    }
}

/// A run in progress.
pub(super) struct Conversation {
    run_id: AgentRunId,
    services: Services,
    agent: Agent,
    actor: Actor,
    model: String,
    tools: Arc<[ToolDefinition]>,
    target: ChatTarget,
    events: mpsc::Sender<AgentEvent>,
    /// Number of bytes that its further attachments may have.
    attachment_bytes_left: u64,
    signals: Signals,
    /// Size of the tools' descriptions in a request, roughly.
    tools_bytes: u64,
    /// The budget of the organization, once it is used up.
    spent_budget: Option<u64>,
}

impl Conversation {
    pub(super) fn new(
        services: &Services,
        agent: &Agent,
        actor: &Actor,
        run_id: AgentRunId,
        model: String,
        target: ChatTarget,
        events: mpsc::Sender<AgentEvent>,
    ) -> Self {
        let tools = agent.tools.definitions(actor);
        Self {
            run_id,
            // Counted once: the definitions are part of every request and do not change.
            tools_bytes: tools.iter().map(|tool| bytes(tool.size())).sum(),
            tools,
            services: services.clone(),
            agent: agent.clone(),
            actor: actor.clone(),
            model,
            target,
            events,
            attachment_bytes_left: agent.limits.attachment_bytes,
            signals: Signals::never(),
            spent_budget: None,
        }
    }

    /// Runs to the end. A run that is cancelled, or out of time, ends with what it has.
    pub(super) async fn work(mut self, run: Run, signals: Signals, lease: &Lease) {
        self.signals = signals;
        let started = AgentEvent::RunStarted {
            run_id: self.run_id,
            model: self.model.clone(),
            chat_id: self.target.id(),
        };
        self.emit(started).await;
        let writes = RunWrites::default();
        let outcome = self.converse(run, &writes).await;
        let (services, actor) = (&self.services, &self.actor);
        let execution = match &outcome {
            Ok(run) if run.reason == EndReason::Cancelled => writes.cancel(services, actor).await,
            Ok(_) => writes.end(services, actor, &AgentEnd::Completed).await,
            Err(failed) => {
                let failed = AgentEnd::Failed(failed.failure.to_string());
                writes.end(services, actor, &failed).await
            }
        };
        let last = match outcome {
            Ok(mut run) => {
                let chat_id = self.store(&mut run).await;
                let model = self.model.clone();
                AgentEvent::Result(Box::new(AgentResult {
                    run,
                    model,
                    chat_id,
                }))
            }
            Err(failed) => {
                let FailedRun { mut run, failure } = *failed;
                let failure = RunFailure { failure, execution };
                tracing::info!(run = %self.run_id, %failure, "a run of the agent failed");
                self.store(&mut run).await;
                AgentEvent::Error(failure.into())
            }
        };
        // Before its last event, so that the next run of the caller finds its place.
        lease.end().await;
        // Not by `emit`: the caller of a cancelled run still reads how it ended.
        drop(self.events.send(last).await);
    }

    async fn converse(
        &mut self,
        mut run: Run,
        writes: &RunWrites,
    ) -> Result<RunResult, Box<FailedRun>> {
        loop {
            if run.time_left(self.now()).is_zero() {
                let reason = run.out_of_time();
                return Ok(run.stop(reason, "", self.now()));
            }
            let mut text = String::new();
            let next = match self.ask(&run, &mut text).await {
                Ok(Asked::Stopped(reason)) => return Ok(run.stop(reason, &text, self.now())),
                Ok(Asked::Answered(response)) => run.answered(response, self.now()),
                Err(failure) => {
                    let run = run.fail(&failure, &text, self.now());
                    return Err(Box::new(FailedRun { run, failure }));
                }
            };
            let pending = match next {
                Next::End(end) => {
                    self.emit(AgentEvent::Usage(end.usage)).await;
                    return Ok(*end);
                }
                Next::Calls(pending) => pending,
            };
            self.emit(AgentEvent::Usage(pending.run().usage())).await;
            // Before the tools run: no further request would read their results.
            if let Some(tokens) = self.spent_budget {
                let reason = EndReason::Budget(tokens);
                return Ok(pending.stop(reason, Vec::new(), self.now()));
            }
            match self.call_tools(*pending, writes).await {
                Ok(next) => run = next,
                Err(end) => return Ok(*end),
            }
        }
    }

    /// Asks the model, and collects its text and passes it on as it arrives.
    async fn ask(&mut self, run: &Run, text: &mut String) -> Result<Asked, ModelFailure> {
        let may_write = self.actor.scopes.contains(Scope::Write);
        let request = ModelRequest {
            model: self.model.clone(),
            instructions: instructions(self.now(), may_write),
            messages: run.messages(),
            tools: Arc::clone(&self.tools),
        };
        let sent = self.tools_bytes.saturating_add(request_bytes(&request));
        let asked = self.read_response(run, &request, text).await;
        match &asked {
            Ok(Asked::Answered(response)) => {
                self.charge(response.usage, sent, response_bytes(response))
                    .await;
            }
            // The provider does not tell what a response takes that is cut off.
            Ok(Asked::Stopped(_)) | Err(ModelFailure::Broken(_) | ModelFailure::Timeout(_)) => {
                self.charge(Usage::default(), sent, length(text)).await;
            }
            // The other failures come before a response begins.
            Err(_) => {}
        }
        asked
    }

    async fn read_response(
        &mut self,
        run: &Run,
        request: &ModelRequest,
        text: &mut String,
    ) -> Result<Asked, ModelFailure> {
        let response = self.agent.model.response(request);
        let mut response = match unless(&self.signals, response).await {
            Ok(response) => response?,
            Err(interruption) => return Ok(Asked::Stopped(interruption.reason(run))),
        };
        loop {
            let part = match unless(&self.signals, response.next()).await {
                Ok(part) => part,
                Err(interruption) => return Ok(Asked::Stopped(interruption.reason(run))),
            };
            match part.ok_or(ModelFailure::Broken(BrokenStream::NoEnd))?? {
                ResponsePart::Text(more) => {
                    // Collected part by part: a run that is stopped or fails ends with the text that had arrived.
                    text.push_str(&more);
                    self.emit(AgentEvent::TextDelta(more)).await;
                }
                ResponsePart::End(response) => return Ok(Asked::Answered(response)),
            }
            if run.time_left(self.now()).is_zero() {
                return Ok(Asked::Stopped(run.out_of_time()));
            }
        }
    }

    /// Counts the tokens of a request and its response.
    async fn charge(&mut self, reported: Usage, sent: u64, received: u64) {
        let usage = charged(reported, sent, received);
        self.agent.observer.used(usage);
        let month = UsageMonth::of(self.now());
        let runs = &self.agent.runs;
        match runs.add_usage(self.actor.organization, month, usage).await {
            Ok(sum) => {
                let used = sum.total_tokens.unwrap_or_default();
                self.spent_budget = self.agent.limits.spent_budget(used);
            }
            Err(error) => {
                // The response exists and was paid for: losing it, too, would help no one.
                tracing::warn!(run = %self.run_id, %error, "tokens of an agent run were not counted");
            }
        }
    }

    /// Calls the tools one after the other, each once. Returns the end of the run if its time is over.
    async fn call_tools(
        &mut self,
        pending: PendingCalls,
        writes: &RunWrites,
    ) -> Result<Run, Box<RunResult>> {
        let mut outputs = Vec::new();
        for call in pending.calls() {
            if pending.run().time_left(self.now()).is_zero() {
                let reason = pending.run().out_of_time();
                return Err(Box::new(pending.stop(reason, outputs, self.now())));
            }
            self.emit(AgentEvent::ToolCall(call.clone())).await;
            let context = ToolContext {
                services: &self.services,
                actor: &self.actor,
                agent: &self.agent,
                writes,
            };
            let called = self.agent.tools.call_in_run(&context, call);
            let called = unless(&self.signals, called).await;
            let interruption = called.as_ref().err().copied();
            let output = called.unwrap_or_else(Interruption::output);
            let output = output.within(&mut self.attachment_bytes_left);
            let is_truncated = output.is_truncated(&self.agent.limits);
            let output = output.stored(&self.agent.limits);
            // Before the interruption is looked at: the chat has an output for each call that was made, also for one
            // that was cut off.
            outputs.push(output.clone());
            let result = AgentEvent::ToolResult {
                call: call.clone(),
                output,
                is_truncated,
                chat_id: self.target.id(),
            };
            self.emit(result).await;
            if let Some(interruption) = interruption {
                let reason = interruption.reason(pending.run());
                return Err(Box::new(pending.stop(reason, outputs, self.now())));
            }
        }
        Ok(pending.completed(outputs, self.now()))
    }

    /// Stores the run in its chat. A response is not lost because it cannot be stored, and a chat has no
    /// figures if these cannot be stored.
    async fn store(&self, run: &mut RunResult) -> Option<ChatId> {
        // A run without a chat has no place for its figures either.
        self.target.id()?;
        let (services, actor) = (&self.services, &self.actor);
        let files = match StoredFiles::store(services, actor, &run.messages).await {
            Ok(files) => files,
            Err(error) => {
                tracing::warn!(run = %self.run_id, %error, "the figures of a chat were not stored");
                // A chat without figures is better than no chat.
                let messages = std::mem::take(&mut run.messages).into_iter();
                run.messages = messages.map(ChatMessage::without_attachments).collect();
                StoredFiles::default()
            }
        };
        let stored = self.store_messages(run).await;
        // Without the messages, nothing refers to the files.
        if stored.is_none() {
            files.discard(services, actor).await;
        }
        stored
    }

    async fn store_messages(&self, run: &RunResult) -> Option<ChatId> {
        let (organization, user) = (self.actor.organization, self.actor.user);
        let chats = &self.agent.chats;
        let stored = match &self.target {
            ChatTarget::None => return None,
            ChatTarget::Existing(id) => chats
                .append(
                    organization,
                    user,
                    *id,
                    &run.messages,
                    run.usage,
                    self.now(),
                )
                .await
                .map(|chat| chat.id),
            ChatTarget::New(chat) => {
                let chat = Chat {
                    updated_at: self.now(),
                    usage: run.usage,
                    ..chat.clone()
                };
                let saved = chats.save(organization, user, &chat, &run.messages).await;
                saved.map(|()| chat.id)
            }
        };
        stored
            .inspect_err(
                |error| tracing::warn!(run = %self.run_id, %error, "a chat was not stored"),
            )
            .ok()
    }

    async fn emit(&mut self, event: AgentEvent) {
        // A run that is to end waits for no one to take its events.
        _ = unless(&self.signals, self.events.send(event)).await;
    }

    fn now(&self) -> OffsetDateTime {
        self.services.clock.now()
    }
}

/// The outcome of the work, unless a signal comes before.
async fn unless<T>(signals: &Signals, work: impl Future<Output = T>) -> Result<T, Interruption> {
    let Signals {
        cancelled,
        out_of_time,
    } = signals.clone();
    // `work` is polled first: a result that is ready counts even if a signal comes just then.
    match select(pin!(work), select(cancelled, out_of_time)).await {
        Either::Left((done, _)) => Ok(done),
        Either::Right((Either::Left(_), _)) => Err(Interruption::Cancelled),
        Either::Right((Either::Right(_), _)) => Err(Interruption::OutOfTime),
    }
}

fn bytes(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

fn length(text: &str) -> u64 {
    bytes(text.len())
}

fn request_bytes(request: &ModelRequest) -> u64 {
    let messages = request.messages.iter().map(Message::bytes);
    length(&request.instructions).saturating_add(messages.sum())
}

fn response_bytes(response: &ModelResponse) -> u64 {
    let calls = response.tool_calls.iter();
    let calls = calls.map(|call| length(&call.name) + length(&call.arguments));
    length(&response.text).saturating_add(calls.sum())
}
