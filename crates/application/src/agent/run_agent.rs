//! Runs the agent: asks the model, calls its tools, and asks again until it has an answer.

use futures::{FutureExt, SinkExt, StreamExt, channel::mpsc, future, stream, stream::BoxStream};
use labdata_domain::{
    agent::{
        BrokenStream, Chat, MAX_HISTORY_BYTES, Message, ModelAnswer, ModelFailure, ModelRefusal,
        Next, PendingCalls, Run, RunResult, check_prompt, history, instructions,
    },
    executions::FinalStatus,
    ids::{AgentRunId, ChatId},
    keys::{actor::Actor, scope::Scope},
};
use labdata_ports::agent::{AnswerPart, ModelRequest, ToolDefinition};
use time::OffsetDateTime;

use super::{
    Agent, AgentError, AgentEvent, AgentResult,
    slots::RunSlot,
    tools::{RunWrites, ToolContext},
};
use crate::{Error, Ports};

/// Number of events that wait for the caller. A run that is ahead of its caller waits as well.
const PENDING_EVENTS: usize = 16;

/// The run to begin.
#[derive(Clone, Debug, Default)]
pub struct RunAgent {
    /// The prompt.
    pub prompt: String,
    /// The model; the default one unless given.
    pub model: Option<String>,
    /// The chat to continue.
    pub chat_id: Option<ChatId>,
    /// Save the run as a new chat, unless it continues one.
    pub save: bool,
}

/// Begins a run. Its events end with a result or an error. Dropping them cancels the run: the request
/// to the model and a query in progress end, and a write in progress is applied as a whole or not at all.
///
/// # Errors
/// [`Error::Forbidden`] without the read scope; [`Error::Invalid`] for an empty or too long prompt and
/// for a model that is not allowed; [`Error::NotFound`] for an unknown chat;
/// [`AgentError::TooManyRuns`]; [`ModelFailure::NotConfigured`] if no model is set.
pub async fn run_agent(
    ports: &Ports,
    agent: &Agent,
    actor: &Actor,
    command: RunAgent,
) -> Result<BoxStream<'static, AgentEvent>, AgentError> {
    actor.require(Scope::Read).map_err(Error::from)?;
    agent.model.check()?;
    let invalid = |text: String| AgentError::Platform(Error::Invalid(text));
    check_prompt(&command.prompt).map_err(|error| invalid(error.to_string()))?;
    let model = match agent.models.choose(command.model.as_deref()) {
        Ok(model) => model.to_owned(),
        Err(ModelRefusal::NoneSet) => {
            return Err(ModelFailure::NotConfigured("LABDATA_LLM_MODEL").into());
        }
        Err(refusal) => return Err(invalid(refusal.to_string())),
    };
    let earlier = match command.chat_id {
        Some(id) => earlier_messages(agent, actor, id).await?,
        None => Vec::new(),
    };
    let slot = agent.slots.take(actor.organization, &agent.limits)?;
    let now = ports.clock.now();
    let target = match command.chat_id {
        Some(id) => ChatTarget::Existing(id),
        None if command.save => {
            let id = ChatId::new(ports.ids.next_id());
            ChatTarget::New(Chat::new(id, &command.prompt, now))
        }
        None => ChatTarget::None,
    };
    let (events, received) = mpsc::channel(PENDING_EVENTS);
    let conversation = Conversation {
        run_id: AgentRunId::new(ports.ids.next_id()),
        tools: agent.tools.definitions(actor),
        ports: ports.clone(),
        agent: agent.clone(),
        actor: actor.clone(),
        model,
        target,
        events,
        attachment_bytes_left: agent.limits.attachment_bytes,
        _slot: slot,
    };
    let run = Run::start(agent.limits, earlier, &command.prompt, now);
    // Both end together: the run is polled with its events, and dropped with them.
    let work = conversation.work(run).into_stream();
    let work = work.filter_map(|()| future::ready(None));
    Ok(stream::select(received, work).boxed())
}

async fn earlier_messages(agent: &Agent, actor: &Actor, id: ChatId) -> Result<Vec<Message>, Error> {
    let saved = agent.chats.get(actor.organization, actor.user, id).await?;
    Ok(history(&saved.messages, &agent.limits, MAX_HISTORY_BYTES))
}

/// The chat that a run is stored in.
#[derive(Clone, Debug)]
enum ChatTarget {
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
    Answered(ModelAnswer),
    /// The run has no time left; the text had arrived.
    OutOfTime(String),
}

