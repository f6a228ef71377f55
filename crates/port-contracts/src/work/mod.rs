//! Contract of [`JobRunner`].
//!
//! The scripts use only statements that a fake can interpret, one per line: `import …`,
//! `print("…")`, `print(os.environ["…"])`, `print("…", file=sys.stderr)`, `sys.exit(…)`,
//! `time.sleep(…)`, which in these scripts means "until it is ended from outside".

pub mod interleavings;
pub mod lab;
pub mod logs;
pub mod nonces;
pub mod queue;
pub mod queue_ends;
pub mod run_ends;
pub mod run_lab;
pub mod runs;

use futures::future::join_all;
use labdata_domain::{
    ids::{ExecutionId, ModelVersionId, OrganizationId},
    work::WorkId,
};
use labdata_ports::work::runner::{
    EndReason, JobRunner, PackageOwner, RunExit, RunId, RunLimits, RunNetwork, RunResources,
    RunSpec, RunStatus, RunView, ScriptEnd,
};

use crate::{Itself, Subject, given};

/// A script that prints a line and then runs until it is ended from outside.
const ENDLESS: &str = "import time\nprint(\"begun\", flush=True)\ntime.sleep(3600)\n";

/// A run of that script, not submitted yet.
#[must_use]
pub fn spec(script: &str) -> RunSpec {
    RunSpec {
        organization: OrganizationId::new(given::uuid()),
        run: RunId {
            work: WorkId::Execution(ExecutionId::new(given::uuid())),
            attempt: 1,
        },
        script: script.to_owned(),
        environment: vec![("LABDATA_BASE_URL".to_owned(), "http://lab".to_owned())].into(),
        key_exchange: None,
        limits: RunLimits::default(),
        network: RunNetwork::default(),
        packages: PackageOwner::default(),
        resources: RunResources::default(),
    }
}

/// Waits until the view is as wanted.
pub async fn until(
    runner: &dyn JobRunner,
    run: RunId,
    wanted: impl Fn(&RunView) -> bool,
) -> RunView {
    let mut view = runner.status(run).await.unwrap();
    while !wanted(&view) {
        assert!(view.end().is_none(), "{run} has ended otherwise: {view:?}");
        view = runner.wait(run, &view).await.unwrap();
    }
    view
}

/// Waits for the end of a run.
pub async fn end_of(runner: &dyn JobRunner, run: RunId) -> ScriptEnd {
    let view = until(runner, run, |view| view.end().is_some()).await;
    view.end().unwrap().clone()
}

/// The whole log from an offset on, read chunk by chunk.
pub async fn log_from(runner: &dyn JobRunner, run: RunId, offset: u64) -> String {
    let mut log = Vec::new();
    loop {
        let at = offset + u64::try_from(log.len()).unwrap();
        let chunk = runner.logs(run, at).await.unwrap();
        assert_eq!(chunk.offset, at, "nothing is left out of a short log");
        if chunk.bytes.is_empty() {
            return String::from_utf8(log).unwrap();
        }
        log.extend_from_slice(&chunk.bytes);
    }
}

/// Submits a script, waits for its end, and returns the run with that.
async fn run(runner: &dyn JobRunner, script: &str) -> (RunId, ScriptEnd) {
    let spec = spec(script);
    runner.submit(&spec).await.unwrap();
    (spec.run, end_of(runner, spec.run).await)
}

