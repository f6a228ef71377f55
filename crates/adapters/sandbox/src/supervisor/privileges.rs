//! Privileges that the child gives up before it executes the program.

/// Drops every capability, and prevents regaining any by executing a file.
#[cfg(target_os = "linux")]
pub(super) fn drop_privileges() -> Result<(), String> {
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
pub(super) fn drop_privileges() -> Result<(), String> {
    Ok(())
}

/// Becomes that user and group, without supplementary groups.
pub(super) fn become_account(id: u32) -> Result<(), String> {
    use nix::unistd::{Gid, Uid, setgid, setuid};

    let failed = |error| format!("becoming user {id}: {error}");
    #[cfg(not(target_os = "macos"))]
    nix::unistd::setgroups(&[]).map_err(failed)?;
    setgid(Gid::from_raw(id)).map_err(failed)?;
    setuid(Uid::from_raw(id)).map_err(failed)
}
