//! `GET /api/v1/me`

use actix_web::web::Json;
use labdata_application::people::identify::{Identity, identify};
use labdata_domain::people::scope::Scope;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    http::{AnyScope, ApiResult, Call, NoBody, Timestamp},
    routes::people::ApiKeyScope,
};

/// What the presented key stands for.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Me)]
pub struct MeView {
    organization: MyOrganizationView,
    user: MyUserView,
    /// The key that was presented.
    api_key: Option<MyKeyView>,
    /// The execution of a key that was made for a run on the platform.
    job_execution_id: Option<String>,
}

/// The organization to which the key gives access.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = MyOrganization)]
pub struct MyOrganizationView {
    /// Its id.
    id: String,
    /// Its name.
    name: String,
}

/// The user to whom the key belongs.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = MyUser)]
pub struct MyUserView {
    /// Its id.
    id: String,
    /// E-mail address.
    email: String,
    /// Its name.
    name: String,
}

/// The key, without its secret.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = MyApiKey)]
pub struct MyKeyView {
    /// Its id.
    id: String,
    /// Its name.
    name: String,
    /// The public part of the key.
    #[schema(example = "k3v9q2mx")]
    prefix: String,
    /// Its scopes.
    #[schema(value_type = Vec<ApiKeyScope>, example = json!(["read", "write"]))]
    scopes: Vec<&'static str>,
    /// From when on it is refused; null for never.
    expires_at: Option<Timestamp>,
}

impl From<Identity> for MeView {
    fn from(identity: Identity) -> Self {
        let Identity {
            organization,
            user,
            api_key,
            execution,
        } = identity;
        Self {
            organization: MyOrganizationView {
                id: organization.id.to_string(),
                name: organization.name,
            },
            user: MyUserView {
                id: user.id.to_string(),
                email: user.email,
                name: user.name,
            },
            api_key: Some(MyKeyView {
                id: api_key.id.to_string(),
                name: api_key.name,
                prefix: api_key.prefix,
                scopes: api_key.scopes.iter().map(Scope::as_str).collect(),
                expires_at: api_key.expires_at.map(Into::into),
            }),
            job_execution_id: execution.map(|id| id.to_string()),
        }
    }
}

/// Shows what the presented key stands for
///
/// Any valid key suffices, with any scopes.
#[utoipa::path(
    get,
    path = "/api/v1/me",
    operation_id = "get_me",
    tag = "users",
    responses((status = 200, description = "Organization, user and key of the caller", body = MeView))
)]
pub async fn handle(call: Call<AnyScope, NoBody>) -> ApiResult<Json<MeView>> {
    Ok(Json(identify(call.ports(), &call.actor).await?.into()))
}
