//! The outbox of notifications' e-mails.

use diesel::{
    prelude::*,
    sql_types::{BigInt, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::ids::{OrganizationId, UserId};
use labdata_ports::{
    PortError,
    notifications::{ClaimedEmail, EmailClaim, EmailCounts, EmailFate},
};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt},
        pool::Database,
    },
    notifications::NotificationRow,
    schema::notification_email,
};

/// How many characters are kept of an error.
const MAX_ERROR: usize = 1_000;

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
        let notification: labdata_domain::notifications::Notification =
            row.notification.try_into()?;
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

/// Moves what is due to the end of a lease, and reads what it tells.
pub(crate) async fn claim(
    database: &Database,
    now: OffsetDateTime,
    lease: Duration,
    limit: u32,
) -> Result<Vec<ClaimedEmail>, Fault> {
    let mut connection = database.connection().await?;
    // The array makes the planner choose the rows once.
    let rows: Vec<ClaimRow> = diesel::sql_query(
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

/// Settles it if it is still claimed so: another claim would have counted on.
pub(crate) async fn settle(
    database: &Database,
    claim: EmailClaim,
    fate: &EmailFate,
) -> Result<bool, Fault> {
    let mut connection = database.connection().await?;
    let standing = notification_email::table
        .filter(notification_email::organization_id.eq(claim.organization.as_uuid()))
        .filter(notification_email::notification_id.eq(claim.notification.as_uuid()))
        .filter(notification_email::status.eq("pending"))
        .filter(notification_email::tries.eq(i64::from(claim.tries)));
    let changed = match fate {
        EmailFate::Sent { at } => {
            let fate = (
                notification_email::status.eq("sent"),
                notification_email::settled_at.eq(Some(at)),
            );
            diesel::update(standing)
                .set(fate)
                .execute(&mut connection)
                .await?
        }
        EmailFate::Dead { at, error } => {
            let fate = (
                notification_email::status.eq("dead"),
                notification_email::settled_at.eq(Some(at)),
                notification_email::last_error.eq(Some(shortened(error))),
            );
            diesel::update(standing)
                .set(fate)
                .execute(&mut connection)
                .await?
        }
        EmailFate::Retry { at, error } => {
            let fate = (
                notification_email::due_at.eq(at),
                notification_email::last_error.eq(Some(shortened(error))),
            );
            diesel::update(standing)
                .set(fate)
                .execute(&mut connection)
                .await?
        }
    };
    Ok(changed == 1)
}

/// What a mail server says may hold anything.
fn shortened(error: &str) -> String {
    error
        .chars()
        .filter(|character| *character != '\0')
        .take(MAX_ERROR)
        .collect()
}

/// How many stand where.
pub(crate) async fn count(
    database: &Database,
    organization: OrganizationId,
) -> Result<EmailCounts, Fault> {
    let mut connection = database.connection().await?;
    let rows: Vec<(String, i64)> = notification_email::table
        .filter(notification_email::organization_id.eq(organization.as_uuid()))
        .group_by(notification_email::status)
        .select((notification_email::status, diesel::dsl::count_star()))
        .load(&mut connection)
        .await?;
    let of = |status: &str| {
        let found = rows.iter().find(|(name, _)| name == status);
        found.map_or(0, |(_, count)| u64::try_from(*count).unwrap_or_default())
    };
    Ok(EmailCounts {
        pending: of("pending"),
        sent: of("sent"),
        dead: of("dead"),
    })
}
