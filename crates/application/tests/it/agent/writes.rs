//! The writes of a run: one execution, closed when the run ends.

use labdata_application::{
    data::revert_execution::{RevertExecution, revert_execution},
    executions::{get_execution::get_execution, list_executions::list_executions},
};
use labdata_domain::{
    agent::ModelFailure,
    page::PageRequest,
    people::scope::Scope::{Read, Write},
};
use labdata_memory::ScriptedResponse;
use labdata_ports::executions::ExecutionFilter;
use serde_json::{Value, json};

use super::harness::{Scripted, calls, executions, experiment, name, outputs, prompted, says};

#[tokio::test]
async fn the_writes_of_a_run_fall_under_one_execution_that_can_be_reverted() {
    let script = vec![
        calls("write_data", &experiment("first", true)),
        calls("write_data", &experiment("first", false)),
        calls("write_data", &experiment("second", false)),
        says("Done."),
    ];
    let scripted = Scripted::new(script).await;
    let result = scripted.result(&[Read, Write], "x").await;
    let ids: Vec<Value> = outputs(&result)
        .iter()
        .map(|output| {
            assert!(!output.is_error, "{}", output.text);
            let output: Value = serde_json::from_str(&output.text).unwrap();
            output["job_execution_id"].clone()
        })
        .collect();
    assert_eq!((&ids[0], &ids[1]), (&Value::Null, &ids[2]));
    let id = ids[1].as_str().unwrap().parse().unwrap();
    let (services, actor) = (&scripted.lab.services, scripted.lab.actor(&[Read, Write]));
    let execution = get_execution(services, &actor, id).await.unwrap();
    assert_eq!(execution.state.as_str(), "completed");
    assert_eq!(executions(&scripted).await, 1);
    let report = revert_execution(services, &actor, id, RevertExecution::default())
        .await
        .unwrap();
    assert_eq!(report.deleted_count, 2);
}

#[tokio::test]
async fn a_write_with_problems_writes_nothing_and_opens_no_execution() {
    let script = vec![
        calls(
            "write_data",
            &json!({ "tables": [{ "table": "no_such", "rows": [{}] }] }),
        ),
        says("x"),
    ];
    let scripted = Scripted::new(script).await;
    let result = scripted.result(&[Read, Write], "x").await;
    let text = &outputs(&result)[0].text;
    assert!(
        text.starts_with("nothing was written:\ntables[0]"),
        "{text}"
    );
    assert_eq!(executions(&scripted).await, 0);
}

#[tokio::test]
async fn a_run_whose_model_fails_closes_the_execution_of_its_writes() {
    let refused = ModelFailure::Timeout(60);
    let script = vec![
        calls("write_data", &experiment("kept", false)),
        ScriptedResponse::Refuse(refused),
    ];
    let scripted = Scripted::new(script).await;
    let actor = scripted.lab.actor(&[Read, Write]);
    let events = scripted.events(&actor, prompted("x")).await;
    assert_eq!(name(events.last().unwrap()), "error");
    let page = PageRequest {
        limit: None,
        after: None,
    };
    let filter = ExecutionFilter::default();
    let list = list_executions(&scripted.lab.services, &actor, &filter, page)
        .await
        .unwrap();
    let states: Vec<&str> = list
        .items
        .iter()
        .map(|execution| execution.state.as_str())
        .collect();
    assert_eq!(states, ["failed"]);
}
