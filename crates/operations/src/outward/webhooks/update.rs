//! `PATCH /api/v1/webhooks/{webhook_id}`

use labdata_application::{Error, outward::webhooks::update_webhook::update_webhook};
use labdata_domain::{
    outward::webhooks::{EventPattern, WebhookChange, WebhookFormat, WebhookUrl},
    refusal::Resource,
};
use labdata_request_body::{
    fields::optional,
    readers::{boolean, choice_of, shape},
    shape,
};
use serde_json::json;

use super::{WebhookFiltersBody, WebhookPath, WebhookView, address, events};
use crate::{About, Admin, Call, JsonBody, Method, Operation, OrNotFound, Tag};

shape! {
    /// Changes of a webhook; fields that are left out or null stay as they are.
    #[derive(Clone, Debug)]
    pub struct UpdateWebhookBody {
        /// The address that receives the events.
        url: Option<WebhookUrl> = optional(address()),
        /// Types of events that it receives.
        events: Option<Vec<EventPattern>> = optional(events()),
        /// Records to which the events must refer, all of them: `{}` lets every event pass.
        filters: Option<WebhookFiltersBody> = optional(shape::<WebhookFiltersBody>()),
        /// Form of the bodies.
        format: Option<WebhookFormat> =
            optional(choice_of(WebhookFormat::ALL, WebhookFormat::as_str)),
        /// False disables it, true enables it.
        enabled: Option<bool> = optional(boolean()),
    }
    example json!({"enabled": false});
}

pub(super) fn operation() -> Operation {
    About {
        name: "update_webhook",
        method: Method::Patch,
        path: "/api/v1/webhooks/{webhook_id}",
        tag: Tag::Webhooks,
        summary: "Changes, disables or enables a webhook",
        description: "What waits for a webhook that is disabled ends as `failed`, and can be sent again when it is \
            enabled.",
        returns: "The webhook",
        refusals: &[(404, "The organization has no such webhook, table, instrument or job")],
    }
    .runs(run)
}

async fn run(
    call: Call<Admin, JsonBody<UpdateWebhookBody>, (), WebhookPath>,
) -> Result<WebhookView, Error> {
    let id = call.path.webhook_id.or_not_found(Resource::Webhook)?;
    let filters = call.body.filters.map(WebhookFiltersBody::read);
    let change = WebhookChange {
        url: call.body.url,
        events: call.body.events,
        filters: filters.transpose()?,
        format: call.body.format,
        enabled: call.body.enabled,
    };
    let webhook = update_webhook(&call.services, &call.actor, id, change).await?;
    Ok(webhook.into())
}
