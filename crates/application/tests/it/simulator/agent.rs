//! Runs of the agent, one after the other, on a model that writes and then sends nothing.

use std::sync::Arc;

use futures::{FutureExt, StreamExt, future, stream::BoxStream};
use labdata_application::agent::{
    Agent, AgentEvent, NoUsageObserver, RunAgent, cancel_run::cancel_run, run_agent,
};
use labdata_domain::{
    agent::{AgentLimits, ModelChoice, ModelResponse, RENEW_EVERY, RequestedCall},
    people::{ApiKey, ApiKeyHash},
};
use labdata_memory::{
    InMemoryAgentRunRepository, InMemoryChatRepository, ScriptedModel, ScriptedResponse,
};
use serde_json::json;
use time::Duration;

use super::{Plant, lab::Lab};

/// Limit of a run.
const LIMIT: Duration = Duration::minutes(1);

/// Time that a run has to end at its limit.
const GRACE: Duration = Duration::seconds(5);

/// Starts the agent on the first server.
pub(super) fn start(lab: &Arc<Lab>) {
    lab.simulation.spawn(converse(Arc::clone(lab)));
}

async fn converse(lab: Arc<Lab>) {
    let simulation = &lab.simulation;
    let (_, services) = &lab.servers[0];
    services.api_keys.add(&key(&lab)).await.unwrap();
    while lab.is_busy() {
        simulation.sleep(simulation.seconds(1, 10)).await;
        let agent = agent(&lab);
        let command = RunAgent {
            prompt: "x".to_owned(),
            ..RunAgent::default()
        };
        // A run without an end refuses this one until its lease has ended.
        let Ok(run) = run_agent(services, &agent, &lab.actor, command).await else {
            continue;
        };
        simulation.trace("a run of the agent begins".to_owned());
        let begun_at = simulation.now();
        simulation.spawn(listen(Arc::clone(&lab), agent, run.events));
        let pauses = simulation.clone();
        let plant = lab.plant;
        let pause = move |time: Duration| {
            if plant == Plant::NoAgentTimer && time != RENEW_EVERY {
                return future::pending().boxed();
            }
            pauses.sleep(time)
        };
        let limit = simulation.sleep(LIMIT + GRACE);
        let work = run.work.finish(&pause, std::future::pending()).boxed();
        let ended = matches!(future::select(work, limit).await, future::Either::Left(_));
        let open = simulation.now() - begun_at;
        lab.ledger.refute(
            ended,
            &format!("an agent's run is open {open} after its limit"),
        );
        simulation.trace(format!("a run of the agent ends after {open}"));
        simulation.sleep(GRACE).await;
        lab.ledger.check_agent();
    }
}

/// Takes the events of a run; leaves or cancels it at some time.
async fn listen(lab: Arc<Lab>, agent: Agent, mut events: BoxStream<'static, AgentEvent>) {
    let simulation = &lab.simulation;
    let mut id = None;
    let left = simulation.below(12);
    let mut patience = match simulation.below(3) {
        0 => simulation.sleep(Duration::milliseconds(1)),
        1 => simulation.sleep(simulation.seconds(1, 30)),
        _ => future::pending().boxed(),
    };
    for count in 0_u64.. {
        if count == left && simulation.one_in(3) {
            return;
        }
        match future::select(events.next(), &mut patience).await {
            future::Either::Left((Some(AgentEvent::RunStarted { run_id, .. }), _)) => {
                id = Some(run_id);
            }
            future::Either::Left((Some(_), _)) => {}
            future::Either::Left((None, _)) => return,
            future::Either::Right(_) => break,
        }
    }
    if let Some(id) = id.filter(|_| simulation.one_in(2)) {
        cancel_run(&agent, &lab.actor, id).await.ok();
        events.collect::<Vec<_>>().await;
    }
}

fn agent(lab: &Lab) -> Agent {
    let write = |number: u64| {
        let name = format!("{number} at {}", lab.simulation.now());
        let arguments = json!({ "tables": [{ "table": "sample", "rows": [{ "name": name }] }] });
        ScriptedResponse::Response(ModelResponse {
            tool_calls: vec![RequestedCall {
                id: "call".to_owned(),
                name: "write_data".to_owned(),
                arguments: arguments.to_string(),
                provider_data: None,
            }],
            ..ModelResponse::default()
        })
    };
    let mut script: Vec<_> = (0..lab.simulation.below(4)).map(write).collect();
    script.push(if lab.simulation.one_in(2) {
        ScriptedResponse::Hang("still thinking".to_owned())
    } else {
        ScriptedResponse::Response(ModelResponse {
            text: "done".to_owned(),
            ..ModelResponse::default()
        })
    });
    Agent {
        model: Arc::new(ScriptedModel::new(script)),
        chats: Arc::new(InMemoryChatRepository::new(&lab.store.memory)),
        tools: labdata_operations::tools::all(),
        models: ModelChoice {
            default: Some("small".to_owned()),
            allowed: Vec::new(),
        },
        limits: AgentLimits {
            duration: LIMIT,
            ..AgentLimits::default()
        },
        runs: Arc::new(InMemoryAgentRunRepository::new(&lab.store.memory)),
        observer: Arc::new(NoUsageObserver),
    }
}

fn key(lab: &Lab) -> ApiKey {
    ApiKey {
        id: lab.actor.api_key,
        organization: lab.actor.organization,
        user: lab.actor.user,
        name: "of a person".to_owned(),
        prefix: "person".to_owned(),
        hash: ApiKeyHash([0; 32]),
        scopes: lab.actor.scopes,
        tables: None,
        execution: None,
        created_at: lab.servers[0].1.clock.now(),
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
    }
}
