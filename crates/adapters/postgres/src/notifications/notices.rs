//! The outbox of notices of ended executions and trainings.

use std::collections::BTreeMap;

use diesel::{
    prelude::*,
    sql_types::{Array, BigInt, Bool, Nullable, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    events::LoggedEventKind,
    executions::Execution,
    ids::{ApiKeyId, OrganizationId, UserId},
    models::ModelVersion,
    notifications::{
        Channels, Delivery, DeliveryFacts, Ended, Preferences, Sender, has_failure_notice,
        has_training_notice,
    },
};
use labdata_ports::{
    PortError,
    notifications::{DecideNotice, NewNotification},
};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{errors::Fault, pool::Connection},
    events::record::record_for,
    executions::rows::ExecutionRow,
    models::version_rows::{VersionRow, load_versions},
    schema::{notice, notification, notification_email},
};

/// Stores the notices of the failures among executions of one organization, in the transaction that
/// ends them.
pub(crate) async fn record_failures(
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
        "INSERT INTO labdata.notice (organization_id, job_execution_id, recorded_at) \
         SELECT $1, id, $3 FROM unnest($2) AS u (id)",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Array<SqlUuid>, _>(&failed)
    .bind::<Timestamptz, _>(now)
    .execute(connection)
    .await?;
    Ok(())
}

/// Stores the notice of a training, if it has one, in the transaction that ends it.
pub(crate) async fn record_training(
    connection: &mut Connection,
    organization: OrganizationId,
    ended: &ModelVersion,
    now: OffsetDateTime,
) -> Result<(), Fault> {
    if has_training_notice(ended) {
        diesel::insert_into(notice::table)
            .values((
                notice::organization_id.eq(organization.as_uuid()),
                notice::model_version_id.eq(Some(ended.version.as_uuid())),
                notice::recorded_at.eq(now),
            ))
            .execute(connection)
            .await?;
    }
    Ok(())
}

/// A notice to deliver.
#[derive(QueryableByName)]
struct NoticeRow {
    #[diesel(sql_type = Nullable<SqlUuid>)]
    job_execution_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    model_version_id: Option<Uuid>,
}

/// A failed execution with the facts about the user who started it.
#[derive(QueryableByName)]
struct FailureRow {
    #[diesel(embed)]
    recipient: RecipientRow,
    #[diesel(embed)]
    execution: ExecutionRow,
}

/// The user of a notice.
#[derive(QueryableByName)]
struct RecipientRow {
    #[diesel(sql_type = SqlUuid)]
    subject_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    organization_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    recipient_id: Uuid,
    #[diesel(sql_type = Nullable<Bool>)]
    message_inbox: Option<bool>,
    #[diesel(sql_type = Nullable<Bool>)]
    message_email: Option<bool>,
}

/// An end with its recipient; an error if its row cannot be read.
type Subject = (Recipient, Result<Ended, PortError>);

async fn failures(
    connection: &mut Connection,
    executions: &[Uuid],
) -> Result<Vec<(Uuid, Subject)>, Fault> {
    if executions.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<FailureRow> = diesel::sql_query(
        "SELECT it.*, job.name AS job_name, it.id AS subject_id, it.started_by AS recipient_id, \
             preference.message_inbox, preference.message_email \
         FROM labdata.job_execution it \
         JOIN labdata.job ON job.organization_id = it.organization_id AND job.id = it.job_id \
         LEFT JOIN labdata.notification_preference preference \
             ON preference.organization_id = it.organization_id \
             AND preference.user_id = it.started_by \
         WHERE it.id = ANY ($1)",
    )
    .bind::<Array<SqlUuid>, _>(executions)
    .load(connection)
    .await?;
    let subject = |row: FailureRow| {
        let ended = Execution::try_from(row.execution);
        let ended = ended.map(|execution| Ended::Execution(Box::new(execution)));
        let id = row.recipient.subject_id;
        (id, (Recipient::from(row.recipient), ended))
    };
    Ok(rows.into_iter().map(subject).collect())
}

