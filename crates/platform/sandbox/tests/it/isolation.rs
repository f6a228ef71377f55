//! Trials of the isolation, and its minimum.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, symlink},
        net::UnixListener,
    },
    path::Path,
    time::Duration,
};

use labdata_sandbox::{
    Isolation::{Landlock, Namespaces, Nothing},
    Network, Python, Sandbox, SandboxError, Settings,
};
use landlock::{AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};

use crate::support::{Lab, data_directory, settings};

/// Replaces the supervisor by a program that fails while the file `broken` exists, once for each line
/// of the file.
fn with_breakable_supervisor(settings: &mut Settings, data: &Path) {
    let program = data.join("supervisor");
    let text = format!(
        "#!/bin/sh\nif [ -s '{0}' ]; then /usr/bin/sed -i 1d '{0}'; exit 1; fi\nexec '{1}'\n",
        data.join("broken").display(),
        settings.supervisor.first().unwrap().display()
    );
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    settings.supervisor = vec![program.into()];
}

#[tokio::test]
async fn below_the_minimum_no_process_starts_and_a_later_trial_may_succeed() {
    if Lab::isolated(Namespaces).await.is_none() {
        return;
    }
    let data = data_directory();
    let mut settings = settings(data.path(), Namespaces);
    settings.minimum = Namespaces;
    with_breakable_supervisor(&mut settings, data.path());
    // Two trials.
    fs::write(data.path().join("broken"), "1\n2\n").unwrap();
    let sandbox = Sandbox::new(settings);
    let refused = sandbox.host().await.unwrap_err();
    assert!(
        matches!(&refused, SandboxError::InsufficientIsolation(reasons) if reasons.contains("Namespaces")),
        "{refused:?}"
    );
    assert_eq!(sandbox.host().await.unwrap().isolation(), Namespaces);
}

#[tokio::test]
async fn an_isolation_that_failed_once_is_tried_again_and_not_given_up() {
    if Lab::isolated(Namespaces).await.is_none() || Lab::isolated(Landlock).await.is_none() {
        return;
    }
    let data = data_directory();
    let mut settings = Settings {
        minimum: Landlock,
        retrial: Duration::ZERO,
        ..settings(data.path(), Landlock)
    };
    settings.isolation = Namespaces;
    with_breakable_supervisor(&mut settings, data.path());
    fs::write(data.path().join("broken"), "1\n").unwrap();
    let sandbox = Sandbox::new(settings);
    assert_eq!(sandbox.host().await.unwrap().isolation(), Landlock);
    assert_eq!(sandbox.host().await.unwrap().isolation(), Namespaces);
    // A failure after that does not lower it.
    fs::write(data.path().join("broken"), "1\n2\n3\n").unwrap();
    assert_eq!(sandbox.host().await.unwrap().isolation(), Namespaces);
}

#[tokio::test]
async fn a_worker_with_a_fresh_data_directory_runs_scripts() {
    let parent = data_directory();
    let data = parent.path().join("new/data");
    let sandbox = Sandbox::new(settings(&data, Namespaces));
    sandbox.host().await.unwrap();
    assert!(data.join("jobs").is_dir());
}

#[tokio::test]
async fn under_landlock_as_root_a_script_has_another_account_than_the_platform() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return; // An ordinary user has one account.
    }
    let Some(lab) = Lab::isolated(Landlock).await else {
        return;
    };
    let script = "import os\nprint(os.getuid(), os.getgid(), os.getgroups())\n\
                  open('own', 'w').write('1')\nprint(os.stat('own').st_uid == os.getuid())\n";
    let (outcome, log) = lab.run(script, Network::Host).await;
    let account: u32 = log.split(' ').next().unwrap().parse().unwrap();
    assert!(account >= 1_500_000_000, "{log} {outcome:?}");
    assert_eq!(log, format!("{account} {account} []\nTrue\n"));
}

#[tokio::test]
async fn as_root_landlock_is_refused_where_another_account_cannot_enter() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return; // An ordinary user has one account.
    }
    // The platform opens its data directory, but not what is above it.
    let home = data_directory();
    fs::set_permissions(home.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let data = home.path().join("data");
    fs::create_dir(&data).unwrap();
    let sandbox = Sandbox::new(Settings {
        minimum: Landlock,
        ..settings(&data, Landlock)
    });
    let refused = sandbox.host().await.unwrap_err().to_string();
    assert!(
        refused.contains(&format!(
            "only its owner can enter {}",
            home.path().display()
        )) && refused.contains("move the data directory"),
        "{refused}"
    );
}

#[tokio::test]
async fn as_root_scripts_have_another_python_where_only_root_can_run_that_of_the_path() {
    const NAME: &str =
        "isolation::as_root_scripts_have_another_python_where_only_root_can_run_that_of_the_path";
    const REPEATED: &str = "LABDATA_TEST_CLOSED_PATH";
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return; // An ordinary user runs scripts itself.
    }
    if std::env::var_os(REPEATED).is_some() {
        if let Some(lab) = Lab::isolated(Landlock).await {
            let (outcome, log) = lab.run("print('ran')\n", Network::Host).await;
            assert_eq!(log, "ran\n", "{outcome:?}");
        }
        return;
    }
    // A temporary directory is its owner's alone, as `/root` is.
    let closed = tempfile::tempdir().unwrap();
    let python = Python::find(None).unwrap();
    symlink(python.program(), closed.path().join("python3")).unwrap();
    let repeated = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME])
        .env("PATH", closed.path())
        .env(REPEATED, "yes")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&repeated.stdout);
    assert!(
        repeated.status.success() && text.contains("1 passed"),
        "{text}"
    );
}

