//! `POST /api/v1/webhooks/{webhook_id}/test`

use labdata_application::{Error, outward::webhooks::test_webhook::test_webhook};
use labdata_domain::refusal::Resource;

use super::{DeliveryView, WebhookPath};
use crate::{About, Admin, Call, Method, NoBody, Operation, OrNotFound, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "test_webhook",
        method: Method::Post,
        path: "/api/v1/webhooks/{webhook_id}/test",
        tag: Tag::Webhooks,
        summary: "Sends a webhook a delivery of type `webhook.test`",
        description: "It is sent like any other, within a second; the list of deliveries shows the outcome.",
        returns: "The delivery, not sent yet",
        refusals: &[(400, "The webhook is disabled")],
    }
    .runs(run)
}

async fn run(call: Call<Admin, NoBody, (), WebhookPath>) -> Result<DeliveryView, Error> {
    let id = call.path.webhook_id.or_not_found(Resource::Webhook)?;
    let delivery = test_webhook(&call.services, &call.actor, id).await?;
    Ok(delivery.into())
}
