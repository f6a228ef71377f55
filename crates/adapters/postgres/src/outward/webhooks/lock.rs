//! Locks of webhooks.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{OrganizationId, WebhookId},
    outward::webhooks::Webhook,
    refusal::Resource,
};
use labdata_ports::PortError;

use super::rows::WebhookRow;
use crate::{
    database::{errors::Fault, pool::Connection},
    schema::webhook,
};

/// Locks a webhook of the organization and reads it.
pub(super) async fn locked(
    connection: &mut Connection,
    organization: OrganizationId,
    id: WebhookId,
) -> Result<Webhook, Fault> {
    let row: Option<WebhookRow> = webhook::table
        .find(id.as_uuid())
        .filter(webhook::organization_id.eq(organization.as_uuid()))
        .select(WebhookRow::as_select())
        .for_no_key_update()
        .first(connection)
        .await
        .optional()?;
    let row = row.ok_or(PortError::NotFound(Resource::Webhook))?;
    Ok(row.try_into()?)
}
