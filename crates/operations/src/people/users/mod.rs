//! `/api/v1/users`

use labdata_domain::{ids::UserId, people::tenancy::User};
use labdata_request_body::{Timestamp, output};

use crate::Operation;

pub mod create;
pub mod list;
pub mod update;

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
        created_at: Timestamp = user.created_at.into(),
        /// Since when the keys of this user are refused.
        disabled_at: Option<Timestamp> = user.disabled_at.map(Into::into),
    }
}

pub(super) fn operations() -> Vec<Operation> {
    vec![create::operation(), list::operation(), update::operation()]
}
