//! Contract of [`ExecutionRepository`](labdata_ports::executions::ExecutionRepository).

pub mod ends;

use labdata_domain::{
    executions::{
        Execution, ExecutionState, FinalStatus, Origin,
        started_by::{StartedBy, Starter},
    },
    ids::{ApiKeyId, ExecutionId, TriggerId},
    people::{author::Author, run_key::most_run_scopes},
    work::PlatformRun,
};
use labdata_ports::{
    PortError,
    executions::{CloseExecutionError, ExecutionFilter},
};

use crate::{
    assertions::assert_not_found,
    given::{self, at},
    lab::lab,
    paging::{ALL, assert_pages, read_to_the_end},
};

/// The filter that matches all executions.
const ANY: ExecutionFilter = ExecutionFilter {
    job: None,
    status: None,
    trigger_file: None,
};

lab!(
    /// Executions of two organizations.
    pub struct ExecutionsLab {}
);

impl ExecutionsLab {
    /// Adds an execution that ada started.
    async fn add(&self, execution: &Execution) -> Result<(), PortError> {
        let ada = StartedBy {
            run_scopes: execution.origin.run().map(|_| most_run_scopes()),
            ..StartedBy::user(self.ada.id)
        };
        self.executions.add(self.ours, execution, ada).await
    }

    async fn get(&self, execution: &Execution) -> Execution {
        let stored = self.executions.get(self.ours, execution.id).await;
        stored.unwrap()
    }

    /// Closes an execution.
    async fn close(
        &self,
        execution: &Execution,
        status: FinalStatus,
        seconds: i64,
    ) -> Result<Execution, CloseExecutionError> {
        self.executions
            .close(self.ours, execution.id, status, at(seconds))
            .await
    }

    async fn list(&self, filter: &ExecutionFilter) -> Vec<Execution> {
        let page = self.executions.list(self.ours, filter, ALL).await;
        page.unwrap().items
    }

    /// Adds executions that started at these seconds, and returns them newest first.
    async fn stored(&self, seconds: &[i64]) -> Vec<Execution> {
        let mut added = Vec::new();
        for seconds in seconds {
            added.push(self.execution(self.ours, at(*seconds), None).await);
        }
        added.sort_by_key(|execution| std::cmp::Reverse((execution.created_at, execution.id)));
        added
    }
}

