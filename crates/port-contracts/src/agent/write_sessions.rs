//! Contract of [`WriteSessions`].

use futures::future::join_all;
use labdata_domain::{
    ids::{ExecutionId, OrganizationId},
    people::{ApiKey, tenancy::User},
};
use labdata_ports::agent::{IdleSession, WriteSessions};
use time::Duration;

use crate::{given::at, lab::lab};

lab!(
    /// Sessions of callers who write.
    pub struct WriteSessionsLab {
        /// Sessions.
        pub sessions: dyn WriteSessions,
    }
);

/// A key of an organization, and executions for its sessions.
struct Caller<'a> {
    sessions: &'a dyn WriteSessions,
    organization: OrganizationId,
    key: ApiKey,
    executions: Vec<ExecutionId>,
}

impl WriteSessionsLab {
    async fn caller(&self, user: &User, executions: usize) -> Caller<'_> {
        let mut ids = Vec::new();
        for _ in 0..executions {
            ids.push(self.execution(user.organization, at(0), None).await.id);
        }
        Caller {
            sessions: &*self.sessions,
            organization: user.organization,
            key: self.api_key(user).await,
            executions: ids,
        }
    }
}

impl Caller<'_> {
    async fn begin(&self, execution: ExecutionId) -> ExecutionId {
        let begun = self
            .sessions
            .begin(self.organization, self.key.id, execution);
        begun.await.unwrap()
    }

    async fn resume(&self) -> Option<ExecutionId> {
        let resumed = self.sessions.resume(self.organization, self.key.id);
        resumed.await.unwrap()
    }

    async fn end_idle(&self, pause: Duration) -> Option<ExecutionId> {
        let ended = self
            .sessions
            .end_idle(self.organization, self.key.id, pause);
        ended.await.unwrap()
    }

    fn session(&self) -> IdleSession {
        IdleSession {
            organization: self.organization,
            key: self.key.id,
        }
    }

    async fn end(&self, execution: ExecutionId) {
        let ended = self.sessions.end(self.organization, self.key.id, execution);
        ended.await.unwrap();
    }
}

crate::suite!(
    use agent::write_sessions;

    /// A session goes by its key, until its end.
    async fn a_session_is_resumed_until_it_has_ended(lab: &WriteSessionsLab) {
        let caller = lab.caller(&lab.ada, 2).await;
        assert_eq!(caller.resume().await, None);
        let [first, second] = caller.executions[..] else {
            panic!("two executions");
        };
        assert_eq!(caller.begin(first).await, first);
        assert_eq!(caller.resume().await, Some(first));
        assert_eq!(caller.begin(second).await, first);
        caller.end(second).await;
        assert_eq!(caller.resume().await, Some(first));
        caller.end(first).await;
        assert_eq!(caller.resume().await, None);
        assert_eq!(caller.begin(second).await, second);
    }

    /// Beginnings that race agree on one execution.
    async fn of_racing_beginnings_one_wins(lab: &WriteSessionsLab) {
        let caller = lab.caller(&lab.ada, 4).await;
        let begun = caller
            .executions
            .iter()
            .map(|execution| caller.begin(*execution));
        let begun = join_all(begun).await;
        assert!(begun.iter().all(|execution| *execution == begun[0]));
        assert_eq!(caller.resume().await, Some(begun[0]));
    }

    /// A session is invisible to other organizations.
    async fn a_session_of_another_organization_is_not_resumed(lab: &WriteSessionsLab) {
        let owner = lab.caller(&lab.ada, 1).await;
        let other = Caller {
            organization: lab.theirs,
            key: owner.key.clone(),
            executions: Vec::new(),
            ..owner
        };
        let execution = owner.executions[0];
        owner.begin(execution).await;
        assert_eq!(other.resume().await, None);
        other.end(execution).await;
        assert_eq!(owner.resume().await, Some(execution));
    }

    /// A session that was not used for a time ends once, for any caller, with its execution as the result.
    async fn idle_sessions_end_once(lab: &WriteSessionsLab) {
        let one = lab.caller(&lab.ada, 1).await;
        let other = lab.caller(&lab.eve, 1).await;
        for caller in [&one, &other] {
            caller.begin(caller.executions[0]).await;
        }
        assert_eq!(lab.sessions.idle(Duration::HOUR, 10).await.unwrap(), []);
        assert_eq!(one.end_idle(Duration::HOUR).await, None);
        let listed = lab.sessions.idle(Duration::ZERO, 10).await.unwrap();
        assert_eq!(listed, [&one, &other].map(Caller::session));
        let first = lab.sessions.idle(Duration::ZERO, 1).await.unwrap();
        assert_eq!(first, [one.session()]);
        let ended = join_all((0..3).map(|_| one.end_idle(Duration::ZERO))).await;
        let ended: Vec<ExecutionId> = ended.into_iter().flatten().collect();
        assert_eq!(ended, one.executions);
        assert_eq!(one.resume().await, None);
        let left = lab.sessions.idle(Duration::ZERO, 10).await.unwrap();
        assert_eq!(left, [other.session()]);
    }

    /// Only the organization of its key ends a session.
    async fn an_idle_session_of_another_organization_does_not_end(lab: &WriteSessionsLab) {
        let owner = lab.caller(&lab.ada, 1).await;
        let execution = owner.executions[0];
        owner.begin(execution).await;
        let ended = lab
            .sessions
            .end_idle(lab.theirs, owner.key.id, Duration::ZERO);
        assert_eq!(ended.await.unwrap(), None);
        assert_eq!(owner.resume().await, Some(execution));
    }
);
