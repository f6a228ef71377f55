//! Begins runs of the agent.

use futures::{
    StreamExt,
    channel::{mpsc, oneshot},
    stream::BoxStream,
};
use labdata_domain::{
    agent::{Chat, LEASE, MAX_HISTORY_BYTES, Message, Run, check_prompt, history},
    ids::{AgentRunId, ChatId},
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
};
use labdata_ports::agent::{BeginRun, BeginRunError};

use super::{
    Agent, AgentError, AgentEvent,
    conversation::{ChatTarget, Conversation},
    lease::Lease,
    work::RunWork,
};
use crate::{Error, Services};

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

/// A run that has begun.
pub struct StartedRun {
    /// Its events, the last of which is a result or an error. Dropping them cancels the run.
    pub events: BoxStream<'static, AgentEvent>,
    /// The work that makes the events. It is to be polled apart from them, to its end.
    pub work: RunWork,
}

impl std::fmt::Debug for StartedRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StartedRun").finish_non_exhaustive()
    }
}

/// Begins a run. If it is cancelled, the request to the model and a query in progress end, and a write
/// in progress is applied as a whole or not at all.
///
/// # Errors
/// `Forbidden` without the read scope, and for a chat with the key of a run or one that is narrowed to tables; `Invalid` for an empty or too long prompt and
/// for a model that is not allowed; `NotFound` for an unknown chat; [`AgentError::Refused`];
/// the errors of [`Agent::check`].
#[tracing::instrument(level = "debug", skip_all)]
pub async fn run_agent(
    services: &Services,
    agent: &Agent,
    actor: &Actor,
    command: RunAgent,
) -> Result<StartedRun, AgentError> {
    actor.require(Scope::Read).map_err(Error::from)?;
    if command.save || command.chat_id.is_some() {
        actor
            .may(GuardedAction::UsePersonalRecords)
            .map_err(Error::from)?;
    }
    // Before anything is stored: without a provider the run can only fail.
    agent.check()?;
    check_prompt(&command.prompt).map_err(Error::refused)?;
    let model = agent.models.choose(command.model.as_deref());
    let model = model.map_err(Error::refused)?.to_owned();
    let earlier = match command.chat_id {
        Some(id) => earlier_messages(agent, actor, id).await?,
        None => Vec::new(),
    };
    let id = AgentRunId::new(services.ids.next_id());
    // Read before the query: a slow one must not make this server believe in a longer lease.
    let asked = services.clock.elapsed();
    // After all checks: from here on the run occupies a slot of the organization.
    begin(services, agent, actor, id).await?;
    let now = services.clock.now();
    let target = match command.chat_id {
        Some(id) => ChatTarget::Existing(id),
        None if command.save => {
            let id = ChatId::new(services.ids.next_id());
            ChatTarget::New(Chat::new(id, &command.prompt, now))
        }
        None => ChatTarget::None,
    };
    let (events, received) = mpsc::channel(PENDING_EVENTS);
    let (left, here) = oneshot::channel::<()>();
    let conversation = Conversation::new(services, agent, actor, id, model, target, events);
    let lease = Lease {
        clock: services.clock.clone(),
        runs: agent.runs.clone(),
        organization: actor.organization,
        id,
        asked,
    };
    let run = Run::start(agent.limits, earlier, &command.prompt, now);
    // `here` is dropped with the events.
    let events = received.inspect(move |_| _ = &here);
    Ok(StartedRun {
        events: events.boxed(),
        work: RunWork {
            conversation,
            run,
            lease,
            left,
        },
    })
}

/// Counts the run, if the organization may start it.
async fn begin(
    services: &Services,
    agent: &Agent,
    actor: &Actor,
    id: AgentRunId,
) -> Result<(), AgentError> {
    let now = services.clock.now();
    let run = BeginRun {
        organization: actor.organization,
        user: actor.user,
        id,
        now,
        lease: LEASE,
    };
    let limits = agent.limits;
    let decide = move |facts| limits.check_start(facts, now);
    match agent.runs.begin(run, &decide).await {
        Ok(()) => Ok(()),
        Err(BeginRunError::Refused(refusal)) => Err(refusal.into()),
        Err(BeginRunError::Port(error)) => Err(Error::from(error).into()),
    }
}

async fn earlier_messages(agent: &Agent, actor: &Actor, id: ChatId) -> Result<Vec<Message>, Error> {
    let saved = agent.chats.get(actor.organization, actor.user, id).await?;
    Ok(history(&saved.messages, &agent.limits, MAX_HISTORY_BYTES))
}
