//! `POST /api/v1/sql-logins`

use labdata_application::{
    Error,
    outward::sql_logins::create_sql_login::{CreateSqlLogin, create_sql_login},
};
use labdata_domain::{outward::sql_logins::MAX_LOGIN_NAME, patterns};
use labdata_request_body::{
    Reader as _,
    fields::{optional, required},
    readers::{datetime, text},
    shape,
};
use serde_json::json;
use time::OffsetDateTime;

use super::NewSqlLoginView;
use crate::{About, Call, JsonBody, Method, Operation, Read, Tag};

shape! {
    /// The SQL login to make.
    #[derive(Clone, Debug)]
    pub struct CreateSqlLoginBody {
        /// Purpose of the login.
        name: String = required(text(1..=MAX_LOGIN_NAME).with("pattern", patterns::ONE_LINE)),
        /// When it ends by itself; never unless given.
        expires_at: Option<OffsetDateTime> = optional(datetime()),
    }
    example json!({"name": "Grafana in the hall", "expires_at": "2030-01-01T00:00:00Z"});
}

pub(super) fn operation() -> Operation {
    About {
        name: "create_sql_login",
        method: Method::Post,
        path: "/api/v1/sql-logins",
        tag: Tag::SqlLogins,
        summary: "Makes a SQL login",
        description: "A role of PostgreSQL for your own tools: it reads the tables that your user may read, raw ones as \
            one row per point, and nothing else. At most 8 connections, 60 s a statement. It ends with its user, at \
            `expires_at`, or when it is revoked. The header `Idempotency-Key` is refused, because the password would \
            have to be stored.",
        returns: "The login, with its password displayed this once",
        refusals: &[(
            400,
            "The server offers no SQL logins, organizations do not share it, or there are too many",
        )],
    }
    .runs(run)
    .secret()
}

async fn run(call: Call<Read, JsonBody<CreateSqlLoginBody>>) -> Result<NewSqlLoginView, Error> {
    let command = CreateSqlLogin {
        name: call.body.name,
        expires_at: call.body.expires_at,
        reached_host: call.base_url.host(),
    };
    let made = create_sql_login(&call.services, &call.actor, command).await?;
    Ok(made.into())
}