/// A run in progress.
struct Conversation {
    run_id: AgentRunId,
    ports: Ports,
    agent: Agent,
    actor: Actor,
    model: String,
    tools: Vec<ToolDefinition>,
    target: ChatTarget,
    events: mpsc::Sender<AgentEvent>,
    /// Number of bytes that its further attachments may have.
    attachment_bytes_left: u64,
    /// Counts the run until it ends or is dropped.
    _slot: RunSlot,
}

impl Conversation {
    async fn work(mut self, run: Run) {
        let started = AgentEvent::RunStarted {
            run_id: self.run_id,
            model: self.model.clone(),
            chat_id: self.target.id(),
        };
        self.emit(started).await;
        let writes = RunWrites::default();
        let outcome = self.converse(run, &writes).await;
        let status = match &outcome {
            Ok(_) => FinalStatus::Completed,
            Err(_) => FinalStatus::Failed,
        };
        writes.close(&self.ports, &self.actor, status).await;
        let last = match outcome {
            Ok(run) => {
                let chat_id = self.store(&run).await;
                let model = self.model.clone();
                AgentEvent::Result(Box::new(AgentResult {
                    run,
                    model,
                    chat_id,
                }))
            }
            Err(failure) => {
                tracing::info!(run = %self.run_id, %failure, "a run of the agent failed");
                AgentEvent::Error(failure.into())
            }
        };
        self.emit(last).await;
    }

    async fn converse(
        &mut self,
        mut run: Run,
        writes: &RunWrites,
    ) -> Result<RunResult, ModelFailure> {
        loop {
            if run.time_left(self.now()).is_zero() {
                return Ok(run.out_of_time("", self.now()));
            }
            let next = match self.ask(&run).await? {
                Asked::OutOfTime(text) => return Ok(run.out_of_time(&text, self.now())),
                Asked::Answered(answer) => run.answered(answer, self.now()),
            };
            let pending = match next {
                Next::End(end) => {
                    self.emit(AgentEvent::Usage(end.usage)).await;
                    return Ok(*end);
                }
                Next::Calls(pending) => pending,
            };
            self.emit(AgentEvent::Usage(pending.run().usage())).await;
            match self.call_tools(*pending, writes).await {
                Ok(next) => run = next,
                Err(end) => return Ok(*end),
            }
        }
    }

    /// Asks the model and passes its text on as it arrives.
    async fn ask(&mut self, run: &Run) -> Result<Asked, ModelFailure> {
        let may_write = self.actor.scopes.contains(Scope::Write);
        let request = ModelRequest {
            model: self.model.clone(),
            instructions: instructions(self.now(), may_write),
            messages: run.messages(),
            tools: self.tools.clone(),
        };
        let mut answer = self.agent.model.answer(&request).await?;
        let mut text = String::new();
        while let Some(part) = answer.next().await {
            match part? {
                AnswerPart::Text(more) => {
                    text.push_str(&more);
                    self.emit(AgentEvent::TextDelta(more)).await;
                }
                AnswerPart::End(answer) => return Ok(Asked::Answered(answer)),
            }
            if run.time_left(self.now()).is_zero() {
                return Ok(Asked::OutOfTime(text));
            }
        }
        Err(ModelFailure::Broken(BrokenStream::NoEnd))
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
                return Err(Box::new(pending.out_of_time(outputs, self.now())));
            }
            self.emit(AgentEvent::ToolCall(call.clone())).await;
            let context = ToolContext {
                ports: &self.ports,
                actor: &self.actor,
                writes,
            };
            let output = self.agent.tools.call(&context, call).await;
            let output = output.within(&mut self.attachment_bytes_left);
            let is_truncated = output.is_truncated(&self.agent.limits);
            let output = output.kept(&self.agent.limits);
            outputs.push(output.clone());
            let result = AgentEvent::ToolResult {
                call: call.clone(),
                output,
                is_truncated,
            };
            self.emit(result).await;
        }
        Ok(pending.completed(outputs, self.now()))
    }

    /// Stores the run in its chat. An answer is not lost because it cannot be stored.
    async fn store(&self, run: &RunResult) -> Option<ChatId> {
        let (organization, user) = (self.actor.organization, self.actor.user);
        let chats = &self.agent.chats;
        let stored = match &self.target {
            ChatTarget::None => return None,
            ChatTarget::Existing(id) => chats
                .append(organization, user, *id, &run.messages, self.now())
                .await
                .map(|chat| chat.id),
            ChatTarget::New(chat) => {
                let chat = Chat {
                    updated_at: self.now(),
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
        // Without a receiver the run is about to be dropped.
        drop(self.events.send(event).await);
    }

    fn now(&self) -> OffsetDateTime {
        self.ports.clock.now()
    }
}
