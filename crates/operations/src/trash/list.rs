//! `GET /api/v1/trash`

use labdata_application::{Error, trash::list_trash::list_trash};

use super::TrashEntryView;
use crate::{About, Call, Listing, Method, NoBody, Operation, PageQuery, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "list_trash",
        method: Method::Get,
        path: "/api/v1/trash",
        tag: Tag::Trash,
        summary: "Lists what was deleted and can be restored, newest first",
        description: "Files, tables and columns, for `LABDATA_TRASH_DAYS`. By pages of `limit`; the header \
            `Link` names the next page.",
        returns: "The entries",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, PageQuery>) -> Result<Listing<TrashEntryView>, Error> {
    let page = list_trash(&call.services, &call.actor, call.query.page).await?;
    Ok(page.into())
}
