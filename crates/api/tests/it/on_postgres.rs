//! A server whose rows are in a PostgreSQL database of the test's own.

use std::sync::Arc;

use labdata_application::{Services, agent::Agent};
use labdata_memory::FixedClock;
use labdata_ports::Clock;
use labdata_postgres::{
    Database, DatabaseSettings, PgAgentRunRepository, PgChatRepository, PgQueryRunner, PgStore,
};
use labdata_test_database::TestDatabase;
use serde_json::{Value, json};

use crate::server::{Client, Reply, TestServer, agent_without_model, in_memory};

/// The path of a data write.
pub(crate) const WRITE: &str = "/api/v1/data/write";

/// A running server, a client with every scope, and what is behind them.
pub(crate) struct OnPostgres {
    pub(crate) client: Client,
    pub(crate) server: TestServer,
    // Dropped after the server, whose connections it would cut off.
    own: TestDatabase,
}

impl OnPostgres {
    /// A server on an empty database, used in that way.
    pub(crate) async fn empty(settings: DatabaseSettings) -> Self {
        Self::with_ports(settings, |services| services).await
    }

    /// The same, with ports that the test changes.
    pub(crate) async fn with_ports(
        settings: DatabaseSettings,
        change: impl FnOnce(Services) -> Services,
    ) -> Self {
        Self::start(settings, change, |agent, _| agent).await
    }

    /// A server on an empty database, with an agent that the test changes.
    pub(crate) async fn with_agent(change: impl FnOnce(Agent, &Services) -> Agent) -> Self {
        Self::start(DatabaseSettings::default(), |services| services, change).await
    }

    /// A server on an empty database, with ports and an agent that the test changes.
    pub(crate) async fn start(
        settings: DatabaseSettings,
        change: impl FnOnce(Services) -> Services,
        change_agent: impl FnOnce(Agent, &Services) -> Agent,
    ) -> Self {
        let own = TestDatabase::new().await;
        let database = Database::new(own.url(), settings).unwrap();
        let store = PgStore::new(database.clone(), database.clone());
        let clock = Arc::new(FixedClock::default());
        let displayed: Arc<dyn Clock> = clock.clone();
        let mut services = in_memory(displayed);
        services.repositories = store.repositories();
        services.idempotency = Arc::new(store.idempotency());
        services.queries = Arc::new(PgQueryRunner::new(database.clone(), &[1; 32]));
        let services = change(services);
        let agent = Agent {
            chats: Arc::new(PgChatRepository::new(database.clone())),
            runs: Arc::new(PgAgentRunRepository::new(database)),
            ..agent_without_model(&services)
        };
        let agent = change_agent(agent, &services);
        let server = TestServer::start_with(services, agent, clock).await;
        let client = server.admin().await;
        Self {
            client,
            server,
            own,
        }
    }

    /// A server with `sample`, `measurement` (of a sample), and the series `curve` of samples.
    pub(crate) async fn with_tables(settings: DatabaseSettings) -> Self {
        let started = Self::empty(settings).await;
        started
            .define(
                "sample",
                json!({ "semantic_category": "curated", "columns": [
                { "name": "name", "data_type": "string", "is_nullable": false, "is_unique": true },
                { "name": "volume", "data_type": "float" },
                { "name": "note", "data_type": "text" },
                { "name": "parent", "data_type": "string", "references": "sample" },
            ] }),
            )
            .await;
        started
            .define(
                "measurement",
                json!({ "semantic_category": "curated", "columns": [
                    { "name": "sample", "data_type": "string", "references": "sample" },
                    { "name": "value", "data_type": "float" },
                ] }),
            )
            .await;
        started
            .define(
                "curve",
                json!({ "semantic_category": "raw", "columns": [
                { "name": "sample", "data_type": "string", "references": "sample" },
                { "name": "order", "data_type": "integer", "is_nullable": false },
                { "name": "od", "data_type": "float" },
            ] }),
            )
            .await;
        started
    }

    /// Defines a table.
    pub(crate) async fn define(&self, name: &str, definition: Value) {
        let path = format!("/api/v1/tables/{name}");
        let request = self.client.request(reqwest::Method::PUT, &path);
        let reply = crate::server::send(request.json(&definition)).await;
        reply.json(200);
    }

    /// A connection past the platform.
    pub(crate) async fn behind(&self) -> tokio_postgres::Client {
        let connected = tokio_postgres::connect(self.own.url(), tokio_postgres::NoTls).await;
        let (client, connection) = connected.unwrap();
        tokio::spawn(connection);
        client
    }

    /// The database's URL.
    pub(crate) fn url(&self) -> &str {
        self.own.url()
    }

    /// Waits until a statement of the platform waits for a lock.
    pub(crate) async fn until_a_statement_waits(&self) {
        let behind = self.behind().await;
        while waiting_statements(&behind).await == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    /// Writes.
    pub(crate) async fn write(&self, body: Value) -> Reply {
        self.client.post(WRITE, &body).await
    }

    /// Writes rows of one table in the plainest way, which succeeds.
    pub(crate) async fn insert(&self, table: &str, rows: Value) -> Value {
        self.write(json!({ "tables": [{ "table": table, "rows": rows }] }))
            .await
            .json(200)
    }

    /// The rows of a table that meet the filters.
    pub(crate) async fn rows(&self, table: &str, filters: Value) -> Vec<Value> {
        let body = json!({ "target_name": table, "target_type": "table", "filters": filters,
            "mode": "multiple", "limit": 1000 });
        let reply = self.client.post("/api/v1/tools/read", &body).await;
        reply.json(200).as_array().unwrap().clone()
    }

    /// One column of all rows of a table, in the order of their texts.
    pub(crate) async fn column(&self, table: &str, column: &str) -> Vec<Value> {
        let rows = self.rows(table, json!({})).await;
        let mut values: Vec<Value> = rows.iter().map(|row| row[column].clone()).collect();
        values.sort_by_key(ToString::to_string);
        values
    }

    /// Reverts the execution of a write.
    pub(crate) async fn revert(&self, written: &Value) -> Value {
        let execution = written["job_execution_id"].as_str().unwrap();
        let path = format!("/api/v1/job-executions/{execution}/revert");
        let request = self.client.request(reqwest::Method::POST, &path);
        crate::server::send(request).await.json(200)
    }

    /// A connection past the server, to look behind it.
    pub(crate) async fn look_behind(&self) -> tokio_postgres::Client {
        let (client, connection) = tokio_postgres::connect(self.own.url(), tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        client
    }
}

/// The paths of a refused write's problems; null stands for the whole request.
#[track_caller]
pub(crate) fn paths(reply: &Reply) -> Vec<Value> {
    let errors = &reply.json(400)["errors"];
    let errors = errors.as_array().unwrap_or_else(|| panic!("{errors}"));
    errors.iter().map(|error| error["path"].clone()).collect()
}

/// The number of the platform's statements in this database that wait for a lock.
pub(crate) async fn waiting_statements(behind: &tokio_postgres::Client) -> i64 {
    let query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
         AND application_name LIKE 'labdata%' AND wait_event_type = 'Lock'";
    // Within a transaction the view would show the same over and over.
    behind
        .batch_execute("SELECT pg_stat_clear_snapshot()")
        .await
        .unwrap();
    behind.query_one(query, &[]).await.unwrap().get(0)
}
