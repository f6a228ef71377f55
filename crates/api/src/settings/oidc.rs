//! Settings of sign-in by an identity provider.

use labdata_domain::people::oidc::{EmailDomains, InvalidRoles, OidcPolicy, RoleMapping};

use super::{Secret, SettingsError, read::Checks, values::Values};

/// Sign-in by an `OpenID` provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidcSettings {
    /// Issuer.
    pub issuer: String,
    /// Id of the platform at the provider.
    pub client_id: String,
    /// Secret of the platform at the provider.
    pub client_secret: Option<Secret>,
    /// Scopes, separated by blanks.
    pub scopes: String,
    /// Claim with the groups.
    pub groups_claim: String,
    /// Rules about who may sign in, and with which role.
    pub policy: OidcPolicy,
}

/// The identity provider, where an issuer is given.
pub(super) fn read(
    values: &Values<'_>,
    checks: &Checks,
) -> Result<Option<OidcSettings>, SettingsError> {
    let roles = values.parsed("oidc_roles", &InvalidRoles.to_string(), |text| {
        RoleMapping::parse(text).ok()
    })?;
    let takes = "false, or domains such as lab.example.org, separated by commas";
    let creates_users = values.parsed("oidc_create_users", takes, EmailDomains::parse)?;
    let client_secret =
        values.secret("oidc_client_secret", "a text that is not blank", |text| {
            (!text.trim().is_empty()).then(|| Secret::new(text.trim().to_owned()))
        })?;
    let text = |key, default: &str| {
        let given = values.text(key)?;
        Ok::<_, SettingsError>(given.unwrap_or_else(|| default.to_owned()))
    };
    let client_id = values.text("oidc_client_id")?;
    let settings = OidcSettings {
        client_id: client_id.clone().unwrap_or_default(),
        issuer: text("oidc_issuer", "")?,
        client_secret,
        scopes: text("oidc_scopes", "openid email profile")?,
        groups_claim: text("oidc_groups_claim", "groups")?,
        policy: OidcPolicy {
            roles: roles.unwrap_or_default(),
            creates_users: creates_users.unwrap_or_default(),
            organization: text("oidc_organization", "default")?,
        },
    };
    if settings.issuer.is_empty() {
        // Without an issuer every sign-in would fail, and nothing would say why.
        if client_id.is_some() {
            return Err(SettingsError(
                "LABDATA_OIDC_ISSUER is missing: LABDATA_OIDC_CLIENT_ID is of no use without it"
                    .to_owned(),
            ));
        }
        return Ok(None);
    }
    values.check("oidc_issuer", &settings.issuer, checks.issuer)?;
    // Without either every sign-in would be refused, so it is a mistake.
    if client_id.is_none() {
        return Err(missing("LABDATA_OIDC_CLIENT_ID"));
    }
    if settings.policy.roles == RoleMapping::default() {
        return Err(missing("LABDATA_OIDC_ROLES"));
    }
    if !settings.scopes.split(' ').any(|scope| scope == "openid") {
        return Err(SettingsError(
            "LABDATA_OIDC_SCOPES lacks the scope openid".to_owned(),
        ));
    }
    Ok(Some(settings))
}

fn missing(name: &str) -> SettingsError {
    SettingsError(format!("{name} is missing: LABDATA_OIDC_ISSUER needs it"))
}
