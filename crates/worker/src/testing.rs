//! In-memory ports, and what is in them, for the tests of this crate.

use std::sync::Arc;

use labdata_application::{
    Services,
    jobs::{
        check_script::CheckedScript,
        create_job::{CreateJob, create_job},
    },
    work::{
        WorkContext,
        begin_run::RunContext,
        run_job::{RunJob, run_job},
    },
};
use labdata_domain::{
    ids::ApiKeyId,
    people::{
        actor::Actor,
        rights::Rights,
        role::Role,
        scope::Scope,
        tenancy::{Organization, User},
    },
    triggers::TriggerChange,
    work::{BackendPolicy, RunLimits},
};
use labdata_memory::{FixedClock, Memory, ports};

/// Services over an empty store, with a clock that stands still.
pub(crate) fn in_memory() -> Services {
    in_memory_at(Arc::default())
}

/// Services over an empty store, with that clock.
pub(crate) fn in_memory_at(clock: Arc<FixedClock>) -> Services {
    Services::unlimited(ports(&Memory::new(), clock))
}

/// The context of runs.
pub(crate) fn run_context() -> WorkContext {
    WorkContext::Run(RunContext {
        limits: RunLimits::default(),
        base_url: "http://lab.example.org".to_owned(),
        policy: BackendPolicy::default(),
    })
}

/// A person of a new organization.
pub(crate) async fn actor(services: &Services) -> Actor {
    let organization = Organization {
        id: services.ids.next_id().into(),
        name: "lab".to_owned(),
        created_at: services.clock.now(),
    };
    let user = User {
        id: services.ids.next_id().into(),
        organization: organization.id,
        email: "ada@example.org".to_owned(),
        name: "Ada".to_owned(),
        role: Role::Admin,
        groups: Vec::new(),
        created_at: services.clock.now(),
        disabled_at: None,
    };
    services
        .tenancy
        .ensure_organization(&organization)
        .await
        .unwrap();
    services.tenancy.ensure_user(&user).await.unwrap();
    Actor {
        organization: organization.id,
        user: user.id,
        api_key: ApiKeyId::new(services.ids.next_id()),
        scopes: Scope::ALL.into_iter().collect(),
        rights: Rights::admin(),
        execution: None,
    }
}

/// Queues a run of a new job.
pub(crate) async fn queue_run(services: &Services, actor: &Actor) {
    let job = CreateJob {
        name: "stuck".to_owned(),
        script: CheckedScript::check("print(1)").await,
        description: None,
        parameters: Vec::new(),
        trigger: TriggerChange::default(),
    };
    let job = create_job(services, actor, job).await.unwrap();
    run_job(services, actor, job.id, RunJob::default())
        .await
        .unwrap();
}
