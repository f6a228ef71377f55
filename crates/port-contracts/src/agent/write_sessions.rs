//! Contract of [`WriteSessions`].

use futures::future::join_all;
use labdata_domain::{
    ids::{ExecutionId, OrganizationId},
    people::{ApiKey, tenancy::User},
};
use labdata_ports::agent::{EndedSession, WriteSessions};

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
    async fn begin(&self, execution: ExecutionId, seconds: i64) -> ExecutionId {
        let begun = self
            .sessions
            .begin(self.organization, self.key.id, execution, at(seconds));
        begun.await.unwrap()
    }

    async fn resume(&self, seconds: i64) -> Option<ExecutionId> {
        let resumed = self
            .sessions
            .resume(self.organization, self.key.id, at(seconds));
        resumed.await.unwrap()
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
        assert_eq!(caller.resume(1).await, None);
        let [first, second] = caller.executions[..] else {
            panic!("two executions");
        };
        assert_eq!(caller.begin(first, 1).await, first);
        assert_eq!(caller.resume(2).await, Some(first));
        assert_eq!(caller.begin(second, 3).await, first);
        caller.end(second).await;
        assert_eq!(caller.resume(4).await, Some(first));
        caller.end(first).await;
        assert_eq!(caller.resume(5).await, None);
        assert_eq!(caller.begin(second, 6).await, second);
    }

    /// Beginnings that race agree on one execution.
    async fn of_racing_beginnings_one_wins(lab: &WriteSessionsLab) {
        let caller = lab.caller(&lab.ada, 4).await;
        let begun = caller
            .executions
            .iter()
            .map(|execution| caller.begin(*execution, 1));
        let begun = join_all(begun).await;
        assert!(begun.iter().all(|execution| *execution == begun[0]));
        assert_eq!(caller.resume(2).await, Some(begun[0]));
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
        owner.begin(execution, 1).await;
        assert_eq!(other.resume(2).await, None);
        other.end(execution).await;
        assert_eq!(owner.resume(3).await, Some(execution));
    }

    /// A session that was used stays; an unused one ends once, for any caller.
    async fn idle_sessions_end_once(lab: &WriteSessionsLab) {
        let idle = lab.caller(&lab.ada, 1).await;
        let used = lab.caller(&lab.eve, 1).await;
        for caller in [&idle, &used] {
            caller.begin(caller.executions[0], 1).await;
        }
        assert!(used.resume(10).await.is_some());
        let ended = join_all((0..3).map(|_| lab.sessions.end_idle(at(5), 10))).await;
        let ended: Vec<EndedSession> = ended.into_iter().flat_map(Result::unwrap).collect();
        let expected = EndedSession {
            organization: idle.organization,
            execution: idle.executions[0],
        };
        assert_eq!(ended, [expected]);
        assert_eq!(lab.sessions.end_idle(at(11), 0).await.unwrap(), []);
        assert_eq!(lab.sessions.end_idle(at(11), 1).await.unwrap().len(), 1);
    }
);
