//! Clauses of [`DependencyChecks`].

use futures::future::join_all;
use labdata_ports::maintenance::{Dependency, DependencyChecks, DependencyState};

use crate::{Itself, Subject};

crate::suite!(
    use maintenance::dependencies as dependency_checks;

    /// Checks at once find what they find one by one, and what they find again. The subject's database and
    /// storage work.
    async fn checks_disturb_neither_each_other_nor_what_they_check(
        harness: &Itself<impl Subject<dyn DependencyChecks>>,
    ) {
        let checks = harness.subject();
        let at_once = join_all(Dependency::ALL.map(|it| checks.check(it))).await;
        assert_eq!(at_once[..2], [DependencyState::Works; 2]);
        for (dependency, found) in Dependency::ALL.into_iter().zip(at_once) {
            assert_eq!(checks.check(dependency).await, found, "{dependency:?}");
        }
    }
);
