//! Rows of SQL logins.

use diesel::{
    QueryableByName,
    prelude::*,
    sql_types::{Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use labdata_domain::{
    ids::{OrganizationId, SqlLoginId, UserId},
    outward::sql_logins::{EndReason, SqlLogin, SqlLoginState},
};
use labdata_ports::PortError;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{database::errors::corrupt, schema::sql_login};

/// A stored login.
#[derive(Queryable, Selectable)]
#[diesel(table_name = sql_login)]
pub(super) struct LoginRow {
    id: Uuid,
    user_id: Uuid,
    name: String,
    created_at: OffsetDateTime,
    expires_at: Option<OffsetDateTime>,
    ended_at: Option<OffsetDateTime>,
    end_reason: Option<String>,
}

impl TryFrom<LoginRow> for SqlLogin {
    type Error = PortError;

    fn try_from(row: LoginRow) -> Result<Self, PortError> {
        let state = match (row.ended_at, row.end_reason.as_deref()) {
            (Some(at), Some(name)) => SqlLoginState::Ended {
                at,
                reason: EndReason::from_name(name)
                    .ok_or_else(|| corrupt("sql_login", "end_reason", row.id))?,
            },
            _ => SqlLoginState::Active,
        };
        Ok(Self {
            id: SqlLoginId::new(row.id),
            user: UserId::new(row.user_id),
            name: row.name,
            created_at: row.created_at,
            expires_at: row.expires_at,
            state,
        })
    }
}

/// A login to store.
#[derive(Insertable)]
#[diesel(table_name = sql_login)]
pub(super) struct NewLoginRow<'l> {
    id: Uuid,
    organization_id: Uuid,
    user_id: Uuid,
    name: &'l str,
    created_at: OffsetDateTime,
    expires_at: Option<OffsetDateTime>,
}

impl<'l> NewLoginRow<'l> {
    pub(super) fn of(organization: OrganizationId, login: &'l SqlLogin) -> Self {
        Self {
            id: login.id.as_uuid(),
            organization_id: organization.as_uuid(),
            user_id: login.user.as_uuid(),
            name: &login.name,
            created_at: login.created_at,
            expires_at: login.expires_at,
        }
    }
}

/// An active login, and what decides whether it stays active.
#[derive(QueryableByName)]
pub(super) struct DueRow {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    pub(super) organization_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    user_id: Uuid,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Timestamptz)]
    created_at: OffsetDateTime,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    expires_at: Option<OffsetDateTime>,
    #[diesel(sql_type = Bool)]
    pub(super) is_user_disabled: bool,
    #[diesel(sql_type = Bool)]
    pub(super) has_role: bool,
    #[diesel(sql_type = Bool)]
    pub(super) is_several: bool,
}

impl DueRow {
    pub(super) fn login(self) -> SqlLogin {
        SqlLogin {
            id: SqlLoginId::new(self.id),
            user: UserId::new(self.user_id),
            name: self.name,
            created_at: self.created_at,
            expires_at: self.expires_at,
            state: SqlLoginState::Active,
        }
    }
}
