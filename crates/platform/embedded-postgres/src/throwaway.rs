//! Throwaway server, shared by a whole test run.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::process::{exists, parse_pid};
use crate::{Durability, EmbeddedPostgres, Error, Settings, layout, leftovers};

/// Prefix of the directories' names; the process id of the test process follows.
const PREFIX: &str = "labdata-throwaway-";

/// Script that waits until its standard input closes, which happens when the test process ends for
/// any reason; then it waits for the server's end and removes the directory.
const REAPER: &str = r#"
read -r _
pid=$(head -n 1 "$1/postgres/postmaster.pid" 2>/dev/null)
if [ -n "$pid" ]; then
  kill -QUIT "$pid" 2>/dev/null
  left=200
  while [ "$left" -gt 0 ] && kill -0 "$pid" 2>/dev/null; do sleep 0.05; left=$((left - 1)); done
fi
rm -rf -- "$1"
"#;

/// Private server that leaves no files.
///
/// It uses a RAM disk if there is one, and trades durability for speed. It ends, and its directory is
/// removed, when this value is dropped or the process ends: a value in a `static` works, and so does
/// `kill -9`.
///
/// The environment variable `LABDATA_PG_BIN_DIR` chooses the programs, as it does for the platform.
#[derive(Debug)]
pub struct ThrowawayServer {
    server: Option<EmbeddedPostgres>,
    directory: PathBuf,
    reaper: Option<Child>,
}

impl ThrowawayServer {
    /// Starts a server on an empty directory, after removing the directories of dead processes.
    ///
    /// # Errors
    /// As [`EmbeddedPostgres::start`].
    pub async fn start() -> Result<Self, Error> {
        Self::start_with(std::env::var_os("LABDATA_PG_BIN_DIR").map(PathBuf::from)).await
    }

    /// Starts a server with the programs of that directory, and ignores the environment.
    ///
    /// # Errors
    /// As [`EmbeddedPostgres::start`].
    pub async fn start_with(bin_dir: Option<PathBuf>) -> Result<Self, Error> {
        let parent = parent_directory();
        let (directory, reaper) = tokio::task::spawn_blocking(move || {
            sweep(&parent);
            let directory = make_directory(&parent)?;
            let reaper = spawn_reaper(&directory)
                .inspect_err(|error| {
                    tracing::warn!(%error, "no shell: the directory is swept by the next run");
                })
                .ok();
            Ok::<_, Error>((directory, reaper))
        })
        .await
        .map_err(|_| Error::Cancelled)??;
        // From here on dropping cleans up, even if the start fails or is cancelled.
        let mut throwaway = Self {
            server: None,
            directory,
            reaper,
        };
        let settings = Settings {
            data_dir: throwaway.directory.clone(),
            bin_dir,
            durability: Durability::Throwaway,
        };
        throwaway.server = Some(EmbeddedPostgres::start(settings).await?);
        Ok(throwaway)
    }

    /// Returns the URL of a database of this server. The databases `labdata` and `postgres` exist; the
    /// role is a superuser.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        self.server
            .as_ref()
            .map(|server| server.maintenance_url(database))
            .unwrap_or_default()
    }
}

impl Drop for ThrowawayServer {
    fn drop(&mut self) {
        if let Some(server) = &self.server
            && let Err(error) = server.stop_blocking()
        {
            tracing::warn!(%error, "the throwaway server is left to the reaper");
        }
        if self.server.is_some()
            && let Err(error) = fs::remove_dir_all(&self.directory)
        {
            tracing::warn!(%error, "the throwaway directory is left to the reaper");
        }
        if let Some(reaper) = &mut self.reaper {
            drop(reaper.stdin.take());
            // Waiting avoids a zombie; the shell's status is irrelevant.
            let _ = reaper.wait();
        }
    }
}

/// Returns the RAM disk if it is writable, or the directory for temporary files.
fn parent_directory() -> PathBuf {
    let ram = Path::new("/dev/shm");
    let writable = rustix::fs::access(ram, rustix::fs::Access::WRITE_OK).is_ok();
    if writable && ram.is_dir() {
        ram.to_owned()
    } else {
        std::env::temp_dir()
    }
}

fn make_directory(parent: &Path) -> Result<PathBuf, Error> {
    let directory = tempfile::Builder::new()
        .prefix(&format!("{PREFIX}{}-", std::process::id()))
        .tempdir_in(parent)
        .map_err(Error::io("make a directory in", parent))?;
    fs::set_permissions(directory.path(), Permissions::from_mode(0o711))
        .map_err(Error::io("set the permissions of", directory.path()))?;
    Ok(directory.keep())
}

fn spawn_reaper(directory: &Path) -> io::Result<Child> {
    Command::new("/bin/sh")
        .args(["-c", REAPER, "labdata-throwaway-reaper"])
        .arg(directory)
        .current_dir("/")
        // Apart from the test process: an interrupt from the terminal, which ends that one, must not end the
        // cleaning.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Removes the directories of dead processes whose reapers were killed too.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if is_stale(&entry.file_name().to_string_lossy())
            && let Err(error) = sweep_one(&entry.path())
        {
            // It may belong to another user.
            tracing::debug!(%error, directory = %entry.path().display(), "cannot be swept");
        }
    }
}

/// Returns whether the name is that of a throwaway directory whose process is dead.
fn is_stale(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .and_then(|rest| rest.split('-').next())
        .and_then(|pid| parse_pid(pid.as_ref()))
        .is_some_and(|pid| !exists(pid))
}

fn sweep_one(directory: &Path) -> Result<(), Error> {
    // A process of another container may be alive although its id is unknown here.
    let Some(_lock) = layout::try_lock(directory)? else {
        return Ok(());
    };
    leftovers::clear(&directory.join("postgres"), &directory.join("postgres-run"))?;
    fs::remove_dir_all(directory).map_err(Error::io("remove", directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_of_dead_processes_are_stale() {
        assert!(!is_stale(&format!("{PREFIX}{}-abc", std::process::id())));
        // Process ids stay below 2^22 on Linux.
        assert!(is_stale(&format!("{PREFIX}2147483646-abc")));
        assert!(!is_stale("labdata-something-2147483646"));
        assert!(!is_stale(&format!("{PREFIX}abc")));
    }

    #[test]
    fn the_sweep_takes_the_stale_and_leaves_the_rest() {
        let parent = tempfile::tempdir().expect("temporary directory");
        let stale = parent.path().join(format!("{PREFIX}2147483646-a"));
        let own = parent
            .path()
            .join(format!("{PREFIX}{}-b", std::process::id()));
        let foreign = parent.path().join("something");
        for directory in [&stale, &own, &foreign] {
            fs::create_dir(directory).expect("directory");
        }
        sweep(parent.path());
        assert!(!stale.exists() && own.exists() && foreign.exists());
    }
}
