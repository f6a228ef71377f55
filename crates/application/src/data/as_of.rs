//! Checks reads of tables as they stood at an earlier moment.

use labdata_domain::{data::as_of::PastTables, ids::OrganizationId};

use crate::{Error, Services};

/// Checks that the tables of a read are known as they stood.
///
/// Called after a page is read, it also finds what was deleted in the meantime, which moves the moment.
pub(super) async fn require_known(
    services: &Services,
    organization: OrganizationId,
    past: Option<&PastTables>,
) -> Result<(), Error> {
    let Some(past) = past else {
        return Ok(());
    };
    for table in past.names() {
        let since = services.data.history_since(organization, table).await?;
        past.check(table, since).map_err(Error::refused)?;
    }
    Ok(())
}
