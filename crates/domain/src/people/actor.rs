//! Callers of use cases.

use uuid::Uuid;

use crate::{
    ids::{ApiKeyId, ExecutionId, OrganizationId, UserId},
    people::{
        rights::Rights,
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
    /// What decides about tables.
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
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

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
