//! `/api/v1/webhooks`

use labdata_domain::{
    ids::{DeliveryId, InstrumentId, JobId, UserId, WebhookId},
    outward::webhooks::{
        Delivery, DeliveryState, DisabledBy, EventPattern, MAX_URL_LENGTH, Webhook, WebhookFilters,
        WebhookFormat, WebhookState, WebhookUrl,
    },
    refusal::Resource,
};
use labdata_request_body::{
    Reader, Timestamp,
    fields::{optional, required},
    names, output,
    readers::{MaybeId, choice_of, id, list, text},
    shape,
};
use serde_json::json;

use crate::{Operation, OrNotFound};

pub mod create;
pub mod delete;
pub mod deliveries;
pub mod get;
pub mod list;
pub mod resend;
pub mod rotate;
pub mod test;
pub mod update;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        create::operation(),
        list::operation(),
        get::operation(),
        update::operation(),
        delete::operation(),
        rotate::operation(),
        test::operation(),
        deliveries::operation(),
        resend::operation(),
    ]
}

shape! {
    /// The path of a webhook.
    #[derive(Clone, Copy, Debug)]
    pub struct WebhookPath {
        /// The webhook's id
        webhook_id: MaybeId<WebhookId> = required(id()),
    }
}

names! {
    /// Type of event that a webhook receives; `*` stands for all.
    pub WebhookEvent = EventPattern::ALL.map(EventPattern::as_str);
    /// Form of the bodies that a webhook is sent.
    pub WebhookFormatName = WebhookFormat::ALL.map(WebhookFormat::as_str);
    /// Why a webhook is disabled: a person did it, its address answered 410, or nothing was delivered for five
    /// days.
    pub WebhookDisabledBy = DisabledBy::ALL.map(DisabledBy::as_str);
    /// State of a delivery: `pending` ones are tried again.
    pub DeliveryStatus = DeliveryState::NAMES;
}

shape! {
    /// Records to which events must refer. What is left out does not matter.
    #[derive(Clone, Debug)]
    pub struct WebhookFiltersBody {
        /// Name of the table. The filter follows when the table is renamed.
        table: Option<String> = optional(text(1..=63)),
        /// Id of the instrument of the event, or of its file.
        instrument_id: Option<MaybeId<InstrumentId>> = optional(id()),
        /// Id of the job of the event's execution, or of the execution of its file.
        job_id: Option<MaybeId<JobId>> = optional(id()),
    }
    unknown_fields refused;
}

impl WebhookFiltersBody {
    fn read(self) -> Result<WebhookFilters, labdata_application::Error> {
        let instrument = self
            .instrument_id
            .map(|id| id.or_not_found(Resource::Instrument));
        let job = self.job_id.map(|id| id.or_not_found(Resource::Job));
        Ok(WebhookFilters {
            table: self.table,
            instrument: instrument.transpose()?,
            job: job.transpose()?,
        })
    }
}

/// Reads an address.
fn address() -> impl Reader<Output = WebhookUrl> {
    text(1..=MAX_URL_LENGTH)
        .parsed(WebhookUrl::parse)
        .with("format", "uri")
        .example("https://lab.example.org/hook")
}

/// Reads types of events.
fn events() -> impl Reader<Output = Vec<EventPattern>> {
    list(choice_of(EventPattern::ALL, EventPattern::as_str))
        .of(1..=EventPattern::ALL.len())
        .example(json!(["file.confirmed", "job_execution.failed"]))
}

output! {
    /// Records to which events must refer.
    #[derive(Clone, Debug)]
    pub struct WebhookFiltersView as "WebhookFilters" from filters: WebhookFilters {
        /// Name of the table.
        #[optional]
        table: Option<String> = filters.table,
        /// Id of the instrument.
        #[optional]
        instrument_id: Option<InstrumentId> = filters.instrument,
        /// Id of the job.
        #[optional]
        job_id: Option<JobId> = filters.job,
    }
}

output! {
    /// A webhook, without its secret.
    #[derive(Clone, Debug)]
    pub struct WebhookView as "Webhook" from webhook: Webhook {
        /// Its id.
        id: WebhookId = webhook.id,
        /// The address that receives the events.
        #[example = "https://lab.example.org/hook"]
        url: String = webhook.url.as_str().to_owned(),
        /// Types of events that it receives.
        #[example = json!(["file.confirmed", "job_execution.failed"])]
        events: Vec<WebhookEvent> = webhook.events.iter().map(|event| event.as_str().into()).collect(),
        /// Records to which the events must refer.
        filters: WebhookFiltersView = webhook.filters.into(),
        /// Form of the bodies.
        format: WebhookFormatName = webhook.format.as_str().into(),
        /// False if it receives nothing.
        enabled: bool = webhook.state.is_enabled(),
        /// Why it is disabled; null while it is enabled.
        disabled_by: Option<WebhookDisabledBy> = disabled_by(webhook.state),
        /// Time of the first failure since the last delivery; null if there is none.
        failing_since: Option<Timestamp> = failing_since(webhook.state),
        /// The user who made it. Of notifications, it receives those to this user only.
        created_by: UserId = webhook.created_by,
        created_at: Timestamp = webhook.created_at.into(),
    }
}

output! {
    /// A webhook with its secret.
    #[derive(Clone)]
    pub struct WebhookWithSecretView as "WebhookWithSecret" {
        #[flatten]
        about: WebhookView,
        /// The secret, by which the receiver checks signatures. It is displayed this once.
        #[example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]
        secret: String,
    }
}

output! {
    /// A delivery to a webhook.
    #[derive(Clone, Debug)]
    pub struct DeliveryView as "WebhookDelivery" from delivery: Delivery {
        /// Its id: the header `webhook-id` of all its attempts.
        id: DeliveryId = delivery.id,
        /// Type of the event; `webhook.test` for a test.
        #[example = "file.confirmed"]
        r#type: String = delivery.subject.as_str().to_owned(),
        /// Time of the event.
        at: Timestamp = delivery.at.into(),
        /// Number of attempts so far.
        attempts: u32 = delivery.attempts,
        /// Its state.
        status: DeliveryStatus = delivery.state.as_str().into(),
        /// Time of the next attempt; null once it has ended.
        next_attempt_at: Option<Timestamp> = next_attempt_at(delivery.state),
        /// Status of the last response; null without one.
        response_status: Option<u32> = delivery.response_status.map(u32::from),
        /// Reason of the last failure; null without one.
        error: Option<String> = delivery.error,
    }
}

fn disabled_by(state: WebhookState) -> Option<WebhookDisabledBy> {
    match state {
        WebhookState::Enabled { .. } => None,
        WebhookState::Disabled(reason) => Some(reason.as_str().into()),
    }
}

fn failing_since(state: WebhookState) -> Option<Timestamp> {
    match state {
        WebhookState::Enabled { failing_since } => failing_since.map(Into::into),
        WebhookState::Disabled(_) => None,
    }
}

fn next_attempt_at(state: DeliveryState) -> Option<Timestamp> {
    match state {
        DeliveryState::Pending { due_at } => Some(due_at.into()),
        DeliveryState::Delivered { .. } | DeliveryState::Failed { .. } => None,
    }
}
