//! `POST /api/v1/users`

use actix_web::web::Json;
use labdata_application::people::create_user::{CreateUser, create_user};
use labdata_domain::{
    patterns,
    people::tenancy::{EMAIL_PATTERN, MAX_EMAIL_LENGTH, MAX_USER_NAME_LENGTH},
};
use labdata_request_body::{
    Reader as _,
    fields::{optional, required},
    readers::text,
    shape,
};
use serde_json::json;

use super::UserView;
use crate::http::{Admin, ApiResult, Call, JsonBody, error::ErrorBody};

shape! {
    /// The user to add.
    #[derive(Clone, Debug)]
    pub struct CreateUserBody {
        /// E-mail address, unique within the organization without regard to case.
        email: String = required(text(1..=MAX_EMAIL_LENGTH).with("pattern", EMAIL_PATTERN).example("ada@lab.example")),
        /// Display name; the e-mail address unless given.
        name: Option<String> = optional(text(1..=MAX_USER_NAME_LENGTH).with("pattern", patterns::NOT_BLANK)),
    }
    example json!({"email": "ada@lab.example", "name": "Ada Lovelace"});
}

/// Adds a user
///
/// The user has no API key yet: an administrator makes one with `POST /api/v1/api-keys` and `user_id`.
#[utoipa::path(
    post,
    path = "/api/v1/users",
    operation_id = "create_user",
    tag = "users",
    responses(
        (status = 200, description = "The user", body = UserView),
        (status = 409, description = "The organization has a user of this e-mail address", body = ErrorBody),
    )
)]
pub async fn handle(call: Call<Admin, JsonBody<CreateUserBody>>) -> ApiResult<Json<UserView>> {
    let JsonBody(body) = call.body.clone();
    let command = CreateUser {
        email: body.email,
        name: body.name,
    };
    let user = create_user(call.ports(), &call.actor, command).await?;
    Ok(Json(user.into()))
}
