//! Limits of memory, files, processor time, processes, wall clock and output.

use std::{
    fs,
    sync::{Arc, Barrier},
    time::Duration,
};

use labdata_port_contracts::work::{end_of, spec};
use labdata_ports::work::runner::{EndReason, JobRunner, RETAINED_LOG_BYTES, RunExit};
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

async fn files_in_memory_are_limited(isolation: Isolation) {
    let lab = Lab::new(isolation);
    // 400 MB in files that are in no process's memory.
    let mut hoarder = spec(
        "import os, time\nheld = []\ntry:\n    for number in range(10):\n        held.append(os.memfd_create(str(number)))\n        os.write(held[-1], bytes(40 << 20))\n    time.sleep(600)\nexcept OSError as error:\n    print(error.strerror)\n",
    );
    hoarder.limits.memory = 256 << 20;
    let (end, log) = lab.run(&hoarder).await;
    assert!(end.succeeded(), "{end:?}");
    assert_eq!(log, "Function not implemented\n");
}

#[tokio::test]
async fn memfd_files_do_not_get_around_the_limit_of_memory() {
    for isolation in [Namespaces, Landlock, Nothing] {
        files_in_memory_are_limited(isolation).await;
    }
}

#[tokio::test]
async fn shared_memory_of_files_counts_as_memory() {
    let Some(lab) = Lab::isolated(Namespaces).await else {
        return;
    };
    let mut hoarder = spec(
        "import time\nheld = bytearray(b'x') * (180 << 20)\nwith open('/dev/shm/file', 'wb') as file:\n    for _ in range(50): file.write(bytes(1 << 20))\ntime.sleep(600)\n",
    );
    hoarder.limits.memory = 220 << 20;
    let (end, _) = lab.run(&hoarder).await;
    assert_eq!(end.reason, EndReason::Memory, "{end:?}");
}

#[tokio::test]
async fn a_script_cannot_mount_a_file_system_of_memory_in_namespaces_that_it_makes() {
    for isolation in [Namespaces, Landlock, Nothing] {
        let lab = Lab::new(isolation);
        let log = lab
            .output(
                "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nfor flags in [0x10000000, 0x10020000, 0x20000]:\n    print(libc.unshare(flags) == 0, libc.syscall(56 if os.uname().machine == 'x86_64' else 220, 0x10000000 | 17, 0, 0, 0, 0) >= 0)\n",
            )
            .await;
        assert_eq!(log, "False False\n".repeat(3), "{isolation:?}");
    }
}

#[tokio::test]
async fn a_fork_flood_is_ended_where_the_kernel_does_not_limit_processes() {
    let lab = Lab::new(Nothing);
    let mut flood = spec(
        "import os, time\nfor _ in range(600):\n    if os.fork() == 0:\n        time.sleep(600)\ntime.sleep(600)\n",
    );
    flood.limits.processes = 100;
    let (end, _) = lab.run(&flood).await;
    assert_eq!(end.reason, EndReason::Processes, "{end:?}");
}

#[tokio::test]
async fn a_fork_flood_under_landlock_meets_the_limit() {
    let Some(lab) = Lab::isolated(Landlock).await else {
        return;
    };
    let mut flood = spec(
        "import os, time\ntry:\n    for _ in range(600):\n        if os.fork() == 0:\n            time.sleep(600)\nexcept OSError as error:\n    print(error.strerror)\n    raise SystemExit\ntime.sleep(600)\n",
    );
    flood.limits.processes = 100;
    let (end, log) = lab.run(&flood).await;
    if nix::unistd::geteuid().is_root() {
        assert!(end.succeeded(), "{end:?}");
        assert_eq!(log, "Resource temporarily unavailable\n");
    } else {
        // The kernel counts all processes of the user, and leaves room for the others.
        assert_eq!(end.reason, EndReason::Processes, "{end:?}");
    }
}

#[tokio::test]
async fn processes_of_others_take_no_room_from_a_run() {
    const OTHERS: usize = 200;
    let end = Arc::new(Barrier::new(OTHERS + 1));
    for _ in 0..OTHERS {
        let end = Arc::clone(&end);
        std::thread::spawn(move || end.wait());
    }
    for isolation in [Namespaces, Landlock, Nothing] {
        let Some(lab) = Lab::isolated(isolation).await else {
            continue;
        };
        let mut spec = spec("import os\nos.waitpid(os.fork() or os._exit(0), 0)\n");
        spec.limits.processes = 100;
        let (end, log) = lab.run(&spec).await;
        assert!(end.succeeded(), "{isolation:?} {end:?} {log}");
    }
    end.wait();
}

async fn the_scratch_directory_is_limited(isolation: Isolation, script: &str) {
    let lab = Lab::new(isolation);
    let mut hoarder = spec(script);
    hoarder.limits.scratch = 64 << 20;
    let (end, _) = lab.run(&hoarder).await;
    assert_eq!(end.reason, EndReason::Scratch, "{isolation:?} {end:?}");
}

#[tokio::test]
async fn a_flood_of_files_in_the_scratch_directory_ends_the_run() {
    let many = "import os, time\nos.makedirs('a/b')\nfor n in range(100):\n    open(f'a/b/{n}', 'wb').write(bytes([1]) * (1 << 20))\ntime.sleep(600)\n";
    for isolation in [Namespaces, Landlock, Nothing] {
        the_scratch_directory_is_limited(isolation, many).await;
    }
}

#[tokio::test]
async fn deleted_files_that_are_open_count_for_the_scratch_directory() {
    let deleted = "import tempfile, time\nheld = [tempfile.TemporaryFile() for _ in range(10)]\nfor file in held:\n    file.write(bytes([1]) * (10 << 20))\n    file.flush()\ntime.sleep(600)\n";
    for isolation in [Namespaces, Landlock, Nothing] {
        the_scratch_directory_is_limited(isolation, deleted).await;
    }
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
    assert!(middle.offset > length / 2 && middle.offset <= length - RETAINED_LOG_BYTES);
    assert!(size_of(lab.data.path()) <= 3 * RETAINED_LOG_BYTES + (1 << 20));
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
