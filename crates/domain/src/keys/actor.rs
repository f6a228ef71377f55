//! Who asks.

use crate::{
    ids::{ApiKeyId, ExecutionId, OrganizationId, UserId},
    keys::scope::{Scope, Scopes},
};

/// The authenticated caller of a use case. Every use case takes it first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The organization whose things the caller sees and changes; no other exists for it.
    pub organization: OrganizationId,
    /// The user to whom the key belongs.
    pub user: UserId,
    /// The key that was shown.
    pub api_key: ApiKeyId,
    /// What the key may do.
    pub scopes: Scopes,
    /// The execution for which the key was made, of a platform-run job's ephemeral key.
    pub execution: Option<ExecutionId>,
}

/// The key lacks a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this API key lacks the {0} scope")]
pub struct MissingScope(pub Scope);

impl Actor {
    /// Refuses the caller unless its key has the scope.
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
            execution: None,
        };
        assert_eq!(actor.require(Scope::Read), Ok(()));
        let refused = actor.require(Scope::Write).unwrap_err();
        assert_eq!(refused, MissingScope(Scope::Write));
        assert_eq!(refused.to_string(), "this API key lacks the write scope");
    }
}
