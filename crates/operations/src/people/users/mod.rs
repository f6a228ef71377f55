//! `/api/v1/users`

use labdata_domain::{
    ids::UserId,
    people::{role::Role, tenancy::User},
};
use labdata_request_body::{Timestamp, names, output};
use serde_json::json;

use crate::Operation;

pub mod create;
pub mod list;
pub mod update;

names! {
    /// Role of a user: `viewer` reads, `member` reads and writes, `admin` manages, too.
    pub UserRole = Role::ALL.map(Role::as_str);
}

output! {
    /// A user of the organization.
    #[derive(Clone, Debug)]
    pub struct UserView as "User" from user: User {
        /// Its id.
        id: UserId = user.id,
        /// E-mail address, unique within the organization without regard to case.
        #[example = "ada@lab.example"]
        email: String = user.email,
        /// Display name; the e-mail address unless set.
        #[example = "Ada Lovelace"]
        name: String = user.name,
        /// Role: no key and no session of the user exceeds it.
        #[example = "member"]
        role: UserRole = user.role.as_str().into(),
        /// Names of the groups to which the user belongs, sorted.
        #[example = json!(["Microscopy"])]
        groups: Vec<String> = user.groups,
        created_at: Timestamp = user.created_at.into(),
        /// Since when the keys of this user are refused.
        disabled_at: Option<Timestamp> = user.disabled_at.map(Into::into),
    }
}

pub(super) fn operations() -> Vec<Operation> {
    vec![create::operation(), list::operation(), update::operation()]
}
