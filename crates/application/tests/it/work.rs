//! Runs of job scripts on the platform.

use labdata_application::{
    files::{
        begin_upload::{BeginUpload, begin_upload},
        confirm_upload::confirm_upload,
        upload_file::UploadFile,
    },
    jobs::{
        check_script::CheckedScript,
        create_job::{CreateJob, create_job},
        update_job::{CodeChange, UpdateJob, update_job},
    },
    people::{
        authenticate::authenticate,
        operator_keys::{IssueKey, issue},
    },
    triggers::fire_triggers::fire_triggers,
    work::{
        WorkContext,
        begin_run::RunContext,
        begin_work::{Begun, begin_work},
        claim_work::claim_work,
        redeem_nonce::redeem_nonce,
        run_job::{RunJob, run_job},
        sweep_work::{SweptWork, sweep_work},
    },
};
use labdata_domain::{
    audit::AuditFilter,
    people::{
        PlainApiKey,
        actor::Actor,
        role::Role,
        run_nonce::NONCE_LIFETIME,
        scope::{Scope, Scopes},
        tenancy::{User, UserChange},
    },
    refusal::{ErrorCode, RefusalKind},
    triggers::{Category, TriggerChange},
    work::{BackendPolicy, FreeSlots, RunVisibility, WORK_LEASE, WorkKind},
};
use labdata_ports::work::{
    ClaimedRun, ClaimedWork, Task,
    runner::{RunLimits, RunSpec},
};
use time::Duration;

use crate::{files, lab::Lab};

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
    let script = CheckedScript::check("print()").await;
    let job = job_with("job", script, TriggerChange::default());
    let job = create_job(&lab.services, &actor, job).await.unwrap();
    run_job(&lab.services, &actor, job.id, RunJob::default())
        .await
        .unwrap();
    claimed_next(lab).await
}

async fn begun(lab: &Lab, claimed: &ClaimedWork, policy: BackendPolicy) -> RunSpec {
    match begin_work(&lab.services, claimed, &context(policy))
        .await
        .unwrap()
    {
        Begun::Ready(spec) => *spec,
        other => panic!("expected a run, got {other:?}"),
    }
}

/// The key in the environment of a run.
fn key_of(spec: &RunSpec) -> &str {
    let mut variables = spec.environment.iter();
    let key = variables.find_map(|(name, value)| (name == "LABDATA_API_KEY").then_some(value));
    key.unwrap()
}

/// The caller that a run's script is.
async fn script_of(lab: &Lab, claimed: &ClaimedWork, policy: BackendPolicy) -> Actor {
    let spec = begun(lab, claimed, policy).await;
    let key = match &spec.key_exchange {
        Some(exchange) => redeem_nonce(&lab.services, &exchange.nonce)
            .await
            .unwrap()
            .reveal()
            .to_owned(),
        None => key_of(&spec).to_owned(),
    };
    authenticate(&lab.services, &key).await.unwrap()
}

/// Claims the run that waits.
async fn claimed_next(lab: &Lab) -> ClaimedWork {
    let slots = FreeSlots::for_any(1);
    let mut claimed = claim_work(&lab.services, &context(VISIBLE), slots)
        .await
        .unwrap();
    claimed.remove(0)
}

pub(crate) fn job_with(name: &str, script: CheckedScript, trigger: TriggerChange) -> CreateJob {
    CreateJob {
        name: name.to_owned(),
        script,
        description: None,
        parameters: Vec::new(),
        trigger,
    }
}

fn every_minute() -> TriggerChange {
    let conditions = serde_json::json!({ "cron": "* * * * *", "timezone": "UTC" });
    TriggerChange {
        enabled: Some(true),
        category: Some(Category::Schedule),
        instrument: None,
        conditions: conditions.as_object().cloned(),
    }
}

async fn disable(lab: &Lab, user: &Actor, disabled: bool) {
    let change = UserChange {
        disabled: Some(disabled),
        ..UserChange::default()
    };
    let (tenancy, now) = (&lab.services.tenancy, lab.services.clock.now());
    let changed = tenancy.update_user(user.organization, user.user, &change, now);
    changed.await.unwrap();
}

/// Another user of the organization, with a key of these scopes.
async fn colleague(lab: &Lab, scopes: &[Scope]) -> Actor {
    let ada = lab.actor(scopes);
    let bob = User {
        id: lab.services.ids.next_id().into(),
        organization: ada.organization,
        email: "bob@example.org".to_owned(),
        name: "Bob".to_owned(),
        role: Role::Admin,
        groups: Vec::new(),
        created_at: lab.services.clock.now(),
        disabled_at: None,
    };
    let bob = lab.services.tenancy.ensure_user(&bob).await.unwrap();
    Actor {
        user: bob.id,
        ..ada
    }
}

