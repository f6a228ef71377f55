//! `GET /api/v1/sql-logins`

use labdata_application::{Error, outward::sql_logins::list_sql_logins::list_sql_logins};

use super::SqlLoginView;
use crate::{About, Call, Listing, Method, NoBody, Operation, PageQuery, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "list_sql_logins",
        method: Method::Get,
        path: "/api/v1/sql-logins",
        tag: Tag::SqlLogins,
        summary: "Lists SQL logins, newest first",
        description: "Your own; administrators see all of the organization. Ended ones are listed until they are \
            revoked. By pages of `limit`; the header `Link` names the next page.",
        returns: "The logins, without their passwords",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, PageQuery>) -> Result<Listing<SqlLoginView>, Error> {
    let page = list_sql_logins(&call.services, &call.actor, call.query.page).await?;
    Ok(page.into())
}
