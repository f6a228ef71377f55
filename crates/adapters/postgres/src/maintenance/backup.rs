//! Copies of the whole database: PostgreSQL's own programs make and restore them.

use std::{path::Path, process::Stdio};

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Bool, Integer, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::{
    files::{Crc32c, ObjectKey},
    ids::OrganizationId,
};
use labdata_ports::PortError;
use tokio::process::Command;
use uuid::Uuid;

use crate::database::{
    errors::port_error,
    pool::Database,
    server::{PlainUrl, without_password},
};

/// Advisory lock that backups share while they copy objects.
const LOCK: &str = "labdata.lock_key('backup of objects')";

/// Advisory lock that backups share while `pg_dump` reads.
const DUMP: &str = "labdata.lock_key('backup of tables')";

/// Advisory lock that changes and removals of tables share.
const CHANGES: &str = "labdata.lock_key('changes of tables')";

/// Number of objects that are read from the database at a time.
const BATCH: u32 = 5_000;

/// Every object that a record needs. What awaits its bytes needs none yet.
const OBJECTS: &str = "\
    DECLARE objects NO SCROLL CURSOR FOR \
    SELECT organization_id, object_key, size_bytes, crc32c \
        FROM labdata.file WHERE status = 'confirmed' \
    UNION ALL SELECT organization_id, object_key, size_bytes, crc32c \
        FROM labdata.trash WHERE object_key IS NOT NULL \
    UNION ALL SELECT organization_id, object_key, size_bytes, NULL FROM labdata.trashed_annotation \
    UNION ALL SELECT organization_id, object_key, size_bytes, NULL FROM labdata.dataset \
    UNION ALL SELECT organization_id, object_key, size_bytes, NULL FROM labdata.annotation \
    UNION ALL SELECT organization_id, id, size_bytes, NULL FROM labdata.dataset_mask \
    UNION ALL SELECT organization_id, id, size_bytes, NULL FROM labdata.agent_chat_file \
    UNION ALL SELECT organization_id, artifact_key, NULL, NULL \
        FROM labdata.ml_model_version WHERE artifact_key IS NOT NULL";

/// Why PostgreSQL's program made or restored no copy.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The database did not respond.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The database's address cannot be handed to a program.
    #[error("DATABASE_URL must be a URL: postgresql://user@host/database")]
    NotAUrl,
    /// The program does not run.
    #[error("{program} does not run: {source}")]
    Program {
        /// `pg_dump` or `pg_restore`.
        program: &'static str,
        /// Cause.
        source: std::io::Error,
    },
    /// The program failed.
    #[error("{program}: {message}")]
    Failed {
        /// `pg_dump` or `pg_restore`.
        program: &'static str,
        /// Its message.
        message: String,
    },
}

#[derive(QueryableByName)]
struct Response {
    #[diesel(sql_type = Bool)]
    response: bool,
}

#[derive(QueryableByName)]
struct Identified {
    #[diesel(sql_type = Text)]
    id: String,
}

#[derive(QueryableByName)]
struct Version {
    #[diesel(sql_type = Integer)]
    version: i32,
}

#[derive(QueryableByName)]
struct ObjectRow {
    #[diesel(sql_type = SqlUuid)]
    organization_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    object_key: Uuid,
    #[diesel(sql_type = Nullable<BigInt>)]
    size_bytes: Option<i64>,
    #[diesel(sql_type = Nullable<Text>)]
    crc32c: Option<String>,
}

/// An object that a record of a snapshot needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeededObject {
    /// Its organization.
    pub organization: OrganizationId,
    /// The object.
    pub object: ObjectKey,
    /// Its size in bytes, if the record says so.
    pub size: Option<u64>,
    /// Its checksum, if the record says so.
    pub crc32c: Option<Crc32c>,
}

/// Returns true while a backup copies objects.
pub(crate) async fn is_under_way(database: &Database) -> Result<bool, PortError> {
    is_held(&mut *database.connection().await?, LOCK).await
}

/// Lets a transaction change or remove tables, unless a backup reads them: `pg_dump` fails if a table of its
/// snapshot goes before it has locked it, and retains all of them locked until its end.
///
/// # Errors
/// [`PortError::Unavailable`] while `pg_dump` reads.
pub(crate) async fn keep_from_dumps(connection: &mut AsyncPgConnection) -> Result<(), PortError> {
    let lock = format!("SELECT pg_advisory_xact_lock_shared({CHANGES})");
    connection.batch_execute(&lock).await.map_err(port_error)?;
    // A holder of the lock is seen by the next snapshot; later callers see the backup.
    if is_held(connection, DUMP).await? {
        let said = "a backup reads the tables: change them when it is done";
        return Err(PortError::Unavailable(said.to_owned()));
    }
    Ok(())
}

