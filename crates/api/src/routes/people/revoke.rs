//! `DELETE /api/v1/api-keys/{api_key_id}`

use labdata_application::people::revoke_api_key::revoke_api_key;
use labdata_domain::ids::ApiKeyId;
use labdata_request_body::{
    fields::required,
    readers::{MaybeId, id},
    shape,
};

use crate::http::{Admin, ApiResult, Call, NoBody, NoContent, OrNotFound};

shape! {
    /// The path of an API key.
    #[derive(Clone, Copy, Debug)]
    pub struct ApiKeyPath {
        /// The key's id
        api_key_id: MaybeId<ApiKeyId> = required(id()),
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
    responses((status = 204, description = "It is revoked"))
)]
pub async fn handle(call: Call<Admin, NoBody, (), ApiKeyPath>) -> ApiResult<NoContent> {
    let id = call.path.api_key_id.or_not_found("API key")?;
    revoke_api_key(call.ports(), &call.actor, id).await?;
    Ok(NoContent)
}
