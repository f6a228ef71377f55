//! `POST /api/v1/saved-views`

use labdata_application::{
    Error,
    data::saved_views::{SaveView, save_view},
};
use labdata_domain::{
    data::saved_view::{MAX_VIEW_ADDRESS_LENGTH, MAX_VIEW_NAME_LENGTH},
    patterns,
};
use labdata_request_body::{
    Reader as _,
    fields::{or, required},
    readers::{boolean, text},
    shape,
};
use serde_json::json;

use super::{ADDRESS, SavedViewView};
use crate::{About, Call, JsonBody, Method, Operation, Tag, Write};

shape! {
    /// The view to save.
    #[derive(Clone, Debug)]
    pub struct CreateSavedViewBody {
        /// Its name, unique within the organization.
        name: String = required(
            text(1..=MAX_VIEW_NAME_LENGTH).with("pattern", patterns::ONE_LINE).example("Plates of March"),
        ),
        /// Its address within the console, from its `#` on: a page with its filters, order and layout, or SQL.
        address: String = required(
            text(1..=MAX_VIEW_ADDRESS_LENGTH)
                .with("pattern", ADDRESS)
                .example("#/plates/growth_curve?_layout=heat+map"),
        ),
        /// True to list it in Home, for everyone.
        is_pinned: bool = or(false, boolean()),
    }
    example json!({"name": "Plates of March", "address": "#/plates/growth_curve?_layout=heat+map"});
}

pub(super) fn operation() -> Operation {
    About {
        name: "create_saved_view",
        method: Method::Post,
        path: "/api/v1/saved-views",
        tag: Tag::SavedViews,
        summary: "Saves a view of the console",
        description: "Everyone of the organization sees it, except those from whom a table that it mentions is \
            hidden.",
        returns: "The view",
        refusals: &[
            (400, "The name has control characters, the address is none of the console, or the \
                organization has 1,000 saved views"),
            (409, "The organization has a saved view of this name"),
        ],
    }
    .runs(run)
    .creating()
}

async fn run(call: Call<Write, JsonBody<CreateSavedViewBody>>) -> Result<SavedViewView, Error> {
    let command = SaveView {
        name: call.body.name,
        address: call.body.address,
        is_pinned: call.body.is_pinned,
    };
    let view = save_view(&call.services, &call.actor, command).await?;
    Ok(view.into())
}
