//! Queries written by users, isolated by construction: see `docs/adr/` on queries.
//!
//! Each query has its own connection, as a role that may read its organization's schema and nothing
//! else, in a transaction that is rolled back; the connection is closed after it.

pub(crate) mod harden;
mod passwords;
mod render;
pub(crate) mod role;
mod run;
mod spares;
mod veil;
pub(crate) mod verifier;
mod wire;

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use labdata_domain::{data::query::QueryFailure, ids::OrganizationId};
use labdata_limits::FairSlots;
use labdata_ports::{
    PortError,
    data::query::{Query, QueryError, QueryRunner, ResultSink},
};
use tokio::{sync::OnceCell, time::Instant};

use crate::database::{
    errors::NO_ANSWER,
    pool::Database,
    server::{InvalidDatabaseUrl, Server},
    sql::{ident, schema_name},
};
pub(crate) use harden::open_to_everyone;
pub(crate) use role::drop_platform_views;
use run::{Failure, Output};
use spares::{Entrance, SparePool};
use veil::Veil;
pub(crate) use veil::drop_views_over;
use wire::{Wire, WireError};

/// Maximum number of concurrent queries of one organization, in this process.
const OF_ONE: usize = 4;

/// Maximum number of concurrent queries of all organizations.
const OF_ALL: usize = 16;

/// Time that a new role may take to reach a replica, and the pause between looks.
const REPLICA_PATIENCE: Duration = Duration::from_secs(5);
const REPLICA_PAUSE: Duration = Duration::from_millis(50);

/// Message for the operator if the platform may not create roles.
const ONLY_KNOWN_ROLES: &str = "the platform's own role may not create roles (grant it CREATEROLE): \
     tools/query works only for organizations whose role is there already, and refuses the others";

/// Runs queries in PostgreSQL.
pub struct PgQueryRunner {
    database: Database,
    /// Server on which queries run.
    server: Arc<Server>,
    is_on_replica: bool,
    secret: [u8; 32],
    hardening: Mutex<Arc<Hardening>>,
    /// Limits concurrent queries.
    slots: FairSlots<OrganizationId>,
    spares: SparePool,
    spares_wait: Duration,
    count: AtomicU64,
}

/// Checks that this process has made on one version of PostgreSQL.
#[derive(Default)]
struct Hardening {
    /// Version that connections of queries report.
    version: OnceLock<String>,
    /// The platform's rights, once the revokes are done.
    rights: OnceCell<role::Rights>,
    /// Organizations whose roles are set up or checked.
    ready: Mutex<HashSet<OrganizationId>>,
    /// Roles of callers from whom tables are hidden that are set up or checked, by name, with the version of
    /// the catalog.
    veils: Mutex<HashMap<String, i64>>,
}

/// Maximum number of veils that are remembered; emptied as a whole, which costs a query each.
const MAX_VEILS: usize = 10_000;

