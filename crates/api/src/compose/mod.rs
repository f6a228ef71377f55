//! The composition root: the only module that names adapters.

mod agent;
mod backends;
mod existing_database;
mod file_readers;
mod identity_provider;
mod predictors;
mod snippets;
mod sql;
mod upload_origin;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use labdata_application::{
    Services, maintenance::ensure_secret::ensure_secret, outward::sql_logins::SqlAccess,
};
use labdata_disk_reserve::LocalDiskReserve;
use labdata_domain::{jobs::TriggeredVersion, notifications::Caps};
use labdata_embedded_postgres::{
    DiskReserve as ReserveFile, Durability, EmbeddedPostgres, Settings as PostgresSettings,
};
use labdata_mail::SmtpMailer;
use labdata_object_store::{DirectSigner, GatewaySigner, Storage, UploadMode, Variable};
use labdata_ports::{
    Clock, IdSource, Ports,
    files::blob::{BlobStore, UrlSigner},
    maintenance::{DependencyChecks, StoreHealth},
    notifications::mailer::Mailer,
};
use labdata_postgres::{
    Database, DatabaseSettings, DatabaseState, FileSearch, PgQueryRunner, PgSqlLoginRepository,
    PgStore, PgTenancyRepository, check_database_url, inspect, migrate, prepare_file_search,
};
pub(crate) use labdata_postgres_relay::Relay;
use labdata_ray_runner::{check_address, check_authorities};

use crate::{
    data_dir,
    private_files::{OTHERS, WORLD_CONTENTS, adopt, create},
    settings::{NotificationSettings, Settings},
    system::{SystemClock, SystemIds},
};

/// Number of connections for authentication.
const AUTHENTICATION_CONNECTIONS: usize = 4;

/// Time that an external database is waited for at start (contract §1).
const DATABASE_PATIENCE: Duration = Duration::from_secs(30);

/// Name of the secret that signs URLs.
const URL_SIGNING: &str = "url-signing";

/// Name of the secret from which passwords of query roles are derived.
const QUERY_ROLES: &str = "query-roles";

pub use agent::check_model_key;
pub(crate) use agent::language_model;
pub use backends::table_reader;
pub use backends::{backend_policy, worker_settings};
pub(crate) use backends::{ray_runner, sandbox_settings, this_program};
pub(crate) use existing_database::{
    DatabaseSnapshot, ExistingDatabase, NeededObject, knows_migration,
};
pub use file_readers::file_reader;
pub use identity_provider::{check_identity_provider, check_issuer};
pub(crate) use labdata_file_readers::is_prepared as has_file_readers;
pub(crate) use labdata_object_store::{LocalBlobStore, Location};
pub use labdata_sandbox::supervise;
pub use labdata_table_reader::read_table;
pub use predictors::predictor;
pub use snippets::{python, remove_leftovers};
pub(crate) use upload_origin::upload_origin;

