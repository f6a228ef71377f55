//! `GET /api/v1/webhooks`

use labdata_application::{Error, outward::webhooks::list_webhooks::list_webhooks};

use super::WebhookView;
use crate::{About, Admin, Call, Listing, Method, NoBody, Operation, PageQuery, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "list_webhooks",
        method: Method::Get,
        path: "/api/v1/webhooks",
        tag: Tag::Webhooks,
        summary: "Lists webhooks, newest first",
        description: "By pages of `limit`; the header `Link` names the next page.",
        returns: "The webhooks",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Admin, NoBody, PageQuery>) -> Result<Listing<WebhookView>, Error> {
    let page = list_webhooks(&call.services, &call.actor, call.query.page).await?;
    Ok(page.into())
}