async fn is_held(connection: &mut AsyncPgConnection, lock: &str) -> Result<bool, PortError> {
    // `pg_locks` lists all databases. `objsubid` is 1 for locks with one 64-bit key, whose halves it splits.
    let query = diesel::sql_query(format!(
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_locks \
         WHERE locktype = 'advisory' AND objsubid = 1 AND granted \
         AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()) \
         AND (classid::bigint << 32) | objid::bigint = (SELECT {lock})) AS response",
    ));
    let found: Response = query.get_result(connection).await.map_err(port_error)?;
    Ok(found.response)
}

/// Major version of the server, for which its programs are chosen.
///
/// # Errors
/// [`PortError::Unavailable`].
pub async fn server_major(database: &Database) -> Result<u32, PortError> {
    let mut connection = database.dedicated().await?;
    // `pg_dump` refuses a server that is newer than itself.
    let query = "SELECT current_setting('server_version_num')::integer / 10000 AS version";
    let found: Version = diesel::sql_query(query)
        .get_result(&mut connection)
        .await
        .map_err(port_error)?;
    u32::try_from(found.version).map_err(|error| PortError::Internal(error.to_string()))
}

/// Returns true if the database has no schema of the platform or of an organization.
///
/// # Errors
/// [`PortError::Unavailable`].
pub async fn is_empty(database: &Database) -> Result<bool, PortError> {
    let mut connection = database.dedicated().await?;
    let query = "SELECT NOT EXISTS (SELECT FROM pg_catalog.pg_namespace \
         WHERE nspname = 'labdata' OR nspname ~ '^org_[0-9a-f]{32}') AS response";
    let found: Response = diesel::sql_query(query)
        .get_result(&mut connection)
        .await
        .map_err(port_error)?;
    Ok(found.response)
}

/// One state of the database, from which a copy is made. Until it is released, no server changes or removes a
/// table; until it is dropped, none removes an object that it needs.
pub struct Snapshot {
    connection: AsyncPgConnection,
    id: String,
    url: PlainUrl,
}

impl Snapshot {
    /// Takes the state of now.
    ///
    /// # Errors
    /// [`BackupError::Port`]; [`BackupError::NotAUrl`].
    pub async fn take(database: &Database, url: &str) -> Result<Self, BackupError> {
        let url = without_password(url).ok_or(BackupError::NotAUrl)?;
        let mut connection = database.dedicated().await?;
        // Before the snapshot: a sweep of a record that it holds finds the lock. Changes of tables that
        // have begun end first; later ones find the other lock.
        for statement in [
            format!("SELECT pg_advisory_lock_shared({LOCK}), pg_advisory_lock_shared({DUMP})")
                .as_str(),
            format!("SELECT pg_advisory_lock({CHANGES}), pg_advisory_unlock({CHANGES})").as_str(),
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        ] {
            connection
                .batch_execute(statement)
                .await
                .map_err(port_error)?;
        }
        let export = diesel::sql_query("SELECT pg_export_snapshot() AS id");
        let Identified { id } = export
            .get_result(&mut connection)
            .await
            .map_err(port_error)?;
        connection
            // A cursor, because the list of a large lab's objects need not fit into memory.
            .batch_execute(OBJECTS)
            .await
            .map_err(port_error)?;
        Ok(Self {
            connection,
            id,
            url,
        })
    }

    /// The next objects that its records need; none after the last.
    ///
    /// # Errors
    /// [`PortError::Unavailable`]; [`PortError::Internal`] for a record that cannot be.
    pub async fn next_objects(&mut self) -> Result<Vec<NeededObject>, PortError> {
        let rows: Vec<ObjectRow> = diesel::sql_query(format!("FETCH {BATCH} FROM objects"))
            .load(&mut self.connection)
            .await
            .map_err(port_error)?;
        rows.iter().map(needed).collect()
    }

    /// Writes the database as of the snapshot into a new file, in the custom format of `pg_dump`.
    /// Neither owners nor rights are written: the platform grants them again.
    ///
    /// # Errors
    /// See [`BackupError`].
    pub async fn write(&self, programs: &Path, file: &Path) -> Result<(), BackupError> {
        let mut command = program(programs, "pg_dump", &self.url);
        command
            .args(["--format=custom", "--compress=1", "--no-owner"])
            .args(["--no-privileges", "--no-password"])
            // Views for queries, which the next query of an organization makes again.
            .arg("--exclude-schema=org_*_platform")
            // The reader of a copy could sign URLs for the running servers. The next start on a restored copy
            // makes new secrets.
            .arg("--exclude-table-data=labdata.server_secret")
            .arg(format!("--snapshot={}", self.id))
            .arg("--file")
            .arg(file)
            .arg("--dbname")
            .arg(&self.url.url);
        run(command, "pg_dump").await
    }

