//! Creation of a cluster, and the settings of its server.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Output, Stdio};

use rustix::process::Signal;

use crate::account::Account;
use crate::binaries::Binaries;
use crate::connection_url::NAME;
use crate::layout::Layout;
use crate::memory::shared_buffers;
use crate::process::server_command;
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

/// Settings of single-user mode. A statement may contain a password, which must not be logged.
const SINGLE_USER: &[&str] = &[
    "log_checkpoints=off",
    "log_statement=none",
    "log_min_duration_statement=-1",
    "log_min_error_statement=panic",
    "password_encryption=scram-sha-256",
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
    let new = cluster.with_file_name("postgres.new");
    let mut outcome = Ok(());
    for locale in LOCALES {
        outcome = initdb(&new, layout.account, binaries, durability, locale);
        match &outcome {
            Err(Error::Initdb { output }) if output.contains("invalid locale") => {}
            _ => break,
        }
    }
    outcome?;
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

/// Runs statements, one per line, in single-user mode, which needs neither socket nor client, nor a
/// password. They go through a pipe, so no other process sees them.
pub(crate) fn run_single_user(
    cluster: &Path,
    account: Account,
    binaries: &Binaries,
    durability: Durability,
    statements: &str,
) -> Result<(), Error> {
    let program = binaries.program("postgres");
    let mut command = server_command(&program, account, Signal::INT);
    command.arg("--single");
    for setting in SINGLE_USER {
        command.args(["-c", setting]);
    }
    if durability == Durability::Throwaway {
        command.args(["-c", "fsync=off"]);
    }
    let mut child = command
        .arg("-D")
        .arg(cluster)
        .arg("postgres")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::io("run", &program))?;
    if let Some(mut input) = child.stdin.take() {
        // If this fails, the program fails too and reports the reason.
        let _ = input.write_all(statements.as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(Error::io("run", &program))?;
    // In single-user mode a failed statement does not fail the program.
    let complained = String::from_utf8_lossy(&output.stderr).contains("ERROR:");
    if output.status.success() && !complained {
        Ok(())
    } else {
        Err(failure(&output))
    }
}

fn failure(output: &Output) -> Error {
    let mut text = crate::log::last_lines(&output.stderr);
    if text.is_empty() {
        text = crate::log::last_lines(&output.stdout);
    }
    Error::Initdb {
        output: format!("{text} ({})", output.status),
    }
}
