//! `DELETE /api/v1/groups/{group_id}`

use labdata_application::{Error, people::groups::delete_group};
use labdata_domain::refusal::Resource;

use super::GroupPath;
use crate::{About, Admin, Call, Method, NoBody, NoContent, Operation, OrNotFound, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "delete_group",
        method: Method::Delete,
        path: "/api/v1/groups/{group_id}",
        tag: Tag::Groups,
        summary: "Deletes a group",
        description: "Its members stay users. A group that the access of a table names is not deleted, because the \
            table would be open without it: change the table first.",
        returns: "It is deleted",
        refusals: &[(409, "The access of tables, which the detail names, names the group")],
    }
    .runs(run)
}

async fn run(call: Call<Admin, NoBody, (), GroupPath>) -> Result<NoContent, Error> {
    let id = call.path.group_id.or_not_found(Resource::Group)?;
    delete_group(&call.services, &call.actor, id).await?;
    Ok(NoContent)
}
