//! `DELETE /api/v1/trash/{id}`

use labdata_application::{Error, trash::purge_from_trash::purge_from_trash};
use labdata_domain::refusal::Resource;

use super::TrashPath;
use crate::{About, Admin, Call, Method, NoBody, NoContent, Operation, OrNotFound, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "purge_from_trash",
        method: Method::Delete,
        path: "/api/v1/trash/{id}",
        tag: Tag::Trash,
        summary: "Deletes a file, table or column for good",
        description: "A table goes with its columns in the trash. Backups retain what they hold.",
        returns: "It is deleted",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Admin, NoBody, (), TrashPath>) -> Result<NoContent, Error> {
    let id = call.path.id.or_not_found(Resource::TrashEntry)?;
    purge_from_trash(&call.services, &call.actor, id).await?;
    Ok(NoContent)
}