    /// Lets the database go on without the snapshot, and tables change. Objects are still retained, until this is dropped.
    ///
    /// # Errors
    /// [`PortError::Unavailable`].
    pub async fn release(&mut self) -> Result<(), PortError> {
        // Advisory locks of a session outlast the commit: the one on objects ends with the connection.
        let end = format!("COMMIT; SELECT pg_advisory_unlock_shared({DUMP})");
        let ended = self.connection.batch_execute(&end).await;
        ended.map_err(port_error)
    }

    /// Makes sure that objects were retained until now.
    ///
    /// # Errors
    /// [`PortError::Unavailable`] if the connection broke, and with it the promise.
    pub async fn check(&mut self) -> Result<(), PortError> {
        let asked = self.connection.batch_execute("SELECT 1").await;
        asked.map_err(port_error)
    }
}

fn needed(row: &ObjectRow) -> Result<NeededObject, PortError> {
    let broken = |what: &str| PortError::Internal(format!("{what} of object {}", row.object_key));
    let size = row.size_bytes.map(u64::try_from).transpose();
    let crc32c = row.crc32c.as_deref();
    let crc32c = crc32c.map(|text| Crc32c::from_base64(text).ok_or_else(|| broken("checksum")));
    Ok(NeededObject {
        organization: OrganizationId::new(row.organization_id),
        object: ObjectKey::new(row.object_key),
        size: size.map_err(|_| broken("size"))?,
        crc32c: crc32c.transpose()?,
    })
}

/// Ends SQL logins. Their roles are of the whole server: it lacks them, or they are those of the database that was
/// backed up. Backups of earlier versions have no logins.
const END_SQL_LOGINS: &str = "DO $end$ BEGIN IF to_regclass('labdata.sql_login') IS NOT NULL THEN \
    UPDATE labdata.sql_login SET ended_at = now(), end_reason = 'role_missing' WHERE ended_at IS NULL; \
    END IF; END $end$";

/// Restores a file of [`Snapshot::write`] into an empty database, in one transaction.
///
/// # Errors
/// See [`BackupError`]. The database is as empty as before then.
pub async fn restore(
    database: &Database,
    url: &str,
    programs: &Path,
    file: &Path,
) -> Result<(), BackupError> {
    let url = without_password(url).ok_or(BackupError::NotAUrl)?;
    let mut command = program(programs, "pg_restore", &url);
    command
        .args(["--single-transaction", "--exit-on-error", "--no-owner"])
        .args(["--no-privileges", "--no-password"])
        .arg("--dbname")
        .arg(&url.url)
        .arg(file);
    run(command, "pg_restore").await?;
    let mut connection = database.dedicated().await?;
    connection
        .batch_execute(END_SQL_LOGINS)
        .await
        .map_err(port_error)?;
    // Without statistics the first queries would be slow.
    connection
        .batch_execute("ANALYZE")
        .await
        .map_err(port_error)?;
    Ok(())
}

/// A program of PostgreSQL that finds the database, and its password, where this process does.
fn program(programs: &Path, name: &str, url: &PlainUrl) -> Command {
    let mut command = Command::new(programs.join(name));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // Messages in English, as everywhere.
        .env("LC_ALL", "C")
        .env("PGAPPNAME", "labdata backup")
        // What this process was started with is not about this database.
        .env_remove("PGPASSWORD")
        .env_remove("PGOPTIONS")
        // `pg_dump` has all tables locked: it must not go on after a backup that was broken off.
        .kill_on_drop(true);
    if let Some(password) = &url.password {
        // Not an argument: every user of the machine can read the arguments of processes.
        command.env("PGPASSWORD", password.reveal());
    }
    command
}

async fn run(mut command: Command, program: &'static str) -> Result<(), BackupError> {
    let output = command
        .output()
        .await
        .map_err(|source| BackupError::Program { program, source })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let prefix = format!("{program}: ");
    let lines: Vec<&str> = said
        .lines()
        .map(|line| line.trim().trim_start_matches(&prefix))
        .filter(|line| !line.is_empty())
        .collect();
    Err(BackupError::Failed {
        program,
        message: lines.join("; "),
    })
}
