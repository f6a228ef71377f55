//! Contract of [`ExecutionRepository`].

pub mod ends;

use labdata_domain::{
    executions::{
        Execution, ExecutionState, FinalStatus, Origin,
        started_by::{StartedBy, Starter},
    },
    ids::{ApiKeyId, ExecutionId, OrganizationId, TriggerId},
    people::author::Author,
    work::PlatformRun,
};
use labdata_ports::executions::{CloseExecutionError, ExecutionFilter, ExecutionRepository};

use crate::{
    Subject,
    assertions::assert_not_found,
    fixtures::{ApiKeys, Executions, Jobs},
    given::{self, at},
    paging::{ALL, read_to_the_end},
};

/// Makes one test of each clause of [`crate::executions`] and [`crate::executions::ends`].
#[macro_export]
macro_rules! executions_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, executions in executions:
            an_execution_reads_back_as_it_was_added,
            an_execution_needs_a_job_of_its_organization,
            an_unknown_execution_is_not_found,
            an_execution_of_another_organization_is_not_found,
            the_list_is_newest_first_and_total,
            pages_lose_and_repeat_nothing_while_others_insert,
            the_list_is_filtered_by_job_and_status,
            the_list_shows_no_other_organization,
            starters_are_named,
            starters_of_other_organizations_are_left_out,
        }
        $crate::execution_ends_contract!($harness $(, $test)?);
    };
}

/// The filter that matches all executions.
const ANY: ExecutionFilter = ExecutionFilter {
    job: None,
    status: None,
    trigger_file: None,
};

/// Adds executions that started at these seconds, and returns them newest first.
async fn stored<H: Executions>(
    harness: &H,
    organization: OrganizationId,
    seconds: &[i64],
) -> Vec<Execution> {
    let mut added = Vec::new();
    for seconds in seconds {
        added.push(harness.execution(organization, at(*seconds), None).await);
    }
    added.sort_by_key(|execution| std::cmp::Reverse((execution.created_at, execution.id)));
    added
}

/// Every field is kept, in every state and of every origin, times to the microsecond.
pub async fn an_execution_reads_back_as_it_was_added<H>(harness: &H)
where
    H: Jobs + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await.id;
    let job = harness.job(lab, "parse \"Gen5\"").await;
    let executions = harness.subject();
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
            Origin::Platform(run),
        ] {
            let given = given::execution(&job, at(0), None);
            let execution = Execution {
                state: state.clone(),
                origin,
                ..given
            };
            executions
                .add(lab, &execution, StartedBy::user(user))
                .await
                .unwrap();
            assert_eq!(executions.get(lab, execution.id).await.unwrap(), execution);
        }
    }
    let waiting = Execution {
        started_at: None,
        ..given::execution(&job, at(0), None)
    };
    executions
        .add(lab, &waiting, StartedBy::user(user))
        .await
        .unwrap();
    assert_eq!(executions.get(lab, waiting.id).await.unwrap(), waiting);
}

/// A job that is unknown or another organization's is not found, and nothing is stored.
pub async fn an_execution_needs_a_job_of_its_organization<H>(harness: &H)
where
    H: Jobs + Subject<dyn ExecutionRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let user = harness.user(ours, "ada@example.org").await.id;
    let unknown = given::job("parse", at(0));
    let foreign = harness.job(theirs, "parse").await;
    let executions = harness.subject();
    for job in [unknown, foreign] {
        let execution = given::execution(&job, at(0), None);
        assert_not_found(
            executions
                .add(ours, &execution, StartedBy::user(user))
                .await,
        );
        assert_not_found(executions.get(ours, execution.id).await);
    }
    assert_eq!(executions.list(ours, &ANY, ALL).await.unwrap().items, []);
    assert_eq!(executions.list(theirs, &ANY, ALL).await.unwrap().items, []);
}

/// An id that no execution has is not found, whether it is read or closed.
pub async fn an_unknown_execution_is_not_found<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let unknown = ExecutionId::new(given::uuid());
    let executions = harness.subject();
    assert_not_found(executions.get(lab, unknown).await);
    match executions
        .close(lab, unknown, FinalStatus::Failed, at(0))
        .await
    {
        Err(CloseExecutionError::Port(error)) => assert_not_found::<()>(Err(error)),
        other => panic!("expected NotFound, got {other:?}"),
    }
}

/// Another organization's execution is answered like one that does not exist.
pub async fn an_execution_of_another_organization_is_not_found<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let execution = harness.execution(theirs, at(0), None).await;
    assert_not_found(harness.subject().get(ours, execution.id).await);
}

