//! `POST /api/v1/users`

use labdata_application::{
    Error,
    people::create_user::{CreateUser, create_user},
};
use labdata_domain::{
    patterns,
    people::{
        role::Role,
        tenancy::{EMAIL_PATTERN, MAX_EMAIL_LENGTH, MAX_USER_NAME_LENGTH},
    },
};
use labdata_request_body::{
    Reader as _,
    fields::{optional, or, required},
    readers::{choice_of, text},
    shape,
};
use serde_json::json;

use super::UserView;
use crate::{About, Admin, Call, JsonBody, Method, Operation, Tag};

shape! {
    /// The user to add.
    #[derive(Clone, Debug)]
    pub struct CreateUserBody {
        /// E-mail address, unique within the organization without regard to case.
        email: String = required(text(1..=MAX_EMAIL_LENGTH).with("pattern", EMAIL_PATTERN).example("ada@lab.example")),
        /// Display name; the e-mail address unless given.
        name: Option<String> = optional(text(1..=MAX_USER_NAME_LENGTH).with("pattern", patterns::NOT_BLANK)),
        /// Role: the ceiling of all keys and sessions of the user.
        role: Role = or(json!("member"), choice_of(Role::ALL, Role::as_str)),
    }
    example json!({"email": "ada@lab.example", "name": "Ada Lovelace", "role": "member"});
}

pub(super) fn operation() -> Operation {
    About {
        name: "create_user",
        method: Method::Post,
        path: "/api/v1/users",
        tag: Tag::Users,
        summary: "Adds a user",
        description: "The user has no API key yet: an administrator makes one with `POST /api/v1/api-keys` \
            and `user_id`.",
        returns: "The user",
        refusals: &[
            (409, "The organization has a user of this e-mail address"),
        ],
    }
    .runs(run)
    .creating()
}

async fn run(call: Call<Admin, JsonBody<CreateUserBody>>) -> Result<UserView, Error> {
    let command = CreateUser {
        email: call.body.email,
        name: call.body.name,
        role: call.body.role,
    };
    let user = create_user(&call.services, &call.actor, command).await?;
    Ok(user.into())
}
