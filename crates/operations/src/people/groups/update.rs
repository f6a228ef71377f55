//! `PATCH /api/v1/groups/{group_id}`

use labdata_application::{Error, people::groups::update_group};
use labdata_domain::{
    ids::UserId,
    patterns,
    people::group::{GroupChange, MAX_GROUP_MEMBERS, MAX_GROUP_NAME_LENGTH},
    refusal::Resource,
};
use labdata_request_body::{
    Reader as _,
    fields::optional,
    readers::{MaybeId, id, list, text},
    shape,
};
use serde_json::json;

use super::{GroupPath, GroupView, members};
use crate::{About, Admin, Call, JsonBody, Method, Operation, OrNotFound, Tag};

shape! {
    /// Changes of a group; fields that are left out or null stay as they are.
    #[derive(Clone, Debug)]
    pub struct UpdateGroupBody {
        /// Its name, unique within the organization. Tables that name the group follow.
        name: Option<String> = optional(text(1..=MAX_GROUP_NAME_LENGTH).with("pattern", patterns::ONE_LINE)),
        /// The ids of all its members.
        members: Option<Vec<MaybeId<UserId>>> = optional(list(id()).of(0..=MAX_GROUP_MEMBERS)),
    }
    example json!({"name": "Light microscopy"});
}

pub(super) fn operation() -> Operation {
    About {
        name: "update_group",
        method: Method::Patch,
        path: "/api/v1/groups/{group_id}",
        tag: Tag::Groups,
        summary: "Renames a group, or sets its members",
        description: "Who is no member any more loses what the group may do: at once on the server that is asked, \
            within 5 s on every other.",
        returns: "The group",
        refusals: &[
            (400, "The name is blank or has control characters"),
            (404, "The organization has no such group, or a member is no user of it"),
            (409, "The organization has another group of this name, or of one that differs in case only"),
        ],
    }
    .runs(run)
}

async fn run(
    call: Call<Admin, JsonBody<UpdateGroupBody>, (), GroupPath>,
) -> Result<GroupView, Error> {
    let id = call.path.group_id.or_not_found(Resource::Group)?;
    let change = GroupChange {
        name: call.body.name,
        members: call.body.members.map(members).transpose()?,
    };
    let group = update_group(&call.services, &call.actor, id, change).await?;
    Ok(group.into())
}
