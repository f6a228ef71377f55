//! Paths that sandboxed processes may read.

use std::path::{Path, PathBuf};

/// System paths that processes may read: programs, libraries, and the configuration of name, user
/// and certificate lookups. Directories of private keys, such as `/etc/ssl/private`, are beside them.
const SYSTEM_PATHS: [&str; 37] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/gnu/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/ct_log_list.cnf",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
    "/etc/os-release",
];

/// Returns the system's paths and those that Python requires, without the hidden ones. A directory
/// above a hidden path is replaced by its other entries: Landlock cannot except a path.
pub(crate) fn readable_paths(python: &[PathBuf], hidden: &[PathBuf]) -> Vec<PathBuf> {
    let hidden: Vec<PathBuf> = hidden
        .iter()
        .map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()))
        .collect();
    let mut readable = Vec::new();
    let permitted = SYSTEM_PATHS.map(PathBuf::from);
    for path in permitted.into_iter().chain(python.iter().cloned()) {
        add_without(&path, &hidden, &mut readable);
    }
    readable
}

fn add_without(path: &Path, hidden: &[PathBuf], readable: &mut Vec<PathBuf>) {
    // A link, such as /lib, leads to its target.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if hidden.iter().any(|hidden| target.starts_with(hidden)) {
        return;
    }
    // What is hidden lies below: its neighbors are permitted one by one.
    if hidden.iter().any(|hidden| hidden.starts_with(&target)) {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            add_without(&entry.path(), hidden, readable);
        }
    } else {
        readable.push(path.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn private_keys_of_the_system_are_not_readable() {
        for key in [
            "/etc/ssl/private/key.pem",
            "/etc/pki/tls/private/key.pem",
            "/etc/pki/nginx/private/key.pem",
            "/etc/shadow",
        ] {
            let readable = readable_paths(&[], &[]);
            let above = readable
                .iter()
                .find(|path| Path::new(key).starts_with(path));
            assert_eq!(above, None, "{key}");
        }
    }

    #[test]
    fn a_hidden_directory_is_excepted_and_what_stands_beside_it_is_not() {
        let python = tempfile::tempdir().unwrap();
        let objects = python.path().join("share/lab/objects");
        fs::create_dir_all(&objects).unwrap();
        fs::create_dir_all(python.path().join("share/doc")).unwrap();
        fs::create_dir_all(python.path().join("lib")).unwrap();
        symlink(&objects, python.path().join("link")).unwrap();
        let root = python.path().canonicalize().unwrap();
        let mut readable = readable_paths(std::slice::from_ref(&root), &[objects]);
        readable.retain(|path| path.starts_with(&root));
        readable.sort();
        assert_eq!(readable, [root.join("lib"), root.join("share/doc")]);
    }
}
