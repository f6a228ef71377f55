//! The outbox: events whose deliveries are yet to be made. A trigger of the event log stores each once, in the
//! transaction of the event. Its receivers are chosen when the deliveries are made, so each change of webhooks makes
//! those of earlier events first.

use std::sync::LazyLock;

use diesel::sql_types::{BigInt, Nullable, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    ids::{OrganizationId, WebhookId},
    outward::webhooks::{Delivery, MAX_EVENTS_PER_ORGANIZATION},
    page::PageRequest,
};
use labdata_ports::PortError;

use super::rows::DeliveryRow;
use crate::database::{
    errors::{Fault, corrupt, port_error},
    paging::overfetched,
    pool::Connection,
    sql::CachedStatement,
};

/// References of an event of the outbox, by the names of the event log's columns.
const SUBJECT: &str = "jsonb_strip_nulls(to_jsonb(event) \
    - '{number,organization_id,type,at,user_id,file_instrument_id,job_ids}'::text[])";

/// SQL that makes the deliveries of up to `$1` events, at most `$2` of each organization of the table `waiting`. An event
/// is deleted by the statement that stores its deliveries, so that each is made once; workers skip what another one has
/// locked.
fn make_from(waiting: &str, locked: &str) -> String {
    // The rows are locked in an inner query, because PostgreSQL allows no FOR UPDATE beside a window function.
    // MATERIALIZED, so that they are locked once.
    format!(
        "WITH RECURSIVE {waiting}, \
         turn AS MATERIALIZED ( \
             SELECT event.*, row_number() OVER (PARTITION BY organization_id ORDER BY at, number) AS turn \
             FROM waiting CROSS JOIN LATERAL ( \
                 SELECT organization_id, at, number FROM labdata.webhook_outbox \
                 WHERE organization_id = waiting.organization ORDER BY at, number LIMIT $2 FOR UPDATE {locked}) event), \
         chosen AS (SELECT organization_id, at, number FROM turn ORDER BY turn, at, number LIMIT $1), \
         taken AS (DELETE FROM labdata.webhook_outbox it USING chosen \
             WHERE it.organization_id = chosen.organization_id AND it.at = chosen.at AND it.number = chosen.number \
             RETURNING it AS event), \
         made AS (INSERT INTO labdata.webhook_delivery \
                 (webhook_id, id, organization_id, event_type, subject, at, started_at, due_at) \
             SELECT webhook.id, labdata.delivery_id((event).number, webhook.id), (event).organization_id, \
                 (event).type, {SUBJECT}, (event).at, (event).at, (event).at \
             FROM taken JOIN labdata.webhook \
             ON webhook.organization_id = (event).organization_id AND labdata.webhook_receives(webhook, event)) \
         SELECT count(*) AS events FROM taken"
    )
}

/// Organizations with waiting events are found by jumps in the primary key.
static MAKE: LazyLock<String> = LazyLock::new(|| {
    make_from(
        "waiting (organization) AS ( \
             (SELECT organization_id FROM labdata.webhook_outbox ORDER BY organization_id LIMIT 1) \
             UNION ALL SELECT (SELECT organization_id FROM labdata.webhook_outbox \
                 WHERE organization_id > waiting.organization ORDER BY organization_id LIMIT 1) \
             FROM waiting WHERE waiting.organization IS NOT NULL)",
        "SKIP LOCKED",
    )
});

/// Waits for a worker that makes some of them: the caller reads or ends the deliveries afterwards.
static MAKE_OF_ONE: LazyLock<String> =
    LazyLock::new(|| make_from("waiting (organization) AS (SELECT $3::uuid)", ""));

/// A page of a webhook's deliveries, and of those that are yet to be made: one statement sees each once.
static LIST: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH made AS ( \
            SELECT * FROM labdata.webhook_delivery \
            WHERE webhook_id = $1 AND organization_id = $2 \
            AND ($3 IS NULL OR (at <= $3 AND (at < $3 OR id < $4))) \
            ORDER BY at DESC, id DESC LIMIT $5), \
        waiting AS ( \
            SELECT webhook.id AS webhook_id, labdata.delivery_id(event.number, webhook.id) AS id, event.organization_id, \
                event.type AS event_type, {SUBJECT} AS subject, event.at, event.at AS started_at, \
                0::bigint AS earlier_attempts, 0::bigint AS attempts, 'pending' AS status, event.at AS due_at, \
                NULL::timestamptz AS settled_at, NULL::bigint AS response_status, NULL::text AS error \
            FROM labdata.webhook_outbox event JOIN labdata.webhook ON webhook.id = $1 \
            WHERE event.organization_id = $2 AND labdata.webhook_receives(webhook, event)) \
        SELECT * FROM made UNION ALL \
        SELECT * FROM waiting WHERE $3 IS NULL OR (at <= $3 AND (at < $3 OR id < $4)) \
        ORDER BY at DESC, id DESC LIMIT $5"
    )
});

#[derive(diesel::QueryableByName)]
struct MadeRow {
    #[diesel(sql_type = BigInt)]
    events: i64,
}

/// Makes the deliveries of up to `limit` events of all organizations; returns the number of events.
pub(super) async fn make_deliveries(
    connection: &mut Connection,
    limit: u32,
) -> Result<u64, PortError> {
    let query = diesel::sql_query(MAKE.as_str())
        .bind::<BigInt, _>(i64::from(limit))
        .bind::<BigInt, _>(i64::from(MAX_EVENTS_PER_ORGANIZATION));
    // Prepared, because every worker asks twice a second.
    let made: MadeRow = CachedStatement(query)
        .get_result(&mut **connection)
        .await
        .map_err(|error| Fault::from(error).of_commit())?;
    u64::try_from(made.events).map_err(|_| corrupt("webhook_outbox", "count", made.events))
}

/// Makes the deliveries of all waiting events of an organization, to its webhooks as they are.
pub(crate) async fn make_all(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
) -> Result<(), Fault> {
    diesel::sql_query(MAKE_OF_ONE.as_str())
        .bind::<BigInt, _>(i64::MAX)
        .bind::<BigInt, _>(i64::MAX)
        .bind::<SqlUuid, _>(organization.as_uuid())
        .execute(connection)
        .await?;
    Ok(())
}

/// A page of a webhook's deliveries, with one more to show whether others follow.
pub(super) async fn list(
    connection: &mut Connection,
    organization: OrganizationId,
    webhook: WebhookId,
    page: PageRequest,
) -> Result<Vec<Delivery>, PortError> {
    let rows: Vec<DeliveryRow> = diesel::sql_query(LIST.as_str())
        .bind::<SqlUuid, _>(webhook.as_uuid())
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<Nullable<Timestamptz>, _>(page.after.map(|cursor| cursor.at))
        .bind::<Nullable<SqlUuid>, _>(page.after.map(|cursor| cursor.id))
        .bind::<BigInt, _>(overfetched(page))
        .load(connection)
        .await
        .map_err(port_error)?;
    rows.into_iter().map(Delivery::try_from).collect()
}
