//! `PATCH /api/v1/users/{user_id}`

use labdata_application::{Error, people::update_user::update_user};
use labdata_domain::{
    ids::UserId,
    patterns,
    people::{
        role::Role,
        tenancy::{MAX_USER_NAME_LENGTH, UserChange},
    },
    refusal::Resource,
};
use labdata_request_body::{
    Reader as _,
    fields::{optional, required},
    readers::{MaybeId, boolean, choice_of, id, text},
    shape,
};
use serde_json::json;

use super::UserView;
use crate::{About, Admin, Call, JsonBody, Method, Operation, OrNotFound, Tag};

shape! {
    /// The path of a user.
    #[derive(Clone, Copy, Debug)]
    pub struct UserPath {
        /// The user's id
        user_id: MaybeId<UserId> = required(id()),
    }
}

shape! {
    /// Changes of a user; fields that are left out or null stay as they are.
    #[derive(Clone, Debug)]
    pub struct UpdateUserBody {
        /// Display name.
        name: Option<String> = optional(text(1..=MAX_USER_NAME_LENGTH).with("pattern", patterns::NOT_BLANK)),
        /// True disables the user, false enables the user again.
        disabled: Option<bool> = optional(boolean()),
        /// Role: the ceiling of all keys and sessions of the user.
        role: Option<Role> = optional(choice_of(Role::ALL, Role::as_str)),
    }
    example json!({"name": "Ada King"});
}

pub(super) fn operation() -> Operation {
    About {
        name: "update_user",
        method: Method::Patch,
        path: "/api/v1/users/{user_id}",
        tag: Tag::Users,
        summary: "Changes a user: name, role, disabled or not",
        description: "The API keys of a disabled user are refused: at once on the server that is asked, \
            within 5 s on every other. So do keys and sessions lose the scopes that another role lacks. What \
            the user made stays.",
        returns: "The user",
        refusals: &[
            (400, "The name is blank, the user is the caller's own and would be disabled, or the user is the \
                last administrator"),
        ],
    }
    .runs(run)
}

async fn run(call: Call<Admin, JsonBody<UpdateUserBody>, (), UserPath>) -> Result<UserView, Error> {
    let id = call.path.user_id.or_not_found(Resource::User)?;
    let change = UserChange {
        name: call.body.name,
        disabled: call.body.disabled,
        role: call.body.role,
    };
    let user = update_user(&call.services, &call.actor, id, change).await?;
    Ok(user.into())
}
