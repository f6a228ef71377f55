//! A separate, migrated database for each test. Only tests may use this crate.
//!
//! The first test of a test binary starts a throwaway server and migrates a template; every test
//! gets a copy of that template, which takes some milliseconds. A copy is dropped with its
//! [`TestDatabase`], the server ends with the process.
//!
//! ```no_run
//! # async fn example() {
//! let database = labdata_test_database::TestDatabase::new().await;
//! let url: &str = database.url();
//! # }
//! ```
#![expect(
    clippy::expect_used,
    reason = "without its database a test can only fail, and panicking says so"
)]

mod janitor;

use std::sync::atomic::{AtomicU32, Ordering};

use labdata_embedded_postgres::throwaway::ThrowawayServer;
use labdata_postgres::{Database, DatabaseSettings, FileSearch};
use tokio::sync::OnceCell;
use tokio_postgres::NoTls;

use crate::janitor::Janitor;

/// Database for statements about other databases.
const MAINTENANCE: &str = "postgres";
/// The migrated database that is copied for each test.
const TEMPLATE: &str = "labdata_template";

/// The server that all tests of a binary share.
struct Server {
    throwaway: ThrowawayServer,
    janitor: Janitor,
    /// Clause that makes the server copy databases as files; empty if it is too old for it. Copying
    /// through the write-ahead log takes several times as long.
    copying: &'static str,
    made: AtomicU32,
}

/// Never dropped, as statics are not; the server ends with the process.
static SERVER: OnceCell<Server> = OnceCell::const_new();

impl Server {
    async fn start() -> Self {
        let throwaway = ThrowawayServer::start()
            .await
            .expect("a PostgreSQL server for tests");
        let maintenance = throwaway.url(MAINTENANCE);
        let version = query_one(&maintenance, "SELECT current_setting('server_version_num')").await;
        execute(&maintenance, &format!("CREATE DATABASE {TEMPLATE}")).await;
        let template = Database::new(&throwaway.url(TEMPLATE), DatabaseSettings::default())
            .expect("a pool for the template");
        labdata_postgres::migrate(&template)
            .await
            .expect("the template migrated");
        let search = labdata_postgres::prepare_file_search(&template).await;
        assert_eq!(search.expect("an answer"), FileSearch::Indexed);
        drop(template);
        execute(
            &maintenance,
            &format!("ALTER DATABASE {TEMPLATE} WITH ALLOW_CONNECTIONS false"),
        )
        .await;
        let chooses = version
            .parse::<u32>()
            .is_ok_and(|version| version >= 150_000);
        Self {
            janitor: Janitor::start(maintenance),
            throwaway,
            copying: if chooses { " STRATEGY file_copy" } else { "" },
            made: AtomicU32::new(0),
        }
    }
}

/// A database that belongs to one test.
#[derive(Debug)]
pub struct TestDatabase {
    name: String,
    url: String,
}

impl TestDatabase {
    /// Creates a migrated, empty database.
    pub async fn new() -> Self {
        Self::copy_of(TEMPLATE).await
    }

    /// Creates a database without migrations.
    pub async fn unmigrated() -> Self {
        Self::copy_of("template0").await
    }

    async fn copy_of(template: &str) -> Self {
        let server = SERVER.get_or_init(Server::start).await;
        let name = format!("test_{}", server.made.fetch_add(1, Ordering::Relaxed));
        let statement = format!(
            "CREATE DATABASE {name} TEMPLATE {template}{}",
            server.copying
        );
        execute(&server.throwaway.url(MAINTENANCE), &statement).await;
        let url = server.throwaway.url(&name);
        Self { name, url }
    }

    /// Connection URL, as in `DATABASE_URL`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if let Some(server) = SERVER.get() {
            server.janitor.remove(&self.name);
        }
    }
}

/// Runs statements over a separate connection: the runtime of a test ends with the test.
async fn execute(url: &str, statements: &str) {
    let client = connect(url).await;
    client.batch_execute(statements).await.expect(statements);
}

async fn query_one(url: &str, query: &str) -> String {
    connect(url)
        .await
        .query_one(query, &[])
        .await
        .expect(query)
        .get(0)
}

async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .expect("a connection to the server for tests");
    tokio::spawn(connection);
    client
}
