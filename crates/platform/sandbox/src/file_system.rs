//! Lock files, and the removal of what scripts leave behind.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

/// Opens a file to be locked, created if missing.
pub(crate) fn lock_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
}

/// Removes a directory tree, including directories that a script has made inaccessible.
pub(crate) fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_accessible(directory)?;
            fs::remove_dir_all(directory)
        }
        response => response,
    }
}

fn make_accessible(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // The type of the entry itself: a link that a script made must not lead out of the directory.
        if entry.file_type()?.is_dir() {
            make_accessible(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_that_a_script_made_inaccessible_are_removed() {
        let data = tempfile::tempdir().unwrap();
        let closed = data.path().join("scratch/closed");
        fs::create_dir_all(closed.join("below")).unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
        remove(&data.path().join("scratch")).unwrap();
        assert!(!data.path().join("scratch").exists());
    }
}
