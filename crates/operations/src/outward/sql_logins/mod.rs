//! `/api/v1/sql-logins`

use labdata_domain::{
    ids::{SqlLoginId, UserId},
    outward::sql_logins::{ConnectionExamples, EndReason, SqlConnection, SqlLogin, SqlLoginState},
};
use labdata_request_body::{
    Timestamp,
    fields::required,
    names, output,
    readers::{MaybeId, id},
    shape,
};
use serde_json::json;

use crate::Operation;

pub mod create;
pub mod delete;
pub mod get;
pub mod list;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        create::operation(),
        list::operation(),
        get::operation(),
        delete::operation(),
    ]
}

shape! {
    /// The path of a SQL login.
    #[derive(Clone, Copy, Debug)]
    pub struct SqlLoginPath {
        /// The login's id
        login_id: MaybeId<SqlLoginId> = required(id()),
    }
}

names! {
    /// Why a SQL login has ended: its time passed, its user was disabled, organizations do not share the server, or
    /// its role is missing, as after a restore.
    pub SqlLoginEndReason = EndReason::ALL.map(EndReason::as_str);
}

output! {
    /// A SQL login, without its password.
    #[derive(Clone, Debug)]
    pub struct SqlLoginView as "SqlLogin" from login: SqlLogin {
        /// Its id.
        id: SqlLoginId = login.id,
        /// Purpose of the login.
        #[example = "Grafana in the hall"]
        name: String = login.name.clone(),
        /// Name of its role in PostgreSQL.
        #[example = "sql_01930a7c8f5b7c3e9d2f4a6b8c0d1e2f"]
        user: String = login.role(),
        /// The user whose rights it has.
        user_id: UserId = login.user,
        created_at: Timestamp = login.created_at.into(),
        /// When it ends by itself; null for never.
        expires_at: Option<Timestamp> = login.expires_at.map(Into::into),
        /// When it ended; null while it may connect.
        ended_at: Option<Timestamp> = ended(login.state).map(|(at, _)| at.into()),
        /// Why it ended; null while it may connect.
        end_reason: Option<SqlLoginEndReason> = ended(login.state).map(|(_, reason)| reason.as_str().into()),
    }
}

output! {
    /// Lines to paste into tools. Each holds the password.
    #[derive(Clone)]
    pub struct SqlExamplesView as "SqlExamples" from examples: ConnectionExamples {
        /// A shell.
        psql: String = examples.psql,
        /// R with DBI.
        r: String = examples.r,
        /// MATLAB's Database Toolbox.
        matlab: String = examples.matlab,
        /// DuckDB.
        duckdb: String = examples.duckdb,
        /// The form of Grafana's data source.
        grafana: String = examples.grafana,
    }
}

output! {
    /// A new SQL login: all that a tool needs to connect.
    #[derive(Clone)]
    pub struct NewSqlLoginView as "NewSqlLogin" from connection: (SqlLogin, SqlConnection) {
        /// Its id.
        id: SqlLoginId = connection.0.id,
        /// Purpose of the login.
        #[example = "Grafana in the hall"]
        name: String = connection.0.name.clone(),
        /// When it ends by itself; null for never.
        expires_at: Option<Timestamp> = connection.0.expires_at.map(Into::into),
        /// Host name or address.
        #[example = "lab.example.org"]
        host: String = connection.1.host.clone(),
        /// Port.
        #[example = json!(5433)]
        port: u32 = u32::from(connection.1.port),
        /// Name of the database.
        #[example = "labdata"]
        database: String = connection.1.database.clone(),
        /// Name of the role.
        #[example = "sql_01930a7c8f5b7c3e9d2f4a6b8c0d1e2f"]
        user: String = connection.1.user.clone(),
        /// The password. It is displayed this once and stored nowhere.
        #[example = "…"]
        password: String = connection.1.password.reveal().to_owned(),
        /// URL that psql, psycopg, ADBC and SQLAlchemy read. It holds the password.
        #[example = "postgresql://sql_…:…@lab.example.org:5433/labdata?sslmode=require"]
        dsn: String = connection.1.dsn(),
        /// Lines to paste into tools.
        examples: SqlExamplesView = connection.1.examples().into(),
    }
}

fn ended(state: SqlLoginState) -> Option<(time::OffsetDateTime, EndReason)> {
    match state {
        SqlLoginState::Active => None,
        SqlLoginState::Ended { at, reason } => Some((at, reason)),
    }
}
