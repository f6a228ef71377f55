//! Callers of use cases.

use uuid::Uuid;

use crate::{
    ids::{ApiKeyId, ExecutionId, OrganizationId, UserId},
    people::{
        rights::Rights,
        role::Role,
        scope::{Scope, Scopes},
    },
    refusal::{ErrorCode, RefusalKind, Refuse},
};

/// Authenticated caller of a use case, its first argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Organization whose data the caller sees and changes; no other is visible to it.
    pub organization: OrganizationId,
    /// User to whom the key belongs.
    pub user: UserId,
    /// Key that was presented.
    pub api_key: ApiKeyId,
    /// Scopes of the key that the role of its user has, too.
    pub scopes: Scopes,
    /// Rights to tables.
    pub rights: Rights,
    /// Execution of an ephemeral key, made for a run on the platform.
    pub execution: Option<ExecutionId>,
}

/// Error: the key lacks a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this API key lacks the {0} scope")]
pub struct MissingScope(pub Scope);

impl Refuse for MissingScope {
    fn code(&self) -> ErrorCode {
        ErrorCode::ScopeMissing
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Forbidden
    }
}

impl Actor {
    /// The operator of the platform, who acts without a key for a user of the organization.
    #[must_use]
    pub fn operator(organization: OrganizationId, user: UserId) -> Self {
        Self {
            organization,
            user,
            api_key: ApiKeyId::new(Uuid::nil()),
            scopes: Scopes::all(),
            rights: Rights::admin(),
            execution: None,
        }
    }

    /// Returns whether this is the operator of the platform.
    #[must_use]
    pub fn is_operator(&self) -> bool {
        self.api_key.as_uuid().is_nil()
    }

    /// Refuses a caller whose key lacks the scope.
    ///
    /// # Errors
    /// [`MissingScope`], naming the scope.
    pub fn require(&self, scope: Scope) -> Result<(), MissingScope> {
        if self.scopes.contains(scope) {
            Ok(())
        } else {
            Err(MissingScope(scope))
        }
    }

    /// Refuses to hand out scopes that the caller lacks: neither a key nor a role that it gives exceeds its own key.
    ///
    /// # Errors
    /// [`MissingScope`], naming the first scope.
    pub fn require_to_grant(&self, scopes: Scopes) -> Result<(), MissingScope> {
        match scopes.first_missing_from(self.scopes) {
            None => Ok(()),
            Some(missing) => Err(MissingScope(missing)),
        }
    }

    /// The same for a role in place of a former one: only what it adds is handed out.
    ///
    /// # Errors
    /// [`MissingScope`], naming the first scope.
    pub fn require_to_give_role(
        &self,
        former: Option<Role>,
        role: Role,
    ) -> Result<(), MissingScope> {
        let former = former.map(Role::scopes).unwrap_or_default();
        self.require_to_grant(role.scopes().without(former))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_role_is_given_by_keys_that_have_what_it_adds() {
        let with = |scopes: &[Scope]| Actor {
            scopes: scopes.iter().copied().collect(),
            ..Actor::operator(OrganizationId::new(Uuid::nil()), UserId::new(Uuid::nil()))
        };
        let narrow = with(&[Scope::Read, Scope::Admin]);
        for (former, role, missing) in [
            (None, Role::Viewer, None),
            (None, Role::Member, Some(Scope::Write)),
            (None, Role::Admin, Some(Scope::Write)),
            (Some(Role::Viewer), Role::Member, Some(Scope::Write)),
            (Some(Role::Member), Role::Admin, None),
            (Some(Role::Admin), Role::Member, None),
        ] {
            let given = narrow.require_to_give_role(former, role);
            assert_eq!(given.err(), missing.map(MissingScope), "{former:?} {role}");
            assert_eq!(with(&Scope::ALL).require_to_give_role(former, role), Ok(()));
        }
    }

    #[test]
    fn an_actor_needs_the_scope_itself() {
        let actor = Actor {
            organization: OrganizationId::new(Uuid::from_u128(1)),
            user: UserId::new(Uuid::from_u128(2)),
            api_key: ApiKeyId::new(Uuid::from_u128(3)),
            scopes: [Scope::Read].into_iter().collect(),
            rights: Rights::admin(),
            execution: None,
        };
        assert_eq!(actor.require(Scope::Read), Ok(()));
        let refused = actor.require(Scope::Write).unwrap_err();
        assert_eq!(refused, MissingScope(Scope::Write));
        assert_eq!(refused.to_string(), "this API key lacks the write scope");
    }
}
