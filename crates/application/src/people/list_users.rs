//! Lists users.

use labdata_domain::{
    page::{Page, PageRequest},
    people::{actor::Actor, scope::Scope, tenancy::User},
};

use crate::{Error, Services};

/// The organization's users, newest first, disabled ones too.
///
/// # Errors
/// `Forbidden` without the read scope.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_users(
    services: &Services,
    actor: &Actor,
    page: PageRequest,
) -> Result<Page<User>, Error> {
    actor.require(Scope::Read)?;
    Ok(services.tenancy.users(actor.organization, page).await?)
}
