//! Sending notifications: the database's function counts and stores, and sends of an organization
//! that arrive together share a statement, which is a transaction by itself.

use std::sync::{Arc, LazyLock};

use diesel::{
    prelude::*,
    result::Error as DieselError,
    sql_types::{Array, BigInt, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    events::LoggedEventKind,
    ids::{ApiKeyId, OrganizationId, UserId},
    notifications::{Caps, PLATFORM, Sent},
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    notifications::{NewNotification, SendError},
};
use serde_json::Value;
use time::OffsetDateTime;

use crate::{
    database::{
        combine::{BatchOutcome, Combiner},
        errors::{Fault, is_refusal, port_error, retried},
        pool::Database,
        sql::CachedStatement,
    },
    events::record,
};

/// Maximum number of concurrent batches of an organization: more would wait for its lock.
const MAX_CONCURRENT_BATCHES: usize = 1;

/// Row returned by `labdata.send_notification`.
#[derive(Clone, Debug, QueryableByName)]
struct Response {
    #[diesel(sql_type = Text)]
    outcome: String,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    hour_at: Option<OffsetDateTime>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    day_at: Option<OffsetDateTime>,
}

/// A notification and whom it is for.
#[derive(Clone, Debug)]
struct Send {
    organization: OrganizationId,
    user: UserId,
    new: NewNotification,
    caps: Caps,
}

/// Sends, those of one organization combined.
#[derive(Clone, Debug)]
pub(crate) struct Sends {
    database: Database,
    combiner: Arc<Combiner<OrganizationId, Send, Response>>,
}

impl Sends {
    pub(crate) fn new(database: Database) -> Self {
        Self {
            database,
            combiner: Arc::new(Combiner::new(MAX_CONCURRENT_BATCHES)),
        }
    }

    /// The same on that database.
    pub(crate) fn on(&self, database: Database) -> Self {
        Self {
            database,
            combiner: Arc::clone(&self.combiner),
        }
    }

    pub(crate) async fn send(
        &self,
        organization: OrganizationId,
        user: UserId,
        new: &NewNotification,
        caps: Caps,
    ) -> Result<Sent, SendError> {
        let send = Send {
            organization,
            user,
            new: new.clone(),
            caps,
        };
        let response = self.response(send).await?;
        match response.outcome.as_str() {
            "delivered" => Ok(Sent::Delivered(new.id)),
            "deduplicated" => Ok(Sent::Deduplicated),
            "muted" => Ok(Sent::Muted),
            "unknown_key" => Err(PortError::NotFound(Resource::ApiKey).into()),
            // The caps decide which refusal it is, and compute `Retry-After` from the times.
            other => {
                caps.check(new.now, response.hour_at, response.day_at)?;
                Err(PortError::Internal(format!("a notification was {other}")).into())
            }
        }
    }

    async fn response(&self, send: Send) -> Result<Response, PortError> {
        // A batch commits on a separate connection, so what is part of a transaction goes alone.
        if !self.database.is_bound() {
            let database = self.database.clone();
            let outcome = self.combiner.submit(
                send.organization,
                send.clone(),
                move |organization, batch| {
                    let database = database.clone();
                    async move { send_batch(&database, organization, &batch).await }
                },
            );
            match outcome.await {
                BatchOutcome::Done(response) => return Ok(response),
                // Not tried alone: it would wait for the same connections once more.
                BatchOutcome::Exhausted(why) => return Err(PortError::Exhausted(why)),
                BatchOutcome::Unknown(why) => return Err(PortError::OutcomeUnknown(why)),
                BatchOutcome::RunSeparately => {}
            }
        }
        Ok(retried!(self.send_alone(&send))?)
    }

    async fn send_alone(&self, send: &Send) -> Result<Response, Fault> {
        let database = self.database.of(send.organization);
        let mut connection = database.connection().await?;
        let responses = deliver(&mut connection, std::slice::from_ref(send)).await;
        let responses = responses.map_err(|error| {
            Fault::from(error)
                .of_commit()
                .on_violation("notification_user_id_fkey", || {
                    PortError::NotFound(Resource::User)
                })
        })?;
        let response = responses.into_iter().next();
        response.ok_or_else(|| PortError::Internal("a send has no response".to_owned()).into())
    }
}

/// Sends a batch of one organization in one transaction.
async fn send_batch(
    database: &Database,
    organization: OrganizationId,
    batch: &[Send],
) -> Vec<BatchOutcome<Response>> {
    let all = |outcome: BatchOutcome<Response>| vec![outcome; batch.len()];
    let mut connection = match database.of(organization).connection().await {
        Ok(connection) => connection,
        Err(error) => return all(BatchOutcome::without_connection(error)),
    };
    match deliver(&mut connection, batch).await {
        Ok(responses) => responses.into_iter().map(BatchOutcome::Done).collect(),
        Err(error) if is_refusal(&error) => {
            tracing::debug!(%error, size = batch.len(), "notifications go on alone");
            // One refused row, such as that of a deleted user, fails the
            // statement for the whole batch.
            all(BatchOutcome::RunSeparately)
        }
        // The commit may have succeeded: trying again could send all of them twice.
        Err(error) => all(BatchOutcome::Unknown(port_error(error).to_string())),
    }
}

/// Sends notifications, one after the other, and stores an event for each that was delivered.
static DELIVER: LazyLock<String> = LazyLock::new(|| {
    let delivered = record::insertion(
        LoggedEventKind::NOTIFICATION_CREATED,
        "organization_id, at, user_id, notification_id",
        "$1, now, user_id, id",
        "sent WHERE outcome = 'delivered' ORDER BY nth",
    );
    format!(
        // MATERIALIZED: the function has effects, and two parts read its result.
        "WITH sent AS MATERIALIZED (SELECT u.nth, u.user_id, u.id, u.now, \
         sent.outcome, sent.hour_at, sent.day_at FROM unnest($3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::text[], $9::jsonb[], \
         $10::uuid[], $11::timestamptz[], $12::bigint[], $13::bigint[]) WITH ORDINALITY \
         AS u(user_id, id, dedupe_key, title, body, action_url, data, api_key, now, per_hour, per_day, nth) \
         CROSS JOIN LATERAL labdata.send_notification($1, u.user_id, u.id, u.dedupe_key, u.title, u.body, \
         u.action_url, u.data, u.api_key, $2, u.now, u.per_hour, u.per_day) AS sent), recorded AS ({delivered} \
         RETURNING pg_notify('labdata_event_log', organization_id::text)) \
         SELECT outcome, hour_at, day_at FROM sent ORDER BY nth"
    )
});

/// Sends notifications of one organization, one after the other; a response for each.
async fn deliver(
    connection: &mut AsyncPgConnection,
    sends: &[Send],
) -> Result<Vec<Response>, DieselError> {
    fn each<'s, T>(sends: &'s [Send], part: impl Fn(&'s Send) -> T) -> Vec<T> {
        sends.iter().map(part).collect()
    }
    let Some(organization) = sends.first().map(|send| send.organization) else {
        return Ok(Vec::new());
    };
    let data = each(sends, |send| send.new.draft.data.clone().map(Value::Object));
    let query = diesel::sql_query(DELIVER.as_str())
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<Text, _>(PLATFORM)
        .bind::<Array<SqlUuid>, _>(each(sends, |send| send.user.as_uuid()))
        .bind::<Array<SqlUuid>, _>(each(sends, |send| send.new.id.as_uuid()))
        .bind::<Array<Text>, _>(each(sends, |send| send.new.draft.dedupe_key.as_str()))
        .bind::<Array<Text>, _>(each(sends, |send| send.new.draft.title.as_str()))
        .bind::<Array<Text>, _>(each(sends, |send| send.new.draft.body.as_str()))
        .bind::<Array<Text>, _>(each(sends, |send| send.new.draft.action_url.as_str()))
        .bind::<Array<Nullable<Jsonb>>, _>(data)
        .bind::<Array<Nullable<SqlUuid>>, _>(each(sends, |send| {
            send.new.api_key.map(ApiKeyId::as_uuid)
        }))
        .bind::<Array<Timestamptz>, _>(each(sends, |send| send.new.now))
        .bind::<Array<BigInt>, _>(each(sends, |send| i64::from(send.caps.per_user_and_hour)))
        .bind::<Array<BigInt>, _>(each(sends, |send| {
            i64::from(send.caps.per_organization_and_day)
        }));
    // Arrays make the text the same for every size of a batch, so it is prepared once.
    CachedStatement(query).get_results(connection).await
}
