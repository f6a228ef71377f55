//! Lists API keys.

use labdata_domain::{
    page::{Cursor, Page, PageRequest},
    people::{actor::Actor, scope::Scope},
};

use super::named_key::{NamedKey, with_names};
use crate::{Error, Services};

/// The organization's keys, newest first, revoked and expired ones too.
///
/// # Errors
/// `Forbidden` without the admin scope.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_api_keys(
    services: &Services,
    actor: &Actor,
    page: PageRequest,
) -> Result<Page<NamedKey>, Error> {
    actor.require(Scope::Admin)?;
    let keys = services.api_keys.list(actor.organization).await?;
    let Page { items, next } = Page::of_all(keys, page, |key| Cursor {
        at: key.created_at,
        id: key.id.as_uuid(),
    });
    let items = with_names(services, actor, items).await?;
    Ok(Page { items, next })
}
