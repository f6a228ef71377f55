//! `GET /api/v1/session`

use labdata_application::{Error, people::identify::identify};

use crate::people::me::MeView;

use crate::{About, AnyScope, Call, Method, NoBody, Operation, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "get_session",
        method: Method::Get,
        path: "/api/v1/session",
        tag: Tag::Session,
        summary: "Shows who is signed in",
        description: "As `GET /me`: 401 without a session.",
        returns: "Organization, user and key of the caller",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<AnyScope, NoBody>) -> Result<MeView, Error> {
    let identity = identify(&call.services, &call.platform.agent, &call.actor).await?;
    Ok(identity.into())
}
