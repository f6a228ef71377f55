//! The reserve on the disk of the database: given up when the disk is full, so that runs still end
//! and leftovers are removed, and made again once there is room.

use labdata_domain::storage::{InsufficientStorage, ReserveAction};
use labdata_ports::PortError;

use crate::{Error, Ports, files::sweep_uploads::sweep_uploads};

/// Checks that the reserve is in place. Work that stores more than it removes calls this first, so
/// that a reserve which was given up stays for the rest.
///
/// # Errors
/// [`InsufficientStorage::DiskFull`].
pub fn require_reserve(ports: &Ports) -> Result<(), InsufficientStorage> {
    if ports.disk_reserve.is_held() {
        Ok(())
    } else {
        Err(InsufficientStorage::DiskFull)
    }
}

/// Gives the reserve up or makes it again, as the free space demands. A full disk is also cleared of
/// what uploads left behind.
///
/// # Errors
/// What the ports answer.
pub async fn keep_reserve(ports: &Ports) -> Result<(), Error> {
    let Some(state) = ports.disk_reserve.state().await? else {
        return Ok(());
    };
    match state.action() {
        ReserveAction::None => {}
        ReserveAction::GiveUp => {
            give_up_reserve(ports).await?;
            sweep_uploads(ports).await?;
        }
        ReserveAction::Hold => {
            ports.disk_reserve.hold().await?;
            tracing::info!("there is room on the disk again: everything is accepted");
        }
    }
    Ok(())
}

/// Does work that must succeed on a full disk: where it fails for lack of space, the reserve is given
/// up, and the work is done again.
pub(crate) async fn freeing_space<T, W>(ports: &Ports, work: impl Fn() -> W) -> Result<T, PortError>
where
    W: Future<Output = Result<T, PortError>>,
{
    match work().await {
        Err(error @ PortError::DiskFull(_)) => {
            if give_up_reserve(ports).await? {
                work().await
            } else {
                Err(error)
            }
        }
        answer => answer,
    }
}

/// Gives the reserve up. Returns false if it was given up before.
///
/// # Errors
/// What the port answers.
async fn give_up_reserve(ports: &Ports) -> Result<bool, PortError> {
    let given_up = ports.disk_reserve.give_up().await?;
    if given_up {
        tracing::error!(
            "the disk of the database is full: only reads, deletions and ends of executions are \
             accepted until there is room"
        );
    }
    Ok(given_up)
}
