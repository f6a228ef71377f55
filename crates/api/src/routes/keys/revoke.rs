//! `DELETE /api/v1/api-keys/{api_key_id}`

use labdata_application::keys::revoke_api_key::revoke_api_key;
use labdata_domain::ids::ApiKeyId;
use serde_json::Value;

use crate::http::{OrNotFound, 
    Admin, Answer, Call, NoBody, NoContent,
    shape::{
        Fields, Place, Shape,
        readers::{MaybeId, id},
    },
};

/// The key's id.
#[derive(Clone, Copy, Debug)]
pub struct ApiKeyPath {
    api_key_id: MaybeId<ApiKeyId>,
}

impl Shape for ApiKeyPath {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        Some(Self {
            api_key_id: fields.required("api_key_id", id())?,
        })
    }
}

/// Revokes an API key
///
/// At once on the server that is asked, within 5 s on every other. Revoking a revoked key changes
/// nothing.
#[utoipa::path(
    delete,
    path = "/api/v1/api-keys/{api_key_id}",
    operation_id = "revoke_api_key",
    tag = "api-keys",
    params(("api_key_id" = String, Path, description = "The key's id")),
    responses((status = 204, description = "It is revoked"))
)]
pub async fn handle(call: Call<Admin, NoBody, (), ApiKeyPath>) -> Answer<NoContent> {
    let id = call.path.api_key_id.or_not_found("API key")?;
    revoke_api_key(call.ports(), &call.actor, id).await?;
    Ok(NoContent)
}
