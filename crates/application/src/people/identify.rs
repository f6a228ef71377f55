//! Tells a caller who they are.

use labdata_domain::{
    ids::ExecutionId,
    people::{
        ApiKey,
        actor::Actor,
        setup::{Feature, MissingFeature},
        tenancy::{Organization, User},
    },
};

use super::named_key::{NamedKey, with_name};
use crate::{Error, Services, agent::Agent, outward::sql_logins};

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
    /// Features of the server that are not set up.
    pub missing_features: Vec<MissingFeature>,
}

/// Returns what the presented key stands for. It needs no scope.
///
/// # Errors
/// Errors of the ports.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn identify(
    services: &Services,
    agent: &Agent,
    actor: &Actor,
) -> Result<Identity, Error> {
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
        missing_features: missing_features(services, agent).await?,
    })
}

/// Returns the features that refuse every request until the operator sets them up.
async fn missing_features(
    services: &Services,
    agent: &Agent,
) -> Result<Vec<MissingFeature>, Error> {
    let agent = agent.check().err().map(|failure| MissingFeature {
        feature: Feature::Agent,
        refusal: failure.into(),
    });
    let sql_logins = match sql_logins::offered(services).await {
        Ok(_) => None,
        Err(Error::Refused(refusal)) => Some(MissingFeature {
            feature: Feature::SqlLogins,
            refusal,
        }),
        Err(error) => return Err(error),
    };
    Ok(agent.into_iter().chain(sql_logins).collect())
}
