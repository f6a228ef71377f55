//! `POST /api/v1/api-keys`

use actix_web::web::Json;
use labdata_application::people::create_api_key::{CreateApiKey, create_api_key};
use labdata_domain::{
    ids::UserId,
    people::{MAX_NAME_LENGTH, scope::Scope},
};
use labdata_request_body::{
    Reader as _,
    fields::{optional, required},
    readers::{MaybeId, choice_of, datetime, id, list, text},
    shape,
};
use serde::Serialize;
use serde_json::json;
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::ApiKeyView;
use crate::http::{Admin, ApiResult, Call, JsonBody, OrNotFound};

shape! {
    /// The key to create.
    #[derive(Clone, Debug)]
    pub struct CreateApiKeyBody {
        /// A name for people.
        name: String = required(text(1..=MAX_NAME_LENGTH)),
        /// Permissions. A key cannot grant a scope that it lacks.
        scopes: Vec<Scope> = required(
            list(choice_of(Scope::ALL, Scope::as_str)).of(1..=100).example(json!(["read", "write"])),
        ),
        /// From when on the key is refused; never unless given.
        expires_at: Option<OffsetDateTime> = optional(datetime()),
        /// The user to whom it belongs; the caller's user unless given.
        user_id: Option<MaybeId<UserId>> = optional(id()),
    }
    example json!({
        "name": "Plate reader",
        "scopes": ["read", "write"],
        "expires_at": "2030-01-01T00:00:00Z",
    });
}

/// A new API key, with the key itself.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = NewApiKey)]
pub struct NewApiKeyView {
    #[serde(flatten)]
    about: ApiKeyView,
    /// The key. It is shown this once and kept nowhere.
    #[schema(example = "ldk_k3v9q2mx_…")]
    key: String,
}

/// Makes an API key
///
/// The answer holds the key, which is never shown again. A key cannot grant a scope that the caller's
/// key lacks. The header `Idempotency-Key` is refused, because the answer would have to be stored.
#[utoipa::path(
    post,
    path = "/api/v1/api-keys",
    operation_id = "create_api_key",
    tag = "api-keys",
    responses(
        (status = 200, description = "The key, shown this once", body = NewApiKeyView),
        (status = 400, description = "expires_at lies in the past, or the user is disabled", body = crate::http::error::ErrorBody),
        (status = 403, description = "The caller's key lacks the admin scope, or a scope that the new key is to have", body = crate::http::error::ErrorBody),
    )
)]
pub async fn handle(
    call: Call<Admin, JsonBody<CreateApiKeyBody>>,
) -> ApiResult<Json<NewApiKeyView>> {
    let JsonBody(body) = &call.body;
    let user = body.user_id.map(|id| id.or_not_found("user"));
    let user = user.transpose()?;
    let command = CreateApiKey {
        name: body.name.clone(),
        scopes: body.scopes.iter().copied().collect(),
        expires_at: body.expires_at,
        user,
    };
    let (key, plain) = create_api_key(call.ports(), &call.actor, command).await?;
    Ok(Json(NewApiKeyView {
        about: key.into(),
        key: plain.reveal().to_owned(),
    }))
}
