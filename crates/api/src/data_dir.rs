//! The data directory: only one of the platform's own is used, as its rights are changed and it is filled.

use std::{fs, io, path::Path};

use crate::settings::SettingsError;

/// Names of what the platform makes in its data directory.
const OWN: [&str; 10] = [
    "cache",
    "jobs",
    "objects",
    "postgres",
    "postgres-password",
    "postgres-run",
    "postgres.lock",
    "postgres.log",
    "postgres.reserve",
    "labdata.toml",
];

/// Files that only the platform makes. Operators may have put others beside them.
const MARKS: [&str; 3] = ["postgres.lock", "postgres/PG_VERSION", "objects/incoming"];

/// Name of a directory that file systems make at their root.
const FOUND: &str = "lost+found";

/// Refuses a path that is no directory, and a directory of others: one that is neither missing nor empty, and in which
/// the platform has made nothing.
///
/// # Errors
/// [`SettingsError`], as another directory must be set.
pub(crate) fn check(directory: &Path) -> Result<(), SettingsError> {
    let refusal = |reason: &str| {
        let directory = directory.display();
        SettingsError(format!(
            "LABDATA_DATA_DIR is {directory}, which {reason}; name a directory of its own"
        ))
    };
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return Err(refusal("is no directory"));
        }
        Err(error) => return Err(refusal(&format!("cannot be read ({error})"))),
    };
    if MARKS.iter().any(|mark| directory.join(mark).exists()) {
        return Ok(());
    }
    let is_own = |name: &str| OWN.contains(&name) || name == FOUND;
    for entry in entries {
        let entry = entry.map_err(|error| refusal(&format!("cannot be read ({error})")))?;
        if !entry.file_name().to_str().is_some_and(is_own) {
            return Err(refusal("holds other files"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tempfile::tempdir;

    use super::*;

    fn refused(directory: &Path) -> String {
        check(directory).unwrap_err().to_string()
    }

    #[test]
    fn a_directory_that_is_missing_empty_or_the_platforms_is_used() {
        let place = tempdir().unwrap();
        let directory = place.path();
        assert_eq!(check(&directory.join("missing/too")), Ok(()));
        assert_eq!(check(directory), Ok(()));
        fs::create_dir(directory.join(FOUND)).unwrap();
        fs::create_dir(directory.join("jobs")).unwrap();
        assert_eq!(check(directory), Ok(()));
        // What an operator puts beside the platform's own does no harm.
        fs::write(directory.join("postgres.lock"), "").unwrap();
        fs::write(directory.join("notes.txt"), "").unwrap();
        assert_eq!(check(directory), Ok(()));
    }

    #[test]
    fn a_file_and_a_directory_of_others_are_refused() {
        let place = tempdir().unwrap();
        let file = place.path().join("passwd");
        fs::write(&file, "").unwrap();
        let of_file = refused(&file);
        assert!(of_file.contains("which is no directory"), "{of_file}");
        let of_others = refused(place.path());
        assert!(
            of_others.ends_with("which holds other files; name a directory of its own"),
            "{of_others}"
        );
    }
}
