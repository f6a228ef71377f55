//! Rows of webhooks and their deliveries.

#![expect(clippy::ref_option_ref, reason = "diesel derives it of a changeset")]

use diesel::prelude::*;
use labdata_domain::{
    events::EventReferences,
    ids::{
        DeliveryId, ExecutionId, FileId, InstrumentId, JobId, ModelId, NotificationId, UserId,
        WebhookId,
    },
    outward::webhooks::{
        Delivery, DeliveryState, DeliverySubject, DisabledBy, EventPattern, SecretVersion, Webhook,
        WebhookFilters, WebhookFormat, WebhookState, WebhookUrl,
    },
};
use labdata_ports::PortError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::errors::corrupt,
    schema::{webhook, webhook_delivery},
};

/// A stored webhook.
#[derive(Queryable, Selectable)]
#[diesel(table_name = webhook)]
pub(super) struct WebhookRow {
    pub(super) id: Uuid,
    pub(super) organization_id: Uuid,
    url: String,
    events: Vec<String>,
    format: String,
    table_name: Option<String>,
    instrument_id: Option<Uuid>,
    job_id: Option<Uuid>,
    secret_version: i64,
    previous_secret_until: Option<OffsetDateTime>,
    oldest_secret_version: i64,
    failing_since: Option<OffsetDateTime>,
    disabled_by: Option<String>,
    pub(super) notice_due_at: Option<OffsetDateTime>,
    created_by: Uuid,
    created_at: OffsetDateTime,
}

impl TryFrom<WebhookRow> for Webhook {
    type Error = PortError;

    fn try_from(row: WebhookRow) -> Result<Self, PortError> {
        let corrupt = |column| corrupt("webhook", column, row.id);
        let state = match &row.disabled_by {
            None => WebhookState::Enabled {
                failing_since: row.failing_since,
            },
            Some(name) => WebhookState::Disabled(
                DisabledBy::from_name(name).ok_or_else(|| corrupt("disabled_by"))?,
            ),
        };
        let events = row.events.iter().map(|name| EventPattern::from_name(name));
        Ok(Self {
            id: WebhookId::new(row.id),
            url: WebhookUrl::parse(&row.url).map_err(|_| corrupt("url"))?,
            events: events
                .collect::<Option<_>>()
                .ok_or_else(|| corrupt("events"))?,
            filters: WebhookFilters {
                table: row.table_name,
                instrument: row.instrument_id.map(InstrumentId::new),
                job: row.job_id.map(JobId::new),
            },
            format: WebhookFormat::from_name(&row.format).ok_or_else(|| corrupt("format"))?,
            state,
            secret: SecretVersion {
                number: u32::try_from(row.secret_version).map_err(|_| corrupt("secret_version"))?,
                previous_until: row.previous_secret_until,
                oldest: u32::try_from(row.oldest_secret_version)
                    .map_err(|_| corrupt("oldest_secret_version"))?,
            },
            created_by: UserId::new(row.created_by),
            created_at: row.created_at,
        })
    }
}

/// A webhook to store.
#[derive(Insertable, AsChangeset)]
#[diesel(table_name = webhook, treat_none_as_null = true)]
pub(super) struct NewWebhookRow<'a> {
    id: Uuid,
    organization_id: Uuid,
    url: &'a str,
    events: Vec<&'static str>,
    format: &'static str,
    table_name: Option<&'a str>,
    instrument_id: Option<Uuid>,
    job_id: Option<Uuid>,
    secret_version: i64,
    previous_secret_until: Option<OffsetDateTime>,
    oldest_secret_version: i64,
    failing_since: Option<OffsetDateTime>,
    disabled_by: Option<&'static str>,
    created_by: Uuid,
    created_at: OffsetDateTime,
}

