//! `GET /api/v1/groups`

use labdata_application::{Error, people::groups::list_groups};

use super::GroupView;
use crate::{About, Call, Method, NoBody, Operation, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "list_groups",
        method: Method::Get,
        path: "/api/v1/groups",
        tag: Tag::Groups,
        summary: "Lists groups, by their names",
        description: "With their members.",
        returns: "The groups",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody>) -> Result<Vec<GroupView>, Error> {
    let groups = list_groups(&call.services, &call.actor).await?;
    Ok(groups.into_iter().map(GroupView::from).collect())
}
