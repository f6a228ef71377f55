//! Two organizations with tables, rows and a runner of queries, on any server.

use std::time::Duration;

use labdata_domain::{
    data::query::{QueryFailure, QueryLimits, QueryText},
    ids::OrganizationId,
    scalar::DataType::{Boolean, Date, Datetime, Float, Integer, Json, Text, Uuid},
};
use labdata_port_contracts::{
    catalog::definitions,
    given::{self, at},
};
use labdata_ports::{
    catalog::CatalogStore,
    data::query::{Query, QueryError, QueryResult, QueryRunner},
    people::tenancy::TenancyRepository,
};
use labdata_postgres::{
    Database, DatabaseSettings, PgCatalogStore, PgQueryRunner, PgTenancyRepository,
};
use labdata_test_database::TestDatabase;
use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::{look_behind, managed_server::managed_database};

/// Fixture of query tests.
pub(crate) struct QueryLab {
    pub(crate) runner: PgQueryRunner,
    pub(crate) ours: OrganizationId,
    pub(crate) theirs: OrganizationId,
    /// Past the adapter, as a superuser.
    pub(crate) behind: Client,
    /// The server and the database, as the end of a URL.
    pub(crate) role_host: String,
    pub(crate) database: Database,
    // Dropped last: it closes all remaining connections.
    _own: Option<TestDatabase>,
}

/// The limits of tests that do not reach them.
pub(crate) const LIMITS: QueryLimits = QueryLimits {
    time: Duration::from_secs(15),
    rows: 10_000,
    bytes: 16 << 20,
};

pub(crate) fn schema(organization: OrganizationId) -> String {
    format!("org_{}", organization.as_uuid().simple())
}

impl QueryLab {
    /// On a database of the test's own.
    pub(crate) async fn new() -> Self {
        let own = TestDatabase::new().await;
        let url = own.url().to_owned();
        Self::at(&url, &url, Some(own)).await
    }

    /// On a database of another's server.
    pub(crate) async fn managed() -> Self {
        let (url, own) = managed_database().await;
        let all = own.url().to_owned();
        Self::at(&url, &all, Some(own)).await
    }

    /// On that database, which has been migrated; `behind` it as a superuser.
    pub(crate) async fn at(url: &str, behind: &str, own: Option<TestDatabase>) -> Self {
        let settings = DatabaseSettings {
            max_connections: 4,
            ..DatabaseSettings::default()
        };
        let database = Database::new(url, settings).expect("a pool");
        let tenancy = PgTenancyRepository::new(database.clone());
        let organization = async |name| {
            let organization = tenancy
                .ensure_organization(&given::organization(name))
                .await;
            organization.expect("an organization").id
        };
        let (ours, theirs) = (organization("ours").await, organization("theirs").await);
        let role_host = behind.split_once('@').expect("a role's name").1.to_owned();
        let behind = look_behind(behind).await;
        let runner = PgQueryRunner::new(database.clone(), &[7; 32]);
        let lab = Self {
            runner,
            ours,
            theirs,
            behind,
            role_host,
            database,
            _own: own,
        };
        lab.fill().await;
        lab
    }

    async fn fill(&self) {
        let catalog = PgCatalogStore::new(self.database.clone());
        let every_type = definitions::curated(
            "every_type",
            vec![
                definitions::column("a_text", Text),
                definitions::column("an_integer", Integer),
                definitions::column("a_float", Float),
                definitions::column("a_boolean", Boolean),
                definitions::column("a_datetime", Datetime),
                definitions::column("a_date", Date),
                definitions::column("a_uuid", Uuid),
                definitions::column("a_json", Json),
            ],
        );
        let secret = definitions::curated("secret", vec![definitions::column("words", Text)]);
        for (organization, name) in [(self.ours, "ours"), (self.theirs, "theirs")] {
            for definition in [
                definitions::sample(),
                definitions::measurement(),
                definitions::curve(),
            ] {
                catalog
                    .define(organization, &definition, at(0))
                    .await
                    .expect("a table");
            }
            let schema = schema(organization);
            self.run_behind(&format!(
                "INSERT INTO {schema}.sample (id, name, volume) \
                 SELECT '{name}-' || n, '{name} ' || n, n / 2.0 FROM generate_series(1, 3) n; \
                 INSERT INTO {schema}_chunks.curve (sample_id, _points, _start, time, od) \
                 VALUES ('{name}-1', 3, 0, '{{0, 0.5, 1}}', '{{0.1, 0.2, NULL}}'); \
                 INSERT INTO labdata.instrument (id, organization_id, name, created_at) \
                 VALUES (gen_random_uuid(), '{organization}', 'reader of {name}', now())"
            ))
            .await;
        }
        catalog
            .define(self.ours, &every_type, at(0))
            .await
            .expect("a table");
        catalog
            .define(self.theirs, &secret, at(0))
            .await
            .expect("a table");
        let theirs = schema(self.theirs);
        self.run_behind(&format!(
            "INSERT INTO {theirs}.secret (id, words) VALUES ('x', 'hush')"
        ))
        .await;
    }

