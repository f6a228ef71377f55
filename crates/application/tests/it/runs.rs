//! Runs of job scripts on the platform.

use labdata_application::{
    jobs::create_job::{CreateJob, create_job},
    runs::{
        begin_run::begin_run,
        claim_runs::claim_runs,
        run_job::{RunJob, run_job},
    },
};
use labdata_domain::{
    keys::{PlainApiKey, scope::Scope},
    runs::FreeSlots,
    triggers::TriggerChange,
};
use labdata_ports::runs::runner::RunLimits;

use crate::lab::Lab;

#[tokio::test]
async fn a_stolen_key_of_a_run_is_dead_after_the_runs_timeout() {
    let lab = Lab::new().await;
    let actor = lab.actor(&[Scope::Read, Scope::Write]);
    let job = CreateJob {
        name: "job".to_owned(),
        code: "print()".to_owned(),
        description: None,
        parameters: Vec::new(),
        trigger: TriggerChange::default(),
    };
    let job = create_job(&lab.ports, &actor, job).await.unwrap();
    run_job(&lab.ports, &actor, job.id, RunJob::default())
        .await
        .unwrap();
    let limits = RunLimits::default();
    let slots = FreeSlots::for_any(1);
    let claimed = claim_runs(&lab.ports, limits, slots)
        .await
        .unwrap()
        .remove(0);
    let spec = begin_run(&lab.ports, &claimed, "http://lab", limits).await;
    let environment = spec.unwrap().unwrap().environment;
    let key = environment
        .iter()
        .find_map(|(name, value)| (name == "LABDATA_API_KEY").then_some(value))
        .unwrap();
    let prefix = PlainApiKey::parse(key).unwrap().prefix().to_owned();
    let key = lab.ports.api_keys.find_by_prefix(&prefix).await.unwrap();
    let expires_at = key.unwrap().expires_at;
    assert!(expires_at.is_some());
    assert_eq!(expires_at, claimed.execution.state.deadline());
}
