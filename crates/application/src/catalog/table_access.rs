//! Tells who may read and write a table.

use std::sync::Arc;

use labdata_domain::{
    catalog::Table,
    page::PageRequest,
    people::{
        actor::Actor,
        rights::TableRight,
        scope::{Scope, Scopes},
        tenancy::User,
    },
    refusal::Resource,
};

use crate::{Error, Services, catalog::visible::visible_catalog};

/// Groups and users that may read and write a table.
#[derive(Clone, Debug)]
pub struct WhoMay {
    /// The table.
    pub table: Arc<Table>,
    /// Users who are not disabled and may read it, by their e-mail addresses, and what they may do.
    pub users: Vec<(User, TableRight)>,
}

/// The groups and users that may read and write a table, with keys that have the scopes.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound` for a table that the caller does not see.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn table_access(services: &Services, actor: &Actor, name: &str) -> Result<WhoMay, Error> {
    actor.require(Scope::Read)?;
    let catalog = visible_catalog(services, actor).await?;
    let table = catalog.table(name);
    let table = Arc::clone(table.ok_or_else(|| Error::not_found(Resource::Table))?);
    let all = PageRequest {
        limit: None,
        after: None,
    };
    let users = services.tenancy.users(actor.organization, all).await?.items;
    let enabled = users.into_iter().filter(|user| user.disabled_at.is_none());
    let rights = enabled.map(|user| {
        let right = user.rights().with_scopes_on(Scopes::all(), &table);
        (user, right)
    });
    let may = rights.filter(|(_, right)| *right != TableRight::None);
    let mut users: Vec<(User, TableRight)> = may.collect();
    users.sort_by(|(left, _), (right, _)| left.email.cmp(&right.email));
    Ok(WhoMay { table, users })
}