impl Hardening {
    fn with_ready<T>(&self, work: impl FnOnce(&mut HashSet<OrganizationId>) -> T) -> T {
        work(&mut self.ready.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn with_veils<T>(&self, work: impl FnOnce(&mut HashMap<String, i64>) -> T) -> T {
        work(&mut self.veils.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl std::fmt::Debug for PgQueryRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the secret.
        f.debug_struct("PgQueryRunner").finish_non_exhaustive()
    }
}

impl PgQueryRunner {
    /// A runner over that database. Passwords of roles are derived from the secret, which all
    /// servers of the platform share.
    #[must_use]
    pub fn new(database: Database, secret: &[u8; 32]) -> Self {
        Self {
            server: Arc::new(database.server().clone()),
            database,
            is_on_replica: false,
            secret: *secret,
            hardening: Mutex::default(),
            slots: FairSlots::new(OF_ONE, OF_ALL),
            spares: SparePool::default(),
            spares_wait: spares::PATIENCE,
            count: AtomicU64::new(0),
        }
    }

    /// The same, with the queries on a replica of the database, which follows it with a delay. Roles are
    /// still made in the database itself.
    ///
    /// # Errors
    /// [`InvalidDatabaseUrl`].
    pub fn on_replica(mut self, url: &str) -> Result<Self, InvalidDatabaseUrl> {
        self.server = Arc::new(Server::parse(url)?);
        self.is_on_replica = true;
        Ok(self)
    }

    /// The same, with another time that spare connections wait for a query (30 s by default).
    #[must_use]
    pub fn with_spares_that_wait(mut self, timeout: Duration) -> Self {
        self.spares_wait = timeout;
        self
    }

    /// Revokes what the server grants to everyone, if the server is the platform's own, and logs the
    /// basis of isolation. The first query does it unless it was done before, and so does the first
    /// query after an upgrade of the server.
    ///
    /// # Errors
    /// As for every use of the database.
    pub async fn prepare(&self) -> Result<(), PortError> {
        self.rights(&self.hardening()).await.map(drop)
    }

    fn hardening(&self) -> Arc<Hardening> {
        let hardening = self.hardening.lock();
        Arc::clone(&hardening.unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns true if the connection's server has the version that was hardened. Forgets all checks
    /// if not.
    fn is_hardened_for(&self, hardening: &Arc<Hardening>, wire: &Wire) -> bool {
        let found = wire.server_version();
        if hardening.version.get_or_init(|| found.to_owned()) == found {
            return true;
        }
        let mut current = self
            .hardening
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // The first connection that notices replaces it; later ones must not discard the new checks.
        if Arc::ptr_eq(&current, hardening) {
            tracing::info!(version = found, "PostgreSQL has another version by now");
            *current = Arc::new(Hardening {
                version: OnceLock::from(found.to_owned()),
                ..Hardening::default()
            });
        }
        false
    }

    async fn rights(&self, hardening: &Hardening) -> Result<role::Rights, PortError> {
        let rights = hardening.rights.get_or_try_init(|| async {
            let mut connection = self.database.connection().await?;
            let rights = role::rights(&mut connection).await?;
            if rights.superuser {
                if let Err(fault) = harden::harden(&mut connection).await {
                    let error = PortError::from(fault);
                    tracing::warn!(%error, "queries are isolated by their roles alone");
                }
                return Ok(rights);
            }
            let open = open_to_everyone(&mut connection).await?;
            if !open.is_empty() {
                tracing::warn!(
                    everyone_may_use = open.join(", "),
                    "queries are isolated by their roles alone, and can hold up other organizations: \
                     let an administrator run docs/deploy/revoke-public.sql"
                );
            }
            if !rights.creates_roles {
                tracing::warn!("{ONLY_KNOWN_ROLES}");
            }
            Ok::<_, PortError>(rights)
        });
        rights.await.copied()
    }

    /// Random to everyone who does not know the secret.
    fn derive(&self, of: &[u8]) -> [u8; 32] {
        verifier::keyed_hash(&self.secret, &[of])
    }

    /// A name that the query's text cannot know.
    fn alias(&self, query: &Query) -> String {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let of = format!("{count} {}", query.text.as_str());
        let alias = self.derive(of.as_bytes());
        format!("q_{}", hex(&alias, 12))
    }

    async fn ensure_role(
        &self,
        hardening: &Hardening,
        organization: OrganizationId,
        repair: bool,
    ) -> Result<(), QueryError> {
        if !repair && hardening.with_ready(|ready| ready.contains(&organization)) {
            return Ok(());
        }
        let rights = self.rights(hardening).await?;
        let mut connection = self.database.of(organization).connection().await?;
        let verifier = || self.verifier(organization);
        let there = role::ensure(&mut connection, organization, rights, verifier, repair)
            .await
            .map_err(PortError::from)?;
        if !there {
            return Err(QueryFailure::SwitchedOff.into());
        }
        hardening.with_ready(|ready| ready.insert(organization));
        Ok(())
    }

    /// As [`Self::ensure_role`], of callers from whom tables are hidden.
    async fn ensure_veil(
        &self,
        hardening: &Hardening,
        organization: OrganizationId,
        veil: &Veil,
        repair: bool,
    ) -> Result<(), QueryError> {
        let is_ready =
            hardening.with_veils(|veils| veils.get(veil.name()) == Some(&veil.version()));
        if is_ready && !repair {
            return Ok(());
        }
        let rights = self.rights(hardening).await?;
        let mut connection = self.database.of(organization).connection().await?;
        let verifier = || self.veil_verifier(veil.name());
        let there = veil
            .ensure(&mut connection, rights, verifier, repair)
            .await
            .map_err(PortError::from)?;
        if !there {
            return Err(QueryFailure::SwitchedOff.into());
        }
        hardening.with_veils(|veils| {
            if veils.len() >= MAX_VEILS {
                veils.clear();
            }
            veils.insert(veil.name().to_owned(), veil.version());
        });
        Ok(())
    }

    /// Makes sure that the role which runs a query is there.
    async fn ensure(
        &self,
        organization: OrganizationId,
        veil: Option<&Veil>,
        repair: bool,
    ) -> Result<(), QueryError> {
        let hardening = self.hardening();
        match veil {
            None => self.ensure_role(&hardening, organization, repair).await,
            Some(veil) => {
                self.ensure_veil(&hardening, organization, veil, repair)
                    .await
            }
        }
    }

    /// Forgets that the role which runs a query was there.
    fn forget(&self, organization: OrganizationId, veil: Option<&Veil>) {
        let hardening = self.hardening();
        match veil {
            None => drop(hardening.with_ready(|ready| ready.remove(&organization))),
            Some(veil) => drop(hardening.with_veils(|veils| veils.remove(veil.name()))),
        }
    }

    fn entrance(&self, organization: OrganizationId, veil: Option<&Veil>) -> Entrance {
        let (user, password) = match veil {
            None => (role::role_name(organization), self.password(organization)),
            Some(veil) => (veil.name().to_owned(), self.veil_password(veil.name())),
        };
        Entrance {
            server: Arc::clone(&self.server),
            database: self.server.database.clone(),
            user,
            password,
        }
    }

    /// A new connection as the role which runs a query; repairs the role if it cannot log in.
    async fn open(
        &self,
        organization: OrganizationId,
        veil: Option<&Veil>,
        entrance: &Entrance,
    ) -> Result<Wire, QueryError> {
        self.ensure(organization, veil, false).await?;
        let mut wire = entrance.open().await;
        // The role was lost with a restore, or changed by hand: it is set up again.
        if is_refused_login(&wire) {
            self.ensure(organization, veil, true).await?;
            wire = entrance.open().await;
        }
        // The role reaches a replica later.
        let until = Instant::now() + REPLICA_PATIENCE;
        while self.is_on_replica && is_refused_login(&wire) && Instant::now() < until {
            tokio::time::sleep(REPLICA_PAUSE).await;
            wire = entrance.open().await;
        }
        let wire = wire.map_err(|error| no_connection(&error))?;
        self.hardened(organization, veil, wire).await
    }

    /// Returns the connection once its server is hardened in the version that it has.
    async fn hardened(
        &self,
        organization: OrganizationId,
        veil: Option<&Veil>,
        wire: Wire,
    ) -> Result<Wire, QueryError> {
        let hardening = self.hardening();
        if !self.is_hardened_for(&hardening, &wire) {
            self.ensure(organization, veil, false).await?;
        }
        Ok(wire)
    }

    /// Runs a query over the organization's spare connection, if it has one, else over a new one,
    /// while the next spare is opened. Returns the connection that was used. Callers from whom tables are hidden
    /// have no spares.
    async fn attempt(
        &self,
        organization: OrganizationId,
        veil: Option<&Veil>,
        query: &Query,
        alias: &str,
        output: &mut Output<'_>,
    ) -> Result<(Wire, Result<(), Failure>), QueryError> {
        let entrance = self.entrance(organization, veil);
        let spare = match veil {
            None => self.spares.take(organization).await,
            Some(_) => None,
        };
        let is_spare = spare.is_some();
        let mut wire = match spare {
            Some(wire) => self.hardened(organization, veil, wire).await?,
            None => self.open(organization, veil, &entrance).await?,
        };
        if veil.is_none() {
            self.spares
                // Opened while this query runs, so that the next one does not wait for a login.
                .prepare(organization, entrance.clone(), self.spares_wait);
        }
        let path = path(organization, veil);
        let outcome = run::run(&mut wire, &path, query, alias, output).await;
        let stale = match outcome {
            Err(Failure::Stale(failure)) => failure,
            outcome => return Ok((wire, outcome)),
        };
        if !is_spare {
            return Ok((wire, Err(*stale)));
        }
        // The server has closed it, or was restarted.
        tracing::debug!(failure = ?stale, "a spare connection was of no use");
        drop(wire);
        let mut wire = self.open(organization, veil, &entrance).await?;
        let outcome = run::run(&mut wire, &path, query, alias, output).await;
        let outcome = outcome.map_err(|failure| match failure {
            Failure::Stale(failure) => *failure,
            failure => failure,
        });
        Ok((wire, outcome))
    }
}

/// The schemas in which a query finds its tables.
fn path(organization: OrganizationId, veil: Option<&Veil>) -> String {
    match veil {
        None => format!(
            "{}, {}",
            ident(&schema_name(organization)),
            ident(&role::platform_schema_name(organization))
        ),
        Some(veil) => ident(veil.name()),
    }
}

/// True if the server does not let the role log in.
fn is_refused_login(wire: &Result<Wire, WireError>) -> bool {
    // Class 28 is a refused login, 42501 a missing CONNECT on the database.
    matches!(wire, Err(WireError::Server(error))
        if error.code.starts_with("28") || error.code == "42501")
}

/// Returns the first bytes as hexadecimal digits.
fn hex(bytes: &[u8], count: usize) -> String {
    let mut digits = base16ct::lower::encode_string(bytes);
    digits.truncate(2 * count);
    digits
}

/// A failure as the caller sees it.
fn query_error(failure: Failure) -> QueryError {
    match failure {
        Failure::Port(error) => error.into(),
        Failure::Refused(reason) | Failure::Denied(reason) | Failure::Exceeded(reason) => {
            reason.into()
        }
        Failure::Closed(closed) => closed.into(),
        Failure::Stale(failure) => query_error(*failure),
    }
}

fn too_many() -> PortError {
    PortError::Busy("too many queries are running".to_owned())
}

/// The failure to connect. The reason goes to the log: callers learn neither hosts nor roles.
fn no_connection(error: &WireError) -> QueryError {
    if let WireError::Server(error) = error
        // Too many connections: of the server, or by the role's own limit.
        && error.code == "53300"
    {
        return too_many().into();
    }
    tracing::warn!(?error, "no connection for a query");
    PortError::Unavailable(NO_ANSWER.to_owned()).into()
}

#[async_trait]
impl QueryRunner for PgQueryRunner {
    async fn prepare(&self) -> Result<(), PortError> {
        Self::prepare(self).await
    }

    async fn stream(
        &self,
        organization: OrganizationId,
        query: &Query,
        sink: &mut dyn ResultSink,
    ) -> Result<(), QueryError> {
        let slot = self.slots.enter(organization).await.ok_or_else(too_many)?;
        let alias = self.alias(query);
        let mut output = Output::new(sink);
        let veil = query.view.as_ref().map(|view| Veil::of(organization, view));
        let veil = veil.as_ref();
        let attempt = self.attempt(organization, veil, query, &alias, &mut output);
        let (mut wire, mut outcome) = attempt.await?;
        // Only before the first rows: those that the sink has taken cannot be taken back.
        if matches!(outcome, Err(Failure::Denied(_))) && !output.has_begun {
            // The role may have lost its rights to a restored dump or a migration.
            self.forget(organization, veil);
            if veil.is_none() {
                self.spares.discard(organization, None).await;
            }
            wire.close().await;
            let attempt = self.attempt(organization, veil, query, &alias, &mut output);
            (wire, outcome) = attempt.await?;
        }
        if let Err(failure @ (Failure::Exceeded(_) | Failure::Closed(_))) = outcome {
            // Dropping the connection cancels the query.
            drop(wire);
            return Err(query_error(failure));
        }
        // The next query waits until the server has closed the connection; the response does not.
        tokio::spawn(async move {
            wire.close().await;
            drop(slot);
        });
        outcome.map_err(query_error)
    }
}
