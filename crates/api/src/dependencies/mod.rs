//! Checks of everything that the platform depends on, for `labdata doctor` and running servers. None
//! changes anything that outlives it.

mod checks;

use std::sync::Arc;

use async_trait::async_trait;
use labdata_ports::{
    PortError,
    files::blob::BlobStore,
    maintenance::{Dependency, DependencyChecks, DependencyState, StoreHealth},
};

pub use self::checks::{Finding, check};
use crate::settings::Settings;

/// Checks the database and the storage over the server's own connections, and the rest like
/// `labdata doctor`.
pub struct ServerDependencies {
    /// The server's settings.
    pub settings: Settings,
    /// The server's database.
    pub health: Arc<dyn StoreHealth>,
    /// The server's storage.
    pub blobs: Arc<dyn BlobStore>,
}

impl ServerDependencies {
    /// Returns what creates the checks of a server with these settings.
    pub(crate) fn of(
        settings: &Settings,
    ) -> impl FnOnce(Arc<dyn StoreHealth>, Arc<dyn BlobStore>) -> Arc<dyn DependencyChecks> + use<>
    {
        let settings = settings.clone();
        move |health, blobs| {
            Arc::new(Self {
                settings,
                health,
                blobs,
            })
        }
    }
}

#[async_trait]
impl DependencyChecks for ServerDependencies {
    async fn check(&self, dependency: Dependency) -> DependencyState {
        let finding = match dependency {
            Dependency::Database => answered(self.health.probe().await),
            Dependency::Storage => answered(self.blobs.probe().await),
            other => check(&self.settings, other).await,
        };
        match finding {
            Finding::Works(_) => DependencyState::Works,
            Finding::Unused(_) => DependencyState::Unused,
            Finding::Fails(reason) => {
                tracing::warn!(dependency = dependency.as_str(), reason, "a check failed");
                DependencyState::Fails
            }
        }
    }
}

fn answered(probe: Result<(), PortError>) -> Finding {
    match probe {
        Ok(()) => Finding::Works(String::new()),
        Err(error) => Finding::Fails(error.to_string()),
    }
}

impl std::fmt::Debug for ServerDependencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerDependencies").finish_non_exhaustive()
    }
}
