//! Checks that the services behind the platform respond.

use crate::Services;

/// A service that does not respond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unhealthy {
    /// The database.
    #[error("the database does not respond")]
    Database,
    /// The file storage.
    #[error("the file storage does not respond")]
    Storage,
}

/// Makes a round trip to the database and to the file storage.
///
/// # Errors
/// The first service that does not respond; its error is logged.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn check_health(services: &Services) -> Result<(), Unhealthy> {
    let failed = |unhealthy: Unhealthy| {
        move |error| {
            tracing::warn!(%error, "{unhealthy}");
            unhealthy
        }
    };
    let database = services.health.probe().await;
    database.map_err(failed(Unhealthy::Database))?;
    let storage = services.blobs.probe().await;
    storage.map_err(failed(Unhealthy::Storage))
}
