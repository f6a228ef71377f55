//! Tells a caller who they are.

use labdata_domain::{
    ids::ExecutionId,
    people::{
        ApiKey,
        actor::Actor,
        tenancy::{Organization, User},
    },
};

use super::named_key::{NamedKey, with_name};
use crate::{Error, Services};

/// User and organization of a key.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Organization to which the key gives access.
    pub organization: Organization,
    /// User to whom the key belongs.
    pub user: User,
    /// The key.
    pub api_key: NamedKey,
    /// Execution of a key that was made for a run on the platform.
    pub execution: Option<ExecutionId>,
}

/// Returns what the presented key stands for. It needs no scope.
///
/// # Errors
/// Errors of the ports.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn identify(services: &Services, actor: &Actor) -> Result<Identity, Error> {
    let organization = services.tenancy.organization(actor.organization).await?;
    let user = services
        .tenancy
        .user(actor.organization, actor.user)
        .await?;
    let found = services.api_keys.get(actor.organization, actor.api_key);
    let key = ApiKey {
        // Those in effect, which a role may limit since the key was made.
        scopes: actor.scopes,
        ..found.await?.key
    };
    Ok(Identity {
        organization,
        user,
        api_key: with_name(services, actor, key).await?,
        execution: actor.execution,
    })
}
