//! `POST /api/v1/webhooks`

use labdata_application::{
    Error,
    outward::webhooks::create_webhook::{CreateWebhook, create_webhook},
};
use labdata_domain::outward::webhooks::{EventPattern, WebhookFormat, WebhookUrl};
use labdata_request_body::{
    fields::{optional, or, required},
    readers::{boolean, choice_of, shape},
    shape,
};
use serde_json::json;

use super::{WebhookFiltersBody, WebhookWithSecretView, address, events};
use crate::{About, Admin, Call, JsonBody, Method, Operation, Tag};

shape! {
    /// The webhook to make.
    #[derive(Clone, Debug)]
    pub struct CreateWebhookBody {
        /// The address that receives the events, by http or https.
        url: WebhookUrl = required(address()),
        /// Types of events that it receives; `*` stands for all.
        events: Vec<EventPattern> = required(events()),
        /// Records to which the events must refer.
        filters: Option<WebhookFiltersBody> = optional(shape::<WebhookFiltersBody>()),
        /// Form of the bodies: `standard` as Standard Webhooks 1.0 says, `slack` and `teams` as messages of a
        /// channel.
        format: WebhookFormat = or("standard", choice_of(WebhookFormat::ALL, WebhookFormat::as_str)),
        /// False for one that receives nothing yet.
        enabled: bool = or(true, boolean()),
    }
    example json!({
        "url": "https://lab.example.org/hook",
        "events": ["file.confirmed", "job_execution.failed"],
    });
}

pub(super) fn operation() -> Operation {
    About {
        name: "create_webhook",
        method: Method::Post,
        path: "/api/v1/webhooks",
        tag: Tag::Webhooks,
        summary: "Makes a webhook",
        description: "Its address is sent each event as a POST of `{type, timestamp, data}` with ids only, signed \
            as [Standard Webhooks](https://www.standardwebhooks.com) 1.0 says. The response holds the secret, \
            which is never displayed again. A response of 2xx within 15 s delivers; else the delivery is tried \
            again for three days. The header `Idempotency-Key` is refused, because the response would have to be \
            stored.",
        returns: "The webhook, with its secret displayed this once",
        refusals: &[
            (400, "The organization has as many webhooks as it may have"),
            (404, "The organization has no such table, instrument or job"),
        ],
    }
    .runs(run)
    .secret()
}

async fn run(
    call: Call<Admin, JsonBody<CreateWebhookBody>>,
) -> Result<WebhookWithSecretView, Error> {
    let filters = call
        .body
        .filters
        .map(WebhookFiltersBody::read)
        .transpose()?;
    let command = CreateWebhook {
        url: call.body.url,
        events: call.body.events,
        filters: filters.unwrap_or_default(),
        format: call.body.format,
        enabled: call.body.enabled,
    };
    let (webhook, secret) = create_webhook(&call.services, &call.actor, command).await?;
    Ok(WebhookWithSecretView {
        about: webhook.into(),
        secret: secret.reveal(),
    })
}
