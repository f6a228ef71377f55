//! The reserve on the disk of the database: given up when the disk is full, so that runs still end
//! and leftovers are removed, and made again once there is room.

use labdata_domain::storage::{InsufficientStorage, ReserveAction};

use crate::{
    Error, Services, files::sweep_uploads::sweep_uploads,
    maintenance::freeing_space::give_up_reserve,
};

/// Checks that the reserve is in place. Work that stores more than it removes calls this first, so
/// that a reserve which was given up stays for the rest.
///
/// # Errors
/// [`InsufficientStorage::DiskFull`].
pub fn require_reserve(services: &Services) -> Result<(), InsufficientStorage> {
    if services.disk_reserve.is_held() {
        Ok(())
    } else {
        Err(InsufficientStorage::DiskFull)
    }
}

/// Gives the reserve up or makes it again, as the free space demands. A full disk is also cleared of
/// what uploads left behind.
///
/// # Errors
/// Errors of the ports.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn keep_reserve(services: &Services) -> Result<(), Error> {
    let Some(state) = services.disk_reserve.state().await? else {
        return Ok(());
    };
    match state.action() {
        ReserveAction::None => {}
        ReserveAction::GiveUp => {
            give_up_reserve(services).await?;
            // At once, because it may free the space that is missing.
            sweep_uploads(services).await?;
        }
        ReserveAction::Hold => {
            services.disk_reserve.hold().await?;
            tracing::info!("there is room on the disk again: everything is accepted");
        }
    }
    Ok(())
}
