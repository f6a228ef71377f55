//! `GET /api/v1/sql-logins/{login_id}`

use labdata_application::{Error, outward::sql_logins::get_sql_login::get_sql_login};
use labdata_domain::refusal::Resource;

use super::{SqlLoginPath, SqlLoginView};
use crate::{About, Call, Method, NoBody, Operation, OrNotFound, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "get_sql_login",
        method: Method::Get,
        path: "/api/v1/sql-logins/{login_id}",
        tag: Tag::SqlLogins,
        summary: "Reads a SQL login",
        description: "One of your own; administrators read all of the organization.",
        returns: "The login, without its password",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, (), SqlLoginPath>) -> Result<SqlLoginView, Error> {
    let id = call.path.login_id.or_not_found(Resource::SqlLogin)?;
    let login = get_sql_login(&call.services, &call.actor, id).await?;
    Ok(login.into())
}
