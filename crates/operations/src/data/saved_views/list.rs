//! `GET /api/v1/saved-views`

use labdata_application::{Error, data::saved_views::list_saved_views};

use super::SavedViewView;
use crate::{About, Call, Listing, Method, NoBody, Operation, PageQuery, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "list_saved_views",
        method: Method::Get,
        path: "/api/v1/saved-views",
        tag: Tag::SavedViews,
        summary: "Lists saved views, newest first",
        description: "Views that mention a table that is hidden from the caller are left out.",
        returns: "The views",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, PageQuery>) -> Result<Listing<SavedViewView>, Error> {
    let page = list_saved_views(&call.services, &call.actor, call.query.page).await?;
    Ok(page.into())
}
