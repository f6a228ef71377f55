//! `GET /api/v1/groups`

use labdata_application::{Error, people::groups::list_groups};

use super::GroupView;
use crate::{About, Call, Listing, Method, NoBody, Operation, PageQuery, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "list_groups",
        method: Method::Get,
        path: "/api/v1/groups",
        tag: Tag::Groups,
        summary: "Lists groups, newest first",
        description: "With their members.",
        returns: "The groups",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, PageQuery>) -> Result<Listing<GroupView>, Error> {
    let page = list_groups(&call.services, &call.actor, call.query.page).await?;
    Ok(page.into())
}
