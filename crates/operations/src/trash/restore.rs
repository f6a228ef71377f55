//! `POST /api/v1/trash/{id}/restore`

use labdata_application::{Error, trash::restore_from_trash::restore_from_trash};
use labdata_domain::refusal::Resource;

use super::{TrashEntryView, TrashPath};
use crate::{About, Call, Method, NoBody, Operation, OrNotFound, Tag, Write};

pub(super) fn operation() -> Operation {
    About {
        name: "restore_from_trash",
        method: Method::Post,
        path: "/api/v1/trash/{id}/restore",
        tag: Tag::Trash,
        summary: "Restores a deleted file, table or column",
        description: "As it was, under its id. Tables and columns need the scope `admin` too. Triggers do not run \
            again for a restored file. A column has the default in rows that were added since; without a \
            default it may be null from then on. A table no longer names groups that were deleted since; if none is \
            left, the last one is there again without members, so that only administrators have its access.",
        returns: "The entry, which is no longer in the trash",
        refusals: &[
            (
                400,
                "What it refers to is deleted, or rows of now break what it was defined with",
            ),
            (409, "Something else has its name or path by now"),
        ],
    }
    .runs(run)
}

async fn run(call: Call<Write, NoBody, (), TrashPath>) -> Result<TrashEntryView, Error> {
    let id = call.path.id.or_not_found(Resource::TrashEntry)?;
    let entry = restore_from_trash(&call.services, &call.actor, id).await?;
    Ok(entry.into())
}
