//! `GET /api/v1/webhooks/{webhook_id}/deliveries`

use labdata_application::{Error, outward::webhooks::list_deliveries::list_deliveries};
use labdata_domain::refusal::Resource;

use super::{DeliveryView, WebhookPath};
use crate::{About, Admin, Call, Listing, Method, NoBody, Operation, OrNotFound, PageQuery, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "list_webhook_deliveries",
        method: Method::Get,
        path: "/api/v1/webhooks/{webhook_id}/deliveries",
        tag: Tag::Webhooks,
        summary: "Lists the deliveries of a webhook, newest first",
        description: "By pages of `limit`; the header `Link` names the next page. Deliveries that have ended are \
            stored for 14 days.",
        returns: "The deliveries",
        refusals: &[],
    }
    .runs(run)
}

async fn run(
    call: Call<Admin, NoBody, PageQuery, WebhookPath>,
) -> Result<Listing<DeliveryView>, Error> {
    let id = call.path.webhook_id.or_not_found(Resource::Webhook)?;
    let page = list_deliveries(&call.services, &call.actor, id, call.query.page).await?;
    Ok(page.into())
}
