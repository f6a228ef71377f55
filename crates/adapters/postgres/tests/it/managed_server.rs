//! The suites' clauses about deletes also hold where the platform's role is no superuser, so that
//! PostgreSQL's own checks of references cannot be switched off, and an administrator has revoked PUBLIC's rights.

use std::sync::Arc;

use labdata_port_contracts::{Harness, Subject, async_trait};
use labdata_ports::{
    catalog::CatalogStore,
    data::DataStore,
    executions::ExecutionRepository,
    jobs::JobRepository,
    people::{ApiKeyRepository, tenancy::TenancyRepository},
};
use labdata_postgres::{
    Database, DatabaseSettings, PgApiKeyRepository, PgCatalogStore, PgDataStore,
    PgExecutionRepository, PgJobRepository, PgTenancyRepository,
};
use labdata_test_database::TestDatabase;

use crate::look_behind;

/// A migrated database of another's server, and its URL: the platform owns it and may create
/// roles, no more.
pub(crate) async fn managed_database() -> (String, TestDatabase) {
    let own = TestDatabase::unmigrated().await;
    let all = own.url().to_owned();
    let (server, name) = all.rsplit_once('/').expect("a database's name");
    let platform = format!("platform_of_{name}");
    let behind = look_behind(&all).await;
    behind
        .batch_execute(&format!(
            "CREATE ROLE {platform} LOGIN CREATEROLE; ALTER DATABASE {name} OWNER TO {platform}"
        ))
        .await
        .expect("a role of the platform");
    let (_, host) = server.split_once('@').expect("a role's name");
    let url = format!("postgresql://{platform}@{host}/{name}");
    let database = Database::new(&url, DatabaseSettings::default()).expect("a pool");
    labdata_postgres::migrate(&database)
        .await
        .expect("migrated");
    (url, own)
}

/// Revokes PUBLIC's rights as an administrator of that server does.
pub(crate) async fn revoke_public(own: &str) {
    let script = include_str!("../../../../../docs/deploy/revoke-public.sql");
    // A command of psql.
    let script = script.replace("\\set ON_ERROR_STOP on\n", "");
    let behind = look_behind(own).await;
    behind.batch_execute(&script).await.expect("revoked");
}

struct Managed {
    database: Database,
    // Dropped after the pool, whose connections it would cut off.
    _own: TestDatabase,
}

#[async_trait]
impl Harness for Managed {
    async fn fresh() -> Self {
        let (url, own) = managed_database().await;
        revoke_public(own.url()).await;
        let settings = DatabaseSettings {
            max_connections: 8,
            ..DatabaseSettings::default()
        };
        Self {
            database: Database::new(&url, settings).expect("a pool"),
            _own: own,
        }
    }
}

macro_rules! subjects {
    ($($port:ident => $repository:ident),+ $(,)?) => {
        $(
            impl Subject<dyn $port> for Managed {
                fn subject(&self) -> Arc<dyn $port> {
                    Arc::new($repository::new(self.database.clone()))
                }
            }
        )+
    };
}

subjects! {
    TenancyRepository => PgTenancyRepository,
    ApiKeyRepository => PgApiKeyRepository,
    JobRepository => PgJobRepository,
    ExecutionRepository => PgExecutionRepository,
    CatalogStore => PgCatalogStore,
}

impl Subject<dyn DataStore> for Managed {
    fn subject(&self) -> Arc<dyn DataStore> {
        let catalog = Arc::new(PgCatalogStore::new(self.database.clone()));
        Arc::new(PgDataStore::new(self.database.clone(), catalog))
    }
}

labdata_port_contracts::data_delete!(Managed);
labdata_port_contracts::data_revert!(Managed);
