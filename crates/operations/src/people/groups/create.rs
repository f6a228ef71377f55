//! `POST /api/v1/groups`

use labdata_application::{
    Error,
    people::groups::{CreateGroup, create_group},
};
use labdata_domain::{
    ids::UserId,
    patterns,
    people::group::{MAX_GROUP_MEMBERS, MAX_GROUP_NAME_LENGTH},
};
use labdata_request_body::{
    Reader as _,
    fields::{or, required},
    readers::{MaybeId, id, list, text},
    shape,
};
use serde_json::json;

use super::{GroupView, members};
use crate::{About, Admin, Call, JsonBody, Method, Operation, Tag};

shape! {
    /// The group to create.
    #[derive(Clone, Debug)]
    pub struct CreateGroupBody {
        /// Its name, unique within the organization.
        name: String = required(
            text(1..=MAX_GROUP_NAME_LENGTH).with("pattern", patterns::ONE_LINE).example("Microscopy"),
        ),
        /// The ids of its members.
        members: Vec<MaybeId<UserId>> = or(json!([]), list(id()).of(0..=MAX_GROUP_MEMBERS)),
    }
    example json!({"name": "Microscopy", "members": []});
}

pub(super) fn operation() -> Operation {
    About {
        name: "create_group",
        method: Method::Post,
        path: "/api/v1/groups",
        tag: Tag::Groups,
        summary: "Creates a group",
        description: "The `access` of a table (`PUT /api/v1/tables/{name}`) names the groups that may read and \
            write it.",
        returns: "The group",
        refusals: &[
            (400, "The name is blank or has control characters"),
            (404, "A member is no user of the organization"),
            (409, "The organization has a group of this name, or of one that differs in case only"),
        ],
    }
    .runs(run)
    .creating()
}

async fn run(call: Call<Admin, JsonBody<CreateGroupBody>>) -> Result<GroupView, Error> {
    let command = CreateGroup {
        name: call.body.name,
        members: members(call.body.members)?,
    };
    let group = create_group(&call.services, &call.actor, command).await?;
    Ok(group.into())
}
