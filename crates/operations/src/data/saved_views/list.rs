//! `GET /api/v1/saved-views`

use labdata_application::{Error, data::saved_views::list_saved_views};

use super::SavedViewView;
use crate::{About, Call, Method, NoBody, Operation, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "list_saved_views",
        method: Method::Get,
        path: "/api/v1/saved-views",
        tag: Tag::SavedViews,
        summary: "Lists saved views, by their names",
        description: "Views that mention a table that is hidden from the caller are left out.",
        returns: "The views",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody>) -> Result<Vec<SavedViewView>, Error> {
    let views = list_saved_views(&call.services, &call.actor).await?;
    Ok(views.into_iter().map(SavedViewView::from).collect())
}
