//! The user of a person whom the identity provider names.

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    ids::{OrganizationId, UserId},
    people::{
        actor::Actor,
        oidc::{OidcPolicy, SignInRefused},
        role::Role,
        tenancy::User,
    },
};
use labdata_ports::{PortError, people::oidc::Identity};

use super::{BY, set_role::set_role};
use crate::{
    Error, Services,
    audit::record::{Record, audited},
    maintenance::disk_reserve::require_reserve,
    people::sessions::user_with_email,
};

/// Admits a person: finds the user, or makes one where the policy says so, and gives the role of the groups.
///
/// # Errors
/// `Forbidden` for a person who may not sign in.
pub(super) async fn admit(
    services: &Services,
    policy: &OidcPolicy,
    organization: OrganizationId,
    identity: &Identity,
) -> Result<User, Error> {
    let linked = linked_user(services, organization, identity).await?;
    let role = match policy.role_of(&identity.groups) {
        Ok(role) => role,
        Err(refusal) => {
            if let (Some(user), SignInRefused::NoRole) = (linked, &refusal) {
                set_role(services, user, Role::Viewer).await?;
            }
            return Err(Error::refused(refusal));
        }
    };
    let user = match linked {
        Some(user) => user,
        None => user_by_email(services, policy, organization, identity, role).await?,
    };
    if user.disabled_at.is_some() {
        return Err(Error::refused(SignInRefused::Disabled));
    }
    let (issuer, subject) = (&identity.issuer, &identity.subject);
    let is_theirs = services
        .oidc_store
        .link_account(organization, user.id, issuer, subject);
    // An address that the provider gave to somebody else does not give them this user.
    if !is_theirs.await? {
        return Err(Error::refused(SignInRefused::OtherAccount));
    }
    set_role(services, user, role).await
}

/// The user who signed in with this account before, under any e-mail address.
async fn linked_user(
    services: &Services,
    organization: OrganizationId,
    identity: &Identity,
) -> Result<Option<User>, PortError> {
    let (issuer, subject) = (&identity.issuer, &identity.subject);
    let linked = services
        .oidc_store
        .linked_user(organization, issuer, subject);
    match linked.await? {
        Some(id) => services.tenancy.user(organization, id).await.map(Some),
        None => Ok(None),
    }
}

/// The user of the person's verified e-mail address, made where the policy says so.
async fn user_by_email(
    services: &Services,
    policy: &OidcPolicy,
    organization: OrganizationId,
    identity: &Identity,
    role: Role,
) -> Result<User, Error> {
    let email = identity
        .email
        .as_deref()
        .ok_or_else(|| Error::refused(SignInRefused::UnverifiedEmail))?;
    if let Some(user) = user_with_email(services, organization, email).await? {
        return Ok(user);
    }
    if !policy.creates_users.contain(email) {
        return Err(Error::refused(SignInRefused::UnknownUser(email.to_owned())));
    }
    require_reserve(services)?;
    let candidate = User {
        id: UserId::new(services.ids.next_id()),
        organization,
        email: email.to_owned(),
        name: identity.name.clone().unwrap_or_else(|| email.to_owned()),
        role,
        groups: Vec::new(),
        created_at: services.clock.now(),
        disabled_at: None,
    };
    let operator = Actor::operator(organization, candidate.id);
    audited(services, &operator, |within| async move {
        let user = within.tenancy.ensure_user(&candidate).await?;
        let target = AuditTarget::new(AuditTargetKind::User, user.id, &user.email);
        let record = Record::of(AuditAction::UserCreated, target)
            .with("by", BY)
            .with("name", user.name.clone())
            .with("role", user.role.as_str());
        // Another first sign-in of the person may have made the user at the same time.
        let is_new = user.id == candidate.id;
        Ok((user, is_new.then_some(record)))
    })
    .await
}
