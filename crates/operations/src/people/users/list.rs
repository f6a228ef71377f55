//! `GET /api/v1/users`

use labdata_application::{Error, people::list_users::list_users};

use super::UserView;
use crate::{About, Call, Listing, Method, NoBody, Operation, PageQuery, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "list_users",
        method: Method::Get,
        path: "/api/v1/users",
        tag: Tag::Users,
        summary: "Lists users, newest first",
        description: "Disabled ones too.",
        returns: "The users",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, PageQuery>) -> Result<Listing<UserView>, Error> {
    let page = list_users(&call.services, &call.actor, call.query.page).await?;
    Ok(page.into())
}
