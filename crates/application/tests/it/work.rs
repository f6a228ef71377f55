//! Runs of job scripts on the platform.

use labdata_application::{
    jobs::{
        check_script::CheckedScript,
        create_job::{CreateJob, create_job},
    },
    people::{
        authenticate::authenticate,
        operator_keys::{IssueKey, issue},
    },
    work::{
        WorkContext,
        begin_run::RunContext,
        begin_work::{Begun, begin_work},
        claim_work::claim_work,
        redeem_nonce::redeem_nonce,
        run_job::{RunJob, run_job},
    },
};
use labdata_domain::{
    people::{
        PlainApiKey,
        run_nonce::NONCE_LIFETIME,
        scope::{Scope, Scopes},
    },
    refusal::RefusalKind,
    triggers::TriggerChange,
    work::{BackendPolicy, FreeSlots, RunVisibility, WorkKind},
};
use labdata_ports::work::{
    ClaimedRun, ClaimedWork, Task,
    runner::{RunLimits, RunSpec},
};
use time::Duration;

use crate::lab::Lab;

/// A backend whose users see the runs of all organizations.
const VISIBLE: BackendPolicy = BackendPolicy {
    work: WorkKind::Run,
    visibility: RunVisibility::BackendUsers,
    allows_sharing: false,
};

fn context(policy: BackendPolicy) -> WorkContext {
    WorkContext::Run(RunContext {
        base_url: "http://lab".to_owned(),
        limits: RunLimits::default(),
        policy,
    })
}

fn run(claimed: &ClaimedWork) -> &ClaimedRun {
    let Task::Run(run) = &claimed.task else {
        panic!("{claimed:?} is no run");
    };
    run
}

async fn claimed(lab: &Lab) -> ClaimedWork {
    let actor = lab.actor(&[Scope::Read, Scope::Write]);
    let job = CreateJob {
        name: "job".to_owned(),
        script: CheckedScript::check("print()").await,
        description: None,
        parameters: Vec::new(),
        trigger: TriggerChange::default(),
    };
    let job = create_job(&lab.ports, &actor, job).await.unwrap();
    run_job(&lab.ports, &actor, job.id, RunJob::default())
        .await
        .unwrap();
    let slots = FreeSlots::for_any(1);
    claim_work(&lab.ports, &context(VISIBLE), slots)
        .await
        .unwrap()
        .remove(0)
}

async fn begun(lab: &Lab, claimed: &ClaimedWork, policy: BackendPolicy) -> RunSpec {
    match begin_work(&lab.ports, claimed, &context(policy))
        .await
        .unwrap()
    {
        Begun::Ready(spec) => *spec,
        other => panic!("expected a run, got {other:?}"),
    }
}

async fn expiry(lab: &Lab, key: &str) -> Option<time::OffsetDateTime> {
    let prefix = PlainApiKey::parse(key).unwrap().prefix().to_owned();
    let found = lab.ports.api_keys.find_by_prefix(&prefix).await.unwrap();
    found.unwrap().key.expires_at
}

#[tokio::test]
async fn a_stolen_key_of_a_run_is_dead_after_the_runs_timeout() {
    let lab = Lab::new().await;
    let claimed = claimed(&lab).await;
    let spec = begun(&lab, &claimed, BackendPolicy::default()).await;
    assert_eq!(spec.key_exchange, None);
    let key = spec
        .environment
        .iter()
        .find_map(|(name, value)| (name == "LABDATA_API_KEY").then_some(value))
        .unwrap();
    let expires_at = expiry(&lab, key).await;
    assert!(expires_at.is_some());
    assert_eq!(expires_at, run(&claimed).execution.state.deadline());
}

#[tokio::test]
async fn a_key_that_a_nonce_gave_is_dead_after_the_runs_timeout() {
    let lab = Lab::new().await;
    let claimed = claimed(&lab).await;
    let nonce = begun(&lab, &claimed, VISIBLE).await.key_exchange.unwrap();
    let key = redeem_nonce(&lab.ports, &nonce.nonce).await.unwrap();
    let actor = authenticate(&lab.ports, key.reveal()).await.unwrap();
    assert_eq!(actor.execution, claimed.claim.work.execution());
    assert_eq!(actor.user, run(&claimed).started_by);
    assert_eq!(
        expiry(&lab, key.reveal()).await,
        run(&claimed).execution.state.deadline()
    );
}

#[tokio::test]
async fn a_nonce_that_nobody_used_expires_soon() {
    let lab = Lab::new().await;
    let claimed = claimed(&lab).await;
    let nonce = begun(&lab, &claimed, VISIBLE).await.key_exchange.unwrap();
    lab.clock.advance(NONCE_LIFETIME - Duration::SECOND);
    redeem_nonce(&lab.ports, "ldn_").await.unwrap_err();
    lab.clock.advance(Duration::SECOND);
    let refused = redeem_nonce(&lab.ports, &nonce.nonce).await.unwrap_err();
    assert_eq!(refused.kind(), Some(RefusalKind::Unauthenticated));
    assert!(refused.to_string().contains("expired"), "{refused}");
    lab.clock.advance(-Duration::SECOND);
    redeem_nonce(&lab.ports, &nonce.nonce).await.unwrap();
}

#[tokio::test]
async fn a_second_organization_is_not_created_beside_a_backend_that_would_show_it_to_the_first() {
    let lab = Lab::new().await;
    let shared = BackendPolicy {
        allows_sharing: true,
        ..VISIBLE
    };
    let issue = async |policy, organization| {
        let command = IssueKey {
            name: "key".to_owned(),
            scopes: Scopes::all(),
            lifetime: None,
        };
        issue(&lab.ports, policy, organization, "eve@lab", command).await
    };
    issue(VISIBLE, "lab").await.unwrap();
    let refused = issue(VISIBLE, "second").await.unwrap_err().to_string();
    assert!(refused.contains("LABDATA_JOB_RAY_SHARED=true"), "{refused}");
    let organizations = lab.ports.tenancy.organizations().await.unwrap();
    assert_eq!(organizations.len(), 1);
    issue(shared, "second").await.unwrap();
    issue(BackendPolicy::default(), "third").await.unwrap();
}
