//! Limits of memory, files, processor time, processes, wall clock and output.

use std::{fs, time::Duration};

use labdata_port_contracts::runs::{end_of, spec};
use labdata_ports::runs::runner::{EndReason, JobRunner, LOG_KEPT, RunExit};
use labdata_sandbox::Isolation::{self, Landlock, Namespaces, Nothing};

use crate::support::{Lab, mark, processes_with};

#[tokio::test]
async fn a_process_that_asks_for_too_much_memory_does_not_get_it() {
    let lab = Lab::new(Namespaces);
    let mut greedy = spec("held = bytearray(600 * 1024 * 1024)\n");
    greedy.limits.memory = 256 << 20;
    let (end, _) = lab.run(&greedy).await;
    assert_eq!(
        (end.reason, end.exit),
        (EndReason::Memory, Some(RunExit::Code(1)))
    );
    assert!(end.error_tail.contains("MemoryError"), "{end:?}");
}

async fn processes_share_the_limit(isolation: Isolation) {
    let lab = Lab::new(isolation);
    let mut greedy = spec(
        "import os, time\nfor _ in range(4):\n    if os.fork() == 0:\n        held = bytearray(b'x') * (150 * 1024 * 1024)\n        time.sleep(600)\ntime.sleep(600)\n",
    );
    greedy.limits.memory = 256 << 20;
    let (end, _) = lab.run(&greedy).await;
    assert_eq!(end.reason, EndReason::Memory);
}

#[tokio::test]
async fn processes_that_use_too_much_memory_together_are_ended() {
    processes_share_the_limit(Namespaces).await;
}

#[tokio::test]
async fn processes_that_use_too_much_memory_together_are_ended_without_namespaces() {
    processes_share_the_limit(Landlock).await;
}

#[tokio::test]
async fn memory_that_processes_share_counts_once() {
    let lab = Lab::new(Namespaces);
    let mut sharing = spec(
        "import os, time\nheld = b'x' * (150 * 1024 * 1024)\nchildren = []\nfor _ in range(4):\n    child = os.fork()\n    if child == 0:\n        time.sleep(1)\n        os._exit(0)\n    children.append(child)\nfor child in children: os.waitpid(child, 0)\nprint('shared')\n",
    );
    sharing.limits.memory = 256 << 20;
    let (end, log) = lab.run(&sharing).await;
    assert!(end.succeeded(), "{end:?}");
    assert_eq!(log, "shared\n");
}

#[tokio::test]
async fn a_file_over_the_limit_is_not_written() {
    let lab = Lab::new(Namespaces);
    let mut writer = spec(
        "try:\n    with open('big', 'wb', buffering=0) as f:\n        for _ in range(20): f.write(b'x' * 1024 * 1024)\nexcept OSError as error:\n    import os\n    print(error.strerror, os.stat('big').st_size)\n",
    );
    writer.limits.file_size = 5 << 20;
    let (_, log) = lab.run(&writer).await;
    assert_eq!(log, "File too large 5242880\n");
}

#[tokio::test]
async fn processor_time_over_the_limit_ends_the_script() {
    let lab = Lab::new(Namespaces);
    let mut busy = spec("while True: pass\n");
    busy.limits.cpu_time = Duration::from_secs(1);
    let (end, _) = lab.run(&busy).await;
    assert!(matches!(end.exit, Some(RunExit::Signal(9 | 24))), "{end:?}");
}

#[tokio::test]
async fn more_processes_than_the_limit_cannot_be_started() {
    let Some(lab) = Lab::isolated(Namespaces).await else {
        return;
    };
    let mut many = spec(
        "import os, time\nstarted = 0\ntry:\n    for _ in range(100):\n        if os.fork() == 0:\n            time.sleep(600)\n            os._exit(0)\n        started += 1\nexcept OSError as error:\n    print(started < 20, error.strerror)\n",
    );
    many.limits.processes = 20;
    let (end, log) = lab.run(&many).await;
    assert!(end.succeeded(), "{end:?}");
    assert_eq!(log, "True Resource temporarily unavailable\n");
}

async fn outliving_the_time_is_impossible(isolation: Isolation) {
    let lab = Lab::new(isolation);
    let mark = mark();
    let mut stubborn = spec(&format!(
        "import os, signal, subprocess, time\nfor s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(s, signal.SIG_IGN)\nsubprocess.Popen(['sleep', '{mark}'], start_new_session=True)\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        subprocess.run(['sleep', '{mark}'])\nprint('begun')\ntime.sleep(600)\n"
    ));
    stubborn.limits.wall_clock = Duration::from_secs(2);
    lab.begin(&stubborn).await;
    let end = end_of(&*lab.runner, stubborn.run).await;
    assert_eq!(
        (end.reason, end.exit),
        (EndReason::TimedOut, Some(RunExit::Signal(9)))
    );
    assert_eq!(processes_with(&mark), 0);
}

#[tokio::test]
async fn nothing_outlives_the_time_in_namespaces() {
    outliving_the_time_is_impossible(Namespaces).await;
}

#[tokio::test]
async fn nothing_outlives_the_time_under_landlock() {
    outliving_the_time_is_impossible(Landlock).await;
}

#[tokio::test]
async fn nothing_outlives_the_time_without_isolation() {
    outliving_the_time_is_impossible(Nothing).await;
}

#[tokio::test]
async fn a_gigabyte_of_output_is_bounded_on_disk_and_its_ends_are_kept() {
    let lab = Lab::new(Namespaces);
    let flood = spec(
        "import sys\nsys.stdout.write('first\\n')\nblock = 'x' * (1 << 20)\nfor _ in range(1024): sys.stdout.write(block)\nsys.stdout.write('\\nlast\\n')\n",
    );
    lab.runner.submit(&flood).await.unwrap();
    let end = end_of(&*lab.runner, flood.run).await;
    assert!(end.succeeded(), "{end:?}");
    let length = lab.runner.status(flood.run).await.unwrap().logged;
    assert_eq!(length, 6 + (1 << 30) + 6);
    let first = lab.runner.logs(flood.run, 0).await.unwrap();
    assert!(first.bytes.starts_with(b"first\nxxx"));
    let last = lab.runner.logs(flood.run, length - 10).await.unwrap();
    assert_eq!(&*last.bytes, b"xxxx\nlast\n");
    let middle = lab.runner.logs(flood.run, length / 2).await.unwrap();
    assert!(middle.offset > length / 2 && middle.offset <= length - LOG_KEPT);
    assert!(size_of(lab.data.path()) <= 3 * LOG_KEPT + (1 << 20));
}

fn size_of(directory: &std::path::Path) -> u64 {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let kind = entry.metadata().unwrap();
            if kind.is_dir() {
                size_of(&entry.path())
            } else {
                kind.len()
            }
        })
        .sum()
}
