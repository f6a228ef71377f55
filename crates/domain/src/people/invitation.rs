//! Invitations: links that make a user of a colleague, once.

use time::{Duration, OffsetDateTime};

use super::{
    ApiKeyHash,
    role::Role,
    tenancy::{User, UserChange},
};
use crate::ids::{GroupId, InvitationId, OrganizationId, UserId};

/// Time for which an invitation can be accepted.
pub const INVITATION_LIFETIME: Duration = Duration::days(7);

/// A pending invitation.
#[derive(Clone, Debug)]
pub struct Invitation {
    /// Id.
    pub id: InvitationId,
    /// Organization that the colleague joins.
    pub organization: OrganizationId,
    /// E-mail address of the colleague.
    pub email: String,
    /// Role that the colleague gets.
    pub role: Role,
    /// Groups that the colleague joins, as far as they still exist.
    pub groups: Vec<GroupId>,
    /// Hash of the link's token.
    pub token: ApiKeyHash,
    /// Administrator who made it.
    pub created_by: UserId,
    /// Creation time.
    pub created_at: OffsetDateTime,
    /// From when on it is refused.
    pub expires_at: OffsetDateTime,
}

impl Invitation {
    /// Returns true until it expires.
    #[must_use]
    pub fn is_valid(&self, now: OffsetDateTime) -> bool {
        now < self.expires_at
    }

    /// Returns whether it can be accepted: until it expires, and only while its inviter could make it.
    #[must_use]
    pub fn is_acceptable(&self, now: OffsetDateTime, inviter: &User) -> bool {
        self.is_valid(now) && inviter.disabled_at.is_none() && inviter.role == Role::Admin
    }

    /// The role that a user has who accepts it, and who may exist: no rights are lost.
    #[must_use]
    pub fn accepted_role(invited: Role, existing: Option<&User>) -> Role {
        existing.map_or(invited, |user| invited.max(user.role))
    }

    /// Change of a user of this address who exists: a disabled one is enabled, and none loses rights.
    #[must_use]
    pub fn change_of(&self, user: &User) -> UserChange {
        let role = Self::accepted_role(self.role, Some(user));
        UserChange {
            name: None,
            disabled: user.disabled_at.map(|_| false),
            role: Some(role).filter(|role| *role != user.role),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    fn invitation(role: Role) -> Invitation {
        Invitation {
            id: InvitationId::new(Uuid::nil()),
            organization: OrganizationId::new(Uuid::nil()),
            email: "ada@lab.example".to_owned(),
            role,
            groups: Vec::new(),
            token: ApiKeyHash([7; 32]),
            created_by: UserId::new(Uuid::nil()),
            created_at: NOW,
            expires_at: NOW + INVITATION_LIFETIME,
        }
    }

    fn user(role: Role, disabled_at: Option<OffsetDateTime>) -> User {
        User {
            id: UserId::new(Uuid::nil()),
            organization: OrganizationId::new(Uuid::nil()),
            email: "ada@lab.example".to_owned(),
            name: "Ada".to_owned(),
            role,
            groups: Vec::new(),
            created_at: NOW,
            disabled_at,
        }
    }

    #[test]
    fn an_invitation_holds_for_a_week() {
        let invitation = invitation(Role::Member);
        let inviter = user(Role::Admin, None);
        assert!(invitation.is_acceptable(NOW + INVITATION_LIFETIME - Duration::SECOND, &inviter));
        assert!(!invitation.is_acceptable(NOW + INVITATION_LIFETIME, &inviter));
    }

    #[test]
    fn an_invitation_ends_with_the_rights_of_its_inviter() {
        let invitation = invitation(Role::Viewer);
        assert!(!invitation.is_acceptable(NOW, &user(Role::Member, None)));
        assert!(!invitation.is_acceptable(NOW, &user(Role::Admin, Some(NOW))));
    }

    #[test]
    fn an_invitation_takes_no_rights_from_who_has_them() {
        let of = |role, disabled| UserChange {
            name: None,
            disabled,
            role,
        };
        for (invited, user, change) in [
            (
                Role::Member,
                user(Role::Viewer, None),
                of(Some(Role::Member), None),
            ),
            (Role::Member, user(Role::Admin, None), of(None, None)),
            (
                Role::Member,
                user(Role::Admin, Some(NOW)),
                of(None, Some(false)),
            ),
            (
                Role::Member,
                user(Role::Viewer, Some(NOW)),
                of(Some(Role::Member), Some(false)),
            ),
            (
                Role::Viewer,
                user(Role::Viewer, Some(NOW)),
                of(None, Some(false)),
            ),
        ] {
            assert_eq!(invitation(invited).change_of(&user), change);
        }
    }
}
