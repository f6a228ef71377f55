//! Notifications: inboxes and preferences. Sending is in [`crate::notifications::sends`], the outbox of
//! e-mails in [`crate::notifications::emails`].

pub(crate) mod emails;
pub(crate) mod sends;

use async_trait::async_trait;
use diesel::{
    prelude::*,
    sql_types::{Bool, Nullable, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{ApiKeyId, NotificationId, OrganizationId, UserId},
    notifications::{Caps, ChannelChange, Channels, Notification, Preferences, Sender, Sent},
    page::{Cursor, Page, PageRequest},
};
use labdata_ports::{
    PortError,
    notifications::{
        ClaimedEmail, EmailClaim, EmailCounts, EmailFate, NewNotification, NotificationRepository,
        SendError,
    },
};
use serde_json::Value;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt, port_error, retried},
        paging::page_of,
        pool::Database,
    },
    notifications::sends::Sends,
    schema::{notification, notification_preference},
};

#[derive(Queryable, QueryableByName, Selectable)]
#[diesel(table_name = notification)]
pub(crate) struct NotificationRow {
    id: Uuid,
    title: String,
    body: String,
    action_url: String,
    data: Option<Value>,
    sender_kind: String,
    sender_name: String,
    api_key_id: Option<Uuid>,
    created_at: OffsetDateTime,
    read_at: Option<OffsetDateTime>,
}

impl TryFrom<NotificationRow> for Notification {
    type Error = PortError;

    fn try_from(row: NotificationRow) -> Result<Self, PortError> {
        let corrupt = |column| corrupt("notification", column, row.id);
        Ok(Self {
            id: NotificationId::new(row.id),
            sender: match (row.sender_kind.as_str(), row.api_key_id) {
                ("api_key", Some(id)) => Sender::ApiKey {
                    id: ApiKeyId::new(id),
                    name: row.sender_name,
                },
                ("platform", None) => Sender::Platform,
                _ => return Err(corrupt("sender_kind")),
            },
            data: match row.data {
                None => None,
                Some(Value::Object(data)) => Some(data),
                Some(_) => return Err(corrupt("data")),
            },
            title: row.title,
            body: row.body,
            action_url: row.action_url,
            created_at: row.created_at,
            read_at: row.read_at,
        })
    }
}

/// Notifications in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgNotificationRepository {
    database: Database,
    sends: Sends,
}

impl PgNotificationRepository {
    /// The repository over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self {
            sends: Sends::new(database.clone()),
            database,
        }
    }
}

#[async_trait]
impl NotificationRepository for PgNotificationRepository {
    async fn send(
        &self,
        organization: OrganizationId,
        user: UserId,
        new: &NewNotification,
        caps: Caps,
    ) -> Result<Sent, SendError> {
        self.sends.send(organization, user, new, caps).await
    }

    async fn list(
        &self,
        organization: OrganizationId,
        user: UserId,
        unread: bool,
        page: PageRequest,
    ) -> Result<Page<Notification>, PortError> {
        let mut connection = self.database.connection().await?;
        let mut query = notification::table
            .filter(notification::organization_id.eq(organization.as_uuid()))
            .filter(notification::user_id.eq(user.as_uuid()))
            .select(NotificationRow::as_select())
            .into_boxed();
        if unread {
            query = query.filter(notification::read_at.is_null());
        }
        let rows: Vec<NotificationRow> =
            page_of!(query, page, notification::created_at, notification::id)
                .load(&mut connection)
                .await
                .map_err(port_error)?;
        let items = rows
            .into_iter()
            .map(Notification::try_from)
            .collect::<Result<_, _>>()?;
        Ok(Page::from_overfetched(
            items,
            page.limit,
            |item: &Notification| Cursor {
                at: item.created_at,
                id: item.id.as_uuid(),
            },
        ))
    }

