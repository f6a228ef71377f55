//! Dependencies of the platform, as an administrator sees them.

use std::sync::Arc;

use futures::future::join_all;
use labdata_application::{Error, maintenance::check_dependencies::check_dependencies};
use labdata_domain::{
    people::scope::Scope,
    refusal::{Refusal, RefusalKind},
};
use labdata_memory::InMemoryDependencyChecks;
use labdata_ports::maintenance::{Dependency, DependencyState};
use time::Duration;

use crate::lab::Lab;

/// A lab, and what counts its checks.
async fn lab() -> (Lab, Arc<InMemoryDependencyChecks>) {
    let mut lab = Lab::new().await;
    let checks = Arc::new(InMemoryDependencyChecks::default());
    lab.services.dependencies = checks.clone();
    (lab, checks)
}

#[tokio::test]
async fn every_dependency_has_a_state() {
    let (lab, _) = lab().await;
    let report = check_dependencies(&lab.services, &lab.actor(&[Scope::Admin])).await;
    let states = report.unwrap().states;
    assert_eq!(
        states.iter().map(|(it, _)| *it).collect::<Vec<_>>(),
        Dependency::ALL
    );
    assert!(states.contains(&(Dependency::Database, DependencyState::Works)));
    assert!(states.contains(&(Dependency::Llm, DependencyState::Unused)));
}

#[tokio::test]
async fn callers_share_the_checks_of_a_minute() {
    let (lab, checks) = lab().await;
    let actor = lab.actor(&[Scope::Admin]);
    let all = join_all((0..5).map(|_| check_dependencies(&lab.services, &actor))).await;
    assert_eq!(checks.count(), Dependency::ALL.len());
    let first = all[0].as_ref().unwrap();
    for report in &all {
        assert_eq!(report.as_ref().unwrap(), first);
    }
    lab.clock.advance(Duration::seconds(59));
    check_dependencies(&lab.services, &actor).await.unwrap();
    assert_eq!(checks.count(), Dependency::ALL.len());
    lab.clock.advance(Duration::seconds(1));
    let later = check_dependencies(&lab.services, &actor).await.unwrap();
    assert_eq!(checks.count(), 2 * Dependency::ALL.len());
    assert_eq!(later.checked_at, first.checked_at + Duration::minutes(1));
}

#[tokio::test]
async fn nothing_is_checked_for_who_is_no_administrator() {
    let (lab, checks) = lab().await;
    let actor = lab.actor(&[Scope::Read, Scope::Write]);
    let refused = check_dependencies(&lab.services, &actor).await;
    assert!(matches!(
        refused,
        Err(Error::Refused(Refusal {
            kind: RefusalKind::Forbidden,
            ..
        }))
    ));
    assert_eq!(checks.count(), 0);
}