/// The list is ordered by creation time, then id, newest first, with any page size.
pub async fn the_list_is_newest_first_and_total<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let expected = stored(harness, lab, &[20, 10, 30, 10, 20, 10, 10]).await;
    let executions = harness.subject();
    let all = executions.list(lab, &ANY, ALL).await.unwrap();
    assert_eq!((all.items, all.next), (expected.clone(), None));
    for limit in [1, 2, 7, 100] {
        let items = read_to_the_end(limit, async |_, page| {
            executions.list(lab, &ANY, page).await
        })
        .await;
        assert_eq!(items, expected, "in pages of {limit}");
    }
}

/// Items that exist when paging begins are read exactly once, while newer ones are added.
pub async fn pages_lose_and_repeat_nothing_while_others_insert<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let expected = stored(harness, lab, &[1, 2, 2, 2, 3, 4, 5]).await;
    let executions = harness.subject();
    let items = read_to_the_end(2, async |_, request| {
        let page = executions.list(lab, &ANY, request).await?;
        stored(harness, lab, &[60]).await;
        Ok(page)
    })
    .await;
    assert_eq!(items, expected);
}

/// The filters hold together, also across pages.
pub async fn the_list_is_filtered_by_job_and_status<H>(harness: &H)
where
    H: Jobs + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await.id;
    let parse = harness.job(lab, "parse").await;
    let plot = harness.job(lab, "plot").await;
    let unused = harness.job(lab, "unused").await;
    let executions = harness.subject();
    let mut added = Vec::new();
    for (job, second) in [
        (&parse, 1),
        (&plot, 2),
        (&parse, 3),
        (&plot, 4),
        (&parse, 5),
    ] {
        let execution = given::execution(job, at(second), None);
        executions
            .add(lab, &execution, StartedBy::user(user))
            .await
            .unwrap();
        added.push(execution);
    }
    for execution in added.iter_mut().take(3) {
        *execution = executions
            .close(lab, execution.id, FinalStatus::Completed, at(9))
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
                .filter(|execution| status.is_none_or(|status| execution.state.as_str() == status))
                .cloned()
                .collect();
            let items =
                read_to_the_end(1, async |_, page| executions.list(lab, &filter, page).await).await;
            assert_eq!(items, expected, "{filter:?}");
        }
    }
}

/// An organization's list holds none of another's executions, not even when asked for its job.
pub async fn the_list_shows_no_other_organization<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let expected = stored(harness, ours, &[1, 3, 5]).await;
    let foreign = harness.execution(theirs, at(2), None).await;
    let executions = harness.subject();
    let items = read_to_the_end(1, async |_, page| executions.list(ours, &ANY, page).await).await;
    assert_eq!(items, expected);
    let filter = ExecutionFilter {
        job: Some(foreign.job_id),
        ..ANY
    };
    assert_eq!(executions.list(ours, &filter, ALL).await.unwrap().items, []);
}

/// A user, a key and a trigger; a key that is gone has no name any more.
pub async fn starters_are_named<H>(harness: &H)
where
    H: Jobs + ApiKeys + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await;
    let key = harness.api_key(&user).await;
    let job = harness.job(lab, "parse").await;
    let trigger = TriggerId::new(given::uuid());
    let deleted = ApiKeyId::new(given::uuid());
    let executions = Subject::<dyn ExecutionRepository>::subject(harness);
    let mut expected = std::collections::BTreeMap::new();
    for (started_by, api_key) in [
        (StartedBy::user(user.id), None),
        (StartedBy::key(user.id, key.id), Some(&key)),
        (StartedBy::key(user.id, deleted), None),
        (
            StartedBy {
                trigger: Some(trigger),
                ..StartedBy::user(user.id)
            },
            None,
        ),
    ] {
        let execution = given::execution(&job, at(0), None);
        executions.add(lab, &execution, started_by).await.unwrap();
        let starter = Starter {
            author: Author::of(&user, api_key),
            trigger: started_by.trigger,
        };
        expected.insert(execution.id, starter);
    }
    let ids: Vec<ExecutionId> = expected.keys().copied().collect();
    assert_eq!(executions.starters(lab, &ids).await.unwrap(), expected);
    expected.remove(&ids[0]);
    let some = executions.starters(lab, &ids[1..]).await.unwrap();
    assert_eq!(some, expected);
}

/// As are ids that no execution has.
pub async fn starters_of_other_organizations_are_left_out<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let execution = harness.execution(theirs, at(0), None).await.id;
    let executions = harness.subject();
    let ids = [execution, ExecutionId::new(given::uuid())];
    assert!(executions.starters(ours, &ids).await.unwrap().is_empty());
    assert_eq!(executions.starters(theirs, &ids).await.unwrap().len(), 1);
}
