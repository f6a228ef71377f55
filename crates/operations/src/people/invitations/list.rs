//! `GET /api/v1/invitations`

use labdata_application::{Error, people::invitations::list_invitations};

use super::InvitationView;
use crate::{About, Admin, Call, Method, NoBody, Operation, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "list_invitations",
        method: Method::Get,
        path: "/api/v1/invitations",
        tag: Tag::Users,
        summary: "Lists invitations, newest first",
        description: "Those that nobody has accepted yet. An expired one is removed some time after.",
        returns: "The invitations",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Admin, NoBody>) -> Result<Vec<InvitationView>, Error> {
    let invitations = list_invitations(&call.services, &call.actor).await?;
    Ok(invitations.into_iter().map(InvitationView::from).collect())
}
