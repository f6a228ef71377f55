//! Makes a SQL login.

use labdata_domain::{
    audit::AuditAction,
    ids::SqlLoginId,
    names::Named,
    outward::sql_logins::{SqlConnection, SqlLogin, SqlLoginLimits, SqlPassword, SqlRolesRefused},
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
};
use labdata_ports::outward::sql_logins::AddedLogin;
use time::OffsetDateTime;

use super::{offered, record_of};
use crate::{Error, Services, audit::record::audited, maintenance::disk_reserve::require_reserve};

/// The login to make.
#[derive(Clone, Debug)]
pub struct CreateSqlLogin {
    /// Purpose of the login.
    pub name: String,
    /// When it ends by itself.
    pub expires_at: Option<OffsetDateTime>,
    /// Host by which the caller reached the platform.
    pub reached_host: String,
}

/// Makes a login of the caller's user; also returns how to connect, with the password, which is given out only now.
///
/// # Errors
/// `Forbidden` without the read scope, for a run's key and for a key that is narrowed to tables; `Invalid` where the
/// server offers none, several organizations share it without agreement, the platform may not create roles, there
/// are too many, or it would have ended already.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn create_sql_login(
    services: &Services,
    actor: &Actor,
    command: CreateSqlLogin,
) -> Result<(SqlLogin, SqlConnection), Error> {
    actor.require(Scope::Read)?;
    actor.may(GuardedAction::UsePersonalRecords)?;
    let name = Named::SqlLogin
        .parse(&command.name)
        .map_err(Error::refused)?;
    require_reserve(services)?;
    let endpoint = offered(services).await?;
    let login = SqlLogin::begin(
        SqlLoginId::new(services.ids.next_id()),
        actor.user,
        name.into(),
        command.expires_at,
        services.clock.now(),
    )
    .map_err(Error::refused)?;
    let mut random = [0; 32];
    services.ids.fill_random(&mut random);
    let password = SqlPassword::from_random(random);
    let connection = SqlConnection::of(
        endpoint,
        &command.reached_host,
        login.role(),
        password.clone(),
    );
    let login = audited(services, actor, |within| async move {
        let added = within.sql_logins.add(
            actor.organization,
            &login,
            &password,
            SqlLoginLimits::OF_PLATFORM,
        );
        match added.await? {
            AddedLogin::Added => {}
            AddedLogin::TooMany(refused) => return Err(Error::refused(refused)),
            AddedLogin::RolesRefused => return Err(Error::refused(SqlRolesRefused)),
        }
        let record = record_of(AuditAction::SqlLoginCreated, &login);
        Ok((login, Some(record)))
    })
    .await?;
    Ok((login, connection))
}