    async fn count_unread(
        &self,
        organization: OrganizationId,
        user: UserId,
    ) -> Result<u64, PortError> {
        let mut connection = self.database.connection().await?;
        let unread: i64 = notification::table
            .filter(notification::organization_id.eq(organization.as_uuid()))
            .filter(notification::user_id.eq(user.as_uuid()))
            .filter(notification::read_at.is_null())
            .count()
            .get_result(&mut connection)
            .await
            .map_err(port_error)?;
        Ok(u64::try_from(unread).unwrap_or_default())
    }

    async fn mark(
        &self,
        organization: OrganizationId,
        user: UserId,
        id: NotificationId,
        read_at: Option<OffsetDateTime>,
    ) -> Result<Notification, PortError> {
        let mut connection = self.database.connection().await?;
        // Read twice keeps the first time; unread forgets it.
        let kept = diesel::dsl::sql::<Nullable<Timestamptz>>("CASE WHEN ")
            .bind::<Nullable<Timestamptz>, _>(read_at)
            .sql(" IS NOT NULL THEN coalesce(read_at, ")
            .bind::<Nullable<Timestamptz>, _>(read_at)
            .sql(") END");
        let row: Option<NotificationRow> = diesel::update(notification::table)
            .filter(notification::organization_id.eq(organization.as_uuid()))
            .filter(notification::user_id.eq(user.as_uuid()))
            .filter(notification::id.eq(id.as_uuid()))
            .set(notification::read_at.eq(kept))
            .returning(NotificationRow::as_returning())
            .get_result(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        row.ok_or(PortError::NotFound("notification"))?.try_into()
    }

    async fn preferences(
        &self,
        organization: OrganizationId,
        user: UserId,
    ) -> Result<Preferences, PortError> {
        let mut connection = self.database.connection().await?;
        let row: Option<(bool, bool)> = notification_preference::table
            .find((organization.as_uuid(), user.as_uuid()))
            .select((
                notification_preference::message_inbox,
                notification_preference::message_email,
            ))
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        Ok(row.map(preferences_of).unwrap_or_default())
    }

    async fn change_preferences(
        &self,
        organization: OrganizationId,
        user: UserId,
        change: ChannelChange,
    ) -> Result<Preferences, PortError> {
        let mut connection = self.database.connection().await?;
        let first = Preferences::default().with_message(change).message;
        let row: PreferenceRow = diesel::sql_query(
            "INSERT INTO labdata.notification_preference AS it \
                 (organization_id, user_id, message_inbox, message_email) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (organization_id, user_id) DO UPDATE SET \
                 message_inbox = coalesce($5, it.message_inbox), \
                 message_email = coalesce($6, it.message_email) \
             RETURNING message_inbox, message_email",
        )
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<SqlUuid, _>(user.as_uuid())
        .bind::<Bool, _>(first.inbox)
        .bind::<Bool, _>(first.email)
        .bind::<Nullable<Bool>, _>(change.inbox)
        .bind::<Nullable<Bool>, _>(change.email)
        .get_result(&mut connection)
        .await
        .map_err(|error| {
            Fault::from(error).on_violation("notification_preference_user_id_fkey", || {
                PortError::NotFound("user")
            })
        })?;
        Ok(preferences_of((row.message_inbox, row.message_email)))
    }

    async fn claim_emails(
        &self,
        now: OffsetDateTime,
        lease: Duration,
        limit: u32,
    ) -> Result<Vec<ClaimedEmail>, PortError> {
        let claimed = retried!(emails::claim(&self.database, now, lease, limit));
        Ok(claimed?)
    }

    async fn settle_email(&self, claim: EmailClaim, fate: &EmailFate) -> Result<bool, PortError> {
        Ok(emails::settle(&self.database, claim, fate).await?)
    }

    async fn count_emails(&self, organization: OrganizationId) -> Result<EmailCounts, PortError> {
        Ok(emails::count(&self.database, organization).await?)
    }
}

#[derive(QueryableByName)]
struct PreferenceRow {
    #[diesel(sql_type = Bool)]
    message_inbox: bool,
    #[diesel(sql_type = Bool)]
    message_email: bool,
}

fn preferences_of((inbox, email): (bool, bool)) -> Preferences {
    Preferences {
        message: Channels { inbox, email },
    }
}
