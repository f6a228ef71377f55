//! Privileges that the child gives up before it executes the program.

use crate::launch::LaunchAccount;

/// Drops every capability, and prevents regaining any by executing a file.
#[cfg(target_os = "linux")]
pub(crate) fn drop_privileges() -> Result<(), String> {
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

    nix::sys::prctl::set_no_new_privs().map_err(|error| format!("no_new_privs: {error}"))?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).map_err(|error| format!("capabilities: {error}"))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn drop_privileges() -> Result<(), String> {
    Ok(())
}

/// Becomes that account, without supplementary groups but that of the request.
pub(super) fn become_account(account: &LaunchAccount) -> Result<(), String> {
    use nix::unistd::{Gid, Uid, setgid, setuid};

    let id = account.id;
    let failed = |error| format!("becoming user {id}: {error}");
    #[cfg(not(target_os = "macos"))]
    {
        let groups: Vec<Gid> = account.group.into_iter().map(Gid::from_raw).collect();
        nix::unistd::setgroups(&groups).map_err(failed)?;
    }
    setgid(Gid::from_raw(id)).map_err(failed)?;
    setuid(Uid::from_raw(id)).map_err(failed)
}
