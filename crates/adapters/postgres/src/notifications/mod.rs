//! Notifications: inboxes and preferences. Sending is in [`sends`], the outbox of e-mails in
//! [`emails`], the outbox of notices in [`notices`].

pub(crate) mod emails;
pub(crate) mod notices;
mod rows;
pub(crate) mod sends;

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{NotificationId, OrganizationId, UserId},
    notifications::{Caps, ChannelChange, Channels, EmailOutcome, Notification, Preferences, Sent},
    page::{Cursor, Page, PageRequest},
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    notifications::{
        ClaimedEmail, DecideNotice, EmailClaim, NewNotification, NotificationRepository, SendError,
    },
};
use time::{Duration, OffsetDateTime};

use crate::{
    database::{
        errors::{Fault, port_error, retried, transacted},
        paging::page_of,
        pool::{Connection, Database},
    },
    notifications::{rows::NotificationRow, sends::Sends},
    schema::{notification, notification_preference},
};

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

    /// The same on that database.
    pub(crate) fn on(&self, database: Database) -> Self {
        Self {
            sends: self.sends.on(database.clone()),
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

    async fn deliver_notices(
        &self,
        limit: u32,
        decide: DecideNotice<'_>,
    ) -> Result<u32, PortError> {
        Ok(transacted!(
            self.database,
            connection => notices::deliver(connection, limit, decide)
        )?)
    }

    async fn list(
        &self,
        organization: OrganizationId,
        user: UserId,
        unread: Option<bool>,
        page: PageRequest,
    ) -> Result<Page<Notification>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let mut query = notification::table
            .filter(notification::organization_id.eq(organization.as_uuid()))
            .filter(notification::user_id.eq(user.as_uuid()))
            .select(NotificationRow::as_select())
            .into_boxed();
        query = match unread {
            None => query,
            Some(true) => query.filter(notification::read_at.is_null()),
            Some(false) => query.filter(notification::read_at.is_not_null()),
        };
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
        let mut connection = self.database.of(organization).connection().await?;
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
        Ok(transacted!(
            self.database.of(organization),
            connection => mark(connection, organization, user, id, read_at)
        )?)
    }

    async fn preferences(
        &self,
        organization: OrganizationId,
        user: UserId,
    ) -> Result<Preferences, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
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
        // Users who never changed their preferences have no row.
        Ok(row.map(preferences_of).unwrap_or_default())
    }

    async fn change_preferences(
        &self,
        organization: OrganizationId,
        user: UserId,
        change: ChannelChange,
    ) -> Result<Preferences, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => change_preferences(connection, organization, user, change)
        )?)
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

    async fn settle_email(
        &self,
        claim: EmailClaim,
        outcome: &EmailOutcome,
    ) -> Result<bool, PortError> {
        Ok(emails::settle(&self.database, claim, outcome).await?)
    }
}

fn preferences_of((inbox, email): (bool, bool)) -> Preferences {
    Preferences {
        message: Channels { inbox, email },
    }
}

async fn mark(
    connection: &mut Connection,
    organization: OrganizationId,
    user: UserId,
    id: NotificationId,
    read_at: Option<OffsetDateTime>,
) -> Result<Notification, Fault> {
    let row: Option<NotificationRow> = notification::table
        .filter(notification::organization_id.eq(organization.as_uuid()))
        .filter(notification::user_id.eq(user.as_uuid()))
        .filter(notification::id.eq(id.as_uuid()))
        .select(NotificationRow::as_select())
        // The first time of reading stays, so a racing call has to find it.
        .for_update()
        .first(connection)
        .await
        .optional()?;
    let row = row.ok_or(PortError::NotFound(Resource::Notification))?;
    let marked = Notification::try_from(row)?.mark(read_at);
    diesel::update(notification::table)
        .filter(notification::organization_id.eq(organization.as_uuid()))
        .filter(notification::id.eq(id.as_uuid()))
        .set(notification::read_at.eq(marked.read_at))
        .execute(connection)
        .await?;
    Ok(marked)
}

async fn change_preferences(
    connection: &mut Connection,
    organization: OrganizationId,
    user: UserId,
    change: ChannelChange,
) -> Result<Preferences, Fault> {
    use notification_preference::{message_email, message_inbox};
    let key = (
        notification_preference::organization_id.eq(organization.as_uuid()),
        notification_preference::user_id.eq(user.as_uuid()),
    );
    let unchanged = Preferences::default().message;
    // The row, so that it can be locked.
    diesel::insert_into(notification_preference::table)
        .values((
            key,
            message_inbox.eq(unchanged.inbox),
            message_email.eq(unchanged.email),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
        .await
        .map_err(|error| {
            Fault::from(error).on_violation("notification_preference_user_id_fkey", || {
                PortError::NotFound(Resource::User)
            })
        })?;
    let row = notification_preference::table.find((organization.as_uuid(), user.as_uuid()));
    let before: (bool, bool) = row
        .select((message_inbox, message_email))
        // A change may name one channel alone, and must not undo a racing change of the other.
        .for_update()
        .first(connection)
        .await?;
    let changed = preferences_of(before).with_message(change);
    diesel::update(row)
        .set((
            message_inbox.eq(changed.message.inbox),
            message_email.eq(changed.message.email),
        ))
        .execute(connection)
        .await?;
    Ok(changed)
}
