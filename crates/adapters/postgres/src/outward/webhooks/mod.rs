//! Webhooks.

mod deliveries;
mod lock;
pub(crate) mod outbox;
mod rows;

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{DeliveryId, OrganizationId, WebhookId},
    outward::webhooks::{
        Delivery, DeliveryOutcome, HeldDelivery, SecretVersion, Webhook, WebhookChange,
    },
    page::{Cursor, Page, PageRequest},
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    outward::webhooks::{ClaimedDelivery, DisabledWebhook, WebhookRepository},
};
use time::{Duration, OffsetDateTime};

use self::{
    lock::locked,
    rows::{NewWebhookRow, WebhookRow},
};
use crate::{
    database::{
        errors::{Fault, port_error, transacted},
        paging::page_of,
        pool::{Connection, Database},
    },
    schema::{webhook, webhook_delivery},
};

/// Webhooks in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgWebhookRepository {
    database: Database,
}

impl PgWebhookRepository {
    /// The repository over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

/// Stores a webhook that is locked.
async fn store(
    connection: &mut Connection,
    organization: OrganizationId,
    changed: &Webhook,
) -> Result<(), Fault> {
    diesel::update(webhook::table.find(changed.id.as_uuid()))
        .set(NewWebhookRow::of(organization.as_uuid(), changed))
        .execute(connection)
        .await?;
    Ok(())
}

async fn update(
    connection: &mut Connection,
    organization: OrganizationId,
    id: WebhookId,
    change: &WebhookChange,
    now: OffsetDateTime,
) -> Result<Webhook, Fault> {
    let stored = locked(connection, organization, id).await?;
    // Earlier events are received by the webhook as it was.
    outbox::make_all(connection, organization).await?;
    let was_enabled = stored.state.is_enabled();
    let changed = change.apply(stored);
    // Also when it is enabled: a worker that saw it as it was may have made some since it was disabled.
    if was_enabled != changed.state.is_enabled() {
        deliveries::end_pending(connection, id, now).await?;
    }
    store(connection, organization, &changed).await?;
    Ok(changed)
}

async fn rotate(
    connection: &mut Connection,
    organization: OrganizationId,
    id: WebhookId,
    now: OffsetDateTime,
) -> Result<Webhook, Fault> {
    let stored = locked(connection, organization, id).await?;
    let secret: SecretVersion = stored.secret.rotated(now);
    let rotated = Webhook { secret, ..stored };
    store(connection, organization, &rotated).await?;
    Ok(rotated)
}

async fn delete(
    connection: &mut Connection,
    organization: OrganizationId,
    id: WebhookId,
) -> Result<Webhook, Fault> {
    let row: Option<WebhookRow> = diesel::delete(webhook::table.find(id.as_uuid()))
        .filter(webhook::organization_id.eq(organization.as_uuid()))
        .returning(WebhookRow::as_returning())
        .get_result(connection)
        .await
        .optional()?;
    let row = row.ok_or(PortError::NotFound(Resource::Webhook))?;
    // No foreign key deletes them: deliveries are made without a lock on their webhook. The sweep removes those that
    // are made after this.
    diesel::delete(webhook_delivery::table.filter(webhook_delivery::webhook_id.eq(id.as_uuid())))
        .execute(connection)
        .await?;
    Ok(row.try_into()?)
}

async fn add(
    connection: &mut Connection,
    organization: OrganizationId,
    new: &Webhook,
    most: u32,
) -> Result<bool, Fault> {
    let stored: i64 = webhook::table
        .filter(webhook::organization_id.eq(organization.as_uuid()))
        .count()
        .get_result(connection)
        .await?;
    if stored >= i64::from(most) {
        return Ok(false);
    }
    // Earlier events are not sent to it.
    outbox::make_all(connection, organization).await?;
    diesel::insert_into(webhook::table)
        .values(NewWebhookRow::of(organization.as_uuid(), new))
        .execute(connection)
        .await
        .map_err(|error| {
            Fault::from(error)
                .on_violation("webhook_organization_id_fkey", || {
                    PortError::NotFound(Resource::Organization)
                })
                .on_violation("webhook_created_by_fkey", || {
                    PortError::NotFound(Resource::User)
                })
        })?;
    Ok(true)
}

#[async_trait]
impl WebhookRepository for PgWebhookRepository {
    async fn add(
        &self,
        organization: OrganizationId,
        webhook: &Webhook,
        most: u32,
    ) -> Result<bool, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => add(connection, organization, webhook, most)
        )?)
    }

    async fn list(
        &self,
        organization: OrganizationId,
        page: PageRequest,
    ) -> Result<Page<Webhook>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let query = webhook::table
            .filter(webhook::organization_id.eq(organization.as_uuid()))
            .select(WebhookRow::as_select())
            .into_boxed();
        let rows: Vec<WebhookRow> = page_of!(query, page, webhook::created_at, webhook::id)
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        let webhooks: Result<Vec<Webhook>, _> = rows.into_iter().map(Webhook::try_from).collect();
        Ok(Page::from_overfetched(webhooks?, page.limit, |webhook| {
            Cursor {
                at: webhook.created_at,
                id: webhook.id.as_uuid(),
            }
        }))
    }

    async fn get(&self, organization: OrganizationId, id: WebhookId) -> Result<Webhook, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let row: Option<WebhookRow> = webhook::table
            .find(id.as_uuid())
            .filter(webhook::organization_id.eq(organization.as_uuid()))
            .select(WebhookRow::as_select())
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        row.ok_or(PortError::NotFound(Resource::Webhook))?
            .try_into()
    }

    async fn update(
        &self,
        organization: OrganizationId,
        id: WebhookId,
        change: &WebhookChange,
        now: OffsetDateTime,
    ) -> Result<Webhook, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => update(connection, organization, id, change, now)
        )?)
    }

    async fn rotate(
        &self,
        organization: OrganizationId,
        id: WebhookId,
        now: OffsetDateTime,
    ) -> Result<Webhook, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => rotate(connection, organization, id, now)
        )?)
    }

    async fn delete(
        &self,
        organization: OrganizationId,
        id: WebhookId,
    ) -> Result<Webhook, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => delete(connection, organization, id)
        )?)
    }

    async fn deliveries(
        &self,
        organization: OrganizationId,
        webhook: WebhookId,
        page: PageRequest,
    ) -> Result<Page<Delivery>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let deliveries = outbox::list(&mut connection, organization, webhook, page).await?;
        Ok(Page::from_overfetched(deliveries, page.limit, |delivery| {
            Cursor {
                at: delivery.at,
                id: delivery.id.as_uuid(),
            }
        }))
    }

    async fn add_delivery(
        &self,
        organization: OrganizationId,
        delivery: &Delivery,
    ) -> Result<(), PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        deliveries::insert(&mut connection, organization, delivery).await
    }

    async fn resend(
        &self,
        organization: OrganizationId,
        webhook: WebhookId,
        delivery: DeliveryId,
        now: OffsetDateTime,
    ) -> Result<Delivery, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => deliveries::resend(connection, organization, webhook, delivery, now)
        )?)
    }

    async fn make_deliveries(&self, limit: u32) -> Result<u64, PortError> {
        let mut connection = self.database.connection().await?;
        outbox::make_deliveries(&mut connection, limit).await
    }

    async fn claim(
        &self,
        now: OffsetDateTime,
        lease: Duration,
        held: &[HeldDelivery],
        free: usize,
    ) -> Result<Vec<ClaimedDelivery>, PortError> {
        let mut connection = self.database.connection().await?;
        deliveries::claim(&mut connection, now, lease, held, free).await
    }

    async fn settle(
        &self,
        claimed: &ClaimedDelivery,
        outcome: &DeliveryOutcome,
    ) -> Result<bool, PortError> {
        Ok(transacted!(
            self.database.of(claimed.organization),
            connection => deliveries::settle(connection, claimed, outcome)
        )?)
    }

    async fn disabled(&self, limit: u32) -> Result<Vec<DisabledWebhook>, PortError> {
        let mut connection = self.database.connection().await?;
        let rows: Vec<WebhookRow> = webhook::table
            .filter(webhook::notice_due_at.is_not_null())
            .order(webhook::notice_due_at)
            .limit(i64::from(limit))
            .select(WebhookRow::as_select())
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        let disabled = rows.into_iter().filter_map(|row| {
            let (organization, at) = (row.organization_id, row.notice_due_at?);
            Some(row.try_into().map(|webhook| DisabledWebhook {
                organization: OrganizationId::new(organization),
                webhook,
                at,
            }))
        });
        disabled.collect()
    }

    async fn record_notified(&self, disabled: &DisabledWebhook) -> Result<bool, PortError> {
        let organization = disabled.organization;
        let mut connection = self.database.of(organization).connection().await?;
        let updated = diesel::update(webhook::table.find(disabled.webhook.id.as_uuid()))
            .filter(webhook::organization_id.eq(organization.as_uuid()))
            // It may have been disabled once more since.
            .filter(webhook::notice_due_at.eq(disabled.at))
            .set(webhook::notice_due_at.eq(None::<OffsetDateTime>))
            .execute(&mut connection)
            .await
            .map_err(|error| Fault::from(error).of_commit())?;
        Ok(updated == 1)
    }

    async fn delete_deliveries_before(
        &self,
        before: OffsetDateTime,
        limit: u32,
    ) -> Result<u64, PortError> {
        let mut connection = self.database.connection().await?;
        deliveries::delete_before(&mut connection, before, limit).await
    }
}
