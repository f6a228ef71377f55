//! Cleanup: a run leaves no process and no file.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    time::Duration,
};

use labdata_port_contracts::work::{end_of, log_from, spec};
use labdata_ports::work::runner::{EndReason, JobRunner, RunExit};
use labdata_sandbox::Isolation::{self, Landlock, Namespaces, Nothing};

use crate::support::{Lab, mark, processes_with};

/// Starts processes in new sessions, one of them through a parent that has ended.
fn daemons(mark: &str) -> String {
    format!(
        "import os, subprocess\nsubprocess.Popen(['sleep', '{mark}'], start_new_session=True)\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.execvp('sleep', ['sleep', '{mark}'])\n    os._exit(0)\nos.wait()\nprint('begun')\n"
    )
}

async fn daemons_end_with_the_script(isolation: Isolation) {
    let lab = Lab::new(isolation);
    let mark = mark();
    let (end, _) = lab.run(&spec(&daemons(&mark))).await;
    assert!(end.succeeded(), "{end:?}");
    assert_eq!(processes_with(&mark), 0);
}

async fn daemons_end_when_the_run_is_cancelled(isolation: Isolation) {
    let lab = Lab::new(isolation);
    let mark = mark();
    let spec = spec(&format!("{}import time\ntime.sleep(600)\n", daemons(&mark)));
    lab.begin(&spec).await;
    until_processes(&mark, 2).await;
    lab.runner.cancel(spec.run).await.unwrap();
    let end = end_of(&*lab.runner, spec.run).await;
    assert_eq!(end.reason, EndReason::Cancelled);
    assert_eq!(processes_with(&mark), 0);
}

#[tokio::test]
async fn daemons_end_with_the_script_in_namespaces() {
    daemons_end_with_the_script(Namespaces).await;
    daemons_end_when_the_run_is_cancelled(Namespaces).await;
}

#[tokio::test]
async fn daemons_end_with_the_script_under_landlock() {
    daemons_end_with_the_script(Landlock).await;
    daemons_end_when_the_run_is_cancelled(Landlock).await;
}

#[tokio::test]
async fn daemons_end_with_the_script_without_isolation() {
    daemons_end_with_the_script(Nothing).await;
    daemons_end_when_the_run_is_cancelled(Nothing).await;
}

#[tokio::test]
async fn a_script_that_is_cancelled_can_say_goodbye() {
    let lab = Lab::new(Namespaces);
    let spec = spec(
        "import signal, sys, time\ndef end(*_):\n    print('goodbye')\n    sys.exit(0)\nsignal.signal(signal.SIGTERM, end)\nprint('begun')\ntime.sleep(600)\n",
    );
    lab.begin_until(&spec, "begun\n").await;
    lab.runner.cancel(spec.run).await.unwrap();
    let end = end_of(&*lab.runner, spec.run).await;
    assert_eq!(
        (end.reason, end.exit),
        (EndReason::Cancelled, Some(RunExit::Code(0)))
    );
    let log = log_from(&*lab.runner, spec.run, 0).await;
    assert!(log.ends_with("begun\ngoodbye\n"), "{log}");
}

#[tokio::test]
async fn a_script_that_does_not_listen_is_killed_after_the_grace() {
    let lab = Lab::new(Namespaces);
    let spec = spec(
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('begun')\ntime.sleep(600)\n",
    );
    lab.begin(&spec).await;
    lab.runner.cancel(spec.run).await.unwrap();
    let end = end_of(&*lab.runner, spec.run).await;
    assert_eq!(
        (end.reason, end.exit),
        (EndReason::Cancelled, Some(RunExit::Signal(9)))
    );
}

#[tokio::test]
async fn nothing_is_left_in_the_data_directory_of_a_run_that_was_reaped() {
    let lab = Lab::new(Namespaces);
    let spec = spec(
        "import os\nos.makedirs('a/b')\nopen('a/b/c', 'w')\nos.symlink('/etc', 'link')\nos.chmod('a', 0)\n",
    );
    lab.run(&spec).await;
    lab.runner.reap(spec.run).await.unwrap();
    let workers = std::fs::read_dir(lab.data.path().join("jobs/workers")).unwrap();
    for entry in workers.flatten().filter(|entry| entry.path().is_dir()) {
        let left: Vec<_> = std::fs::read_dir(entry.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["python"], "the runner's own");
    }
    assert!(std::path::Path::new("/etc/passwd").exists());
}

#[tokio::test]
async fn the_scratch_directory_is_released_although_the_end_is_not_recorded_yet() {
    let lab = Lab::new(Namespaces);
    let spec = spec("import os\nopen('big', 'w').write('x' * (1 << 20))\nprint(os.getcwd())\n");
    let (end, log) = lab.run(&spec).await;
    assert!(end.succeeded(), "{end:?}");
    let scratch = std::path::PathBuf::from(log.trim());
    assert!(scratch.ends_with("scratch") && !scratch.exists());
    assert_eq!(
        log_from(&*lab.runner, spec.run, 0).await,
        log,
        "the log stays"
    );
}

const WORKER: &str = "LABDATA_TEST_WORKER";

/// Worker process that `nothing_is_left_when_the_worker_is_killed` starts and kills; not a test.
#[tokio::test]
async fn a_worker_that_will_be_killed() {
    let Ok(arguments) = std::env::var(WORKER) else {
        return;
    };
    let (level, mark) = arguments.split_once(' ').unwrap();
    let level = match level {
        "Namespaces" => Namespaces,
        "Landlock" => Landlock,
        _ => Nothing,
    };
    let lab = Lab::new(level);
    let spec = spec(&format!(
        "{}import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)\n",
        daemons(mark)
    ));
    lab.begin(&spec).await;
    println!("begun");
    end_of(&*lab.runner, spec.run).await;
}

async fn nothing_is_left_when_the_worker_is_killed(isolation: Isolation) {
    let mark = mark();
    let mut worker = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "leftovers::a_worker_that_will_be_killed",
            "--nocapture",
        ])
        .env(WORKER, format!("{isolation:?} {mark}"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(worker.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("begun")));
    until_processes(&mark, 2).await;
    worker.kill().unwrap();
    worker.wait().unwrap();
    until_processes(&mark, 0).await;
}

/// Waits until that many processes exist.
async fn until_processes(mark: &str, count: usize) {
    while processes_with(mark) != count {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_killed_worker_in_namespaces() {
    nothing_is_left_when_the_worker_is_killed(Namespaces).await;
}

#[tokio::test]
async fn nothing_is_left_of_a_killed_worker_under_landlock() {
    nothing_is_left_when_the_worker_is_killed(Landlock).await;
}

#[tokio::test]
async fn nothing_is_left_of_a_killed_worker_without_isolation() {
    nothing_is_left_when_the_worker_is_killed(Nothing).await;
}
