//! Isolation: files, processes and privileges that a script cannot reach.

use std::{fs, os::unix::fs::PermissionsExt, sync::Arc};

use labdata_local_runner::LocalRunner;
use labdata_port_contracts::work::spec;
use labdata_ports::work::runner::{JobRunner, RunnerError};
use labdata_sandbox::{
    Isolation::{self, Landlock, Namespaces},
    Sandbox, Settings,
};

use crate::support::{Lab, settings};

/// Prints for each of the paths in `PATHS` whether it can be read, listed or written.
const TOUCH: &str = r#"
import os
for path in os.environ["PATHS"].split(":"):
    for what, touch in [
        ("read", lambda: open(path, "rb").read(1)),
        ("list", lambda: os.listdir(path)),
        ("write", lambda: open(os.path.join(path, "new") if os.path.isdir(path) else path, "ab")),
    ]:
        try:
            touch()
            print("CAN", what, path)
        except OSError as error:
            print("cannot", what, path, error.strerror)
print("done")
"#;

/// Generates a test of each function at both levels of isolation.
macro_rules! at_each {
    ($($name:ident),+ $(,)?) => {
        mod in_namespaces {
            $(#[tokio::test] async fn $name() { super::$name(super::Namespaces).await; })+
        }
        mod under_landlock {
            $(#[tokio::test] async fn $name() { super::$name(super::Landlock).await; })+
        }
    };
}

at_each!(
    the_environment_of_the_server_is_not_seen,
    the_environment_of_other_processes_is_not_seen,
    other_runs_and_the_data_directory_are_not_touched,
    the_system_is_not_written,
    privileges_are_given_up,
    processes_outside_cannot_be_signalled,
);

async fn the_environment_of_the_server_is_not_seen(isolation: Isolation) {
    let Some(lab) = Lab::isolated(isolation).await else {
        return;
    };
    let log = lab
        .output("import os\nfor name in sorted(os.environ): print(name)\n")
        .await;
    let known = [
        "HOME",
        "LABDATA_BASE_URL",
        "LANG",
        "LC_CTYPE",
        "PATH",
        "PYTHONUNBUFFERED",
        "TMPDIR",
    ];
    for name in log.lines() {
        assert!(known.contains(&name), "{name} has reached the script");
    }
    assert!(log.contains("LABDATA_BASE_URL"));
}

async fn the_environment_of_other_processes_is_not_seen(isolation: Isolation) {
    let Some(lab) = Lab::isolated(isolation).await else {
        return;
    };
    // Another run, with a key in its environment.
    let mut other = spec("import time\nprint('begun')\ntime.sleep(600)\n");
    other
        .environment
        .push(("LABDATA_API_KEY".to_owned(), "ldk_secret".to_owned()));
    lab.begin(&other).await;
    // This test's process has CARGO_… and PATH, the other run its key.
    let log = lab
        .output(
            r#"
import os
try:
    names = os.listdir("/proc")
except OSError:
    names = map(str, range(1, 100000))
for name in names:
    if not name.isdigit() or int(name) == os.getpid():
        continue
    for file in ["environ", "maps", "mem", "cwd", "fd/0"]:
        path = f"/proc/{name}/{file}"
        try:
            text = os.readlink(path) if file in ("cwd", "fd/0") else open(path, "rb").read(100)
            print("CAN", path, text)
        except OSError:
            pass
print("done")
"#,
        )
        .await;
    assert!(!log.contains("CAN"), "{log}");
    assert!(log.contains("done"));
    lab.runner.reap(other.run).await.unwrap();
}

async fn other_runs_and_the_data_directory_are_not_touched(isolation: Isolation) {
    let Some(lab) = Lab::isolated(isolation).await else {
        return;
    };
    let other = spec(
        "import os, time\nopen('secret', 'w').write('s')\nos.chmod('.', 0o777)\nos.chmod('secret', 0o666)\nprint(os.getcwd())\ntime.sleep(600)\n",
    );
    let scratch = lab.begin(&other).await.trim().to_owned();
    let cluster = lab.data.path().join("postgres");
    fs::create_dir(&cluster).unwrap();
    let keys = cluster.join("keys");
    fs::write(&keys, "the table of keys").unwrap();
    for (path, mode) in [(&cluster, 0o777), (&keys, 0o666)] {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
    fs::set_permissions(lab.data.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let mut prober = spec(TOUCH);
    let data = lab.data.path().display();
    prober.environment.push((
        "PATHS".to_owned(),
        format!(
            "{scratch}:{scratch}/secret:{data}:{data}/postgres:{data}/postgres/keys:{data}/jobs:{data}/jobs/workers:/proc/1/root:/root:/etc/shadow"
        ),
    ));
    let (end, log) = lab.run(&prober).await;
    assert!(end.succeeded() && log.contains("done"), "{end:?} {log}");
    // In namespaces, the parent directories of the workspace exist, but are empty, and writes to them
    // do not reach the real ones.
    let own = prober.run.to_string();
    let above = [
        data.to_string(),
        format!("{data}/jobs"),
        format!("{data}/jobs/workers"),
    ];
    for line in log.lines().filter_map(|line| line.strip_prefix("CAN ")) {
        let (what, path) = line.split_once(' ').unwrap();
        let a_shadow = match what {
            "list" => above.iter().any(|directory| directory == path),
            "write" => path.starts_with(&above[0]) && !path.starts_with(&scratch),
            _ => false,
        };
        assert!(isolation == Namespaces && a_shadow, "{line}");
    }
    for directory in [&*scratch, &above[0], &above[1], &above[2]] {
        assert!(!std::path::Path::new(directory).join("new").exists());
    }

    let mut lister = spec(
        "import os\nfor top, names, files in os.walk(os.environ['DATA']): print(top, names, files)\n",
    );
    lister
        .environment
        .push(("DATA".to_owned(), data.to_string()));
    let (_, log) = lab.run(&lister).await;
    for hidden in ["secret", "keys", "postgres", &own] {
        assert!(!log.contains(hidden), "{hidden} in {log}");
    }
    assert_eq!(fs::read(&keys).unwrap(), b"the table of keys");
    for run in [other.run, prober.run, lister.run] {
        lab.runner.reap(run).await.unwrap();
    }
}

async fn the_system_is_not_written(isolation: Isolation) {
    let Some(lab) = Lab::isolated(isolation).await else {
        return;
    };
    let mut prober = spec(&format!(
        "{TOUCH}\nopen('in_scratch', 'w').write('1')\nimport tempfile\ntempfile.TemporaryFile().write(b'1')\nprint('own')\n"
    ));
    prober.environment.push((
        "PATHS".to_owned(),
        "/usr:/usr/bin/env:/etc:/etc/passwd:/:/dev:/var/lib".to_owned(),
    ));
    let (end, log) = lab.run(&prober).await;
    assert!(end.succeeded() && log.contains("own"), "{end:?} {log}");
    assert!(!log.contains("CAN write"), "{log}");
    lab.runner.reap(prober.run).await.unwrap();
}

async fn privileges_are_given_up(isolation: Isolation) {
    let Some(lab) = Lab::isolated(isolation).await else {
        return;
    };
    // /proc is not readable everywhere, so the privileged calls are attempted.
    let log = lab
        .output(
            r#"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print("no_new_privs", libc.prctl(39, 0, 0, 0, 0))
print("mount", libc.mount(b"x", b"/tmp", b"tmpfs", 0, None) == 0)
print("setuid", libc.setuid(0 if os.getuid() else 1) == 0)
print("chroot", libc.chroot(b"/") == 0)
print("unshare", libc.unshare(0x20000) == 0)
"#,
        )
        .await;
    assert!(log.contains("no_new_privs 1"), "{log}");
    for what in ["mount", "setuid", "chroot", "unshare"] {
        assert!(log.contains(&format!("{what} False")), "{log}");
    }
}

async fn processes_outside_cannot_be_signalled(isolation: Isolation) {
    let Some(lab) = Lab::isolated(isolation).await else {
        return;
    };
    let mut child = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    let mut killer = spec(
        "import os\nfor pid in map(int, os.environ['PIDS'].split()):\n    try:\n        os.kill(pid, 9)\n        print('CAN', pid)\n    except OSError as error:\n        print(error.strerror)\nprint('done')\n",
    );
    killer.environment.push((
        "PIDS".to_owned(),
        format!("{} {}", child.id(), std::process::id()),
    ));
    let (end, log) = lab.run(&killer).await;
    assert!(end.succeeded() && log.contains("done"), "{end:?} {log}");
    assert!(!log.contains("CAN"), "{log}");
    assert!(child.try_wait().unwrap().is_none(), "it still sleeps");
    child.kill().unwrap();
    child.wait().unwrap();
    lab.runner.reap(killer.run).await.unwrap();
}

#[tokio::test]
async fn in_namespaces_sockets_of_the_data_directory_cannot_be_reached() {
    let Some(lab) = Lab::isolated(Namespaces).await else {
        return;
    };
    let path = lab.data.path().join("database.socket");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let mut caller = spec(
        "import os, socket\ns = socket.socket(socket.AF_UNIX)\ntry:\n    s.connect(os.environ['SOCKET'])\n    print('CAN')\nexcept OSError as error:\n    print(error.strerror)\n",
    );
    caller
        .environment
        .push(("SOCKET".to_owned(), path.display().to_string()));
    let (end, log) = lab.run(&caller).await;
    assert!(end.succeeded(), "{end:?}");
    assert_eq!(log, "No such file or directory\n");
}

#[tokio::test]
async fn as_root_runs_that_are_alive_together_have_different_accounts() {
    if !nix::unistd::geteuid().is_root() {
        return; // An ordinary user has one account.
    }
    let (Some(one), Some(other)) = (
        Lab::isolated(Namespaces).await,
        Lab::isolated(Namespaces).await,
    ) else {
        return;
    };
    let script = "import os, time\nprint(os.getuid())\ntime.sleep(600)\n";
    let mut accounts = Vec::new();
    for lab in [&one, &other, &one, &other] {
        let run = spec(script);
        let log = lab.begin(&run).await;
        accounts.push(log.trim().parse::<u32>().unwrap());
    }
    accounts.sort_unstable();
    accounts.dedup();
    assert_eq!(accounts.len(), 4, "{accounts:?}");
    assert!(accounts.iter().all(|account| *account != 0));
}

#[tokio::test]
async fn below_the_minimum_a_run_is_refused_with_the_setting_to_change() {
    let data = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::new(Settings {
        minimum: Landlock,
        // A machine on which nothing works.
        supervisor: vec!["/bin/false".into()],
        ..settings(data.path(), Namespaces)
    });
    let runner = LocalRunner::new(Arc::new(sandbox));
    let spec = spec("print('never')\n");
    let refused = runner.submit(&spec).await.unwrap_err();
    let RunnerError::InsufficientIsolation(found) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(found.minimum, labdata_domain::work::Isolation::Landlock);
    let text = found.to_string();
    assert!(text.contains("LABDATA_JOB_ISOLATION=none"), "{text}");
    assert!(runner.status(spec.run).await.unwrap().end().is_some());
}
