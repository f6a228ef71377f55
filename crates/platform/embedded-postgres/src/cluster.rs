//! Creation of a cluster, and the settings of its server.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;

use crate::account::Account;
use crate::binaries::Binaries;
use crate::connection_url::NAME;
use crate::layout::Layout;
use crate::memory::shared_buffers;
use crate::process::server_command;
use crate::single_user::{failure, run_single_user};
use crate::{Durability, Error, password};

/// Locales in order of preference. `C.UTF-8` sorts by code point and knows the letters of all
/// languages; where it is missing (macOS, old systems), `C` sorts the same way.
const LOCALES: [&str; 2] = ["C.UTF-8", "C"];

/// Settings of every server: a small machine, one application, bulk writes, no network.
const SETTINGS: &[&str] = &[
    "listen_addresses=",
    "port=5432",
    "unix_socket_permissions=0700",
    "logging_collector=off",
    "log_destination=stderr",
    "log_line_prefix=%m [%p] %q%u@%d ",
    "log_timezone=UTC",
    "log_checkpoints=off",
    // The application logs failed statements; the server's log must not contain their values.
    "log_min_error_statement=panic",
    "timezone=UTC",
    "jit=off",
];

/// Settings for bulk writes: checkpoints by time rather than by size.
const DURABLE: &[&str] = &[
    "max_connections=100",
    // A backup locks every table of every organization.
    "max_locks_per_transaction=256",
    "max_wal_size=2GB",
    "checkpoint_timeout=15min",
    "wal_buffers=16MB",
];

/// Settings for tests: no durability, a small log (it is on a RAM disk), many databases without
/// autovacuum.
const THROWAWAY: &[&str] = &[
    "shared_buffers=128MB",
    "max_connections=300",
    "max_wal_size=256MB",
    "wal_level=minimal",
    "max_wal_senders=0",
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "autovacuum=off",
];

/// Returns the arguments of `postgres` for the cluster.
pub(crate) fn server_arguments(layout: &Layout, durability: Durability) -> Vec<OsString> {
    let mut arguments = vec![OsString::from("-D"), layout.cluster.clone().into()];
    let more = match durability {
        Durability::Durable => DURABLE,
        Durability::Throwaway => THROWAWAY,
    };
    for setting in SETTINGS.iter().chain(more) {
        arguments.extend(["-c".into(), OsString::from(setting)]);
    }
    if durability == Durability::Durable {
        arguments.extend(["-c".into(), shared_buffers().into()]);
    }
    arguments.push("-c".into());
    let mut sockets = OsString::from("unix_socket_directories=");
    sockets.push(&layout.socket_dir);
    arguments.push(sockets);
    arguments
}

/// Returns the major version that created the cluster, or none without a cluster.
pub(crate) fn major(cluster: &Path) -> Option<u32> {
    fs::read_to_string(cluster.join("PG_VERSION"))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// Creates the cluster with the role and the database `labdata`, atomically.
pub(crate) fn create(
    layout: &Layout,
    binaries: &Binaries,
    durability: Durability,
) -> Result<(), Error> {
    let cluster = &layout.cluster;
    if fs::read_dir(cluster).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Error::NotACluster {
            path: cluster.clone(),
        });
    }
    // Renamed when complete: an interrupted initdb is never taken for a cluster.
    let new = cluster.with_file_name("postgres.new");
    let mut outcome = Ok(());
    for locale in LOCALES {
        // `C.UTF-8` is not on every machine; `C` always is.
        outcome = initdb(&new, layout.account, binaries, durability, locale);
        match &outcome {
            Err(Error::Initdb { output }) if output.contains("invalid locale") => {}
            _ => break,
        }
    }
    outcome?;
    // Single-user mode needs no listening server, so no moment exists without a password.
    let mut statements = format!("CREATE DATABASE {NAME}\n");
    if durability == Durability::Durable {
        statements.push_str(&password::statement_for_new_cluster(layout)?);
    }
    run_single_user(&new, layout.account, binaries, durability, &statements)?;
    if durability == Durability::Durable {
        password::write_rules(&new, layout.account)?;
    }
    fs::rename(&new, cluster).map_err(Error::io("rename", &new))?;
    if durability == Durability::Durable {
        let parent = cluster.parent().unwrap_or(cluster);
        // The rename is durable only with its directory.
        File::open(parent)
            .and_then(|directory| directory.sync_all())
            .map_err(Error::io("sync", parent))?;
    }
    layout.finish();
    Ok(())
}

fn initdb(
    new: &Path,
    account: Account,
    binaries: &Binaries,
    durability: Durability,
    locale: &str,
) -> Result<(), Error> {
    if new.exists() {
        // An earlier start was interrupted.
        fs::remove_dir_all(new).map_err(Error::io("remove", new))?;
    }
    DirBuilder::new()
        .mode(0o700)
        .create(new)
        .map_err(Error::io("make the directory", new))?;
    account.own(new)?;
    let program = binaries.program("initdb");
    let mut command = server_command(&program, account, Signal::TERM);
    command
        .arg("--pgdata")
        .arg(new)
        .args(["--username", NAME, "--encoding=UTF8", "--no-instructions"])
        .arg(format!("--locale={locale}"))
        // A durable cluster asks for a password before its first start; TCP is rejected.
        .args(["--auth-local=trust", "--auth-host=reject"]);
    command.arg(match durability {
        Durability::Durable => "--data-checksums",
        Durability::Throwaway => "--no-sync",
    });
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(Error::io("run", &program))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(failure(&output))
    }
}
