//! `GET /api/v1/instruments`

use labdata_application::Error;
use labdata_application::instruments::list_instruments::list_instruments;

use super::InstrumentView;
use crate::{About, Call, Listing, Method, NoBody, Operation, PageQuery, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "list_instruments",
        method: Method::Get,
        path: "/api/v1/instruments",
        tag: Tag::Instruments,
        summary: "Lists instruments, newest first",
        description: "By pages of `limit`; the header `Link` names the next page.",
        returns: "The instruments",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, PageQuery>) -> Result<Listing<InstrumentView>, Error> {
    let page = list_instruments(&call.services, &call.actor, call.query.page).await?;
    Ok(page.into())
}
