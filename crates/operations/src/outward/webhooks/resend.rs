//! `POST /api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/resend`

use labdata_application::{Error, outward::webhooks::resend_delivery::resend_delivery};
use labdata_domain::{
    ids::{DeliveryId, WebhookId},
    refusal::Resource,
};
use labdata_request_body::{
    fields::required,
    readers::{MaybeId, id},
    shape,
};

use super::DeliveryView;
use crate::{About, Admin, Call, Method, NoBody, Operation, OrNotFound, Tag};

shape! {
    /// The path of a delivery.
    #[derive(Clone, Copy, Debug)]
    pub struct DeliveryPath {
        /// The webhook's id
        webhook_id: MaybeId<WebhookId> = required(id()),
        /// The delivery's id
        delivery_id: MaybeId<DeliveryId> = required(id()),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "resend_webhook_delivery",
        method: Method::Post,
        path: "/api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/resend",
        tag: Tag::Webhooks,
        summary: "Sends a delivery again",
        description: "Whatever became of it, under the same `webhook-id`, within a second. It is tried for another \
            three days.",
        returns: "The delivery, not sent yet",
        refusals: &[
            (400, "The webhook is disabled"),
            (404, "No such webhook, or no such delivery"),
        ],
    }
    .runs(run)
}

async fn run(call: Call<Admin, NoBody, (), DeliveryPath>) -> Result<DeliveryView, Error> {
    let webhook = call.path.webhook_id.or_not_found(Resource::Webhook)?;
    let delivery = call.path.delivery_id.or_not_found(Resource::Delivery)?;
    let delivery = resend_delivery(&call.services, &call.actor, webhook, delivery).await?;
    Ok(delivery.into())
}
