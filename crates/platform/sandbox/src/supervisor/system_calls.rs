//! System calls that the program and its descendants must not make.
//!
//! Some create memory that no limit counts, some get around namespaces and Landlock. Programs meet the
//! same refusals in containers and have fallbacks. Where the architecture is unknown, nothing is
//! refused.

/// Refuses the calls for this process and its descendants. Requires `no_new_privs`.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub(super) fn restrict() -> Result<(), String> {
    filters::install().map_err(|error| format!("seccomp: {error}"))
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub(super) fn restrict() -> Result<(), String> {
    Ok(())
}

/// Refuses besides what a process never does that only reads and writes files that it has open.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub(super) fn restrict_to_pipes() -> Result<(), String> {
    filters::install()
        .and_then(|()| filters::refuse_all_but_pipes())
        .map_err(|error| format!("seccomp: {error}"))
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub(super) fn restrict_to_pipes() -> Result<(), String> {
    Ok(())
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod filters {
    use std::collections::BTreeMap;

    use nix::libc;
    use seccompiler::{
        BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp,
        SeccompCondition, SeccompFilter, SeccompRule, TargetArch, apply_filter,
    };

    /// Calls that seem to be missing in the kernel.
    const MISSING: [libc::c_long; 17] = [
        // Files in memory without a process that they count for.
        libc::SYS_memfd_create,
        libc::SYS_memfd_secret,
        // Objects that outlive all processes.
        libc::SYS_shmget,
        libc::SYS_semget,
        libc::SYS_msgget,
        libc::SYS_mq_open,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_keyctl,
        // Its flags cannot be read by a filter; libraries then use `clone`.
        libc::SYS_clone3,
        // Calls that no filter sees.
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        // Large parts of the kernel that scripts do not need.
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_open_by_handle_at,
    ];

    /// Calls that are not permitted: they change namespaces.
    const FORBIDDEN: [libc::c_long; 2] = [libc::SYS_unshare, libc::SYS_setns];

    /// Calls for which a process has no use that has all its files open: others, processes, sockets.
    const BEYOND_PIPES: [libc::c_long; 12] = [
        libc::SYS_openat,
        libc::SYS_openat2,
        libc::SYS_execve,
        libc::SYS_execveat,
        libc::SYS_clone,
        libc::SYS_socket,
        libc::SYS_socketpair,
        libc::SYS_connect,
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_prlimit64,
    ];

    /// Those of them that newer architectures do not have.
    #[cfg(target_arch = "x86_64")]
    const OLD_BEYOND_PIPES: [libc::c_long; 4] = [
        libc::SYS_open,
        libc::SYS_creat,
        libc::SYS_fork,
        libc::SYS_vfork,
    ];
    #[cfg(not(target_arch = "x86_64"))]
    const OLD_BEYOND_PIPES: [libc::c_long; 0] = [];

    /// Address families that a socket may have. Others reach past a network namespace, such as
    /// `AF_VSOCK`, which reaches the machine's host.
    const FAMILIES: [libc::c_int; 4] = [
        libc::AF_UNIX,
        libc::AF_INET,
        libc::AF_INET6,
        libc::AF_NETLINK,
    ];

    /// Added to the number of a call by programs for the x32 interface.
    #[cfg(target_arch = "x86_64")]
    const INTERFACES: [i64; 2] = [0, 0x4000_0000];
    #[cfg(not(target_arch = "x86_64"))]
    const INTERFACES: [i64; 1] = [0];

    pub(super) fn install() -> Result<(), Error> {
        let always =
            |calls: &[libc::c_long]| calls.iter().map(|call| (*call, Vec::new())).collect();
        // ENOSYS makes libraries fall back to older calls; EPERM would be an error to them.
        apply(always(&MISSING), libc::ENOSYS)?;
        let mut forbidden: Rules = always(&FORBIDDEN);
        forbidden.insert(libc::SYS_clone, vec![new_user_namespace()?]);
        apply(forbidden, libc::EPERM)?;
        // A rule matches when all of its conditions do, so "none of these" is one rule.
        let other_family = FAMILIES
            .into_iter()
            .map(|family| condition(SeccompCmpOp::Ne, family))
            .collect::<Result<Vec<_>, _>>()?;
        let socket = BTreeMap::from([(libc::SYS_socket, vec![SeccompRule::new(other_family)?])]);
        apply(socket, libc::EAFNOSUPPORT)
    }

    pub(super) fn refuse_all_but_pipes() -> Result<(), Error> {
        let calls = BEYOND_PIPES.iter().chain(&OLD_BEYOND_PIPES);
        apply(calls.map(|call| (*call, Vec::new())).collect(), libc::EPERM)
    }

    type Rules = BTreeMap<i64, Vec<SeccompRule>>;

    /// Returns a rule for a call whose first argument asks for a user namespace.
    fn new_user_namespace() -> Result<SeccompRule, BackendError> {
        let flag = libc::CLONE_NEWUSER;
        let mask = u64::try_from(flag).unwrap_or_default();
        SeccompRule::new(vec![condition(SeccompCmpOp::MaskedEq(mask), flag)?])
    }

    /// Returns a condition on the first argument.
    fn condition(operator: SeccompCmpOp, value: i32) -> Result<SeccompCondition, BackendError> {
        let value = u64::try_from(value).unwrap_or_default();
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, operator, value)
    }

    /// Refuses the calls with that error.
    fn apply(rules: Rules, error: libc::c_int) -> Result<(), Error> {
        let rules: Rules = rules
            .into_iter()
            // The x32 interface reaches the same calls under other numbers on x86-64.
            .flat_map(|(call, rules)| INTERFACES.map(|interface| (call + interface, rules.clone())))
            .collect();
        let refusal = SeccompAction::Errno(u32::try_from(error).unwrap_or_default());
        let architecture = if cfg!(target_arch = "x86_64") {
            TargetArch::x86_64
        } else {
            TargetArch::aarch64
        };
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, architecture)?;
        let program: BpfProgram = filter.try_into()?;
        apply_filter(&program)
    }
}
