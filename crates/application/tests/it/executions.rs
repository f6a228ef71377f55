//! Starting, closing and sweeping executions.

use std::sync::Arc;

use labdata_application::{
    Error,
    executions::{
        close_execution::close_execution,
        get_execution::get_execution,
        start_execution::{StartExecution, start_execution},
        sweep_executions::sweep_executions,
    },
    notifications::list_notifications::list_notifications,
};
use labdata_domain::{
    executions::FinalStatus,
    ids::UserId,
    notifications::Sender,
    page::PageRequest,
    people::scope::Scope,
    refusal::{Refusal, RefusalKind},
};
use labdata_ports::executions::{MockExecutionRepository, OverdueExecution};
use time::Duration;

use crate::lab::Lab;

#[tokio::test]
async fn reading_needs_read_and_changing_needs_write() {
    let lab = Lab::new().await;
    let writer = lab.actor(&[Scope::Write, Scope::Admin]);
    let reader = lab.actor(&[Scope::Read, Scope::Admin]);
    let made = start_execution(&lab.services, &writer, StartExecution::default())
        .await
        .unwrap();
    let refusals = [
        start_execution(&lab.services, &reader, StartExecution::default()).await,
        close_execution(&lab.services, &reader, made.id, FinalStatus::Completed).await,
        get_execution(&lab.services, &writer, made.id).await,
    ];
    for refusal in refusals {
        assert!(
            matches!(
                refusal,
                Err(Error::Refused(Refusal {
                    kind: RefusalKind::Forbidden,
                    ..
                }))
            ),
            "{refusal:?}"
        );
    }
    let read = get_execution(&lab.services, &reader, made.id)
        .await
        .unwrap();
    assert_eq!(read, made);
}

#[tokio::test]
async fn past_its_deadline_an_execution_cannot_be_completed_though_no_sweeper_came() {
    let lab = Lab::new().await;
    let actor = lab.actor(&Scope::ALL);
    let command = StartExecution {
        timeout_minutes: Some(1),
        ..StartExecution::default()
    };
    let made = start_execution(&lab.services, &actor, command)
        .await
        .unwrap();
    lab.clock.advance(Duration::minutes(2));
    let refused = close_execution(&lab.services, &actor, made.id, FinalStatus::Completed).await;
    assert!(
        matches!(
            refused,
            Err(Error::Refused(Refusal {
                kind: RefusalKind::Invalid,
                ..
            }))
        ),
        "{refused:?}"
    );
    assert!(sweep_executions(&lab.services).await.unwrap() <= 1);
    let read = get_execution(&lab.services, &actor, made.id).await.unwrap();
    assert_eq!(read.state.as_str(), "failed");
}

#[tokio::test]
async fn sweeping_continues_while_batches_are_full() {
    let lab = Lab::new().await;
    let mut executions = MockExecutionRepository::new();
    let actor = lab.actor(&Scope::ALL);
    let made = start_execution(&lab.services, &actor, StartExecution::default()).await;
    let one = OverdueExecution {
        organization: actor.organization,
        execution: made.unwrap(),
    };
    let mut left = 1_200_usize;
    executions
        .expect_fail_overdue()
        .times(3)
        .returning(move |_, limit| {
            let batch = left.min(usize::try_from(limit).unwrap());
            left -= batch;
            Ok(vec![one.clone(); batch])
        });
    let mut services = lab.services.clone();
    services.executions = Arc::new(executions);
    assert_eq!(sweep_executions(&services).await.unwrap(), 1_200);
}

#[tokio::test]
async fn the_platform_sends_one_notice_of_a_failed_execution() {
    let lab = Lab::new().await;
    let actor = lab.actor(&Scope::ALL);
    let timed = StartExecution {
        job_name: Some("parse plates".to_owned()),
        timeout_minutes: Some(1),
        ..StartExecution::default()
    };
    let failing = start_execution(&lab.services, &actor, timed.clone())
        .await
        .unwrap();
    let fine = start_execution(&lab.services, &actor, timed.clone())
        .await
        .unwrap();
    let late = start_execution(&lab.services, &actor, timed).await.unwrap();
    // Another of the lab closes it; who started it is told.
    let mut other = actor.clone();
    other.user = UserId::new(lab.services.ids.next_id());
    for _ in 0..2 {
        close_execution(&lab.services, &other, failing.id, FinalStatus::Failed)
            .await
            .unwrap();
        close_execution(&lab.services, &actor, fine.id, FinalStatus::Completed)
            .await
            .unwrap();
    }
    lab.clock.advance(Duration::minutes(2));
    for expected in [1, 0] {
        assert_eq!(sweep_executions(&lab.services).await.unwrap(), expected);
    }
    let page = PageRequest {
        limit: None,
        after: None,
    };
    let reported = list_notifications(&lab.services, &actor, None, page)
        .await
        .unwrap();
    let titles: Vec<&str> = reported
        .items
        .iter()
        .map(|one| one.title.as_str())
        .collect();
    assert_eq!(
        titles,
        ["\"parse plates\" timed out", "\"parse plates\" failed"]
    );
    for (one, execution) in reported.items.iter().zip([late, failing]) {
        assert_eq!(one.sender, Sender::Platform);
        assert_eq!(one.action_url, format!("/job-executions/{}", execution.id));
    }
}
