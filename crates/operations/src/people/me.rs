//! `GET /api/v1/me`

use labdata_application::{
    Error,
    people::{
        identify::{Identity, identify},
        named_key::NamedKey,
    },
};
use labdata_domain::{
    ids::{ApiKeyId, ExecutionId, OrganizationId, UserId},
    people::{
        setup::{Feature, MissingFeature},
        tenancy::{Organization, User},
    },
};
use labdata_request_body::{Timestamp, names, output};
use serde_json::json;

use crate::people::{
    api_keys::{ApiKeyScope, scope_names},
    users::UserRole,
};

use crate::{About, AnyScope, Call, Method, NoBody, Operation, Tag};

output! {
    /// Organization, user and rights of the presented key.
    #[derive(Clone, Debug)]
    pub struct MeView as "Me" from identity: Identity {
        organization: MyOrganizationView = identity.organization.into(),
        user: MyUserView = identity.user.into(),
        /// The key that was presented.
        api_key: Option<MyKeyView> = Some(identity.api_key.into()),
        /// The execution of a key that was made for a run on the platform.
        job_execution_id: Option<ExecutionId> = identity.execution,
        /// Features that refuse every request on this server until its operator sets them up.
        missing_features: Vec<MissingFeatureView> =
            identity.missing_features.into_iter().map(Into::into).collect(),
    }
}

names! {
    /// A feature that the operator of a server sets up.
    pub FeatureName = Feature::ALL.map(Feature::as_str);
}

output! {
    /// A feature that is not set up.
    #[derive(Clone, Debug)]
    pub struct MissingFeatureView as "MissingFeature" from missing: MissingFeature {
        /// Its name.
        #[example = "agent"]
        feature: FeatureName = missing.feature.as_str().into(),
        /// Refusal of the feature's requests; it names what the operator has to set.
        #[example = "the agent is not set up: the operator has to set LABDATA_LLM_PROVIDER"]
        detail: String = missing.refusal.message.into_owned(),
    }
}

output! {
    /// The organization to which the key gives access.
    #[derive(Clone, Debug)]
    pub struct MyOrganizationView as "MyOrganization" from organization: Organization {
        /// Its id.
        id: OrganizationId = organization.id,
        /// Its name.
        name: String = organization.name,
    }
}

output! {
    /// The user to whom the key belongs.
    #[derive(Clone, Debug)]
    pub struct MyUserView as "MyUser" from user: User {
        /// Its id.
        id: UserId = user.id,
        /// E-mail address.
        email: String = user.email,
        /// Its name.
        name: String = user.name,
        /// Role: no key and no session of the user exceeds it.
        #[example = "member"]
        role: UserRole = user.role.as_str().into(),
        /// Names of the groups to which the user belongs, sorted.
        #[example = json!(["Microscopy"])]
        groups: Vec<String> = user.groups,
    }
}

output! {
    /// The key, without its secret.
    #[derive(Clone, Debug)]
    pub struct MyKeyView as "MyApiKey" from named: NamedKey {
        /// Its id.
        id: ApiKeyId = named.key.id,
        /// Its name.
        name: String = named.key.name,
        /// The public part of the key.
        #[example = "k3v9q2mx"]
        prefix: String = named.key.prefix,
        /// Its scopes, as far as the user's role has them.
        #[example = json!(["read", "write"])]
        scopes: Vec<ApiKeyScope> = scope_names(named.key.scopes),
        /// Names of the only tables that it concerns; null for all.
        tables: Option<Vec<String>> = named.tables,
        /// From when on it is refused; null for never.
        expires_at: Option<Timestamp> = named.key.expires_at.map(Into::into),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "get_me",
        method: Method::Get,
        path: "/api/v1/me",
        tag: Tag::Users,
        summary: "Shows what the presented key stands for",
        description: "Any valid key suffices, with any scopes.",
        returns: "Organization, user and key of the caller",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<AnyScope, NoBody>) -> Result<MeView, Error> {
    let identity = identify(&call.services, &call.platform.agent, &call.actor).await?;
    Ok(identity.into())
}
