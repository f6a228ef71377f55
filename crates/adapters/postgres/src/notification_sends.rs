//! Sending notifications: the database's function counts and stores, and sends of an organization
//! that arrive together share a transaction.

use std::sync::Arc;

use diesel::{
    prelude::*,
    sql_types::{BigInt, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use futures::future::join_all;
use labdata_domain::{
    ids::{ApiKeyId, OrganizationId, UserId},
    notification::{Caps, PLATFORM, Sent},
};
use labdata_ports::{
    PortError,
    notifications::{NewNotification, SendError},
};
use serde_json::Value;
use time::OffsetDateTime;

use crate::{
    combine::{Combiner, Fate},
    errors::{Fault, port_error, retried},
    pool::Database,
    sql::Kept,
    transaction,
};

/// What `labdata.send_notification` answers.
#[derive(Debug, QueryableByName)]
struct Answer {
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
    combiner: Arc<Combiner<OrganizationId, Send, Answer>>,
}

impl Sends {
    pub(crate) fn new(database: Database) -> Self {
        Self {
            database,
            combiner: Arc::default(),
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
        let answer = self.answer(send).await?;
        match answer.outcome.as_str() {
            "delivered" => Ok(Sent::Delivered(new.id)),
            "deduplicated" => Ok(Sent::Deduplicated),
            "muted" => Ok(Sent::Muted),
            "unknown_key" => Err(PortError::NotFound("API key").into()),
            other => {
                caps.place(new.now, answer.hour_at, answer.day_at)?;
                Err(PortError::Internal(format!("a notification was {other}")).into())
            }
        }
    }

    async fn answer(&self, send: Send) -> Result<Answer, PortError> {
        if !self.database.is_in_unit_of_work() {
            let database = self.database.clone();
            let fate = self
                .combiner
                .submit(send.organization, send.clone(), move |_, batch| {
                    let database = database.clone();
                    async move { send_batch(&database, &batch).await }
                });
            match fate.await {
                Fate::Done(answer) => return Ok(answer),
                Fate::Unknown(why) => return Err(PortError::Unavailable(why)),
                Fate::Alone => {}
            }
        }
        Ok(retried!(self.send_alone(&send))?)
    }

    async fn send_alone(&self, send: &Send) -> Result<Answer, Fault> {
        let connection = self.database.connection().await?;
        deliver(&connection, send).await
    }
}

/// Sends a batch in one transaction, one after the other.
async fn send_batch(database: &Database, batch: &[Send]) -> Vec<Fate<Answer>> {
    let alone = || batch.iter().map(|_| Fate::Alone).collect();
    let Ok(mut connection) = database.connection().await else {
        return alone();
    };
    if transaction::begin(&mut connection).await.is_err() {
        return alone();
    }
    let sends = batch.iter().map(|send| deliver(&connection, send));
    let answers = join_all(sends).await;
    let answers: Result<Vec<Answer>, Fault> = answers.into_iter().collect();
    let answers = match answers {
        Ok(answers) => answers,
        Err(fault) => {
            tracing::debug!(?fault, size = batch.len(), "notifications go on alone");
            transaction::rollback(&mut connection).await;
            return alone();
        }
    };
    match transaction::commit(&mut connection).await {
        Ok(()) => answers.into_iter().map(Fate::Done).collect(),
        Err(error) => {
            let why = port_error(error).to_string();
            batch.iter().map(|_| Fate::Unknown(why.clone())).collect()
        }
    }
}

async fn deliver(mut connection: &AsyncPgConnection, send: &Send) -> Result<Answer, Fault> {
    let Send { new, caps, .. } = send;
    let data = new.draft.data.clone().map(Value::Object);
    let query = diesel::sql_query(
        "SELECT outcome, hour_at, day_at FROM labdata.send_notification( \
         $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
    )
    .bind::<SqlUuid, _>(send.organization.as_uuid())
    .bind::<SqlUuid, _>(send.user.as_uuid())
    .bind::<SqlUuid, _>(new.id.as_uuid())
    .bind::<Text, _>(&new.draft.dedupe_key)
    .bind::<Text, _>(&new.draft.title)
    .bind::<Text, _>(&new.draft.body)
    .bind::<Text, _>(&new.draft.action_url)
    .bind::<Nullable<Jsonb>, _>(data)
    .bind::<Nullable<SqlUuid>, _>(new.api_key.map(ApiKeyId::as_uuid))
    .bind::<Text, _>(PLATFORM)
    .bind::<Timestamptz, _>(new.now)
    .bind::<BigInt, _>(i64::from(caps.per_user_and_hour))
    .bind::<BigInt, _>(i64::from(caps.per_organization_and_day));
    Kept(query)
        .get_result(&mut connection)
        .await
        .map_err(|error| {
            Fault::from(error)
                .on_violation("notification_user_id_fkey", || PortError::NotFound("user"))
        })
}
