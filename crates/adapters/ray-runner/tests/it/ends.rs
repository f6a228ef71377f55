//! End and cleanup of runs on a cluster.

use labdata_port_contracts::work::{end_of, log_from, spec, until};
use labdata_ports::work::runner::{EndReason, JobRunner, RETAINED_LOG_BYTES, RunExit, RunStatus};

use crate::cluster::{access, processes_with, runner, shared, shared_runner};

#[tokio::test]
async fn a_script_that_does_not_listen_is_killed_with_all_its_sessions() {
    let runner = shared_runner().await;
    let mark = format!("4321.{}", std::process::id());
    let spec = spec(&format!(
        "import signal, subprocess, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nsubprocess.Popen(['sleep', '{mark}'], start_new_session=True)\nprint('begun')\ntime.sleep(600)\n"
    ));
    runner.submit(&spec).await.unwrap();
    until(&runner, spec.run, |view| view.logged >= 6).await;
    assert!(processes_with(&mark) > 0);
    runner.cancel(spec.run).await.unwrap();
    let end = end_of(&runner, spec.run).await;
    assert_eq!(
        (end.reason, end.exit),
        (EndReason::Cancelled, Some(RunExit::Signal(9)))
    );
    assert_eq!(processes_with(&mark), 0);
    runner.reap(spec.run).await.unwrap();
}

#[tokio::test]
async fn too_much_memory_is_told_apart() {
    let runner = shared_runner().await;
    let mut spec = spec("held = bytearray(600 * 1024 * 1024)\n");
    spec.limits.memory = 256 << 20;
    runner.submit(&spec).await.unwrap();
    assert_eq!(end_of(&runner, spec.run).await.reason, EndReason::Memory);
    runner.reap(spec.run).await.unwrap();
}

#[tokio::test]
async fn a_flood_of_output_keeps_its_ends() {
    let runner = shared_runner().await;
    let spec = spec(
        "import sys\nsys.stdout.write('first\\n')\nblock = 'x' * (1 << 20)\nfor _ in range(100): sys.stdout.write(block)\nsys.stdout.write('\\nlast\\n')\n",
    );
    runner.submit(&spec).await.unwrap();
    assert!(end_of(&runner, spec.run).await.succeeded());
    let length = runner.status(spec.run).await.unwrap().logged;
    assert_eq!(length, 6 + (100 << 20) + 6);
    let first = runner.logs(spec.run, 0).await.unwrap();
    assert!(first.bytes.starts_with(b"first\nxxx"));
    let last = runner.logs(spec.run, length - 8).await.unwrap();
    assert_eq!(&*last.bytes, b"xx\nlast\n");
    let middle = runner.logs(spec.run, length / 2).await.unwrap();
    assert!(middle.offset > length / 2 && middle.offset <= length - RETAINED_LOG_BYTES);
    runner.reap(spec.run).await.unwrap();
}

#[tokio::test]
async fn the_script_sees_its_own_environment_only() {
    let runner = shared_runner().await;
    let spec = spec("import os\nfor name in sorted(os.environ): print(name)\n");
    runner.submit(&spec).await.unwrap();
    assert!(end_of(&runner, spec.run).await.succeeded());
    let log = log_from(&runner, spec.run, 0).await;
    for name in log.lines() {
        let known = [
            "HOME",
            "LABDATA_BASE_URL",
            "LANG",
            "LC_CTYPE",
            "PATH",
            "PYTHONUNBUFFERED",
            "TMPDIR",
        ];
        assert!(known.contains(&name), "{name} has reached the script");
    }
    runner.reap(spec.run).await.unwrap();
}

#[tokio::test]
async fn the_python_client_is_that_of_the_platform() {
    let runner = shared_runner().await;
    let spec = spec(
        "# /// script\n# dependencies = [\"Labdata-Client>=0.1\"]\n# ///\n\
         import httpx, importlib.metadata, labdata_client\n\
         print(importlib.metadata.distribution('labdata-client').read_text('direct_url.json'))\n",
    );
    runner.submit(&spec).await.unwrap();
    let end = end_of(&runner, spec.run).await;
    let log = log_from(&runner, spec.run, 0).await;
    assert!(end.succeeded(), "{end:?} {log}");
    assert!(log.contains("\"url\":\"file:///"), "{log}");
    runner.reap(spec.run).await.unwrap();
}

#[tokio::test]
async fn a_large_script_and_a_declared_dependency_arrive() {
    let runner = shared_runner().await;
    // Incompressible digits: close to the maximum length of an order.
    let mut state = 1_u64;
    let padding: String = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        format!("# {:016x}\n", state ^ (state >> 29))
    })
    .take(6500)
    .collect();
    let spec = spec(&format!(
        "# /// script\n# dependencies = [\"six==1.16.0\"]\n# ///\nimport six\nprint(six.__version__)\n{padding}print('the end')\n"
    ));
    runner.submit(&spec).await.unwrap();
    let end = end_of(&runner, spec.run).await;
    assert!(end.succeeded(), "this test installs a package: {end:?}");
    let log = log_from(&runner, spec.run, 0).await;
    assert!(log.ends_with("1.16.0\nthe end\n"), "{log}");
    runner.reap(spec.run).await.unwrap();
}

#[tokio::test]
async fn another_worker_finds_the_run() {
    let cluster = shared().await;
    let runner = runner(cluster, None);
    let spec = spec("print('found')\n");
    runner.submit(&spec).await.unwrap();
    // A new runner, without the state of the first.
    let namespace = format!("{runner:?}");
    let namespace = namespace.split("namespace: \"").nth(1).unwrap();
    let other = labdata_ray_runner::RayRunner::new(labdata_ray_runner::Settings {
        access: access(cluster.address(), None),
        namespace: namespace.split('"').next().unwrap().to_owned(),
    })
    .unwrap();
    assert!(end_of(&other, spec.run).await.succeeded());
    assert_eq!(log_from(&other, spec.run, 0).await, "found\n");
    other.reap(spec.run).await.unwrap();
    // Reaping removes the record, so the first runner finds the run lost.
    let seen = runner.status(spec.run).await.unwrap();
    assert!(
        matches!(&seen.status, RunStatus::Ended(end) if end.reason == EndReason::Lost),
        "{seen:?}"
    );
}
