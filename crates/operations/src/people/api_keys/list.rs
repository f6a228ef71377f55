//! `GET /api/v1/api-keys`

use labdata_application::{Error, people::list_api_keys::list_api_keys};

use super::ApiKeyView;
use crate::{About, Admin, Call, Listing, Method, NoBody, Operation, PageQuery, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "list_api_keys",
        method: Method::Get,
        path: "/api/v1/api-keys",
        tag: Tag::ApiKeys,
        summary: "Lists API keys, newest first",
        description: "Revoked and expired keys included, without their secrets. By pages of `limit`; the \
            header `Link` names the next page.",
        returns: "The keys, without their secrets",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Admin, NoBody, PageQuery>) -> Result<Listing<ApiKeyView>, Error> {
    let page = list_api_keys(&call.services, &call.actor, call.query.page).await?;
    Ok(page.into())
}
