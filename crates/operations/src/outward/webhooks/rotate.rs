//! `POST /api/v1/webhooks/{webhook_id}/rotate`

use labdata_application::{Error, outward::webhooks::rotate_secret::rotate_secret};
use labdata_domain::refusal::Resource;

use super::{WebhookPath, WebhookWithSecretView};
use crate::{About, Admin, Call, Method, NoBody, Operation, OrNotFound, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "rotate_webhook_secret",
        method: Method::Post,
        path: "/api/v1/webhooks/{webhook_id}/rotate",
        tag: Tag::Webhooks,
        summary: "Gives a webhook another secret",
        description: "For 24 hours deliveries are signed by the old secret too, so that the receiver can change \
            over: `webhook-signature` then has a signature of each, the newest first.",
        returns: "The webhook, with its secret displayed this once",
        refusals: &[],
    }
    .runs(run)
    .secret()
}

async fn run(call: Call<Admin, NoBody, (), WebhookPath>) -> Result<WebhookWithSecretView, Error> {
    let id = call.path.webhook_id.or_not_found(Resource::Webhook)?;
    let (webhook, secret) = rotate_secret(&call.services, &call.actor, id).await?;
    Ok(WebhookWithSecretView {
        about: webhook.into(),
        secret: secret.reveal(),
    })
}
