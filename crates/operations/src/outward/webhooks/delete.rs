//! `DELETE /api/v1/webhooks/{webhook_id}`

use labdata_application::{Error, outward::webhooks::delete_webhook::delete_webhook};
use labdata_domain::refusal::Resource;

use super::WebhookPath;
use crate::{About, Admin, Call, Method, NoBody, NoContent, Operation, OrNotFound, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "delete_webhook",
        method: Method::Delete,
        path: "/api/v1/webhooks/{webhook_id}",
        tag: Tag::Webhooks,
        summary: "Deletes a webhook",
        description: "With its deliveries, those that wait included.",
        returns: "It is deleted",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Admin, NoBody, (), WebhookPath>) -> Result<NoContent, Error> {
    let id = call.path.webhook_id.or_not_found(Resource::Webhook)?;
    delete_webhook(&call.services, &call.actor, id).await?;
    Ok(NoContent)
}
