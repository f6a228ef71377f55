//! Adds a user to an organization.

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    ids::UserId,
    people::{
        actor::Actor,
        role::Role,
        run_key::GuardedAction,
        scope::Scope,
        tenancy::{User, check_email, check_user_name},
    },
};

use crate::{
    Error, Services,
    audit::record::{Record, audited},
    maintenance::disk_reserve::require_reserve,
};

/// The user to add.
#[derive(Clone, Debug)]
pub struct CreateUser {
    /// E-mail address.
    pub email: String,
    /// Display name; the e-mail address if `None`.
    pub name: Option<String>,
    /// Role.
    pub role: Role,
}

/// Adds a user to the caller's organization.
///
/// # Errors
/// `Forbidden` without the admin scope and to a narrowed key; `Invalid` for an address that is none and a blank name;
/// `Conflict` when the organization has a user of that address.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn create_user(
    services: &Services,
    actor: &Actor,
    command: CreateUser,
) -> Result<User, Error> {
    actor.require(Scope::Admin)?;
    actor.may(GuardedAction::ManagePeople)?;
    require_reserve(services)?;
    let email = command.email.trim().to_owned();
    let name = command.name.unwrap_or_else(|| email.clone());
    check_email(&email)
        .and_then(|()| check_user_name(&name))
        .map_err(Error::refused)?;
    let user = User {
        id: UserId::new(services.ids.next_id()),
        organization: actor.organization,
        email,
        name,
        role: command.role,
        groups: Vec::new(),
        created_at: services.clock.now(),
        disabled_at: None,
    };
    audited(services, actor, |within| async move {
        within.tenancy.add_user(&user).await?;
        let target = AuditTarget::new(AuditTargetKind::User, user.id, &user.email);
        let record = Record::of(AuditAction::UserCreated, target)
            .with("name", user.name.clone())
            .with("role", user.role.as_str());
        Ok((user, Some(record)))
    })
    .await
}
