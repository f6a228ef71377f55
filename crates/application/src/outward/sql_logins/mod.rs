//! SQL logins: PostgreSQL for people's own tools.

pub mod create_sql_login;
pub mod get_sql_login;
pub mod list_sql_logins;
pub mod revoke_sql_login;
pub mod sweep_sql_logins;

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    ids::UserId,
    outward::sql_logins::{SqlEndpoint, SqlLogin, SqlLoginsOff, SqlNotShared, SqlRolesRefused},
    people::{actor::Actor, scope::Scope},
    refusal::Resource,
};
use labdata_ports::PortError;

use crate::{Error, Services, audit::record::Record};

/// Settings of SQL logins.
#[derive(Clone, Debug, Default)]
pub struct SqlAccess {
    /// Address for tools; `None` if the server offers no logins.
    pub endpoint: Option<SqlEndpoint>,
    /// True if several organizations may share the catalogs of PostgreSQL.
    pub is_shared: bool,
}

/// Returns where tools connect, if the server makes logins.
///
/// # Errors
/// A refusal where the operator has set no address, or has not agreed that several organizations share the server,
/// and where the platform may not create roles.
pub(crate) async fn offered(services: &Services) -> Result<&SqlEndpoint, Error> {
    let endpoint = services.sql.endpoint.as_ref();
    let endpoint = endpoint.ok_or_else(|| Error::refused(SqlLoginsOff))?;
    if !services.sql.is_shared && services.tenancy.organizations().await?.len() > 1 {
        return Err(Error::refused(SqlNotShared));
    }
    if !services.sql_logins.may_create_roles().await? {
        return Err(Error::refused(SqlRolesRefused));
    }
    Ok(endpoint)
}

/// Audit record of an action on a login.
fn record_of(action: AuditAction, login: &SqlLogin) -> Record {
    let target = AuditTarget {
        kind: AuditTargetKind::SqlLogin,
        id: Some(login.id.to_string()),
        name: Some(login.name.clone()),
    };
    Record::of(action, target).with("role", login.role())
}

/// The user whose logins the caller sees: an administrator sees those of all.
fn seen_by(actor: &Actor) -> Option<UserId> {
    actor.require(Scope::Admin).is_err().then_some(actor.user)
}

/// Hides the logins of others from who is no administrator.
fn require_seen(actor: &Actor, login: &SqlLogin) -> Result<(), Error> {
    match seen_by(actor) {
        Some(user) if user != login.user => Err(PortError::NotFound(Resource::SqlLogin).into()),
        _ => Ok(()),
    }
}
