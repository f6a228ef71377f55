//! `GET /api/v1/invitations`

use labdata_application::{Error, people::invitations::list_invitations};

use super::InvitationView;
use crate::{About, Admin, Call, Listing, Method, NoBody, Operation, PageQuery, Tag};

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

async fn run(call: Call<Admin, NoBody, PageQuery>) -> Result<Listing<InvitationView>, Error> {
    let page = list_invitations(&call.services, &call.actor, call.query.page).await?;
    Ok(page.into())
}