crate::suite!(
    use work as runs;

    /// A successful script ends with exit code 0 and its output.
    async fn a_script_that_ends_well_ends_with_exit_code_0(
        harness: &Itself<impl Subject<dyn JobRunner>>,
    ) {
        let runner = harness.subject();
        let (id, end) = run(&*runner, "print(\"measured\")\n").await;
        assert!(end.succeeded(), "{end:?}");
        assert_eq!(end.exit, Some(RunExit::Code(0)));
        assert_eq!(log_from(&*runner, id, 0).await, "measured\n");
        runner.reap(id).await.unwrap();
    }

    /// A script that fails ends with its exit code and the last lines of its standard error, which are
    /// in the log, too.
    async fn a_script_that_fails_ends_with_its_code_and_its_last_lines(
        harness: &Itself<impl Subject<dyn JobRunner>>,
    ) {
        let runner = harness.subject();
        let script = "import sys\nprint(\"no plate in reader 2\", file=sys.stderr)\nsys.exit(7)\n";
        let (id, end) = run(&*runner, script).await;
        assert_eq!(
            (end.reason, end.exit, end.succeeded()),
            (EndReason::Exited, Some(RunExit::Code(7)), false)
        );
        assert!(end.error_tail.contains("no plate in reader 2"), "{end:?}");
        assert!(
            log_from(&*runner, id, 0)
                .await
                .contains("no plate in reader 2")
        );
        runner.reap(id).await.unwrap();
    }

    /// The script finds the names and values of its environment, as they were given.
    async fn the_script_gets_its_environment(harness: &Itself<impl Subject<dyn JobRunner>>) {
        let runner = harness.subject();
        let mut spec = spec("import os\nprint(os.environ[\"LABDATA_PARAMETERS\"])\n");
        let value = r#"{"plate": "A 'quoted' \"name\" = $HOME µ"}"#;
        spec.environment
            .push(("LABDATA_PARAMETERS".to_owned(), value.to_owned()));
        runner.submit(&spec).await.unwrap();
        let end = end_of(&*runner, spec.run).await;
        assert!(end.succeeded(), "{end:?}");
        let log = log_from(&*runner, spec.run, 0).await;
        assert_eq!(log.trim_end(), value);
        runner.reap(spec.run).await.unwrap();
    }

    /// Submitting a run again starts nothing, neither while it runs nor when it has ended.
    async fn a_run_that_is_submitted_again_is_the_same_run(
        harness: &Itself<impl Subject<dyn JobRunner>>,
    ) {
        let runner = harness.subject();
        let spec = spec("print(\"once\")\n");
        runner.submit(&spec).await.unwrap();
        runner.submit(&spec).await.unwrap();
        let end = end_of(&*runner, spec.run).await;
        runner.submit(&spec).await.unwrap();
        assert_eq!(
            runner.status(spec.run).await.unwrap().end(),
            Some(&end),
            "it stays ended"
        );
        assert_eq!(log_from(&*runner, spec.run, 0).await, "once\n");
        runner.reap(spec.run).await.unwrap();
    }

    /// Concurrent submits of one run all succeed, and the script runs once.
    async fn racing_submissions_start_one_run(harness: &Itself<impl Subject<dyn JobRunner>>) {
        let runner = harness.subject();
        let spec = spec("print(\"once\")\n");
        for response in join_all((0..4).map(|_| runner.submit(&spec))).await {
            response.unwrap();
        }
        end_of(&*runner, spec.run).await;
        assert_eq!(log_from(&*runner, spec.run, 0).await, "once\n");
        runner.reap(spec.run).await.unwrap();
    }

    /// Attempts at one execution are independent.
    async fn another_attempt_is_another_run(harness: &Itself<impl Subject<dyn JobRunner>>) {
        let runner = harness.subject();
        let first = spec("print(\"first\")\n");
        let mut second = spec("print(\"second\")\n");
        second.run = RunId {
            attempt: 2,
            ..first.run
        };
        for spec in [&first, &second] {
            runner.submit(spec).await.unwrap();
            end_of(&*runner, spec.run).await;
        }
        runner.reap(first.run).await.unwrap();
        assert_eq!(log_from(&*runner, second.run, 0).await, "second\n");
        runner.reap(second.run).await.unwrap();
    }

    /// The attempt at a training runs, with the network and the dependencies of the platform, and is known by
    /// its id.
    async fn a_training_is_a_run_like_any_other(harness: &Itself<impl Subject<dyn JobRunner>>) {
        let runner = harness.subject();
        let execution = spec("print(\"measured\")\n");
        let training = RunSpec {
            run: RunId {
                work: WorkId::Training(ModelVersionId::new(given::uuid())),
                attempt: 1,
            },
            script: "print(\"trained\")\n".to_owned(),
            network: RunNetwork::Platform,
            packages: PackageOwner::Platform,
            ..execution.clone()
        };
        for (spec, log) in [(&training, "trained\n"), (&execution, "measured\n")] {
            runner.submit(spec).await.unwrap();
            assert!(end_of(&*runner, spec.run).await.succeeded());
            assert_eq!(log_from(&*runner, spec.run, 0).await, log);
            runner.reap(spec.run).await.unwrap();
        }
    }

    /// A log is readable from any offset up to its end, which the view shows.
    async fn the_log_is_read_from_any_offset(harness: &Itself<impl Subject<dyn JobRunner>>) {
        let runner = harness.subject();
        let (id, _) = run(&*runner, "print(\"0123456789\")\nprint(\"abc\")\n").await;
        assert_eq!(log_from(&*runner, id, 4).await, "456789\nabc\n");
        assert_eq!(log_from(&*runner, id, 15).await, "");
        assert_eq!(log_from(&*runner, id, 99).await, "");
        assert_eq!(runner.status(id).await.unwrap().logged, 15);
        runner.reap(id).await.unwrap();
    }

    /// Waiting returns what has changed: the script's first line while it still runs, then its end.
    async fn waiting_ends_when_something_changes(harness: &Itself<impl Subject<dyn JobRunner>>) {
        let runner = harness.subject();
        let spec = spec(ENDLESS);
        runner.submit(&spec).await.unwrap();
        let view = until(&*runner, spec.run, |view| view.logged >= 6).await;
        assert_eq!(view.status, RunStatus::Running);
        assert_eq!(log_from(&*runner, spec.run, 0).await, "begun\n");
        runner.cancel(spec.run).await.unwrap();
        let end = end_of(&*runner, spec.run).await;
        assert_eq!(end.reason, EndReason::Cancelled);
        let view = runner.status(spec.run).await.unwrap();
        let seen = RunView {
            status: RunStatus::Running,
            ..view.clone()
        };
        assert_eq!(
            runner.wait(spec.run, &seen).await.unwrap(),
            view,
            "what has changed already is not waited for"
        );
        runner.reap(spec.run).await.unwrap();
    }

    /// A run that is cancelled ends, as cancelled.
    async fn a_run_that_is_cancelled_ends_as_cancelled(
        harness: &Itself<impl Subject<dyn JobRunner>>,
    ) {
        let runner = harness.subject();
        let spec = spec(ENDLESS);
        runner.submit(&spec).await.unwrap();
        runner.cancel(spec.run).await.unwrap();
        runner.cancel(spec.run).await.unwrap();
        let end = end_of(&*runner, spec.run).await;
        assert_eq!(end.reason, EndReason::Cancelled);
        assert!(!end.succeeded());
        runner.reap(spec.run).await.unwrap();
    }

    /// Cancelling comes too late for a run that has ended.
    async fn cancelling_a_run_that_has_ended_changes_nothing(
        harness: &Itself<impl Subject<dyn JobRunner>>,
    ) {
        let runner = harness.subject();
        let (id, end) = run(&*runner, "print(\"done\")\n").await;
        runner.cancel(id).await.unwrap();
        assert_eq!(end_of(&*runner, id).await, end);
        runner.reap(id).await.unwrap();
    }

    /// A script that exceeds its timeout is ended.
    async fn a_run_over_its_time_has_timed_out(harness: &Itself<impl Subject<dyn JobRunner>>) {
        let runner = harness.subject();
        let mut spec = spec(ENDLESS);
        spec.limits.wall_clock = std::time::Duration::from_secs(1);
        runner.submit(&spec).await.unwrap();
        let end = end_of(&*runner, spec.run).await;
        assert_eq!(end.reason, EndReason::TimedOut);
        runner.reap(spec.run).await.unwrap();
    }

    /// A dependency that cannot be installed differs from a script that fails.
    async fn dependencies_that_do_not_exist_fail_the_preparation(
        harness: &Itself<impl Subject<dyn JobRunner>>,
    ) {
        let runner = harness.subject();
        let script = "# /// script\n# dependencies = [\"labdata-no-such-package==1\"]\n# ///\n\
                      print(\"never printed\")\n";
        let (id, end) = run(&*runner, script).await;
        assert_eq!(end.reason, EndReason::PreparationFailed);
        assert!(
            end.error_tail.contains("labdata-no-such-package"),
            "it names what is missing: {end:?}"
        );
        let log = log_from(&*runner, id, 0).await;
        assert!(!log.contains("never printed"), "{log}");
        runner.reap(id).await.unwrap();
    }

    /// A run that the backend does not know is lost, and can be cancelled and reaped as if it were.
    async fn a_run_that_was_not_submitted_is_lost(harness: &Itself<impl Subject<dyn JobRunner>>) {
        let runner = harness.subject();
        let run = spec("").run;
        assert_eq!(runner.status(run).await.unwrap(), RunView::lost());
        let seen = RunView {
            status: RunStatus::Preparing,
            logged: 0,
        };
        assert_eq!(runner.wait(run, &seen).await.unwrap(), RunView::lost());
        assert_eq!(log_from(&*runner, run, 0).await, "");
        runner.cancel(run).await.unwrap();
        runner.reap(run).await.unwrap();
    }

    /// Reaping removes everything of the run, and nothing of other runs.
    async fn a_reaped_run_is_not_known_and_reaping_repeats(
        harness: &Itself<impl Subject<dyn JobRunner>>,
    ) {
        let runner = harness.subject();
        let (deleted, _) = run(&*runner, "print(\"gone\")\n").await;
        let (stored, end) = run(&*runner, "print(\"kept\")\n").await;
        runner.reap(deleted).await.unwrap();
        runner.reap(deleted).await.unwrap();
        assert_eq!(runner.status(deleted).await.unwrap(), RunView::lost());
        assert_eq!(log_from(&*runner, deleted, 0).await, "");
        assert_eq!(end_of(&*runner, stored).await, end);
        assert_eq!(log_from(&*runner, stored, 0).await, "kept\n");
        runner.reap(stored).await.unwrap();
    }

    /// A run can be reaped while it runs; a waiting caller learns that it is lost.
    async fn a_run_that_runs_can_be_reaped(harness: &Itself<impl Subject<dyn JobRunner>>) {
        let runner = harness.subject();
        let spec = spec(ENDLESS);
        runner.submit(&spec).await.unwrap();
        let view = until(&*runner, spec.run, |view| view.logged >= 6).await;
        runner.reap(spec.run).await.unwrap();
        assert_eq!(runner.wait(spec.run, &view).await.unwrap(), RunView::lost());
    }

    /// An environment with a NUL or a name with `=` is refused, and nothing starts.
    async fn an_environment_that_no_process_can_have_is_refused(
        harness: &Itself<impl Subject<dyn JobRunner>>,
    ) {
        use labdata_ports::work::runner::RunnerError;
        let runner = harness.subject();
        for (name, value) in [("A=B", "1"), ("", "1"), ("A\0", "1"), ("A", "1\0")] {
            let mut spec = spec("print(\"never\")\n");
            spec.environment.push((name.to_owned(), value.to_owned()));
            let response = runner.submit(&spec).await;
            assert!(
                matches!(response, Err(RunnerError::Refused(_))),
                "{response:?}"
            );
            assert_eq!(runner.status(spec.run).await.unwrap(), RunView::lost());
        }
    }
);
