//! `GET /api/v1/webhooks/{webhook_id}`

use labdata_application::{Error, outward::webhooks::get_webhook::get_webhook};
use labdata_domain::refusal::Resource;

use super::{WebhookPath, WebhookView};
use crate::{About, Admin, Call, Method, NoBody, Operation, OrNotFound, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "get_webhook",
        method: Method::Get,
        path: "/api/v1/webhooks/{webhook_id}",
        tag: Tag::Webhooks,
        summary: "Shows a webhook",
        description: "Without its secret.",
        returns: "The webhook",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Admin, NoBody, (), WebhookPath>) -> Result<WebhookView, Error> {
    let id = call.path.webhook_id.or_not_found(Resource::Webhook)?;
    let webhook = get_webhook(&call.services, &call.actor, id).await?;
    Ok(webhook.into())
}