crate::suite!(
    use executions;

    /// Every field is stored, in every state and of every origin, times to the microsecond.
    async fn an_execution_reads_back_as_it_was_added(lab: &ExecutionsLab) {
        let job = lab.job(lab.ours, "parse \"Gen5\"").await;
        let states = [
            ExecutionState::Running { deadline: None },
            ExecutionState::Running {
                deadline: Some(at(3600)),
            },
            ExecutionState::Completed { at: at(9) },
            ExecutionState::Cancelled { at: at(9) },
            ExecutionState::Failed {
                at: at(9),
                error: None,
            },
            ExecutionState::Failed {
                at: at(9),
                error: Some("ImportError: \"numpy\"".to_owned()),
            },
        ];
        for state in states {
            let run = PlatformRun {
                exit_code: Some(-9),
                ..PlatformRun::of_version(7)
            };
            for origin in [
                Origin::OffPlatform,
                Origin::DataWrite,
                Origin::Agent,
                Origin::Platform(run),
            ] {
                let given = given::execution(&job, at(0), None);
                let execution = Execution {
                    state: state.clone(),
                    origin,
                    ..given
                };
                lab.add(&execution).await.unwrap();
                assert_eq!(lab.get(&execution).await, execution);
            }
        }
        let waiting = Execution {
            started_at: None,
            ..given::execution(&job, at(0), None)
        };
        lab.add(&waiting).await.unwrap();
        assert_eq!(lab.get(&waiting).await, waiting);
    }

    /// A job that is unknown or another organization's is not found, and nothing is stored.
    async fn an_execution_needs_a_job_of_its_organization(lab: &ExecutionsLab) {
        let unknown = given::job("parse", at(0));
        let foreign = lab.job(lab.theirs, "parse").await;
        for job in [unknown, foreign] {
            let execution = given::execution(&job, at(0), None);
            assert_not_found(lab.add(&execution).await);
            assert_not_found(lab.executions.get(lab.ours, execution.id).await);
        }
        assert_eq!(lab.list(&ANY).await, []);
        assert_eq!(
            lab.executions
                .list(lab.theirs, &ANY, ALL)
                .await
                .unwrap()
                .items,
            []
        );
    }

    /// An id that no execution has is not found, whether it is read or closed.
    async fn an_unknown_execution_is_not_found(lab: &ExecutionsLab) {
        let unknown = ExecutionId::new(given::uuid());
        assert_not_found(lab.executions.get(lab.ours, unknown).await);
        match lab
            .executions
            .close(lab.ours, unknown, FinalStatus::Failed, at(0))
            .await
        {
            Err(CloseExecutionError::Port(error)) => assert_not_found::<()>(Err(error)),
            other => panic!("expected NotFound, got {other:?}"),
        }
    }

    /// Another organization's execution is answered like one that does not exist.
    async fn an_execution_of_another_organization_is_not_found(lab: &ExecutionsLab) {
        let execution = lab.execution(lab.theirs, at(0), None).await;
        assert_not_found(lab.executions.get(lab.ours, execution.id).await);
    }

    /// The list is ordered by creation time, then id, newest first, with any page size.
    async fn the_list_is_newest_first_and_total(lab: &ExecutionsLab) {
        let expected = lab.stored(&[20, 10, 30, 10, 20, 10, 10]).await;
        let all = lab.executions.list(lab.ours, &ANY, ALL).await.unwrap();
        assert_eq!((all.items, all.next), (expected.clone(), None));
        let read = async |page| lab.executions.list(lab.ours, &ANY, page).await;
        assert_pages([1, 2, 7, 100], &expected, read).await;
    }

    /// Items that exist when paging begins are read exactly once, while newer ones are added.
    async fn pages_lose_and_repeat_nothing_while_others_insert(lab: &ExecutionsLab) {
        let expected = lab.stored(&[1, 2, 2, 2, 3, 4, 5]).await;
        let items = read_to_the_end(2, async |_, request| {
            let page = lab.executions.list(lab.ours, &ANY, request).await?;
            lab.stored(&[60]).await;
            Ok(page)
        })
        .await;
        assert_eq!(items, expected);
    }

    /// The filters hold together, also across pages.
    async fn the_list_is_filtered_by_job_and_status(lab: &ExecutionsLab) {
        let parse = lab.job(lab.ours, "parse").await;
        let plot = lab.job(lab.ours, "plot").await;
        let unused = lab.job(lab.ours, "unused").await;
        let mut added = Vec::new();
        for (job, second) in [
            (&parse, 1),
            (&plot, 2),
            (&parse, 3),
            (&plot, 4),
            (&parse, 5),
        ] {
            let execution = given::execution(job, at(second), None);
            lab.add(&execution).await.unwrap();
            added.push(execution);
        }
        for execution in added.iter_mut().take(3) {
            *execution = lab
                .close(execution, FinalStatus::Completed, 9)
                .await
                .unwrap();
        }
        added.reverse();
        for job in [None, Some(parse.id), Some(plot.id), Some(unused.id)] {
            for status in [None, Some("running"), Some("completed"), Some("failed")] {
                let filter = ExecutionFilter {
                    job,
                    status: status.map(str::to_owned),
                    trigger_file: None,
                };
                let expected: Vec<Execution> = added
                    .iter()
                    .filter(|execution| job.is_none_or(|job| execution.job_id == job))
                    .filter(|execution| {
                        status.is_none_or(|status| execution.state.as_str() == status)
                    })
                    .cloned()
                    .collect();
                let read = async |page| lab.executions.list(lab.ours, &filter, page).await;
                assert_pages([1], &expected, read).await;
            }
        }
    }

    /// An organization's list holds none of another's executions, not even when asked for its job.
    async fn the_list_shows_no_other_organization(lab: &ExecutionsLab) {
        let expected = lab.stored(&[1, 3, 5]).await;
        let foreign = lab.execution(lab.theirs, at(2), None).await;
        let read = async |page| lab.executions.list(lab.ours, &ANY, page).await;
        assert_pages([1], &expected, read).await;
        let filter = ExecutionFilter {
            job: Some(foreign.job_id),
            ..ANY
        };
        assert_eq!(lab.list(&filter).await, []);
    }

    /// A user, a key and a trigger; a key that no longer exists has no name any more.
    async fn starters_are_named(lab: &ExecutionsLab) {
        let key = lab.api_key(&lab.ada).await;
        let job = lab.job(lab.ours, "parse").await;
        let trigger = TriggerId::new(given::uuid());
        let deleted = ApiKeyId::new(given::uuid());
        let mut expected = std::collections::BTreeMap::new();
        for (started_by, api_key) in [
            (StartedBy::user(lab.ada.id), None),
            (StartedBy::key(lab.ada.id, key.id), Some(&key)),
            (StartedBy::key(lab.ada.id, deleted), None),
            (
                StartedBy {
                    trigger: Some(trigger),
                    ..StartedBy::user(lab.ada.id)
                },
                None,
            ),
        ] {
            let execution = given::execution(&job, at(0), None);
            lab.executions
                .add(lab.ours, &execution, started_by)
                .await
                .unwrap();
            let starter = Starter {
                author: Author::of(&lab.ada, api_key),
                trigger: started_by.trigger,
                script_author: None,
            };
            expected.insert(execution.id, starter);
        }
        let ids: Vec<ExecutionId> = expected.keys().copied().collect();
        assert_eq!(
            lab.executions.starters(lab.ours, &ids).await.unwrap(),
            expected
        );
        expected.remove(&ids[0]);
        let some = lab.executions.starters(lab.ours, &ids[1..]).await.unwrap();
        assert_eq!(some, expected);
    }

    /// As are ids that no execution has.
    async fn starters_of_other_organizations_are_left_out(lab: &ExecutionsLab) {
        let execution = lab.execution(lab.theirs, at(0), None).await.id;
        let ids = [execution, ExecutionId::new(given::uuid())];
        assert!(
            lab.executions
                .starters(lab.ours, &ids)
                .await
                .unwrap()
                .is_empty()
        );
        assert_eq!(
            lab.executions
                .starters(lab.theirs, &ids)
                .await
                .unwrap()
                .len(),
            1
        );
    }
);
