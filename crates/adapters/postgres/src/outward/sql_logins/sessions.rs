//! Ends sessions of SQL logins that outlast their login or a limit.

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Double},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::outward::sql_logins::{
    IDLE_TRANSACTION_LIMIT, STATEMENT_LIMIT, TRANSACTION_LIMIT,
};
use labdata_ports::PortError;
use time::Duration;

use crate::database::errors::port_error;

/// Time that PostgreSQL itself has to end what reaches a limit, more gently, unless the session lifted that limit.
const GRACE: Duration = Duration::seconds(1);

/// Share of the queue of notifications beyond which transactions of logins, which hold it back, are ended: a full
/// queue makes the platform's own commits fail.
const QUEUE_SHARE: f64 = 0.05;

/// Ends sessions. Conditions in turn: the login has ended or is unknown here, as after a restore; a statement, a
/// pause in a transaction, and a transaction that lasts too long; a transaction while the queue of notifications
/// fills; sessions that the platform waits for; the youngest beyond half of all connections.
const END: &str = "\
WITH settings AS ( \
    SELECT current_setting('max_connections')::bigint / 2 AS most, pg_notification_queue_usage() > $4 AS is_full \
), blocking AS ( \
    SELECT unnest(pg_blocking_pids(w.pid)) AS pid FROM pg_catalog.pg_stat_activity w \
    WHERE w.wait_event_type = 'Lock' AND w.datname = current_database() AND w.usename = current_user \
), session AS ( \
    SELECT a.*, l.id IS NULL OR l.ended_at IS NOT NULL AS is_over, \
        row_number() OVER (ORDER BY a.backend_start, a.pid) AS place \
    FROM pg_catalog.pg_stat_activity a LEFT JOIN labdata.sql_login l ON labdata.sql_role(l.id) = a.usename \
    WHERE a.datname = current_database() AND a.usename ~ '^sql_[0-9a-f]{32}$' \
    AND a.backend_type = 'client backend' \
) \
SELECT count(*) FILTER (WHERE pg_terminate_backend(s.pid)) AS ended FROM session s, settings t WHERE \
    s.is_over \
    OR (s.state IN ('active', 'fastpath function call') \
        AND clock_timestamp() - s.query_start > make_interval(secs => $1)) \
    OR (s.state LIKE 'idle in transaction%' AND clock_timestamp() - s.state_change > make_interval(secs => $2)) \
    OR clock_timestamp() - s.xact_start > make_interval(secs => $3) \
    OR (t.is_full AND s.xact_start IS NOT NULL) \
    OR s.pid IN (SELECT pid FROM blocking) \
    OR s.place > t.most";

#[derive(QueryableByName)]
struct Ended {
    #[diesel(sql_type = BigInt)]
    ended: i64,
}

/// Limits of sessions, each with the time that PostgreSQL itself has to end what reaches it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionLimits {
    statement: Duration,
    pause: Duration,
    transaction: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            statement: STATEMENT_LIMIT + GRACE,
            pause: IDLE_TRANSACTION_LIMIT + GRACE,
            transaction: TRANSACTION_LIMIT + GRACE,
        }
    }
}

