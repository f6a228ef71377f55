//! `POST /api/v1/api-keys`

use labdata_application::{
    Error,
    people::create_api_key::{CreateApiKey, create_api_key},
};
use labdata_domain::{
    catalog::Name,
    ids::UserId,
    patterns,
    people::{MAX_NAME_LENGTH, scope::Scope},
    refusal::Resource,
};
use labdata_request_body::{
    Reader as _,
    fields::{optional, required},
    output,
    readers::{MaybeId, choice_of, datetime, id, list, text},
    shape,
};
use serde_json::json;
use time::OffsetDateTime;

use super::ApiKeyView;
use crate::{About, Admin, Call, JsonBody, Method, Operation, OrNotFound, Tag};

shape! {
    /// The key to create.
    #[derive(Clone, Debug)]
    pub struct CreateApiKeyBody {
        /// A name for people.
        name: String = required(text(1..=MAX_NAME_LENGTH).with("pattern", patterns::ONE_LINE)),
        /// Permissions. A key cannot grant a scope that it lacks.
        scopes: Vec<Scope> = required(
            list(choice_of(Scope::ALL, Scope::as_str)).of(1..=100).example(json!(["read", "write"])),
        ),
        /// From when on the key is refused; never unless given.
        expires_at: Option<OffsetDateTime> = optional(datetime()),
        /// The user to whom it belongs; the caller's user unless given.
        user_id: Option<MaybeId<UserId>> = optional(id()),
        /// Names of the only tables that the key concerns; all that the user may see unless given.
        tables: Option<Vec<String>> = optional(list(text(..).with("pattern", Name::PATTERN).example("sample")).of(1..=1000)),
    }
    example json!({
        "name": "Plate reader",
        "scopes": ["read", "write"],
        "expires_at": "2030-01-01T00:00:00Z",
    });
}

output! {
    /// A new API key, with the key itself.
    #[derive(Clone)]
    pub struct NewApiKeyView as "NewApiKey" {
        #[flatten]
        about: ApiKeyView,
        /// The key. It is displayed this once and stored nowhere.
        #[example = "ldk_k3v9q2mx_…"]
        key: String,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "create_api_key",
        method: Method::Post,
        path: "/api/v1/api-keys",
        tag: Tag::ApiKeys,
        summary: "Makes an API key",
        description: "The response holds the key, which is never displayed again. A key cannot grant a scope \
            that the caller's key lacks, or that the role of its user lacks. The header `Idempotency-Key` is refused, because the \
            response would have to be stored.",
        returns: "The key, displayed this once",
        refusals: &[
            (400, "expires_at lies in the past, the user is disabled, or a table is unknown"),
            (403, "The caller's key lacks the admin scope, or a scope that the new key is to have; or the \
                role of its user lacks it"),
        ],
    }
    .runs(run)
    .secret()
}

async fn run(call: Call<Admin, JsonBody<CreateApiKeyBody>>) -> Result<NewApiKeyView, Error> {
    let user = call.body.user_id.map(|id| id.or_not_found(Resource::User));
    let user = user.transpose()?;
    let command = CreateApiKey {
        name: call.body.name,
        scopes: call.body.scopes.into_iter().collect(),
        expires_at: call.body.expires_at,
        user,
        tables: call.body.tables,
    };
    let created = create_api_key(&call.services, &call.actor, command).await?;
    Ok(NewApiKeyView {
        about: created.named.into(),
        key: created.plain.reveal().to_owned(),
    })
}
