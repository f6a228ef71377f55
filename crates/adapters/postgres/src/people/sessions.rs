//! Sessions, and links that open them.

use async_trait::async_trait;
use diesel::{
    prelude::*,
    sql_types::{BigInt, Binary, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{OrganizationId, UserId},
    people::{
        ApiKeyHash,
        session::{
            FoundSession, MAX_SESSIONS_PER_KEY, SESSION_LIFETIME, SESSION_PAUSE, Session,
            SignInLink,
        },
    },
    refusal::Resource,
};
use labdata_ports::{PortError, people::sessions::SessionRepository};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, port_error},
        pool::Database,
    },
    people::{
        holder,
        rows::{ApiKeyRow, HolderRow, found_key, group_names},
    },
    schema::{api_key, app_user, session, sign_in_link},
};

/// Sessions in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgSessionRepository {
    database: Database,
}

impl PgSessionRepository {
    /// The repository over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

/// Adds a session, and removes the oldest earlier ones of its key. The statement sees only the earlier ones. One that
/// another sign-in is removing is left to that: two which wait for each other's would both fail.
const ADD: &str = "\
    WITH oldest AS (\
        SELECT token_hash FROM labdata.session \
        WHERE organization_id = $2 AND api_key_id = $3 \
        ORDER BY created_at DESC OFFSET $6), \
    ended AS (\
        DELETE FROM labdata.session WHERE token_hash IN (\
            SELECT token_hash FROM labdata.session WHERE token_hash IN (SELECT token_hash FROM oldest) \
            FOR UPDATE SKIP LOCKED)) \
    INSERT INTO labdata.session \
        (token_hash, organization_id, api_key_id, created_at, last_used_at) \
    VALUES ($1, $2, $3, $4, $5)";

/// When a session began, its last use, its key, and what of the key's user decides about it.
type FoundRow = (OffsetDateTime, OffsetDateTime, ApiKeyRow, HolderRow);

#[async_trait]
impl SessionRepository for PgSessionRepository {
    async fn add(&self, new: &Session) -> Result<(), PortError> {
        let mut connection = self.database.of(new.organization).connection().await?;
        let added = diesel::sql_query(ADD)
            .bind::<Binary, _>(new.token.0.as_slice())
            .bind::<SqlUuid, _>(new.organization.as_uuid())
            .bind::<SqlUuid, _>(new.api_key.as_uuid())
            .bind::<Timestamptz, _>(new.created_at)
            .bind::<Timestamptz, _>(new.last_used_at)
            // One fewer, because the statement adds the new session.
            .bind::<BigInt, _>(i64::try_from(MAX_SESSIONS_PER_KEY - 1).unwrap_or(i64::MAX))
            .execute(&mut connection)
            .await;
        added.map_err(|error| {
            Fault::from(error)
                .of_commit()
                .on_violation("session_api_key_id_fkey", || {
                    PortError::NotFound(Resource::ApiKey)
                })
        })?;
        Ok(())
    }

    async fn find(&self, token: ApiKeyHash) -> Result<Option<FoundSession>, PortError> {
        let mut connection = self.database.connection().await?;
        // A request brings the token alone, so the organization comes from the row.
        let same_key = api_key::organization_id
            .eq(session::organization_id)
            .and(api_key::id.eq(session::api_key_id));
        let same_user = app_user::organization_id
            .eq(api_key::organization_id)
            .and(app_user::id.eq(api_key::user_id));
        let row: Option<FoundRow> = session::table
            .inner_join(api_key::table.on(same_key))
            .inner_join(app_user::table.on(same_user))
            .filter(session::token_hash.eq(token.0.as_slice()))
            .select((
                session::created_at,
                session::last_used_at,
                ApiKeyRow::as_select(),
                holder!(),
            ))
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        let Some((created_at, last_used_at, key, holder)) = row else {
            return Ok(None);
        };
        let key = found_key(key, holder)?;
        Ok(Some(FoundSession {
            session: Session {
                token,
                organization: key.key.organization,
                api_key: key.key.id,
                created_at,
                last_used_at,
            },
            key,
        }))
    }

    async fn touch(&self, token: ApiKeyHash, at: OffsetDateTime) -> Result<(), PortError> {
        let mut connection = self.database.connection().await?;
        diesel::update(session::table)
            .filter(session::token_hash.eq(token.0.as_slice()))
            // Servers write their uses at different times: a later write must not move the time back.
            .filter(session::last_used_at.lt(at))
            .set(session::last_used_at.eq(at))
            .execute(&mut connection)
            .await
            .map_err(port_error)?;
        Ok(())
    }

    async fn remove(&self, token: ApiKeyHash) -> Result<(), PortError> {
        let mut connection = self.database.connection().await?;
        diesel::delete(session::table)
            .filter(session::token_hash.eq(token.0.as_slice()))
            .execute(&mut connection)
            .await
            .map_err(port_error)?;
        Ok(())
    }

    async fn add_link(&self, link: &SignInLink) -> Result<(), PortError> {
        let mut connection = self.database.of(link.organization).connection().await?;
        let added = diesel::insert_into(sign_in_link::table)
            .values((
                sign_in_link::token_hash.eq(link.token.0.as_slice()),
                sign_in_link::organization_id.eq(link.organization.as_uuid()),
                sign_in_link::user_id.eq(link.user.as_uuid()),
                sign_in_link::expires_at.eq(link.expires_at),
            ))
            .execute(&mut connection)
            .await;
        added.map_err(|error| {
            Fault::from(error).on_violation("sign_in_link_user_id_fkey", || {
                PortError::NotFound(Resource::User)
            })
        })?;
        Ok(())
    }

    async fn take_link(&self, token: ApiKeyHash) -> Result<Option<SignInLink>, PortError> {
        let mut connection = self.database.connection().await?;
        // Deleted and read in one statement: of two racing calls one gets the link.
        let found: Vec<(Uuid, Uuid, OffsetDateTime)> = diesel::delete(sign_in_link::table)
            .filter(sign_in_link::token_hash.eq(token.0.as_slice()))
            .returning((
                sign_in_link::organization_id,
                sign_in_link::user_id,
                sign_in_link::expires_at,
            ))
            // To the end, as the statement commits itself after its row.
            .load(&mut connection)
            .await
            .map_err(|error| Fault::from(error).of_commit())?;
        Ok(found
            .into_iter()
            .next()
            .map(|(organization, user, expires_at)| SignInLink {
                token,
                organization: OrganizationId::new(organization),
                user: UserId::new(user),
                expires_at,
            }))
    }

    async fn remove_ended(&self, now: OffsetDateTime) -> Result<u64, PortError> {
        let mut connection = self.database.connection().await?;
        // Without a transaction: what a failure leaves behind, the next sweep removes.
        let sessions = diesel::delete(session::table)
            .filter(
                session::last_used_at
                    .le(now - SESSION_PAUSE)
                    .or(session::created_at.le(now - SESSION_LIFETIME)),
            )
            .execute(&mut connection)
            .await
            .map_err(port_error)?;
        let links = diesel::delete(sign_in_link::table)
            .filter(sign_in_link::expires_at.le(now))
            .execute(&mut connection)
            .await
            .map_err(port_error)?;
        Ok(u64::try_from(sessions + links).unwrap_or(u64::MAX))
    }
}