/// Ends sessions that outlast their login or a limit; returns their number.
pub(super) async fn end_sessions(
    connection: &mut AsyncPgConnection,
    limits: SessionLimits,
) -> Result<u64, PortError> {
    let ended: Ended = diesel::sql_query(END)
        .bind::<Double, _>(limits.statement.as_seconds_f64())
        .bind::<Double, _>(limits.pause.as_seconds_f64())
        .bind::<Double, _>(limits.transaction.as_seconds_f64())
        .bind::<Double, _>(QUEUE_SHARE)
        .get_result(connection)
        .await
        .map_err(port_error)?;
    Ok(u64::try_from(ended.ended).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use labdata_test_database::TestDatabase;
    use tokio_postgres::{Client, NoTls};

    use super::*;
    use crate::{Database, DatabaseSettings, database::pool::Connection};

    /// A role named as a login's, with a row, and a connection of the platform.
    struct Lab {
        own: TestDatabase,
        database: Database,
        role: String,
    }

    impl Lab {
        async fn new() -> Self {
            let own = TestDatabase::new().await;
            let database = Database::new(own.url(), DatabaseSettings::default()).expect("a pool");
            // Roles are of the whole server, which all tests share.
            let id = labdata_port_contracts::given::uuid();
            let role = format!("sql_{}", id.simple());
            let behind = connect(own.url()).await;
            behind
                .batch_execute(&format!(
                    "CREATE ROLE {role} LOGIN; \
                     INSERT INTO labdata.organization (id, name, schema_name, created_at) \
                     VALUES ('{id}', 'o', 'org_{simple}', now()); \
                     INSERT INTO labdata.app_user (id, organization_id, email, email_folded, name, role) \
                     VALUES ('{id}', '{id}', 'a', 'a', 'a', 'member'); \
                     INSERT INTO labdata.sql_login (id, organization_id, user_id, name, created_at) \
                     VALUES ('{id}', '{id}', '{id}', 'n', now()); \
                     GRANT USAGE ON SCHEMA labdata TO {role}; GRANT SELECT ON labdata.organization TO {role}",
                    simple = id.simple(),
                ))
                .await
                .expect("a role");
            Self {
                own,
                database,
                role,
            }
        }

        async fn session(&self) -> Client {
            let (_, host) = self.own.url().split_once('@').expect("a role's name");
            connect(&format!("postgresql://{}@{host}", self.role)).await
        }

        async fn platform(&self) -> Connection {
            self.database.connection().await.expect("a connection")
        }
    }

    async fn connect(url: &str) -> Client {
        let (client, connection) = tokio_postgres::connect(url, NoTls)
            .await
            .expect("a session");
        tokio::spawn(connection);
        client
    }

    const NONE: Duration = Duration::seconds(-1);
    const NEVER: Duration = Duration::hours(1);
    const LIFTED: &str = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0";

    fn limits(statement: Duration, pause: Duration, transaction: Duration) -> SessionLimits {
        SessionLimits {
            statement,
            pause,
            transaction,
        }
    }

    #[tokio::test]
    async fn idle_sessions_within_their_limits_stay() {
        let lab = Lab::new().await;
        let session = lab.session().await;
        session.batch_execute(LIFTED).await.expect("lifted");
        let mut platform = lab.platform().await;
        let ended = end_sessions(&mut platform, limits(NONE, NONE, NONE)).await;
        assert_eq!(ended.expect("looked"), 0);
        session
            .batch_execute("BEGIN; SELECT 1")
            .await
            .expect("a transaction");
        let ended = end_sessions(&mut platform, SessionLimits::default()).await;
        assert_eq!(ended.expect("looked"), 0);
    }

    #[tokio::test]
    async fn limits_that_a_session_lifts_hold_nevertheless() {
        let lab = Lab::new().await;
        let mut platform = lab.platform().await;
        for of in [limits(NEVER, NONE, NEVER), limits(NEVER, NEVER, NONE)] {
            let session = lab.session().await;
            let begin = format!("{LIFTED}; BEGIN; SELECT 1");
            session.batch_execute(&begin).await.expect("a transaction");
            let ended = end_sessions(&mut platform, of).await;
            assert_eq!(ended.expect("looked"), 1, "{of:?}");
            assert!(session.batch_execute("SELECT 1").await.is_err());
        }
        let session = lab.session().await;
        session.batch_execute(LIFTED).await.expect("lifted");
        let endless =
            "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b";
        let sweep = async {
            while end_sessions(&mut platform, limits(NONE, NEVER, NEVER))
                .await
                .expect("looked")
                == 0
            {
                tokio::task::yield_now().await;
            }
        };
        let (outcome, ()) = futures::join!(session.batch_execute(endless), sweep);
        assert!(outcome.is_err());
    }

    #[tokio::test]
    async fn a_session_that_the_platform_waits_for_is_ended() {
        let lab = Lab::new().await;
        let session = lab.session().await;
        let hold = format!("{LIFTED}; BEGIN; SELECT count(*) FROM labdata.organization");
        session.batch_execute(&hold).await.expect("a lock");
        let (mut waiting, mut platform) = (lab.platform().await, lab.platform().await);
        let change = "ALTER TABLE labdata.organization ADD COLUMN more text";
        let sweep = async {
            while end_sessions(&mut platform, SessionLimits::default())
                .await
                .expect("looked")
                == 0
            {
                tokio::task::yield_now().await;
            }
        };
        let change = diesel::sql_query(change);
        let (changed, ()) = futures::join!(change.execute(&mut waiting), sweep);
        changed.expect("changed");
    }
}
