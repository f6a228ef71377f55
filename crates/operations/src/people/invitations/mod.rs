//! `/api/v1/invitations`

use labdata_application::people::invitations::NamedInvitation;
use labdata_domain::ids::InvitationId;
use labdata_request_body::{
    Timestamp,
    fields::required,
    output,
    readers::{MaybeId, id},
    shape,
};
use serde_json::json;

use super::users::UserRole;
use crate::Operation;

pub mod create;
pub mod list;
pub mod revoke;

shape! {
    /// The path of an invitation.
    #[derive(Clone, Copy, Debug)]
    pub struct InvitationPath {
        /// The invitation's id
        invitation_id: MaybeId<InvitationId> = required(id()),
    }
}

output! {
    /// A pending invitation.
    #[derive(Clone, Debug)]
    pub struct InvitationView as "Invitation" from named: NamedInvitation {
        /// Its id.
        id: InvitationId = named.invitation.id,
        /// E-mail address of the colleague.
        #[example = "ada@lab.example"]
        email: String = named.invitation.email,
        /// Role that the colleague gets.
        #[example = "member"]
        role: UserRole = named.invitation.role.as_str().into(),
        /// Names of the groups that the colleague joins.
        #[example = json!(["Microscopy"])]
        groups: Vec<String> = named.groups,
        /// From when on it is refused.
        expires_at: Timestamp = named.invitation.expires_at.into(),
        created_at: Timestamp = named.invitation.created_at.into(),
    }
}

pub(super) fn operations() -> Vec<Operation> {
    vec![create::operation(), list::operation(), revoke::operation()]
}