#[tokio::test]
async fn a_run_holds_no_more_scopes_than_the_key_that_started_it() {
    let lab = Lab::new().await;
    let author = lab.actor(&Scope::ALL);
    let script = CheckedScript::check("print()").await;
    let job = job_with("job", script, TriggerChange::default());
    let job = create_job(&lab.services, &author, job).await.unwrap();
    for (held, granted) in [
        (&Scope::ALL[..], &[Scope::Read, Scope::Write][..]),
        (&[Scope::Write], &[Scope::Write]),
    ] {
        for policy in [BackendPolicy::default(), VISIBLE] {
            let starter = lab.actor(held);
            run_job(&lab.services, &starter, job.id, RunJob::default())
                .await
                .unwrap();
            let script = script_of(&lab, &claimed_next(&lab).await, policy).await;
            assert_eq!(script.scopes, granted.iter().copied().collect());
            assert_eq!(script.user, starter.user);
        }
    }
}

#[tokio::test]
async fn a_run_that_a_script_starts_holds_no_more_scopes_than_that_script() {
    let lab = Lab::new().await;
    let claimed = claimed(&lab).await;
    let mut script = script_of(&lab, &claimed, BackendPolicy::default()).await;
    script.scopes = [Scope::Write].into_iter().collect();
    let job = run(&claimed).execution.job_id;
    run_job(&lab.services, &script, job, RunJob::default())
        .await
        .unwrap();
    let second = script_of(&lab, &claimed_next(&lab).await, VISIBLE).await;
    assert_eq!(second.scopes, script.scopes);
}

/// Contract §2: so does a write.
#[tokio::test]
async fn an_upload_of_a_run_without_an_execution_belongs_to_its_own() {
    let lab = Lab::new().await;
    let claimed = claimed(&lab).await;
    let script = script_of(&lab, &claimed, BackendPolicy::default()).await;
    let instrument = files::instrument(&lab).await;
    let upload = UploadFile {
        instrument: None,
        ..files::upload(instrument)
    };
    let wanted = BeginUpload {
        instrument: None,
        ..files::wanted(instrument)
    };
    let author = lab.actor(&Scope::ALL);
    let refused = begin_upload(&lab.services, &author, wanted.clone()).await;
    assert_eq!(refused.unwrap_err().kind(), Some(RefusalKind::Invalid));
    let begun = begin_upload(&lab.services, &script, wanted).await.unwrap();
    let file = files::upload_file(&lab.services, &script, upload).await;
    for file in [begun.file, file.unwrap()] {
        let own = run(&claimed).execution.id;
        assert_eq!(file.attribution.execution(), Some(own));
    }
}

/// Contract §2: a run's key acts for its own execution.
#[tokio::test]
async fn a_run_confirms_no_upload_of_others() {
    let lab = Lab::new().await;
    let author = lab.actor(&Scope::ALL);
    let script_key = claimed(&lab).await;
    let script = script_of(&lab, &script_key, BackendPolicy::default()).await;
    let wanted = files::wanted(files::instrument(&lab).await);
    let pending = begin_upload(&lab.services, &author, wanted.clone())
        .await
        .unwrap();
    let refused = confirm_upload(&lab.services, &script, pending.file.id).await;
    assert_eq!(refused.unwrap_err().code(), Some(ErrorCode::NotForRuns));
    // Its own one only waits for the bytes.
    let own = BeginUpload {
        instrument: None,
        ..wanted
    };
    let own = begin_upload(&lab.services, &script, own).await.unwrap();
    let waiting = confirm_upload(&lab.services, &script, own.file.id).await;
    assert_eq!(
        waiting.unwrap_err().code(),
        Some(ErrorCode::FileNotUploaded)
    );
}

/// Ada sets the trigger, and Bob changes the script: what runs is Bob's.
#[tokio::test]
async fn what_a_trigger_starts_has_the_rights_of_the_author_of_the_script_that_runs() {
    let lab = Lab::new().await;
    let (ada, bob) = (lab.actor(&Scope::ALL), colleague(&lab, &Scope::ALL).await);
    let script = CheckedScript::check("print()").await;
    let job = job_with("job", script, every_minute());
    let job = create_job(&lab.services, &ada, job).await.unwrap();
    for (author, policy) in [(&ada, BackendPolicy::default()), (&bob, VISIBLE)] {
        let change = UpdateJob {
            code: Some(CodeChange::Replace(format!("print('{}')", author.user))),
            ..UpdateJob::default()
        };
        update_job(&lab.services, author, job.id, change)
            .await
            .unwrap();
        lab.clock.advance(Duration::MINUTE);
        assert_eq!(fire_triggers(&lab.services).await.unwrap(), 1);
        let script = script_of(&lab, &claimed_next(&lab).await, policy).await;
        assert_eq!(script.user, author.user);
        let scopes = [Scope::Read, Scope::Write].into_iter().collect::<Scopes>();
        assert_eq!(script.scopes, scopes, "never admin, which the author has");
    }
}

