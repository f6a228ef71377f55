//! Landlock: what the program may touch, held by the kernel, without any privilege.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope, path_beneath_rules,
};

use super::{Isolation, Order};

/// The newest rules that are asked for; an older kernel enforces those that it knows.
const NEWEST: ABI = ABI::V6;

/// What every program needs of the devices.
pub(super) const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// Restricts this process and all that it starts: files to those of the order, signals and
/// abstract sockets to each other, and no looking into processes outside.
pub(super) fn restrict(order: &Order) -> Result<(), String> {
    let own_view = order.isolation == Isolation::Namespaces;
    let mut readable: Vec<&Path> = order.readable.iter().map(|path| &**path).collect();
    let mut writable: Vec<&Path> = order.writable.iter().map(|path| &**path).collect();
    if own_view {
        readable.extend(["/proc", "/dev"].map(Path::new));
        writable.extend(["/tmp", "/dev/shm"].map(Path::new));
    }
    let all = AccessFs::from_all(NEWEST);
    let devices = AccessFs::from_file(NEWEST);
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .and_then(|rules| rules.scope(Scope::from_all(NEWEST)))
        .and_then(Ruleset::create)
        .and_then(|rules| {
            rules.add_rules(path_beneath_rules(readable, AccessFs::from_read(NEWEST)))
        })
        .and_then(|rules| rules.add_rules(path_beneath_rules(writable, all)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(DEVICES, devices)))
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(|error| format!("Landlock: {error}"))?;
    // With a file system of its own the program is kept apart already.
    if status.ruleset == RulesetStatus::NotEnforced && !own_view {
        return Err("this kernel has no Landlock".to_owned());
    }
    Ok(())
}
