//! `POST /api/v1/api-keys`

use actix_web::web::Json;
use labdata_application::keys::create_api_key::{CreateApiKey, create_api_key};
use labdata_domain::keys::scope::Scope;
use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::{ApiKeyView, SCOPES};
use crate::http::{
    Admin, Answer, Call, JsonBody,
    shape::{
        Fields, Place, Shape,
        readers::{choice, datetime, list_of, text},
    },
};

/// The key to make.
#[derive(Clone, Debug, ToSchema)]
pub struct CreateApiKeyBody {
    /// A name for people.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// What it may do. A key cannot grant a scope that it lacks.
    #[schema(value_type = Vec<String>, min_items = 1, example = json!(["read", "write"]))]
    scopes: Vec<Scope>,
    /// From when on it is refused; never unless given.
    #[schema(value_type = Option<crate::http::Timestamp>)]
    expires_at: Option<OffsetDateTime>,
}

impl Shape for CreateApiKeyBody {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let name = fields.required("name", text(1..=200));
        let scopes = fields.required("scopes", list_of(1..=100, choice(SCOPES)));
        let expires_at = fields.nullable("expires_at", datetime());
        Some(Self {
            name: name?,
            scopes: scopes?,
            expires_at: expires_at?,
        })
    }
}

/// A new API key, with the key itself.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NewApiKeyView {
    #[serde(flatten)]
    about: ApiKeyView,
    /// The key. It is shown this once and kept nowhere.
    #[schema(example = "ldk_k3v9q2mx_…")]
    key: String,
}

/// Makes an API key
#[utoipa::path(
    post,
    path = "/api/v1/api-keys",
    operation_id = "create_api_key",
    tag = "api-keys",
    request_body = CreateApiKeyBody,
    responses(
        (status = 200, description = "The key, shown this once", body = NewApiKeyView),
        (status = 400, description = "expires_at lies in the past", body = crate::http::error::ErrorBody),
        (status = 403, description = "The caller's key lacks the admin scope, or a scope that the new key is to have", body = crate::http::error::ErrorBody),
    )
)]
pub async fn handle(call: Call<Admin, JsonBody<CreateApiKeyBody>>) -> Answer<Json<NewApiKeyView>> {
    let JsonBody(body) = &call.body;
    let command = CreateApiKey {
        name: body.name.clone(),
        scopes: body.scopes.iter().copied().collect(),
        expires_at: body.expires_at,
    };
    let (key, plain) = create_api_key(call.ports(), &call.actor, command).await?;
    Ok(Json(NewApiKeyView {
        about: key.into(),
        key: plain.reveal().to_owned(),
    }))
}
