//! Dependencies of a platform in memory.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use labdata_ports::maintenance::{Dependency, DependencyChecks, DependencyState};

/// Checks of a platform in memory: what others would provide is not set up, and the rest works.
#[derive(Debug, Default)]
pub struct InMemoryDependencyChecks {
    checks: AtomicUsize,
}

impl InMemoryDependencyChecks {
    /// Returns how many checks were made.
    #[must_use]
    pub fn count(&self) -> usize {
        self.checks.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl DependencyChecks for InMemoryDependencyChecks {
    async fn check(&self, dependency: Dependency) -> DependencyState {
        self.checks.fetch_add(1, Ordering::Relaxed);
        match dependency {
            Dependency::Ray | Dependency::Smtp | Dependency::Llm | Dependency::OpenId => {
                DependencyState::Unused
            }
            Dependency::Database
            | Dependency::Storage
            | Dependency::Python
            | Dependency::Uv
            | Dependency::JobIsolation => DependencyState::Works,
        }
    }
}
