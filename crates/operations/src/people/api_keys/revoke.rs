//! `DELETE /api/v1/api-keys/{api_key_id}`

use labdata_application::{Error, people::revoke_api_key::revoke_api_key};
use labdata_domain::{ids::ApiKeyId, refusal::Resource};
use labdata_request_body::{
    fields::required,
    readers::{MaybeId, id},
    shape,
};

use crate::{About, Admin, Call, Method, NoBody, NoContent, Operation, OrNotFound, Tag};

shape! {
    /// The path of an API key.
    #[derive(Clone, Copy, Debug)]
    pub struct ApiKeyPath {
        /// The key's id
        api_key_id: MaybeId<ApiKeyId> = required(id()),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "revoke_api_key",
        method: Method::Delete,
        path: "/api/v1/api-keys/{api_key_id}",
        tag: Tag::ApiKeys,
        summary: "Revokes an API key",
        description: "At once on the server that is asked, within 5 s on every other. Revoking a revoked \
            key changes nothing.",
        returns: "It is revoked",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Admin, NoBody, (), ApiKeyPath>) -> Result<NoContent, Error> {
    let id = call.path.api_key_id.or_not_found(Resource::ApiKey)?;
    revoke_api_key(&call.services, &call.actor, id).await?;
    Ok(NoContent)
}
