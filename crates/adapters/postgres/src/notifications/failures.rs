//! The outbox of failure notices.

use diesel::{
    prelude::*,
    sql_types::{Array, BigInt, Bool, Nullable, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    executions::Execution,
    ids::{ApiKeyId, OrganizationId},
    notifications::{Channels, Delivery, DeliveryFacts, Preferences, Sender, has_failure_notice},
};
use labdata_ports::notifications::{DecideNotice, NewNotification};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{errors::Fault, pool::Connection},
    executions::rows::ExecutionRow,
    schema::{notification, notification_email},
};

/// Stores the failures among executions of one organization, in the transaction that ends them.
pub(crate) async fn record(
    connection: &mut Connection,
    organization: OrganizationId,
    ended: &[Execution],
    now: OffsetDateTime,
) -> Result<(), Fault> {
    let failed = ended.iter().filter(|it| has_failure_notice(it));
    let failed: Vec<Uuid> = failed.map(|it| it.id.as_uuid()).collect();
    if failed.is_empty() {
        return Ok(());
    }
    diesel::sql_query(
        "INSERT INTO labdata.failure_notice (organization_id, job_execution_id, recorded_at) \
         SELECT $1, id, $3 FROM unnest($2) AS u (id)",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Array<SqlUuid>, _>(&failed)
    .bind::<Timestamptz, _>(now)
    .execute(connection)
    .await?;
    Ok(())
}

/// A failed execution with the facts about the user who started it.
#[derive(QueryableByName)]
struct FailureRow {
    #[diesel(sql_type = SqlUuid)]
    organization_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    started_by: Uuid,
    #[diesel(sql_type = Nullable<Bool>)]
    message_inbox: Option<bool>,
    #[diesel(sql_type = Nullable<Bool>)]
    message_email: Option<bool>,
    #[diesel(embed)]
    execution: ExecutionRow,
}

/// Takes the oldest failures, except for those that another transaction handles, and delivers their
/// notices; returns the number of failures.
pub(super) async fn deliver(
    connection: &mut Connection,
    limit: u32,
    decide: DecideNotice<'_>,
) -> Result<u32, Fault> {
    // The array makes the planner choose the rows once.
    let rows: Vec<FailureRow> = diesel::sql_query(
        "WITH taken AS ( \
             DELETE FROM labdata.failure_notice WHERE ctid = ANY (ARRAY( \
                 SELECT ctid FROM labdata.failure_notice \
                 ORDER BY recorded_at, job_execution_id LIMIT $1 FOR UPDATE SKIP LOCKED)) \
             RETURNING *) \
         SELECT it.*, job.name AS job_name, preference.message_inbox, preference.message_email \
         FROM taken \
         JOIN labdata.job_execution it ON it.organization_id = taken.organization_id \
             AND it.id = taken.job_execution_id \
         JOIN labdata.job ON job.organization_id = it.organization_id AND job.id = it.job_id \
         LEFT JOIN labdata.notification_preference preference \
             ON preference.organization_id = it.organization_id \
             AND preference.user_id = it.started_by \
         ORDER BY taken.recorded_at, it.id",
    )
    .bind::<BigInt, _>(i64::from(limit))
    .load(connection)
    .await?;
    let mut handled = 0;
    for row in rows {
        handled += 1;
        let recipient = Recipient::of(&row);
        match Execution::try_from(row.execution) {
            Ok(execution) => {
                if let Some(new) = decide(&execution) {
                    recipient.deliver(connection, &new).await?;
                }
            }
            // A row that cannot be read must not block the remaining ones.
            Err(error) => tracing::error!(%error, "a failed execution has no notice"),
        }
    }
    Ok(handled)
}

/// The user of a notice.
struct Recipient {
    organization: Uuid,
    user: Uuid,
    channels: Channels,
}

impl Recipient {
    fn of(row: &FailureRow) -> Self {
        let default = Preferences::default().message;
        Self {
            organization: row.organization_id,
            user: row.started_by,
            channels: Channels {
                inbox: row.message_inbox.unwrap_or(default.inbox),
                email: row.message_email.unwrap_or(default.email),
            },
        }
    }

    async fn deliver(
        &self,
        connection: &mut Connection,
        new: &NewNotification,
    ) -> Result<(), Fault> {
        let repeats = notification::table
            .filter(notification::user_id.eq(self.user))
            .filter(notification::dedupe_key.eq(&new.draft.dedupe_key))
            .select(notification::id);
        let facts = DeliveryFacts {
            repeated: diesel::select(diesel::dsl::exists(repeats))
                .get_result(connection)
                .await?,
            channels: self.channels,
            hour: None,
            day: None,
        };
        let Delivery::Inbox { email } = facts.deliver() else {
            return Ok(());
        };
        // It has no numbers, so that it does not count against caps. A racing send may have used
        // its key in the meantime.
        let delivered = diesel::insert_into(notification::table)
            .values((
                notification::id.eq(new.id.as_uuid()),
                notification::organization_id.eq(self.organization),
                notification::user_id.eq(self.user),
                notification::dedupe_key.eq(&new.draft.dedupe_key),
                notification::title.eq(&new.draft.title),
                notification::body.eq(&new.draft.body),
                notification::action_url.eq(&new.draft.action_url),
                notification::data.eq(new.draft.data.clone().map(Value::Object)),
                notification::sender_kind.eq(Sender::Platform.kind()),
                notification::sender_name.eq(Sender::Platform.name()),
                notification::api_key_id.eq(new.api_key.map(ApiKeyId::as_uuid)),
                notification::created_at.eq(new.now),
            ))
            .on_conflict((notification::user_id, notification::dedupe_key))
            .do_nothing()
            .execute(connection)
            .await?;
        if email && delivered == 1 {
            diesel::insert_into(notification_email::table)
                .values((
                    notification_email::notification_id.eq(new.id.as_uuid()),
                    notification_email::organization_id.eq(self.organization),
                    notification_email::due_at.eq(new.now),
                ))
                .execute(connection)
                .await?;
        }
        Ok(())
    }
}