    pub(crate) async fn run_behind(&self, statements: &str) {
        self.behind
            .batch_execute(statements)
            .await
            .expect(statements);
    }

    /// Runs a query of ours.
    pub(crate) async fn run(&self, sql: &str, params: Value) -> Result<QueryResult, QueryError> {
        self.run_within(sql, params, LIMITS).await
    }

    pub(crate) async fn run_within(
        &self,
        sql: &str,
        params: Value,
        limits: QueryLimits,
    ) -> Result<QueryResult, QueryError> {
        let text = QueryText::parse(sql).map_err(QueryFailure::from)?;
        let Value::Array(params) = params else {
            panic!("{params} is no list")
        };
        self.runner
            .run(
                self.ours,
                &Query {
                    text,
                    params,
                    limits,
                    view: None,
                },
            )
            .await
    }

    /// Columns and rows of a query that succeeds.
    pub(crate) async fn ask(&self, sql: &str, params: Value) -> (Vec<String>, Value) {
        let result = self
            .run(sql, params)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        let rows: Vec<Value> = result
            .rows
            .iter()
            .map(|row| serde_json::from_str(row).expect(row))
            .collect();
        (result.columns, Value::Array(rows))
    }

    /// The rows of a query that succeeds.
    pub(crate) async fn rows(&self, sql: &str) -> Value {
        self.ask(sql, json!([])).await.1
    }

    /// Why a query is refused, as it must be.
    pub(crate) async fn refusal(&self, sql: &str) -> String {
        match self.run(sql, json!([])).await {
            Err(QueryError::Refused(failure)) => failure.to_string(),
            other => panic!("{sql}: {other:?}"),
        }
    }

    /// A connection as the role of our queries, past every layer but its rights.
    pub(crate) async fn as_role(&self) -> Client {
        self.rows("select 1").await;
        look_behind(&format!(
            "postgresql://{}_reader@{}",
            schema(self.ours),
            self.role_host
        ))
        .await
    }

    /// The same lab after a restart of the platform.
    pub(crate) fn restarted(self) -> Self {
        let runner = PgQueryRunner::new(self.database.clone(), &[7; 32]);
        Self { runner, ..self }
    }

    /// Counts the server's connections of queries, and of a test as the role.
    pub(crate) async fn connections(&self) -> i64 {
        let query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                     AND (application_name = 'labdata query' \
                         OR usename = $1 AND application_name <> 'labdata spare')";
        let role = format!("{}_reader", schema(self.ours));
        self.behind
            .query_one(query, &[&role])
            .await
            .expect("a count")
            .get(0)
    }

    /// The process of the connection that waits for our next query, as soon as there is one.
    pub(crate) async fn spare(&self) -> i32 {
        for _ in 0..200 {
            let spares = self.spares().await;
            if let [spare] = spares.as_slice() {
                return *spare;
            }
            assert!(spares.is_empty(), "several spares: {spares:?}");
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("no connection waits for a query");
    }

    /// The processes of connections that wait for a query.
    pub(crate) async fn spares(&self) -> Vec<i32> {
        let query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'labdata spare' \
                     AND datname = current_database() AND state = 'idle'";
        let rows = self.behind.query(query, &[]).await.expect("processes");
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Returns true if the server still has a connection.
    pub(crate) async fn has_process(&self, process: i32) -> bool {
        let query = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)";
        let found = self.behind.query_one(query, &[&process]).await;
        found.expect("an answer").get(0)
    }

    /// Waits until no query is left on the server.
    pub(crate) async fn settle(&self) {
        for _ in 0..200 {
            if self.connections().await == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("queries are left on the server");
    }
}
