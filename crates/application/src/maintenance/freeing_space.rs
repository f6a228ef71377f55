//! Work that frees space, which must succeed on a full disk.

use labdata_ports::PortError;

use crate::Services;

/// Does work that must succeed on a full disk: where it fails for lack of space, the reserve is given
/// up, and the work is done again.
pub(crate) async fn freeing_space<T, W>(
    services: &Services,
    work: impl Fn() -> W,
) -> Result<T, PortError>
where
    W: Future<Output = Result<T, PortError>>,
{
    match work().await {
        Err(error @ PortError::DiskFull(_)) => {
            // Deletions and ends of runs write, too (WAL), so they need space before they free any.
            if give_up_reserve(services).await? {
                work().await
            } else {
                Err(error)
            }
        }
        response => response,
    }
}

/// Gives the reserve up. Returns false if it was given up before.
///
/// # Errors
/// Errors of the port.
pub(crate) async fn give_up_reserve(services: &Services) -> Result<bool, PortError> {
    let given_up = services.disk_reserve.give_up().await?;
    if given_up {
        tracing::error!(
            "the disk of the database is full: only reads, deletions and ends of executions are \
             accepted until there is room"
        );
    }
    Ok(given_up)
}
