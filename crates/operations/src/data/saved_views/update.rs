//! `PATCH /api/v1/saved-views/{saved_view_id}`

use labdata_application::{Error, data::saved_views::update_saved_view};
use labdata_domain::{
    data::saved_view::{MAX_VIEW_ADDRESS_LENGTH, MAX_VIEW_NAME_LENGTH, SavedViewChange},
    patterns,
    refusal::Resource,
};
use labdata_request_body::{
    Reader as _,
    fields::optional,
    readers::{boolean, text},
    shape,
};
use serde_json::json;

use super::{ADDRESS, SavedViewPath, SavedViewView};
use crate::{About, Call, JsonBody, Method, Operation, OrNotFound, Tag, Write};

shape! {
    /// Changes of a saved view; fields that are left out or null stay as they are.
    #[derive(Clone, Debug)]
    pub struct UpdateSavedViewBody {
        /// Its name, unique within the organization.
        name: Option<String> = optional(text(1..=MAX_VIEW_NAME_LENGTH).with("pattern", patterns::ONE_LINE)),
        /// Its address within the console, from its `#` on.
        address: Option<String> = optional(text(1..=MAX_VIEW_ADDRESS_LENGTH).with("pattern", ADDRESS)),
        /// True to list it in Home, for everyone.
        is_pinned: Option<bool> = optional(boolean()),
    }
    example json!({"is_pinned": true});
}

pub(super) fn operation() -> Operation {
    About {
        name: "update_saved_view",
        method: Method::Patch,
        path: "/api/v1/saved-views/{saved_view_id}",
        tag: Tag::SavedViews,
        summary: "Renames, pins or replaces a saved view",
        description: "For the user who saved it, and administrators.",
        returns: "The view",
        refusals: &[
            (
                400,
                "The name has control characters, or the address is none of the console",
            ),
            (
                403,
                "Another user saved the view, or the API key lacks the `write` scope",
            ),
            (409, "The organization has another saved view of this name"),
        ],
    }
    .runs(run)
}

async fn run(
    call: Call<Write, JsonBody<UpdateSavedViewBody>, (), SavedViewPath>,
) -> Result<SavedViewView, Error> {
    let id = call.path.saved_view_id.or_not_found(Resource::SavedView)?;
    let change = SavedViewChange {
        name: call.body.name,
        address: call.body.address,
        is_pinned: call.body.is_pinned,
    };
    let view = update_saved_view(&call.services, &call.actor, id, change).await?;
    Ok(view.into())
}