async fn trainings(
    connection: &mut Connection,
    versions: &[Uuid],
) -> Result<Vec<(Uuid, Subject)>, Fault> {
    if versions.is_empty() {
        return Ok(Vec::new());
    }
    let recipients: Vec<RecipientRow> = diesel::sql_query(
        "SELECT it.id AS subject_id, it.organization_id, it.requested_by AS recipient_id, \
             preference.message_inbox, preference.message_email \
         FROM labdata.ml_model_version it \
         LEFT JOIN labdata.notification_preference preference \
             ON preference.organization_id = it.organization_id \
             AND preference.user_id = it.requested_by \
         WHERE it.id = ANY ($1)",
    )
    .bind::<Array<SqlUuid>, _>(versions)
    .load(connection)
    .await?;
    // By the query of all other readers, so that versions are read in one way only.
    let rows = load_versions(connection, versions).await?;
    let mut rows: BTreeMap<Uuid, VersionRow> = rows.into_iter().map(|it| (it.id(), it)).collect();
    let subject = |recipient: RecipientRow| {
        let id = recipient.subject_id;
        let version = ModelVersion::try_from(rows.remove(&id)?);
        let ended = version.map(|version| Ended::Training(Box::new(version)));
        Some((id, (Recipient::from(recipient), ended)))
    };
    Ok(recipients.into_iter().filter_map(subject).collect())
}

/// Takes the oldest notices, except for those that another transaction handles, and delivers them;
/// returns their number.
pub(super) async fn deliver(
    connection: &mut Connection,
    limit: u32,
    decide: DecideNotice<'_>,
) -> Result<u32, Fault> {
    // The array makes the planner choose the rows once.
    let taken: Vec<NoticeRow> = diesel::sql_query(
        // Ordered twice, because the rows that a deletion returns have no order.
        "WITH taken AS ( \
             DELETE FROM labdata.notice WHERE id = ANY (ARRAY( \
                 SELECT id FROM labdata.notice \
                 ORDER BY recorded_at, id LIMIT $1 FOR UPDATE SKIP LOCKED)) \
             RETURNING *) \
         SELECT job_execution_id, model_version_id FROM taken ORDER BY recorded_at, id",
    )
    .bind::<BigInt, _>(i64::from(limit))
    .load(connection)
    .await?;
    let executions: Vec<Uuid> = taken.iter().filter_map(|it| it.job_execution_id).collect();
    let versions: Vec<Uuid> = taken.iter().filter_map(|it| it.model_version_id).collect();
    let mut subjects = BTreeMap::from_iter(failures(connection, &executions).await?);
    subjects.extend(trainings(connection, &versions).await?);
    let mut handled = 0;
    for row in taken {
        // Also where nothing is delivered: callers go on for as long as a batch is full.
        handled += 1;
        let id = row.job_execution_id.or(row.model_version_id);
        match id.and_then(|id| subjects.remove(&id)) {
            Some((recipient, Ok(ended))) => {
                if let Some(new) = decide(&ended) {
                    recipient.deliver(connection, &new).await?;
                }
            }
            // A row that cannot be read must not block the remaining ones.
            Some((_, Err(error))) => tracing::error!(%error, "an end has no notice"),
            None => {}
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

impl From<RecipientRow> for Recipient {
    fn from(row: RecipientRow) -> Self {
        let default = Preferences::default().message;
        Self {
            organization: row.organization_id,
            user: row.recipient_id,
            channels: Channels {
                inbox: row.message_inbox.unwrap_or(default.inbox),
                email: row.message_email.unwrap_or(default.email),
            },
        }
    }
}

impl Recipient {
    async fn deliver(
        &self,
        connection: &mut Connection,
        new: &NewNotification,
    ) -> Result<(), Fault> {
        // The user alone: a user belongs to one organization.
        let repeats = notification::table
            .filter(notification::user_id.eq(self.user))
            .filter(notification::dedupe_key.eq(&new.draft.dedupe_key))
            .select(notification::id);
        let facts = DeliveryFacts {
            repeated: diesel::select(diesel::dsl::exists(repeats))
                .get_result(connection)
                .await?,
            channels: self.channels,
            // Notices of the platform have no caps.
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
        if delivered == 0 {
            return Ok(());
        }
        let created = LoggedEventKind::NotificationCreated(new.id);
        let (organization, user) = (
            OrganizationId::new(self.organization),
            UserId::new(self.user),
        );
        record_for(connection, organization, user, new.now, created).await?;
        if email {
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
