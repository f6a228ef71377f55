//! The outbox of e-mails.

use diesel::{
    prelude::*,
    sql_types::{BigInt, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{OrganizationId, UserId},
    notifications::{EmailOutcome, Notification},
};
use labdata_ports::{
    PortError,
    notifications::{ClaimedEmail, EmailClaim},
};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt},
        pool::Database,
    },
    notifications::rows::NotificationRow,
    schema::notification_email,
};

#[derive(QueryableByName)]
struct ClaimRow {
    #[diesel(sql_type = SqlUuid)]
    organization_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    user_id: Uuid,
    #[diesel(sql_type = Text)]
    email: String,
    #[diesel(sql_type = BigInt)]
    tries: i64,
    #[diesel(embed)]
    notification: NotificationRow,
}

impl TryFrom<ClaimRow> for ClaimedEmail {
    type Error = PortError;

    fn try_from(row: ClaimRow) -> Result<Self, PortError> {
        let notification = Notification::try_from(row.notification)?;
        let tries = u32::try_from(row.tries)
            .map_err(|_| corrupt("notification_email", "tries", notification.id))?;
        Ok(Self {
            claim: EmailClaim {
                organization: OrganizationId::new(row.organization_id),
                user: UserId::new(row.user_id),
                notification: notification.id,
                tries,
            },
            to: row.email,
            notification,
        })
    }
}

/// Claims due e-mails by moving their due time to the end of the lease, and reads their content.
pub(crate) async fn claim(
    database: &Database,
    now: OffsetDateTime,
    lease: Duration,
    limit: u32,
) -> Result<Vec<ClaimedEmail>, Fault> {
    let mut connection = database.connection().await?;
    // The array makes the planner choose the rows once.
    let rows: Vec<ClaimRow> = diesel::sql_query(
        // The claim is the due time itself: a worker that dies leaves an e-mail that is due again.
        "WITH claimed AS ( \
             UPDATE labdata.notification_email SET due_at = $2, tries = tries + 1 \
             WHERE notification_id = ANY (ARRAY( \
                 SELECT notification_id FROM labdata.notification_email \
                 WHERE status = 'pending' AND due_at <= $1 \
                 ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED)) \
             RETURNING organization_id, notification_id, tries) \
         SELECT claimed.tries, recipient.email, it.* FROM claimed \
         JOIN labdata.notification it ON it.organization_id = claimed.organization_id \
             AND it.id = claimed.notification_id \
         JOIN labdata.app_user recipient ON recipient.organization_id = it.organization_id \
             AND recipient.id = it.user_id",
    )
    .bind::<Timestamptz, _>(now)
    .bind::<Timestamptz, _>(now + lease)
    .bind::<BigInt, _>(i64::from(limit))
    .load(&mut connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(ClaimedEmail::try_from)
        .collect::<Result<_, _>>()?)
}

/// Stores the outcome unless the e-mail is settled or was claimed again.
pub(crate) async fn settle(
    database: &Database,
    claim: EmailClaim,
    outcome: &EmailOutcome,
) -> Result<bool, Fault> {
    let mut connection = database.connection().await?;
    let (due_at, settled_at, error) = match outcome {
        EmailOutcome::Sent { at } => (None, Some(at), None),
        EmailOutcome::Dead { at, error } => (None, Some(at), Some(error)),
        EmailOutcome::Retry { at, error } => (Some(at), None, Some(error)),
    };
    let claimed = notification_email::table
        .filter(notification_email::organization_id.eq(claim.organization.as_uuid()))
        .filter(notification_email::notification_id.eq(claim.notification.as_uuid()))
        .filter(notification_email::status.eq("pending"))
        // The fence: a worker whose claim expired must not overwrite the outcome of a later one.
        .filter(notification_email::tries.eq(i64::from(claim.tries)));
    let changed = diesel::update(claimed)
        .set((
            notification_email::status.eq(outcome.status()),
            // `None` leaves the column unchanged; without a new time the e-mail is settled.
            due_at.map(|at| notification_email::due_at.eq(at)),
            notification_email::settled_at.eq(settled_at),
            error.map(|error| notification_email::last_error.eq(Some(error))),
        ))
        .execute(&mut connection)
        .await?;
    Ok(changed == 1)
}