impl<'a> NewWebhookRow<'a> {
    pub(super) fn of(organization: Uuid, webhook: &'a Webhook) -> Self {
        let (failing_since, disabled_by) = state_columns(webhook.state);
        Self {
            id: webhook.id.as_uuid(),
            organization_id: organization,
            url: webhook.url.as_str(),
            events: webhook.events.iter().map(|event| event.as_str()).collect(),
            format: webhook.format.as_str(),
            table_name: webhook.filters.table.as_deref(),
            instrument_id: webhook.filters.instrument.map(InstrumentId::as_uuid),
            job_id: webhook.filters.job.map(JobId::as_uuid),
            secret_version: i64::from(webhook.secret.number),
            previous_secret_until: webhook.secret.previous_until,
            oldest_secret_version: i64::from(webhook.secret.oldest),
            failing_since,
            disabled_by,
            created_by: webhook.created_by.as_uuid(),
            created_at: webhook.created_at,
        }
    }
}

/// The columns `failing_since` and `disabled_by`.
pub(super) fn state_columns(state: WebhookState) -> (Option<OffsetDateTime>, Option<&'static str>) {
    match state {
        WebhookState::Enabled { failing_since } => (failing_since, None),
        WebhookState::Disabled(reason) => (None, Some(reason.as_str())),
    }
}

/// A stored delivery.
#[derive(Queryable, QueryableByName, Selectable)]
#[diesel(table_name = webhook_delivery)]
pub(super) struct DeliveryRow {
    pub(super) webhook_id: Uuid,
    id: Uuid,
    pub(super) organization_id: Uuid,
    event_type: String,
    subject: Value,
    at: OffsetDateTime,
    started_at: OffsetDateTime,
    earlier_attempts: i64,
    attempts: i64,
    status: String,
    due_at: OffsetDateTime,
    settled_at: Option<OffsetDateTime>,
    response_status: Option<i64>,
    error: Option<String>,
}

impl TryFrom<DeliveryRow> for Delivery {
    type Error = PortError;

    fn try_from(row: DeliveryRow) -> Result<Self, PortError> {
        let corrupt = |column| corrupt("webhook_delivery", column, row.id);
        let number = |number: i64, column| u32::try_from(number).map_err(|_| corrupt(column));
        let state = match (row.status.as_str(), row.settled_at) {
            ("pending", None) => DeliveryState::Pending { due_at: row.due_at },
            ("delivered", Some(at)) => DeliveryState::Delivered { at },
            ("failed", Some(at)) => DeliveryState::Failed { at },
            _ => return Err(corrupt("status")),
        };
        let references: Subject =
            serde_json::from_value(row.subject).map_err(|_| corrupt("subject"))?;
        let response_status = row.response_status.map(u16::try_from).transpose();
        Ok(Self {
            id: DeliveryId::new(row.id),
            webhook: WebhookId::new(row.webhook_id),
            subject: DeliverySubject::read(&row.event_type, references.into())
                .ok_or_else(|| corrupt("event_type"))?,
            at: row.at,
            started_at: row.started_at,
            attempts: number(row.attempts, "attempts")?,
            earlier_attempts: number(row.earlier_attempts, "earlier_attempts")?,
            state,
            response_status: response_status.map_err(|_| corrupt("response_status"))?,
            error: row.error,
        })
    }
}

/// The column `subject`: the columns of the event log that refer to records.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Subject {
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<FileId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_execution_id: Option<ExecutionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    table_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_id: Option<ModelId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version_number: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notification_id: Option<NotificationId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instrument_id: Option<InstrumentId>,
}

impl From<Subject> for EventReferences {
    fn from(subject: Subject) -> Self {
        Self {
            file: subject.file_id,
            execution: subject.job_execution_id,
            table: subject.table_name,
            model: subject.model_id,
            version_number: subject.version_number,
            notification: subject.notification_id,
            instrument: subject.instrument_id,
        }
    }
}

impl From<EventReferences> for Subject {
    fn from(references: EventReferences) -> Self {
        // Without `..`: a new kind of record must not be forgotten here.
        let EventReferences {
            file,
            execution,
            table,
            model,
            version_number,
            notification,
            instrument,
        } = references;
        Self {
            file_id: file,
            job_execution_id: execution,
            table_name: table,
            model_id: model,
            version_number,
            notification_id: notification,
            instrument_id: instrument,
        }
    }
}
