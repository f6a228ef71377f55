//! Keys with the names of the tables to which they are narrowed.

use labdata_domain::people::{ApiKey, actor::Actor};

use crate::{Error, Services, catalog::visible::visible_catalog};

/// A key with the names of its tables.
#[derive(Clone, Debug)]
pub struct NamedKey {
    /// The key.
    pub key: ApiKey,
    /// Names that the only tables that it concerns have now, as far as the caller sees them; `None` for all.
    pub tables: Option<Vec<String>>,
}

/// Finds the names of the tables of a key.
pub(super) async fn with_name(
    services: &Services,
    actor: &Actor,
    key: ApiKey,
) -> Result<NamedKey, Error> {
    let tables = match &key.tables {
        None => None,
        Some(_) => key.table_names(&*visible_catalog(services, actor).await?),
    };
    Ok(NamedKey { key, tables })
}

/// Finds the names of the tables of keys.
pub(super) async fn with_names(
    services: &Services,
    actor: &Actor,
    keys: Vec<ApiKey>,
) -> Result<Vec<NamedKey>, Error> {
    let is_narrowed = keys.iter().any(|key| key.tables.is_some());
    let catalog = if is_narrowed {
        Some(visible_catalog(services, actor).await?)
    } else {
        None
    };
    let named = keys.into_iter().map(|key| NamedKey {
        tables: catalog.as_ref().and_then(|it| key.table_names(it)),
        key,
    });
    Ok(named.collect())
}
