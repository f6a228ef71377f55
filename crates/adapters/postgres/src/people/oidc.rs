//! Sign-ins with an identity provider: accounts of users, and sessions with their refresh tokens.

use async_trait::async_trait;
use diesel::{
    prelude::*,
    sql_types::{BigInt, Binary, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{ApiKeyId, OrganizationId, UserId},
    people::ApiKeyHash,
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    people::oidc::{OidcStore, ProviderSession},
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt, port_error},
        pool::Database,
    },
    schema::{oidc_account, oidc_session, oidc_used_attempt},
};

/// Sign-ins with an identity provider, in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgOidcStore {
    database: Database,
}

impl PgOidcStore {
    /// The store over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

/// A due session, with the key and the user on whom it rests.
#[derive(QueryableByName)]
struct SessionRow {
    #[diesel(sql_type = Binary)]
    token_hash: Vec<u8>,
    #[diesel(sql_type = SqlUuid)]
    organization_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    api_key_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    user_id: Uuid,
    #[diesel(sql_type = Text)]
    subject: String,
    #[diesel(sql_type = Binary)]
    refresh_token: Vec<u8>,
    #[diesel(sql_type = Timestamptz)]
    check_at: OffsetDateTime,
}

impl TryFrom<SessionRow> for ProviderSession {
    type Error = PortError;

    fn try_from(row: SessionRow) -> Result<Self, PortError> {
        let token = row
            .token_hash
            .try_into()
            .map_err(|_| corrupt("oidc_session", "token_hash", row.api_key_id))?;
        Ok(Self {
            session: ApiKeyHash(token),
            organization: OrganizationId::new(row.organization_id),
            key: ApiKeyId::new(row.api_key_id),
            user: UserId::new(row.user_id),
            subject: row.subject,
            refresh: row.refresh_token,
            check_at: row.check_at,
        })
    }
}

/// Takes due sessions. Rows that another server takes at the same time are skipped, so that no refresh token is
/// used twice: providers take a second use for theft.
const TAKE_DUE: &str = "\
    WITH due AS ( \
        SELECT token_hash FROM labdata.oidc_session WHERE check_at <= $1 \
        ORDER BY check_at LIMIT $3 FOR UPDATE SKIP LOCKED) \
    UPDATE labdata.oidc_session it SET check_at = $2 \
    FROM due, labdata.session, labdata.api_key key \
    WHERE it.token_hash = due.token_hash AND session.token_hash = due.token_hash \
        AND key.organization_id = session.organization_id AND key.id = session.api_key_id \
    RETURNING it.token_hash, session.organization_id, session.api_key_id, key.user_id, \
        it.subject, it.refresh_token, it.check_at";

#[async_trait]
impl OidcStore for PgOidcStore {
    async fn use_attempt(
        &self,
        attempt: ApiKeyHash,
        ends_at: OffsetDateTime,
    ) -> Result<bool, PortError> {
        let mut connection = self.database.connection().await?;
        // The insertion decides: of two callbacks with one attempt, only one adds the row.
        let added = diesel::insert_into(oidc_used_attempt::table)
            .values((
                oidc_used_attempt::attempt_hash.eq(attempt.0.as_slice()),
                oidc_used_attempt::ends_at.eq(ends_at),
            ))
            .on_conflict_do_nothing()
            .execute(&mut connection)
            .await
            .map_err(|error| Fault::from(error).of_commit())?;
        Ok(added == 1)
    }

    async fn linked_user(
        &self,
        organization: OrganizationId,
        issuer: &str,
        subject: &str,
    ) -> Result<Option<UserId>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let user: Option<Uuid> = oidc_account::table
            .filter(oidc_account::organization_id.eq(organization.as_uuid()))
            .filter(oidc_account::issuer.eq(issuer))
            .filter(oidc_account::subject.eq(subject))
            .select(oidc_account::user_id)
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        Ok(user.map(UserId::new))
    }

    async fn link_account(
        &self,
        organization: OrganizationId,
        user: UserId,
        issuer: &str,
        subject: &str,
    ) -> Result<bool, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        diesel::insert_into(oidc_account::table)
            .values((
                oidc_account::organization_id.eq(organization.as_uuid()),
                oidc_account::user_id.eq(user.as_uuid()),
                oidc_account::issuer.eq(issuer),
                oidc_account::subject.eq(subject),
            ))
            // Of either key: the user or the account may be linked already.
            .on_conflict_do_nothing()
            .execute(&mut connection)
            .await
            .map_err(|error| {
                Fault::from(error)
                    .of_commit()
                    .on_violation("oidc_account_user_id_fkey", || {
                        PortError::NotFound(Resource::User)
                    })
            })?;
        // Read back: the user may have been linked to another account before, or by a sign-in at the same time.
        let linked: Option<(String, String)> = oidc_account::table
            .find((organization.as_uuid(), user.as_uuid()))
            .select((oidc_account::issuer, oidc_account::subject))
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        Ok(linked.is_some_and(|(known, person)| known == issuer && person == subject))
    }

    async fn add_session(&self, session: &ProviderSession) -> Result<(), PortError> {
        let mut connection = self.database.of(session.organization).connection().await?;
        diesel::insert_into(oidc_session::table)
            .values((
                oidc_session::token_hash.eq(session.session.0.as_slice()),
                oidc_session::subject.eq(&session.subject),
                oidc_session::refresh_token.eq(&session.refresh),
                oidc_session::check_at.eq(session.check_at),
            ))
            .execute(&mut connection)
            .await
            .map_err(|error| {
                Fault::from(error)
                    .of_commit()
                    .on_violation("oidc_session_token_hash_fkey", || {
                        PortError::NotFound(Resource::Session)
                    })
            })?;
        Ok(())
    }

    async fn due_sessions(
        &self,
        now: OffsetDateTime,
        next: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<ProviderSession>, PortError> {
        let mut connection = self.database.connection().await?;
        let rows: Vec<SessionRow> = diesel::sql_query(TAKE_DUE)
            .bind::<Timestamptz, _>(now)
            .bind::<Timestamptz, _>(next)
            .bind::<BigInt, _>(i64::from(limit))
            .load(&mut connection)
            .await
            .map_err(|error| Fault::from(error).of_commit())?;
        rows.into_iter().map(ProviderSession::try_from).collect()
    }

    async fn checked(&self, session: &ProviderSession) -> Result<(), PortError> {
        let mut connection = self.database.of(session.organization).connection().await?;
        diesel::update(oidc_session::table.find(session.session.0.as_slice()))
            .set((
                oidc_session::refresh_token.eq(&session.refresh),
                oidc_session::check_at.eq(session.check_at),
            ))
            .execute(&mut connection)
            .await
            .map_err(|error| Fault::from(error).of_commit())?;
        Ok(())
    }

    async fn remove_ended_attempts(&self, now: OffsetDateTime) -> Result<u64, PortError> {
        let mut connection = self.database.connection().await?;
        let removed = diesel::delete(oidc_used_attempt::table)
            .filter(oidc_used_attempt::ends_at.le(now))
            .execute(&mut connection)
            .await
            .map_err(port_error)?;
        Ok(u64::try_from(removed).unwrap_or(u64::MAX))
    }
}