#[tokio::test]
async fn a_run_with_the_rights_of_a_disabled_user_is_refused_and_says_whose() {
    let lab = Lab::new().await;
    let (ada, bob) = (lab.actor(&Scope::ALL), colleague(&lab, &Scope::ALL).await);
    let script = CheckedScript::check("print()").await;
    let job = job_with("job", script, every_minute());
    let job = create_job(&lab.services, &bob, job).await.unwrap();
    disable(&lab, &bob, true).await;
    lab.clock.advance(Duration::MINUTE);
    fire_triggers(&lab.services).await.unwrap();
    let refused = async || {
        let claimed = claimed_next(&lab).await;
        match begin_work(&lab.services, &claimed, &context(VISIBLE)).await {
            Ok(Begun::Refused(reason)) => reason,
            other => panic!("expected a refusal, got {other:?}"),
        }
    };
    let reason = refused().await;
    assert!(
        reason.starts_with("bob@example.org, who wrote version 1 of this script, is disabled"),
        "{reason}"
    );

    run_job(&lab.services, &ada, job.id, RunJob::default())
        .await
        .unwrap();
    disable(&lab, &ada, true).await;
    let reason = refused().await;
    assert!(
        reason.starts_with("ada@example.org, who started this run, is disabled"),
        "{reason}"
    );
}

async fn expiry(lab: &Lab, key: &str) -> Option<time::OffsetDateTime> {
    let prefix = PlainApiKey::parse(key).unwrap().prefix().to_owned();
    let found = lab.services.api_keys.find_by_prefix(&prefix).await.unwrap();
    found.unwrap().key.expires_at
}

#[tokio::test]
async fn a_stolen_key_of_a_run_is_dead_after_the_runs_timeout() {
    let lab = Lab::new().await;
    let claimed = claimed(&lab).await;
    let spec = begun(&lab, &claimed, BackendPolicy::default()).await;
    assert_eq!(spec.key_exchange, None);
    let expires_at = expiry(&lab, key_of(&spec)).await;
    assert!(expires_at.is_some());
    assert_eq!(expires_at, run(&claimed).execution.state.deadline());
}

#[tokio::test]
async fn a_key_that_a_nonce_gave_is_dead_after_the_runs_timeout() {
    let lab = Lab::new().await;
    let claimed = claimed(&lab).await;
    let nonce = begun(&lab, &claimed, VISIBLE).await.key_exchange.unwrap();
    let key = redeem_nonce(&lab.services, &nonce.nonce).await.unwrap();
    let actor = authenticate(&lab.services, key.reveal()).await.unwrap();
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
    redeem_nonce(&lab.services, "ldn_").await.unwrap_err();
    lab.clock.advance(Duration::SECOND);
    let refused = redeem_nonce(&lab.services, &nonce.nonce).await.unwrap_err();
    assert_eq!(refused.kind(), Some(RefusalKind::Unauthenticated));
    assert!(refused.to_string().contains("expired"), "{refused}");
    lab.clock.advance(-Duration::SECOND);
    redeem_nonce(&lab.services, &nonce.nonce).await.unwrap();
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
        issue(&lab.services, policy, organization, "eve@lab", command).await
    };
    issue(VISIBLE, "lab").await.unwrap();
    let refused = issue(VISIBLE, "second").await.unwrap_err().to_string();
    assert!(refused.contains("LABDATA_JOB_RAY_SHARED=true"), "{refused}");
    let organizations = lab.services.tenancy.organizations().await.unwrap();
    assert_eq!(organizations.len(), 1);
    issue(shared, "second").await.unwrap();
    issue(BackendPolicy::default(), "third").await.unwrap();

    // The user of the second key is known by then.
    issue(shared, "second").await.unwrap();
    let organizations = lab.services.tenancy.organizations().await.unwrap();
    let second = organizations.iter().find(|it| it.name == "second").unwrap();
    let all = AuditFilter::default();
    let log = lab.services.audit.list_after(second.id, &all, None, 10);
    let log = log.await.unwrap();
    let actions: Vec<&str> = log.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(
        actions,
        ["user.created", "api_key.created", "api_key.created"]
    );
}

#[tokio::test]
async fn a_clock_that_is_set_takes_no_work_and_hides_no_lost_worker() {
    let lab = Lab::new().await;
    let claim = claimed(&lab).await.claim;
    for step in [Duration::HOUR, -Duration::DAY, Duration::DAY] {
        for _ in 0..3 {
            lab.clock.set(lab.services.clock.now() + step);
            lab.clock.advance(WORK_LEASE - Duration::SECOND);
            assert!(lab.services.work.renew(claim, WORK_LEASE).await.unwrap());
            assert_eq!(
                sweep_work(&lab.services).await.unwrap(),
                SweptWork::default()
            );
        }
    }
    lab.clock.set(lab.services.clock.now() - Duration::DAY);
    lab.clock.advance(WORK_LEASE);
    assert_eq!(sweep_work(&lab.services).await.unwrap().requeued, 1);
}
