//! Password of the cluster's superuser.
//!
//! The socket's directory retains other accounts out, but not scripts that run as the platform's own
//! account. So the server asks for a password, which is in a file that only this account can read and
//! that scripts in a sandbox cannot. A cluster that asks for none is changed at its next start.
//!
//! The order of the steps makes every one of them safe to die after: the role gets the password, the
//! file gets its name, and the access rules come last. A start repeats all of them unless both the
//! rules and the file are in place.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

use crate::account::Account;
use crate::binaries::Binaries;
use crate::connection_url::NAME;
use crate::layout::Layout;
use crate::single_user::run_single_user;
use crate::{Durability, Error, leftovers};

/// Name of the file, in the data directory.
const FILE: &str = "postgres-password";

/// Name of the access rules, in the cluster.
const RULES_FILE: &str = "pg_hba.conf";

/// Access rules of a cluster. TCP is off, so there is no rule for it.
const RULES: &str = "\
# Written by labdata. The password is in the file postgres-password of the data directory.
# Rules of other methods than scram-sha-256 and reject are replaced at the next start.
local all         all scram-sha-256
local replication all scram-sha-256
";

/// Length of the password, in bytes, before it is written in hexadecimal digits.
const BYTES: usize = 32;

/// Reads the password. Returns none without a file, or if the file contains something else.
pub(crate) fn read(data_dir: &Path) -> Result<Option<String>, Error> {
    let path = data_dir.join(FILE);
    let found = match fs::read_to_string(&path) {
        Ok(found) => found,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) => {
            return Ok(None);
        }
        Err(source) => {
            return Err(Error::Io {
                what: "read",
                path,
                source,
            });
        }
    };
    let well_formed =
        // The text goes into a statement, so nothing else than hexadecimal digits is used.
        found.len() == 2 * BYTES && found.bytes().all(|byte| byte.is_ascii_hexdigit());
    Ok(well_formed.then_some(found))
}

/// Returns the statement that gives a new cluster its password, which is in the file from then on.
pub(crate) fn statement_for_new_cluster(layout: &Layout) -> Result<String, Error> {
    if let Some(password) = read(&layout.data_dir)? {
        // Of a start that was interrupted, or of a cluster that no longer exists.
        return Ok(statement(&password));
    }
    let password = random()?;
    replace(&layout.data_dir, FILE, &password, Account::Own)?;
    Ok(statement(&password))
}

/// Makes a cluster ask for a password.
pub(crate) fn write_rules(cluster: &Path, account: Account) -> Result<(), Error> {
    replace(cluster, RULES_FILE, RULES, account)
}

/// Makes sure that the cluster asks for the password in the file, and that only this account can read
/// the file. The server must not run.
pub(crate) fn require(layout: &Layout, binaries: &Binaries) -> Result<(), Error> {
    let known = read(&layout.data_dir)?;
    let rules = fs::read_to_string(layout.cluster.join(RULES_FILE)).unwrap_or_default();
    let file = layout.data_dir.join(FILE);
    if known.is_some() {
        fs::set_permissions(&file, Permissions::from_mode(0o600))
            .map_err(Error::io("set the permissions of", &file))?;
        if ask_for_password(&rules) {
            return Ok(());
        }
    }
    tracing::info!(
        file = %file.display(),
        "PostgreSQL asks for a password from now on, which is in the file",
    );
    leftovers::clear(&layout.cluster, &layout.socket_dir)?;
    // Processes that wait to take over know the old password.
    let password = known.map_or_else(random, Ok)?;
    run_single_user(
        &layout.cluster,
        layout.account,
        binaries,
        Durability::Durable,
        &statement(&password),
    )
    .map_err(|error| match error {
        Error::Initdb { output } => Error::Password { output },
        other => other,
    })?;
    replace(&layout.data_dir, FILE, &password, Account::Own)?;
    if ask_for_password(&rules) {
        return Ok(());
    }
    // Saved, because an operator may have written rules there.
    let saved = format!("{RULES_FILE}.replaced");
    replace(&layout.cluster, &saved, &rules, layout.account)?;
    write_rules(&layout.cluster, layout.account)
}

/// Returns whether all access rules demand a password, or refuse.
fn ask_for_password(rules: &str) -> bool {
    let mut methods = rules
        .lines()
        .filter_map(|line| {
            let (rule, _) = line.split_once('#').unwrap_or((line, ""));
            rule.split_whitespace().last()
        })
        .peekable();
    // A file without rules rejects everyone; it is replaced as well.
    methods.peek().is_some() && methods.all(|method| matches!(method, "scram-sha-256" | "reject"))
}

fn statement(password: &str) -> String {
    format!("ALTER ROLE {NAME} PASSWORD '{password}'\n")
}

/// Replaces a file, atomically and durably, by one that only the account can read.
fn replace(directory: &Path, name: &str, text: &str, account: Account) -> Result<(), Error> {
    let new = directory.join(format!("{name}.new"));
    let path = directory.join(name);
    // One of an interrupted start may have another owner.
    let _ = fs::remove_file(&new);
    OpenOptions::new()
        .write(true)
        .create_new(true)
        // Set at creation: a later chmod would leave a moment in which others can open it.
        .mode(0o600)
        .open(&new)
        .and_then(|mut file| {
            if let Account::Other { uid, gid } = account {
                fchown(&file, Some(uid), Some(gid))?;
            }
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
        .map_err(Error::io("write", &new))?;
    fs::rename(&new, &path).map_err(Error::io("rename", &new))?;
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(Error::io("sync", directory))
}

/// Random bytes as hexadecimal digits.
fn random() -> Result<String, Error> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0_u8; BYTES];
    File::open(source)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(Error::io("read", source))?;
    Ok(base16ct::lower::encode_string(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_trust_anyone_are_recognized() {
        assert!(ask_for_password(RULES));
        assert!(ask_for_password("local all all scram-sha-256 # trust\n"));
        for rules in [
            "",
            "# local all all scram-sha-256\n",
            "local all all trust\n",
            "local all all scram-sha-256\nlocal all all trust\n",
            "local all all peer\n",
            "local all all peer map=lab\n",
            "local all all \\\n trust\n",
            "include other.conf\n",
        ] {
            assert!(!ask_for_password(rules), "{rules:?}");
        }
    }

    #[test]
    fn only_a_whole_password_is_taken_for_one() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let read = || read(directory.path()).expect("readable");
        assert_eq!(read(), None);
        let password = random().expect("random bytes");
        assert_ne!(password, random().expect("random bytes"));
        for (text, expected) in [
            ("", None),
            ("0123", None),
            (&*"ü".repeat(32), None),
            (&*password, Some(password.clone())),
        ] {
            replace(directory.path(), FILE, text, Account::Own).expect("written");
            assert_eq!(read(), expected);
        }
        fs::write(directory.path().join(FILE), [0xff; 64]).expect("written");
        assert_eq!(read(), None);
    }
}