#[tokio::test]
async fn libraries_find_the_machine_and_their_own_process_and_no_other() {
    const NEEDED: &str = "/proc/meminfo /proc/cpuinfo /proc/stat /proc/self/statm /proc/self/stat \
                          /proc/self/status /proc/self/maps /proc/self/fd";
    const OF_THE_MACHINE: &str = "/proc /proc/1/cmdline /proc/self/net/tcp /proc/self/task \
                                  /proc/self/mounts /proc/sys/kernel/hostname /dev/shm";
    for isolation in [Namespaces, Landlock] {
        let Some(lab) = Lab::isolated(isolation).await else {
            continue;
        };
        let paths = format!("{NEEDED} {OF_THE_MACHINE}");
        let script = format!(
            "import os\nfor path in '{paths}'.split():\n    try:\n        \
             os.listdir(path) if os.path.isdir(path) else open(path, 'rb').read(1)\n        \
             print(path)\n    except OSError:\n        pass\n"
        );
        let (_, log) = lab.run(&script, Network::Host).await;
        // In namespaces these are of the run alone.
        let expected = match isolation {
            Landlock => NEEDED,
            Namespaces | Nothing => &*paths,
        };
        let found: Vec<&str> = log.lines().collect();
        let expected: Vec<&str> = expected.split_whitespace().collect();
        assert_eq!(found, expected, "{isolation:?}");
    }
}

#[tokio::test]
async fn as_root_a_data_directory_that_is_closed_lets_scripts_pass() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return; // An ordinary user has one account.
    }
    let data = data_directory();
    fs::set_permissions(data.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let sandbox = Sandbox::new(settings(data.path(), Landlock));
    sandbox.host().await.unwrap();
    let mode = fs::metadata(data.path()).unwrap().mode() & 0o777;
    assert_eq!(mode, 0o711, "passed, and not listed");
}

#[tokio::test]
async fn directories_of_private_keys_are_not_seen() {
    for isolation in [Namespaces, Landlock] {
        let Some(lab) = Lab::isolated(isolation).await else {
            continue;
        };
        let script = "import os\nfor path in ['/etc/ssl/private', '/etc/ssl', '/etc/pki']:\n    try:\n        \
                      print(path, 'private' in os.listdir(path) or path.endswith('private'))\n    except OSError:\n        \
                      print(path, False)\nprint(os.path.exists('/etc/ssl/certs'))\n";
        let (_, log) = lab.run(script, Network::Host).await;
        let certificates = if Path::new("/etc/ssl/certs").exists() {
            "True"
        } else {
            "False"
        };
        assert_eq!(
            log,
            format!("/etc/ssl/private False\n/etc/ssl False\n/etc/pki False\n{certificates}\n"),
            "{isolation:?}"
        );
    }
}

/// Returns whether this kernel limits connections to sockets with a path (Linux 7.1).
fn kernel_limits_sockets() -> bool {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::ResolveUnix)
        .and_then(Ruleset::create)
        .is_ok()
}

#[tokio::test]
async fn under_landlock_a_socket_of_the_machine_is_not_reached_and_own_sockets_work() {
    let Some(lab) = Lab::isolated(Landlock).await else {
        return;
    };
    // Accessible to every account.
    let place = data_directory();
    let path = place.path().join("service");
    let _service = UnixListener::bind(&path).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
    let script = format!(
        "import socket\nown = socket.socket(socket.AF_UNIX)\nown.bind('own')\nown.listen()\n\
         for path in ['own', '{}']:\n    try:\n        \
         socket.socket(socket.AF_UNIX).connect(path)\n        print('connected')\n    \
         except PermissionError:\n        print('denied')\n",
        path.display()
    );
    let (_, log) = lab.run(&script, Network::Host).await;
    if kernel_limits_sockets() {
        assert_eq!(log, "connected\ndenied\n");
    } else {
        eprintln!("NOT TESTED: this kernel does not limit sockets with a path");
        assert!(log.starts_with("connected\n"), "{log}");
    }
}

/// Directory below `/usr`; removed when dropped.
struct SystemDirectory(std::path::PathBuf);

impl Drop for SystemDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn storage_below_a_readable_path_is_not_read() {
    for isolation in [Namespaces, Landlock, Nothing] {
        let storage = format!(
            "/usr/local/lib/labdata-test-{}-{isolation:?}",
            std::process::id()
        );
        let storage = SystemDirectory(storage.into());
        if fs::create_dir(&storage.0).is_err() {
            return; // Only root can write there.
        }
        fs::write(storage.0.join("object"), "of another organization").unwrap();
        let data = data_directory();
        let sandbox = Sandbox::new(Settings {
            hidden: vec![storage.0.clone()],
            ..settings(data.path(), isolation)
        });
        let Some(lab) = Lab::of(sandbox, data, isolation).await else {
            continue;
        };
        let script = format!(
            "try:\n    print(open('{}/object').read())\nexcept OSError:\n    print('denied')\n",
            storage.0.display()
        );
        let (_, log) = lab.run(&script, Network::Host).await;
        let expected = match isolation {
            Nothing => "of another organization\n",
            Landlock | Namespaces => "denied\n",
        };
        assert_eq!(log, expected, "{isolation:?}");
    }
}
