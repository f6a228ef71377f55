//! Files and directories that only the platform's account may open.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use rustix::{fs::Mode, process};

/// Rights of all accounts but the owner.
pub(crate) const OTHERS: u32 = 0o077;

/// Rights to read and write of all accounts. They may still pass: PostgreSQL and scripts, which run as
/// other accounts where the platform is root, have directories below.
pub(crate) const WORLD_CONTENTS: u32 = 0o006;

/// Marks a directory that accounts share, such as `/tmp`.
const STICKY: u32 = 0o1000;

/// Makes all files that this process and its children create private. What another account needs gets
/// its mode where it is created.
pub(crate) fn by_default() {
    process::umask(Mode::RWXG | Mode::RWXO);
}

/// Creates a directory with its missing parents. Other accounts pass them if the platform is root, which
/// runs PostgreSQL and scripts as such.
///
/// # Errors
/// Those of the file system.
pub(crate) fn create(directory: &Path) -> io::Result<()> {
    let mode = if process::geteuid().is_root() {
        0o711
    } else {
        0o700
    };
    let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let missing: Vec<&Path> = directory.ancestors().take_while(is_missing).collect();
    for directory in missing.into_iter().rev() {
        match fs::create_dir(directory) {
            // Set by itself, because the umask of the process may take rights away.
            Ok(()) => fs::set_permissions(directory, Permissions::from_mode(mode))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Takes those rights from a directory that existed before; one that is missing needs nothing. Returns
/// false where it belongs to another account or is shared, as its sticky bit says, or its file system has no rights,
/// and others keep theirs.
///
/// # Errors
/// Those of the file system.
pub(crate) fn adopt(directory: &Path, rights: u32) -> io::Result<bool> {
    let metadata = match fs::metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        found => found?,
    };
    let mode = metadata.mode() & 0o7777;
    if mode & rights == 0 {
        return Ok(true);
    }
    if metadata.uid() != process::geteuid().as_raw() || mode & STICKY != 0 {
        return Ok(false);
    }
    fs::set_permissions(directory, Permissions::from_mode(mode & !rights))?;
    tracing::info!(directory = %directory.display(), "other accounts could open it, and cannot any longer");
    // Read again: some file systems accept the change and ignore it.
    Ok(fs::metadata(directory)?.mode() & rights == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(directory: &Path) -> u32 {
        fs::metadata(directory).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_directory_is_created_with_its_parents_and_closed_to_others() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("srv/lab");
        create(&directory).unwrap();
        create(&directory).unwrap();
        for created in [&directory, &place.path().join("srv")] {
            assert_eq!(mode(created) & 0o066, 0);
        }
    }

    #[test]
    fn a_directory_that_others_could_open_is_closed_to_them() {
        let directory = tempfile::tempdir().unwrap();
        for (before, rights, after) in [
            (0o755, OTHERS, 0o700),
            (0o777, OTHERS, 0o700),
            (0o755, WORLD_CONTENTS, 0o751),
            (0o711, WORLD_CONTENTS, 0o711),
            (0o700, OTHERS, 0o700),
        ] {
            fs::set_permissions(&directory, Permissions::from_mode(before)).unwrap();
            assert!(adopt(directory.path(), rights).unwrap());
            assert_eq!(mode(directory.path()), after, "{before:o}");
        }
        assert!(adopt(&directory.path().join("missing"), OTHERS).unwrap());
        fs::set_permissions(&directory, Permissions::from_mode(0o1777)).unwrap();
        assert!(!adopt(directory.path(), OTHERS).unwrap());
        assert_eq!(mode(directory.path()), 0o1777);
    }
}
