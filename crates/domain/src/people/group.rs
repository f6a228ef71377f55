//! Groups of users, by which tables are opened to some only.

use time::OffsetDateTime;

use crate::{
    conflict::Conflict,
    ids::{GroupId, OrganizationId, UserId},
    names::RecordName,
    refusal::{ErrorCode, RefusalKind, Refuse},
};

/// Maximum number of characters of a group's name.
pub const MAX_GROUP_NAME_LENGTH: usize = 200;

/// Maximum number of members of a group that a request names.
pub const MAX_GROUP_MEMBERS: usize = 10_000;

/// A group of users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Id.
    pub id: GroupId,
    /// Organization of its members.
    pub organization: OrganizationId,
    /// Name, unique within the organization.
    pub name: String,
    /// Its members, in the order of their ids.
    pub members: Vec<UserId>,
    /// Creation time.
    pub created_at: OffsetDateTime,
}

/// Change of a group. Fields that are `None` stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupChange {
    /// Name. Tables that name the group follow.
    pub name: Option<String>,
    /// All its members.
    pub members: Option<Vec<UserId>>,
}

impl Group {
    /// The conflict with another group of the organization that has the name or a twin of it, by which people would
    /// mistake one for the other when they open tables. `others` are the names of all others.
    #[must_use]
    pub fn name_taken<'n>(&self, others: impl IntoIterator<Item = &'n str>) -> Option<Conflict> {
        let mut others = others.into_iter();
        let twin = others.find(|other| RecordName::are_twins(&self.name, other))?;
        Some(Conflict::GroupName(twin.to_owned()))
    }
}

/// Members in the order in which they are stored, each once.
#[must_use]
pub fn sorted_members(mut members: Vec<UserId>) -> Vec<UserId> {
    members.sort_unstable();
    members.dedup();
    members
}

/// Error: the organization has no group of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no group \"{0}\"")]
pub struct UnknownGroup(pub String);

impl Refuse for UnknownGroup {
    fn code(&self) -> ErrorCode {
        ErrorCode::UnknownGroup
    }
}

/// Error: the access of tables names a group that would be deleted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the access of these tables names the group, and would open without it: {}", .0.join(", "))]
pub struct GroupInUse(pub Vec<String>);

impl Refuse for GroupInUse {
    fn code(&self) -> ErrorCode {
        ErrorCode::GroupInUse
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Conflict
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_twin_of_another_name_is_taken() {
        let group = Group {
            id: GroupId::new(Uuid::nil()),
            organization: OrganizationId::new(Uuid::nil()),
            name: "G1".to_owned(),
            members: Vec::new(),
            created_at: OffsetDateTime::UNIX_EPOCH,
        };
        let taken = Conflict::GroupName("g1".to_owned());
        assert_eq!(group.name_taken(["a", "g1"]), Some(taken));
        assert_eq!(group.name_taken(["a", "g2"]), None);
    }

    #[test]
    fn a_member_is_named_once() {
        let user = |number| UserId::new(Uuid::from_u128(number));
        let members = sorted_members(vec![user(2), user(1), user(2)]);
        assert_eq!(members, [user(1), user(2)]);
    }

    #[test]
    fn the_refusal_of_a_deletion_names_the_tables() {
        let refused = GroupInUse(vec!["plate".to_owned(), "well".to_owned()]);
        assert!(refused.to_string().ends_with("plate, well"));
    }
}
