//! SQL logins, and the roles of PostgreSQL behind them.

use async_trait::async_trait;
use labdata_domain::{
    ids::{OrganizationId, SqlLoginId, UserId},
    outward::sql_logins::{EndReason, SqlLogin, SqlLoginLimits, SqlPassword, TooManySqlLogins},
    page::{Page, PageRequest},
};
use time::OffsetDateTime;

use crate::PortError;

/// Outcome of [`SqlLoginRepository::add`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddedLogin {
    /// It is stored, and may connect.
    Added,
    /// Not stored: there are too many.
    TooMany(TooManySqlLogins),
    /// Not stored: the platform may not create roles.
    RolesRefused,
}

/// A login that must end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueLogin {
    /// The organization.
    pub organization: OrganizationId,
    /// The login.
    pub login: SqlLogin,
    /// Why.
    pub reason: EndReason,
}

/// Outcome of [`SqlLoginRepository::maintain`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Maintained {
    /// Number of organizations whose rights were brought up to date.
    pub granted: u64,
    /// Number of sessions that were ended.
    pub sessions: u64,
    /// Number of roles that were removed.
    pub roles: u64,
}

/// Repository of SQL logins. Where the store is PostgreSQL, each active login has a role there.
///
/// A role MUST be able to read the tables that
/// [`Catalog::visible_to`](labdata_domain::catalog::Catalog::visible_to) its user, and nothing else. A change of
/// definitions changes what roles may read in the same transaction; changes of users and groups follow with the next
/// [`Self::maintain`].
#[async_trait]
pub trait SqlLoginRepository: Send + Sync {
    /// Returns whether the platform may create roles.
    async fn may_create_roles(&self) -> Result<bool, PortError>;

    /// Stores a new login with its role, unless there are as many as `limits` allow or the platform may not
    /// create roles. Racing calls MAY exceed the limit by their number.
    ///
    /// # Errors
    /// [`PortError::NotFound`] for an unknown user.
    async fn add(
        &self,
        organization: OrganizationId,
        login: &SqlLogin,
        password: &SqlPassword,
        limits: SqlLoginLimits,
    ) -> Result<AddedLogin, PortError>;

    /// The organization and the user of a login that has not ended; `None` if there is none. For the relay in front of
    /// PostgreSQL, which knows its role only.
    async fn owner(&self, id: SqlLoginId) -> Result<Option<(OrganizationId, UserId)>, PortError>;

    /// The organization's logins, newest first, without revoked ones; those of one user if given.
    async fn list(
        &self,
        organization: OrganizationId,
        user: Option<UserId>,
        page: PageRequest,
    ) -> Result<Page<SqlLogin>, PortError>;

    /// One of the organization's logins that was not revoked.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn get(
        &self,
        organization: OrganizationId,
        id: SqlLoginId,
    ) -> Result<SqlLogin, PortError>;

    /// Ends a login as [`SqlLogin::end`] says, and returns it. Its role MUST be unable to log in and to read from
    /// the end of the transaction on; the next [`Self::maintain`] ends its sessions and removes the role.
    ///
    /// # Errors
    /// [`PortError::NotFound`], also for a login that has ended before.
    async fn end(
        &self,
        organization: OrganizationId,
        id: SqlLoginId,
        reason: EndReason,
        now: OffsetDateTime,
    ) -> Result<SqlLogin, PortError>;

    /// Returns logins that [`SqlLogin::due`] says must end, `limit` at most. `is_shared` is true if several
    /// organizations may share the catalogs of PostgreSQL.
    async fn due(
        &self,
        is_shared: bool,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<DueLogin>, PortError>;

    /// Brings PostgreSQL in step: grants what users may read by now, ends sessions of ended logins and those beyond
    /// the limits of [`labdata_domain::outward::sql_logins`], removes roles of ended logins. Several servers may do
    /// it at once.
    async fn maintain(&self) -> Result<Maintained, PortError>;
}
