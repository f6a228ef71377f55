//! Selection of the directory with the programs that copy a database.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    Error,
    binaries::{installed, parse_major},
    pinned_wheel,
};

/// Programs that make and restore copies.
const PROGRAMS: [&str; 2] = ["pg_dump", "pg_restore"];

/// Directory with `pg_dump` and `pg_restore` for a server of that major version: the one that the operator
/// named, or else the installed one that is nearest to the version and not older, which the programs
/// refuse. If none is installed, the pinned build below `cache_dir`, which is downloaded once. Blocks.
///
/// # Errors
/// [`Error::NoClientPrograms`]; [`Error::Io`] if the cache cannot be made.
pub fn client_programs(
    named: Option<&Path>,
    cache_dir: &Path,
    major: u32,
) -> Result<PathBuf, Error> {
    let places = named.map_or_else(installed, |named| vec![named.to_owned()]);
    choose(&places, major, || {
        if named.is_some() || major > pinned_wheel::MAJOR {
            return Ok(None);
        }
        fs::create_dir_all(cache_dir).map_err(Error::io("make the directory", cache_dir))?;
        pinned_wheel::fetch(cache_dir).map(Some)
    })
}

fn choose(
    places: &[PathBuf],
    major: u32,
    fetch: impl FnOnce() -> Result<Option<PathBuf>, Error>,
) -> Result<PathBuf, Error> {
    let mut tried = String::new();
    let mut note = |place: &Path, reason: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(tried, "  {}: {reason}", place.display());
    };
    let mut fitting = Vec::new();
    for place in places {
        match version(place) {
            Ok(found) if found >= major => fitting.push((found, place)),
            Ok(found) => note(place, &format!("is PostgreSQL {found}")),
            Err(reason) => note(place, &reason),
        }
    }
    if let Some((_, place)) = fitting.into_iter().min_by_key(|(found, _)| *found) {
        return Ok(place.clone());
    }
    match fetch() {
        Ok(Some(place)) => match version(&place) {
            Ok(_) => return Ok(place),
            Err(reason) => note(&place, &reason),
        },
        Ok(None) => {}
        Err(error) => note(Path::new("pip"), &error.to_string()),
    }
    let tried = tried.trim_end().to_owned();
    Err(Error::NoClientPrograms { major, tried })
}

/// Major version of the programs in a directory.
fn version(directory: &Path) -> Result<u32, String> {
    let [dump, restore] = PROGRAMS.map(|program| directory.join(program));
    if !dump.is_file() || !restore.is_file() {
        return Err("has no `pg_dump` and `pg_restore`".to_owned());
    }
    let output = Command::new(&dump)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`pg_dump` does not run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    parse_major(&text).ok_or_else(|| format!("`pg_dump --version` says {text:?}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Creates a directory whose programs only print their version.
    fn pretend(version: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("temporary directory");
        for program in PROGRAMS {
            let path = directory.path().join(program);
            let script = format!("#!/bin/sh\necho '{program} (PostgreSQL) {version}'\n");
            fs::write(&path, script).expect("script");
            fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("mode");
        }
        directory
    }

    #[test]
    fn the_nearest_version_that_is_not_older_serves() {
        let installed = ["18.1", "14.2", "16.4"].map(pretend);
        let places = installed.each_ref().map(|it| it.path().to_owned());
        let chosen = |major| choose(&places, major, || Ok(None)).expect("one serves");
        assert_eq!(chosen(15), installed[2].path());
        assert_eq!(chosen(16), installed[2].path());
        assert_eq!(chosen(17), installed[0].path());
    }

    #[test]
    fn without_any_the_pinned_build_is_fetched_and_otherwise_the_message_says_what_helps() {
        let (old, pinned) = (pretend("15.3"), pretend("18.6"));
        let places = [old.path().to_owned()];
        let fetched = choose(&places, 17, || Ok(Some(pinned.path().to_owned())));
        assert_eq!(fetched.expect("the pinned one"), pinned.path());
        let message = choose(&places, 17, || Ok(None))
            .expect_err("none")
            .to_string();
        for part in ["PostgreSQL 17", "LABDATA_PG_BIN_DIR", "is PostgreSQL 15"] {
            assert!(message.contains(part), "{part:?} is not in {message}");
        }
    }
}
