//! Events of runs, and requests that begin none.

use labdata_application::{
    Error,
    agent::{AgentError, AgentEvent, RunAgent},
};
use labdata_domain::{
    agent::{BrokenStream, ModelChoice, ModelFailure},
    ids::ChatId,
    people::scope::Scope::{self, Read, Write},
    refusal::{Refusal, RefusalKind},
};
use labdata_memory::ScriptedResponse;
use serde_json::json;

use super::harness::{Scripted, calls, name, outputs, prompted, result, says};

#[tokio::test]
async fn a_run_streams_its_events_in_order() {
    let script = vec![calls("list_jobs", &json!({})), says("There are none.")];
    let scripted = Scripted::new(script).await;
    let events = scripted
        .events(&scripted.lab.actor(&[Read]), prompted("Jobs?"))
        .await;
    let names: Vec<&str> = events.iter().map(name).collect();
    let expected = [
        "run_started",
        "usage",
        "tool_call",
        "tool_result",
        "text_delta",
        "text_delta",
        "text_delta",
        "usage",
        "result",
    ];
    assert_eq!(names, expected);
    let result = result(events);
    assert_eq!(result.run.output, "There are none.");
    assert_eq!((result.model.as_str(), result.chat_id), ("small", None));
    assert_eq!(
        outputs(&result)[0].text,
        "{\"items\":[],\"next_cursor\":null}"
    );
}

#[tokio::test]
async fn a_failure_of_the_model_is_the_last_event() {
    let broken = ModelFailure::Broken(BrokenStream::NoEnd);
    let script = vec![ScriptedResponse::Fail("Half of".to_owned(), broken.clone())];
    let scripted = Scripted::new(script).await;
    let events = scripted
        .events(&scripted.lab.actor(&[Read]), prompted("x"))
        .await;
    assert!(
        matches!(events.last(), Some(AgentEvent::Error(AgentError::Failed(failed))) if failed.failure == broken)
    );
    assert_eq!(
        events
            .iter()
            .map(name)
            .filter(|name| *name == "text_delta")
            .count(),
        2
    );
}

#[tokio::test]
async fn requests_that_make_no_sense_begin_no_run() {
    let scripted = Scripted::new(Vec::new()).await;
    let begin = async |scopes: &[Scope], command: RunAgent| {
        let actor = scripted.lab.actor(scopes);
        let begun = scripted.begin(&actor, command).await;
        begun.err().unwrap()
    };
    let refused = begin(&[Write], prompted("x")).await;
    assert!(matches!(
        refused,
        AgentError::Platform(Error::Refused(Refusal {
            kind: RefusalKind::Forbidden,
            ..
        }))
    ));
    let refused = begin(&[Read], prompted(" ")).await;
    assert!(matches!(
        refused,
        AgentError::Platform(Error::Refused(Refusal {
            kind: RefusalKind::Invalid,
            ..
        }))
    ));
    let other = RunAgent {
        model: Some("other".to_owned()),
        ..prompted("x")
    };
    assert!(matches!(
        begin(&[Read], other).await,
        AgentError::Platform(Error::Refused(Refusal {
            kind: RefusalKind::Invalid,
            ..
        }))
    ));
    let unknown = RunAgent {
        chat_id: Some(ChatId::new(scripted.lab.services.ids.next_id())),
        ..prompted("x")
    };
    assert!(matches!(
        begin(&[Read], unknown).await,
        AgentError::Platform(Error::Refused(Refusal {
            kind: RefusalKind::NotFound,
            ..
        }))
    ));
    assert_eq!(scripted.model.requests(), []);
}

#[tokio::test]
async fn without_a_model_the_missing_setting_is_named() {
    let mut scripted = Scripted::new(Vec::new()).await;
    scripted.agent.models = ModelChoice::default();
    let actor = scripted.lab.actor(&[Read]);
    let begun = scripted.begin(&actor, prompted("x")).await;
    let failure = begun.err().unwrap().to_string();
    assert!(failure.contains("LABDATA_LLM_MODEL"), "{failure}");
}
