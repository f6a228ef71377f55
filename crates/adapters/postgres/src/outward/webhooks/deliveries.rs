//! Deliveries to webhooks.

use std::collections::BTreeMap;

use diesel::{
    prelude::*,
    sql_types::{Array, BigInt, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{DeliveryId, OrganizationId, WebhookId},
    outward::webhooks::{
        DISABLED_ERROR, Delivery, DeliveryOutcome, DeliveryState, HeldDelivery,
        MAX_PER_FAILING_WEBHOOK, MAX_PER_ORGANIZATION, MAX_PER_WEBHOOK, MAX_TO_FAILING_WEBHOOKS,
        Webhook, WebhookState,
    },
    refusal::Resource,
};
use labdata_ports::{PortError, outward::webhooks::ClaimedDelivery};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use super::{
    lock::locked,
    outbox,
    rows::{DeliveryRow, Subject, WebhookRow, state_columns},
};
use crate::{
    database::{
        errors::{Fault, corrupt, port_error},
        pool::Connection,
        sql::CachedStatement,
    },
    schema::{webhook, webhook_delivery},
};

/// Claims deliveries by moving their due time to the end of the lease. Per webhook, the longest due ones as far
/// as it has free slots; of these, organizations take turns.
const CLAIM: &str = "\
    WITH held AS (SELECT webhook_id, organization_id \
        FROM unnest($3::uuid[], $4::uuid[]) AS u (webhook_id, organization_id)), \
    due AS MATERIALIZED ( \
        SELECT delivery.webhook_id, delivery.id, delivery.due_at, webhook.organization_id, \
            webhook.failing_since IS NOT NULL AS is_failing \
        FROM labdata.webhook CROSS JOIN LATERAL ( \
            SELECT webhook_id, id, due_at FROM labdata.webhook_delivery \
            WHERE webhook_id = webhook.id AND status = 'pending' AND due_at <= $1 \
            ORDER BY due_at, id \
            LIMIT greatest(0, CASE WHEN webhook.failing_since IS NULL THEN $5 ELSE $6 END \
                - (SELECT count(*) FROM held WHERE held.webhook_id = webhook.id)) \
            FOR UPDATE SKIP LOCKED) delivery \
        WHERE webhook.disabled_by IS NULL), \
    turn AS (SELECT due.*, row_number() OVER (PARTITION BY organization_id ORDER BY due_at, id) \
            + (SELECT count(*) FROM held WHERE held.organization_id = due.organization_id) AS turn \
        FROM due), \
    share AS (SELECT turn.*, row_number() OVER (PARTITION BY is_failing ORDER BY turn, due_at, id) AS nth \
        FROM turn WHERE turn <= $7), \
    chosen AS (SELECT webhook_id, id FROM share WHERE NOT is_failing OR nth <= $8 \
        ORDER BY turn, due_at, id LIMIT $9) \
    UPDATE labdata.webhook_delivery it SET due_at = $2, attempts = it.attempts + 1 \
    FROM chosen WHERE it.webhook_id = chosen.webhook_id AND it.id = chosen.id \
    RETURNING it.*";

/// Deletes old deliveries that have ended, and all of webhooks that do not exist. Webhooks are found by jumps in
/// the primary key, and their old deliveries by the index of the list.
const DELETE: &str = "\
    WITH RECURSIVE known (id) AS ( \
        (SELECT webhook_id FROM labdata.webhook_delivery ORDER BY webhook_id LIMIT 1) \
        UNION ALL SELECT (SELECT webhook_id FROM labdata.webhook_delivery \
            WHERE webhook_id > known.id ORDER BY webhook_id LIMIT 1) \
        FROM known WHERE known.id IS NOT NULL), \
    target AS (SELECT known.id, EXISTS ( \
        SELECT FROM labdata.webhook WHERE webhook.id = known.id) AS is_there FROM known), \
    old AS (SELECT delivery.webhook_id, delivery.id FROM target CROSS JOIN LATERAL ( \
        SELECT webhook_id, id FROM labdata.webhook_delivery WHERE webhook_id = target.id \
        AND at < CASE WHEN target.is_there THEN $1 ELSE 'infinity' END \
        AND (status <> 'pending' OR NOT target.is_there) LIMIT $2) delivery LIMIT $2) \
    DELETE FROM labdata.webhook_delivery it USING old \
    WHERE it.webhook_id = old.webhook_id AND it.id = old.id";

/// Stores a delivery.
pub(super) async fn insert(
    connection: &mut Connection,
    organization: OrganizationId,
    delivery: &Delivery,
) -> Result<(), PortError> {
    let DeliveryState::Pending { due_at } = delivery.state else {
        return Err(PortError::Internal("a new delivery is pending".to_owned()));
    };
    let subject = serde_json::to_value(Subject::from(delivery.subject.references()))
        .map_err(|error| PortError::Internal(error.to_string()))?;
    diesel::insert_into(webhook_delivery::table)
        .values((
            webhook_delivery::webhook_id.eq(delivery.webhook.as_uuid()),
            webhook_delivery::id.eq(delivery.id.as_uuid()),
            webhook_delivery::organization_id.eq(organization.as_uuid()),
            webhook_delivery::event_type.eq(delivery.subject.as_str()),
            webhook_delivery::subject.eq(subject),
            webhook_delivery::at.eq(delivery.at),
            webhook_delivery::started_at.eq(delivery.started_at),
            webhook_delivery::earlier_attempts.eq(i64::from(delivery.earlier_attempts)),
            webhook_delivery::attempts.eq(i64::from(delivery.attempts)),
            webhook_delivery::status.eq(delivery.state.as_str()),
            webhook_delivery::due_at.eq(due_at),
        ))
        .execute(connection)
        .await
        .map_err(|error| Fault::from(error).of_commit())?;
    Ok(())
}

/// Sends a delivery again.
pub(super) async fn resend(
    connection: &mut Connection,
    organization: OrganizationId,
    webhook: WebhookId,
    delivery: DeliveryId,
    now: OffsetDateTime,
) -> Result<Delivery, Fault> {
    // It may be listed already, but yet to be made.
    outbox::make_all(connection, organization).await?;
    let key = (webhook.as_uuid(), delivery.as_uuid());
    let row: Option<DeliveryRow> = webhook_delivery::table
        .find(key)
        .filter(webhook_delivery::organization_id.eq(organization.as_uuid()))
        .select(DeliveryRow::as_select())
        .for_update()
        .first(connection)
        .await
        .optional()?;
    let row = row.ok_or(PortError::NotFound(Resource::Delivery))?;
    let resent = Delivery::try_from(row)?.resent(now);
    diesel::update(webhook_delivery::table.find(key))
        .set((
            webhook_delivery::started_at.eq(resent.started_at),
            webhook_delivery::earlier_attempts.eq(i64::from(resent.earlier_attempts)),
            webhook_delivery::status.eq(resent.state.as_str()),
            webhook_delivery::due_at.eq(now),
            webhook_delivery::settled_at.eq(None::<OffsetDateTime>),
        ))
        .execute(connection)
        .await?;
    Ok(resent)
}

/// Ends the pending deliveries of a webhook that is disabled. Those of events before that must have been made.
pub(super) async fn end_pending(
    connection: &mut Connection,
    webhook: WebhookId,
    now: OffsetDateTime,
) -> Result<(), Fault> {
    let pending = webhook_delivery::table
        .filter(webhook_delivery::webhook_id.eq(webhook.as_uuid()))
        .filter(webhook_delivery::status.eq("pending"));
    diesel::update(pending)
        .set((
            webhook_delivery::status.eq("failed"),
            webhook_delivery::settled_at.eq(now),
            webhook_delivery::error.eq(DISABLED_ERROR),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

/// Claims due deliveries, and reads their webhooks.
pub(super) async fn claim(
    connection: &mut Connection,
    now: OffsetDateTime,
    lease: Duration,
    held: &[HeldDelivery],
    free: usize,
) -> Result<Vec<ClaimedDelivery>, PortError> {
    let to_failing = held.iter().filter(|one| one.is_to_failing).count();
    let to_failing = i64::try_from(to_failing).unwrap_or(i64::MAX);
    let query = diesel::sql_query(CLAIM)
        .bind::<Timestamptz, _>(now)
        .bind::<Timestamptz, _>(now + lease)
        .bind::<Array<SqlUuid>, _>(
            held.iter()
                .map(|it| it.webhook.as_uuid())
                .collect::<Vec<_>>(),
        )
        .bind::<Array<SqlUuid>, _>(
            held.iter()
                .map(|it| it.organization.as_uuid())
                .collect::<Vec<_>>(),
        )
        .bind::<BigInt, _>(i64::from(MAX_PER_WEBHOOK))
        .bind::<BigInt, _>(i64::from(MAX_PER_FAILING_WEBHOOK))
        .bind::<BigInt, _>(i64::from(MAX_PER_ORGANIZATION))
        .bind::<BigInt, _>(i64::from(MAX_TO_FAILING_WEBHOOKS).saturating_sub(to_failing))
        .bind::<BigInt, _>(i64::try_from(free).unwrap_or(i64::MAX));
    // Prepared, because every worker asks twice a second.
    let rows: Vec<DeliveryRow> = CachedStatement(query)
        .load(&mut **connection)
        .await
        .map_err(|error| Fault::from(error).of_commit())?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Uuid> = rows.iter().map(|row| row.webhook_id).collect();
    let webhooks: Vec<WebhookRow> = webhook::table
        .filter(webhook::id.eq_any(ids))
        .select(WebhookRow::as_select())
        .load(connection)
        .await
        .map_err(port_error)?;
    let mut known = BTreeMap::new();
    for row in webhooks {
        let id = row.id;
        match Webhook::try_from(row) {
            Ok(webhook) => {
                known.insert(id, webhook);
            }
            Err(error) => tracing::error!(%error, "a webhook cannot be read"),
        }
    }
    let mut claimed = Vec::new();
    for row in rows {
        let organization = OrganizationId::new(row.organization_id);
        // Deleted in the meantime: the delivery is swept.
        let Some(webhook) = known.get(&row.webhook_id).cloned() else {
            continue;
        };
        match Delivery::try_from(row) {
            Ok(delivery) => claimed.push(ClaimedDelivery {
                organization,
                webhook,
                delivery,
            }),
            // A row that cannot be read must not block the remaining ones.
            Err(error) => tracing::error!(%error, "a delivery cannot be read"),
        }
    }
    Ok(claimed)
}

/// Stores the outcome of a claim that still stands, and the state of its webhook.
pub(super) async fn settle(
    connection: &mut Connection,
    claimed: &ClaimedDelivery,
    outcome: &DeliveryOutcome,
) -> Result<bool, Fault> {
    let (organization, id) = (claimed.organization, claimed.webhook.id);
    let delivered = matches!(outcome, DeliveryOutcome::Delivered { .. });
    // Before the delivery, as those who disable it do. A delivery needs no lock: it writes the webhook only if
    // that was failing.
    let before = if delivered {
        None
    } else {
        match locked(connection, organization, id).await {
            Ok(webhook) => Some(webhook.state),
            Err(Fault::Port(PortError::NotFound(_))) => return Ok(false),
            Err(fault) => return Err(fault),
        }
    };
    let (due_at, settled_at) = match outcome.state() {
        DeliveryState::Pending { due_at } => (Some(due_at), None),
        DeliveryState::Delivered { at } | DeliveryState::Failed { at } => (None, Some(at)),
    };
    let key = (id.as_uuid(), claimed.delivery.id.as_uuid());
    let stood = diesel::update(webhook_delivery::table.find(key))
        .filter(webhook_delivery::status.eq("pending"))
        // The fence: a worker whose claim expired must not overwrite the outcome of a later one.
        .filter(webhook_delivery::attempts.eq(i64::from(claimed.delivery.attempts)))
        .set((
            webhook_delivery::status.eq(outcome.state().as_str()),
            due_at.map(|at| webhook_delivery::due_at.eq(at)),
            webhook_delivery::settled_at.eq(settled_at),
            webhook_delivery::response_status.eq(outcome.status().map(i64::from)),
            webhook_delivery::error.eq(outcome.error()),
        ))
        .execute(connection)
        .await?;
    if stood == 0 {
        return Ok(false);
    }
    match before {
        None => {
            diesel::update(webhook::table.find(id.as_uuid()))
                .filter(webhook::failing_since.is_not_null())
                .set(webhook::failing_since.eq(None::<OffsetDateTime>))
                .execute(connection)
                .await?;
        }
        Some(before) => {
            settle_failure(connection, claimed, before, outcome).await?;
        }
    }
    Ok(true)
}

/// Stores the state of a webhook, which is locked, after a failure.
async fn settle_failure(
    connection: &mut Connection,
    claimed: &ClaimedDelivery,
    before: WebhookState,
    outcome: &DeliveryOutcome,
) -> Result<(), Fault> {
    let after = before.after(outcome);
    if after == before {
        return Ok(());
    }
    let (organization, id) = (claimed.organization, claimed.webhook.id);
    let (failing_since, disabled_by) = state_columns(after);
    let at = match outcome {
        DeliveryOutcome::Delivered { at, .. }
        | DeliveryOutcome::Retry { at, .. }
        | DeliveryOutcome::Failed { at, .. } => *at,
    };
    let is_disabled = !after.is_enabled();
    if is_disabled {
        outbox::make_all(connection, organization).await?;
        end_pending(connection, id, at).await?;
    }
    diesel::update(webhook::table.find(id.as_uuid()))
        .set((
            webhook::failing_since.eq(failing_since),
            webhook::disabled_by.eq(disabled_by),
            // With the state, so that no crash loses the notice to the admins.
            is_disabled.then(|| webhook::notice_due_at.eq(Some(at))),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

/// Deletes old deliveries, and those without a webhook.
pub(super) async fn delete_before(
    connection: &mut Connection,
    before: OffsetDateTime,
    limit: u32,
) -> Result<u64, PortError> {
    let deleted = diesel::sql_query(DELETE)
        .bind::<Timestamptz, _>(before)
        .bind::<BigInt, _>(i64::from(limit))
        .execute(connection)
        .await
        .map_err(port_error)?;
    u64::try_from(deleted).map_err(|_| corrupt("webhook_delivery", "count", deleted))
}
