//! `DELETE /api/v1/saved-views/{saved_view_id}`

use labdata_application::{Error, data::saved_views::delete_saved_view};
use labdata_domain::refusal::Resource;

use super::SavedViewPath;
use crate::{About, Call, Method, NoBody, NoContent, Operation, OrNotFound, Tag, Write};

pub(super) fn operation() -> Operation {
    About {
        name: "delete_saved_view",
        method: Method::Delete,
        path: "/api/v1/saved-views/{saved_view_id}",
        tag: Tag::SavedViews,
        summary: "Deletes a saved view",
        description: "For the user who saved it, and administrators.",
        returns: "It is deleted",
        refusals: &[(
            403,
            "Another user saved the view, or the API key lacks the `write` scope",
        )],
    }
    .runs(run)
}

async fn run(call: Call<Write, NoBody, (), SavedViewPath>) -> Result<NoContent, Error> {
    let id = call.path.saved_view_id.or_not_found(Resource::SavedView)?;
    delete_saved_view(&call.services, &call.actor, id).await?;
    Ok(NoContent)
}
