//! `DELETE /api/v1/sql-logins/{login_id}`

use labdata_application::{Error, outward::sql_logins::revoke_sql_login::revoke_sql_login};
use labdata_domain::refusal::Resource;

use super::SqlLoginPath;
use crate::{About, Call, Method, NoBody, NoContent, Operation, OrNotFound, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "revoke_sql_login",
        method: Method::Delete,
        path: "/api/v1/sql-logins/{login_id}",
        tag: Tag::SqlLogins,
        summary: "Revokes a SQL login",
        description: "One of your own; administrators revoke any of the organization. Its sessions end at once. An ended \
            login leaves the list.",
        returns: "It is revoked",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, (), SqlLoginPath>) -> Result<NoContent, Error> {
    let id = call.path.login_id.or_not_found(Resource::SqlLogin)?;
    revoke_sql_login(&call.services, &call.actor, id).await?;
    Ok(NoContent)
}
