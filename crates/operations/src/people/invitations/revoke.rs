//! `DELETE /api/v1/invitations/{invitation_id}`

use labdata_application::{Error, people::invitations::revoke_invitation};
use labdata_domain::refusal::Resource;

use super::InvitationPath;
use crate::{About, Admin, Call, Method, NoBody, NoContent, Operation, OrNotFound, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "revoke_invitation",
        method: Method::Delete,
        path: "/api/v1/invitations/{invitation_id}",
        tag: Tag::Users,
        summary: "Revokes an invitation",
        description: "Its link is refused from then on.",
        returns: "It is revoked",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Admin, NoBody, (), InvitationPath>) -> Result<NoContent, Error> {
    let id = call.path.invitation_id.or_not_found(Resource::Invitation)?;
    revoke_invitation(&call.services, &call.actor, id).await?;
    Ok(NoContent)
}