/// Checks a storage URL; with `direct`, also that clients can upload directly to it.
///
/// # Errors
/// The reason, in one line.
pub fn check_storage_url(url: &str, direct: bool) -> Result<(), String> {
    match url.parse::<Location>() {
        Ok(Location::Local(_)) if direct => {
            Err("`direct` is for storage in a cloud: s3://, gs:// or az://".to_owned())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Opens the storage at a location; `copies` is a directory for uploads on their way to a cloud.
pub(crate) async fn open_storage(location: &Location, copies: PathBuf) -> anyhow::Result<Storage> {
    Ok(labdata_object_store::open(location, &environment(), copies).await?)
}

/// Connects to the database and returns its version and migrations.
///
/// # Errors
/// The reason, in one line, without the password.
pub(crate) async fn database_state(url: &str, within: Duration) -> Result<DatabaseState, String> {
    let database = Database::new(url, DatabaseSettings::default());
    let database = database.map_err(|error| error.to_string())?;
    database.wait_until_reachable(within).await?;
    inspect(&database).await.map_err(|error| error.to_string())
}

/// Creates the mailer of that server and sender.
///
/// # Errors
/// The reason, in one line, without the password.
pub(crate) fn smtp_mailer(server: &str, sender: &str) -> Result<SmtpMailer, String> {
    SmtpMailer::new(server, sender).map_err(|error| error.to_string())
}

/// Checks the database's URL.
///
/// # Errors
/// The reason, in one line, without the password.
pub fn check_database(url: &str) -> Result<(), String> {
    check_database_url(url).map_err(|error| error.to_string())
}

/// Checks the address of a Ray cluster's job API.
///
/// # Errors
/// The reason, in one line.
pub fn check_cluster_url(url: &str) -> Result<(), String> {
    check_address(url).map_err(|error| error.to_string())
}

/// Checks the file of certificate authorities of a Ray cluster.
///
/// # Errors
/// The reason, in one line.
pub fn check_cluster_authorities(path: &str) -> Result<(), String> {
    check_authorities(Path::new(path)).map_err(|error| error.to_string())
}

/// Checks the mail server's URL.
///
/// # Errors
/// The reason, in one line, without the password.
pub fn check_mail_server(url: &str) -> Result<(), String> {
    // The server is checked apart from the sender, so any valid address will do.
    smtp_mailer(url, "lab@example.org").map(drop)
}

/// Checks the sender's e-mail address.
///
/// # Errors
/// The reason, in one line.
pub fn check_sender(address: &str) -> Result<(), String> {
    // Any server will do, since none is contacted before an e-mail is sent.
    smtp_mailer("smtp://localhost", address).map(drop)
}

/// Creates the signer of the storage's URLs, which also decides who receives uploads.
fn signer(
    settings: &Settings,
    location: &Location,
    storage: &Storage,
    gateway: GatewaySigner,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<Arc<dyn UrlSigner>> {
    let mode = match settings.direct_uploads {
        Some(true) => UploadMode::Direct,
        Some(false) => UploadMode::Gateway,
        None => location.default_mode(),
    };
    Ok(match (mode, &storage.bucket) {
        (UploadMode::Direct, Some(bucket)) => {
            let clock = Arc::clone(clock);
            Arc::new(DirectSigner::new(bucket.clone(), gateway, clock)?)
        }
        // Settings refuse `direct` for a directory, so the last case does not come up.
        (UploadMode::Gateway, _) | (UploadMode::Direct, None) => Arc::new(gateway),
    })
}

/// Reaches the configured database as it is: nothing is migrated. Starts the embedded PostgreSQL unless a
/// database is set. Also returns its URL, which is secret.
async fn reach(
    settings: &Settings,
) -> anyhow::Result<(Option<EmbeddedPostgres>, Database, String)> {
    let (embedded, url) = if let Some(url) = &settings.database_url {
        (None, url.reveal().to_owned())
    } else {
        let embedded = EmbeddedPostgres::start(PostgresSettings {
            data_dir: settings.data_dir.clone(),
            bin_dir: settings.pg_bin_dir.clone(),
            durability: Durability::Durable,
        })
        .await?;
        let url = embedded.database_url().to_owned();
        (Some(embedded), url)
    };
    let database = Database::new(&url, DatabaseSettings::default())?;
    // The embedded server accepts connections as soon as it has started.
    if embedded.is_none() {
        let reached = database.wait_until_reachable(DATABASE_PATIENCE).await;
        reached.map_err(anyhow::Error::msg)?;
    }
    Ok((embedded, database, url))
}

/// The variables of this process, by which clouds are reached.
fn environment() -> Vec<Variable> {
    // Not `vars`, which panics at a variable that is not UTF-8.
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// Applies pending migrations, and makes the index of file searches.
async fn update(database: &Database) -> anyhow::Result<()> {
    let applied = migrate(database).await.context("the database")?;
    if !applied.is_empty() {
        tracing::info!(
            migrations = applied.len(),
            "the database was brought up to date"
        );
    }
    if let FileSearch::Walk { reason } = prepare_file_search(database).await? {
        tracing::warn!(
            reason,
            "searches of file names are slow: PostgreSQL has no index for them"
        );
    }
    Ok(())
}

/// The database: an external one, or an embedded one that runs until it is closed.
pub struct DatabaseServer {
    embedded: Option<EmbeddedPostgres>,
    database: Database,
    /// Connections of authentication, which no other work can use up.
    authentication: Database,
}

/// Closes a data directory that existed before to other accounts, with the objects in it.
fn adopt_data_dir(directory: &Path) -> anyhow::Result<()> {
    // Before any right is changed, and before anything is made in it.
    data_dir::check(directory)?;
    let objects = directory.join("objects");
    for (directory, rights) in [(directory, WORLD_CONTENTS), (&*objects, OTHERS)] {
        let is_closed = adopt(directory, rights)
            .with_context(|| format!("the rights of {}", directory.display()))?;
        if !is_closed {
            let directory = directory.display();
            tracing::warn!(%directory, "other accounts can open it, and it belongs to another one");
        }
    }
    Ok(())
}

impl DatabaseServer {
    /// Starts the embedded PostgreSQL unless a database is set, and applies pending migrations.
    ///
    /// # Errors
    /// When the database cannot be started, reached or migrated.
    pub async fn open(settings: &Settings) -> anyhow::Result<Self> {
        adopt_data_dir(&settings.data_dir)?;
        if settings.database_url.is_none() {
            let created = create(&settings.data_dir);
            created.with_context(|| format!("cannot make {}", settings.data_dir.display()))?;
        }
        let (embedded, database, url) = reach(settings).await?;
        let authentication = DatabaseSettings {
            max_connections: AUTHENTICATION_CONNECTIONS,
            ..DatabaseSettings::default()
        };
        let server = Self {
            authentication: Database::new(&url, authentication)?,
            embedded,
            database,
        };
        // Side by side: PostgreSQL takes milliseconds for each connection.
        let ((), updated) = tokio::join!(
            server.authentication.connect_ahead(),
            update(&server.database)
        );
        updated?;
        Ok(server)
    }

    /// Lets SQL logins in from the network, if the settings say so, until what is returned is dropped. Returns also
    /// where they connect.
    ///
    /// # Errors
    /// When the address is taken, or certificate and key cannot be used.
    pub async fn serve_sql(
        &self,
        settings: &Settings,
    ) -> anyhow::Result<(Option<Relay>, SqlAccess)> {
        let logins = PgSqlLoginRepository::new(self.authentication.clone());
        let relay = sql::start_relay(settings, self.embedded.as_ref(), Arc::new(logins)).await?;
        let access = SqlAccess {
            endpoint: sql::endpoint(settings, relay.as_ref()),
            is_shared: settings.sql.is_shared,
        };
        Ok((relay, access))
    }

    /// Stops the embedded PostgreSQL, if any.
    ///
    /// # Errors
    /// When it does not stop.
    pub async fn close(self) -> anyhow::Result<()> {
        drop((self.database, self.authentication));
        if let Some(embedded) = self.embedded {
            embedded.stop().await?;
        }
        Ok(())
    }

    /// Composes the services over this database and the configured storage, for a server with this
    /// public URL. `dependencies` creates the checks of the server, given its database and its storage.
    ///
    /// # Errors
    /// When the storage does not accept files, the database does not respond, or the mail server's address is
    /// unusable.
    pub async fn services(
        &self,
        settings: &Settings,
        public_url: &str,
        dependencies: impl FnOnce(Arc<dyn StoreHealth>, Arc<dyn BlobStore>) -> Arc<dyn DependencyChecks>,
    ) -> anyhow::Result<Services> {
        let location = settings.storage_url().parse::<Location>()?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let ids: Arc<dyn IdSource> = Arc::new(SystemIds);
        let tenancy = PgTenancyRepository::new(self.database.clone());
        let secrets = async {
            // From the database, because a URL that one server signs must be valid at all of them.
            let signing = ensure_secret(&tenancy, &*ids, URL_SIGNING).await?;
            let roles = ensure_secret(&tenancy, &*ids, QUERY_ROLES).await?;
            anyhow::Ok((signing, roles))
        };
        let storage = open_storage(&location, settings.data_dir.clone());
        let (storage, (secret, roles_secret)) = tokio::try_join!(storage, secrets)?;
        let mut queries = PgQueryRunner::new(self.database.clone(), &roles_secret);
        if let Some(replica) = &settings.query_database_url {
            queries = queries.on_replica(replica.reveal())?;
        }
        let gateway = GatewaySigner::new(public_url, &secret);
        let signer = signer(settings, &location, &storage, gateway, &clock)?;
        let disk_reserve = if self.embedded.is_some() {
            LocalDiskReserve::open(ReserveFile::beside_cluster(&settings.data_dir)).await
        } else {
            LocalDiskReserve::none()
        };
        let oidc = identity_provider::service(settings, &tenancy, &*ids, &clock).await?;
        let store = PgStore::new(self.database.clone(), self.authentication.clone());
        let repositories = store.repositories();
        let dependencies =
            dependencies(Arc::clone(&repositories.health), Arc::clone(&storage.blobs));
        let ports = Ports {
            repositories,
            idempotency: Arc::new(store.idempotency()),
            queries: Arc::new(queries),
            blobs: storage.blobs,
            signer,
            gateway: Arc::new(GatewaySigner::new(public_url, &secret)),
            predictor: predictor(settings, backends::this_program()?, public_url),
            python: python(settings, backends::this_program()?, public_url),
            file_reader: file_reader(settings, backends::this_program()?, public_url),
            table_reader: Arc::new(table_reader(this_program()?)),
            dependencies,
            disk_reserve: Arc::new(disk_reserve),
            clock,
            ids,
        };
        let caps = Caps {
            per_user_and_hour: settings.notifications.per_hour,
            per_organization_and_day: settings.notifications.per_day,
        };
        Ok(Services {
            export_time: settings.export_time,
            log_retention: settings.log_retention,
            writers_define_tables: settings.writers_define_tables,
            history_days: settings.history_days,
            trash_days: settings.trash_days,
            sql: SqlAccess {
                endpoint: None,
                is_shared: settings.sql.is_shared,
            },
            mailer: mailer(&settings.notifications)?,
            triggered_version: if settings.jobs_require_published {
                TriggeredVersion::Published
            } else {
                TriggeredVersion::Newest
            },
            oidc,
            ..Services::new(ports, settings.storage_quota, caps)
        })
    }
}

/// Creates the configured mailer; `None` unless both server and sender are set.
fn mailer(settings: &NotificationSettings) -> anyhow::Result<Option<Arc<dyn Mailer>>> {
    match (&settings.smtp_url, &settings.mail_from) {
        (Some(server), Some(from)) => Ok(Some(Arc::new(
            smtp_mailer(server.reveal(), from).map_err(anyhow::Error::msg)?,
        ))),
        (None, None) => Ok(None),
        (Some(_), None) | (None, Some(_)) => {
            tracing::warn!("no e-mail is sent: set both LABDATA_SMTP_URL and LABDATA_MAIL_FROM");
            Ok(None)
        }
    }
}
