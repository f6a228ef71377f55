//! System account that the server runs as.
//!
//! PostgreSQL refuses to run as root. An ordinary user runs it directly; root runs it as the owner of
//! the cluster, which for a new cluster is `postgres`, or the user without rights that every system has.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

use crate::Error;

/// Accounts that root tries for a new cluster, in this order.
const CANDIDATES: [&str; 3] = ["postgres", "_postgres", "nobody"];

/// Account that the server runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Account {
    /// The account of this process.
    Own,
    /// Another account, because this process runs as root.
    Other {
        /// User id.
        uid: u32,
        /// Group id; the server has no other groups.
        gid: u32,
    },
}

impl Account {
    /// Chooses the account for the cluster, which may not exist yet.
    pub(crate) fn for_cluster(cluster: &Path) -> Result<Self, Error> {
        let own = rustix::process::geteuid().as_raw();
        let owner = fs::metadata(cluster).ok();
        // Only root can run the server as someone else, and PostgreSQL refuses to run as root.
        if own != 0 {
            return match owner {
                Some(owner) if owner.uid() != own => Err(Error::ForeignCluster {
                    cluster: cluster.to_owned(),
                    owner: owner.uid(),
                }),
                _ => Ok(Self::Own),
            };
        }
        // An existing cluster stays with its account, whichever accounts the machine has now.
        if let Some(owner) = owner
            && owner.uid() != 0
        {
            return Ok(Self::Other {
                uid: owner.uid(),
                gid: owner.gid(),
            });
        }
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        CANDIDATES
            .iter()
            .find_map(|name| find_in_passwd(&passwd, name))
            .ok_or(Error::NoServerAccount)
    }

    /// Makes the account the owner of a file or directory.
    pub(crate) fn own(self, path: &Path) -> Result<(), Error> {
        match self {
            Self::Own => Ok(()),
            Self::Other { uid, gid } => {
                chown(path, Some(uid), Some(gid)).map_err(Error::io("change the owner of", path))
            }
        }
    }

    /// Returns the user id of the account.
    pub(crate) fn uid(self) -> u32 {
        match self {
            Self::Own => rustix::process::geteuid().as_raw(),
            Self::Other { uid, .. } => uid,
        }
    }

    /// Returns whether the directory's own `x` bit admits the account; ancestors are ignored.
    fn passes(self, directory: &Path) -> bool {
        let Self::Other { uid, gid } = self else {
            return true;
        };
        let Ok(metadata) = fs::metadata(directory) else {
            return false;
        };
        // The kernel looks at the first class that applies only: an owner without the right is refused.
        let bit = if metadata.uid() == uid {
            0o100
        } else if metadata.gid() == gid {
            0o010
        } else {
            0o001
        };
        metadata.mode() & bit != 0
    }

    /// Returns whether the account can reach the contents of the directory.
    pub(crate) fn reaches(self, directory: &Path) -> bool {
        directory.ancestors().all(|ancestor| self.passes(ancestor))
    }

    /// Returns whether the directory itself, and none of its ancestors, denies access to the account.
    pub(crate) fn is_barred_only_by(self, directory: &Path) -> bool {
        !self.passes(directory)
            && directory
                .parent()
                .is_some_and(|parent| self.reaches(parent))
    }
}

/// Finds a user in the text of `/etc/passwd`; never returns root.
fn find_in_passwd(passwd: &str, name: &str) -> Option<Account> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        // Behind the name come the password, which is skipped, the user id and the group id.
        let uid = parse_id(fields.nth(1)?)?;
        let gid = parse_id(fields.next()?)?;
        (uid != 0).then_some(Account::Other { uid, gid })
    })
}

/// Parses an id. macOS writes some as negative numbers, such as `-2`.
fn parse_id(text: &str) -> Option<u32> {
    text.parse::<u32>()
        .ok()
        // Directory services of macOS write the unprivileged account as -2.
        .or_else(|| text.parse::<i32>().ok().map(i32::cast_unsigned))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn finds_users_and_never_root() {
        let passwd = "root:x:0:0::/root:/bin/sh\npostgres:x:101:104:,,,:/var/lib:/bin/bash\n\
                      nobody:*:-2:-2::/:/usr/bin/false\nbad:x:y:z\n";
        assert_eq!(
            find_in_passwd(passwd, "postgres"),
            Some(Account::Other { uid: 101, gid: 104 })
        );
        assert_eq!(
            find_in_passwd(passwd, "nobody"),
            Some(Account::Other {
                uid: u32::MAX - 1,
                gid: u32::MAX - 1
            })
        );
        assert_eq!(find_in_passwd(passwd, "root"), None);
        assert_eq!(find_in_passwd(passwd, "bad"), None);
    }

    #[test]
    fn a_private_directory_keeps_strangers_out() {
        let directory = tempfile::tempdir().expect("temporary directory");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).expect("mode");
        let stranger = Account::Other {
            uid: 4_000_000,
            gid: 4_000_000,
        };
        assert!(stranger.is_barred_only_by(directory.path()));
        assert!(!stranger.reaches(directory.path()));
        assert!(Account::Own.reaches(directory.path()));
        assert!(stranger.reaches(Path::new("/usr")));
    }
}
