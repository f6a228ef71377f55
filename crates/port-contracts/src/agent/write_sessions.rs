//! Contract of [`WriteSessions`].

use std::sync::Arc;

use futures::future::join_all;
use labdata_domain::{
    executions::{Execution, started_by::StartedBy},
    ids::{ApiKeyId, ExecutionId, OrganizationId},
};
use labdata_ports::{
    agent::{EndedSession, WriteSessions},
    executions::ExecutionRepository,
    jobs::JobRepository,
    people::ApiKeyRepository,
};

use crate::{
    Subject,
    fixtures::Tenants,
    given::{self, at},
};

/// Makes one test of each clause of [`crate::agent::write_sessions`].
#[macro_export]
macro_rules! write_sessions_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, write_sessions in agent::write_sessions:
            a_session_is_resumed_until_it_has_ended,
            of_racing_beginnings_one_wins,
            a_session_of_another_organization_is_not_resumed,
            idle_sessions_end_once,
        }
    };
}

/// Prerequisites of these clauses.
pub trait Sessions:
    Tenants
    + Subject<dyn WriteSessions>
    + Subject<dyn ApiKeyRepository>
    + Subject<dyn JobRepository>
    + Subject<dyn ExecutionRepository>
{
}

impl<H> Sessions for H where
    H: Tenants
        + Subject<dyn WriteSessions>
        + Subject<dyn ApiKeyRepository>
        + Subject<dyn JobRepository>
        + Subject<dyn ExecutionRepository>
{
}

fn sessions<H: Sessions>(harness: &H) -> Arc<dyn WriteSessions> {
    Subject::<dyn WriteSessions>::subject(harness)
}

/// A key of an organization, and executions for its sessions.
struct Caller {
    organization: OrganizationId,
    key: ApiKeyId,
    executions: Vec<ExecutionId>,
}

async fn caller<H: Sessions>(harness: &H, name: &str, executions: usize) -> Caller {
    let organization = harness.organization(name).await.id;
    let user = harness.user(organization, "ada@example.org").await;
    let key = given::api_key(&user);
    let keys = Subject::<dyn ApiKeyRepository>::subject(harness);
    keys.add(&key).await.unwrap();
    let job = given::job("Assistant", at(0));
    let jobs = Subject::<dyn JobRepository>::subject(harness);
    let job = jobs.ensure(organization, &job).await.unwrap();
    let repository = Subject::<dyn ExecutionRepository>::subject(harness);
    let mut ids = Vec::new();
    for _ in 0..executions {
        let id = ExecutionId::new(given::uuid());
        let execution = Execution::start(id, job.id, job.name.clone(), None, at(0));
        repository
            .add(organization, &execution, StartedBy::user(user.id))
            .await
            .unwrap();
        ids.push(id);
    }
    Caller {
        organization,
        key: key.id,
        executions: ids,
    }
}

/// A session goes by its key, until its end.
pub async fn a_session_is_resumed_until_it_has_ended<H: Sessions>(harness: &H) {
    let caller = caller(harness, "lab", 2).await;
    let (sessions, organization, key) = (sessions(harness), caller.organization, caller.key);
    assert_eq!(
        sessions.resume(organization, key, at(1)).await.unwrap(),
        None
    );
    let [first, second] = caller.executions[..] else {
        panic!("two executions");
    };
    let begun = sessions
        .begin(organization, key, first, at(1))
        .await
        .unwrap();
    assert_eq!(begun, first);
    let resumed = sessions.resume(organization, key, at(2)).await.unwrap();
    assert_eq!(resumed, Some(first));
    let begun = sessions
        .begin(organization, key, second, at(3))
        .await
        .unwrap();
    assert_eq!(begun, first);
    sessions.end(organization, key, second).await.unwrap();
    let resumed = sessions.resume(organization, key, at(4)).await.unwrap();
    assert_eq!(resumed, Some(first));
    sessions.end(organization, key, first).await.unwrap();
    assert_eq!(
        sessions.resume(organization, key, at(5)).await.unwrap(),
        None
    );
    let begun = sessions
        .begin(organization, key, second, at(6))
        .await
        .unwrap();
    assert_eq!(begun, second);
}

/// Beginnings that race agree on one execution.
pub async fn of_racing_beginnings_one_wins<H: Sessions>(harness: &H) {
    let caller = caller(harness, "lab", 4).await;
    let sessions = sessions(harness);
    let begun = caller.executions.iter().map(|execution| {
        let sessions = Arc::clone(&sessions);
        async move {
            sessions
                .begin(caller.organization, caller.key, *execution, at(1))
                .await
        }
    });
    let begun: Vec<ExecutionId> = join_all(begun)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert!(begun.iter().all(|execution| *execution == begun[0]));
    let resumed = sessions
        .resume(caller.organization, caller.key, at(2))
        .await;
    assert_eq!(resumed.unwrap(), Some(begun[0]));
}

/// A session is invisible to other organizations.
pub async fn a_session_of_another_organization_is_not_resumed<H: Sessions>(harness: &H) {
    let owner = caller(harness, "lab", 1).await;
    let other = caller(harness, "other", 0).await;
    let sessions = sessions(harness);
    let execution = owner.executions[0];
    let begun = sessions
        .begin(owner.organization, owner.key, execution, at(1))
        .await;
    begun.unwrap();
    let resumed = sessions.resume(other.organization, owner.key, at(2)).await;
    assert_eq!(resumed.unwrap(), None);
    let ended = sessions.end(other.organization, owner.key, execution).await;
    ended.unwrap();
    let resumed = sessions.resume(owner.organization, owner.key, at(3)).await;
    assert_eq!(resumed.unwrap(), Some(execution));
}

/// A session that was used stays; an unused one ends once, for any caller.
pub async fn idle_sessions_end_once<H: Sessions>(harness: &H) {
    let idle = caller(harness, "idle", 1).await;
    let used = caller(harness, "used", 1).await;
    let sessions = sessions(harness);
    for caller in [&idle, &used] {
        let begun = sessions.begin(caller.organization, caller.key, caller.executions[0], at(1));
        begun.await.unwrap();
    }
    let resumed = sessions.resume(used.organization, used.key, at(10)).await;
    assert!(resumed.unwrap().is_some());
    let ended = join_all((0..3).map(|_| sessions.end_idle(at(5), 10))).await;
    let ended: Vec<EndedSession> = ended.into_iter().flat_map(Result::unwrap).collect();
    let expected = EndedSession {
        organization: idle.organization,
        execution: idle.executions[0],
    };
    assert_eq!(ended, [expected]);
    assert_eq!(sessions.end_idle(at(11), 0).await.unwrap(), []);
    assert_eq!(sessions.end_idle(at(11), 1).await.unwrap().len(), 1);
}
