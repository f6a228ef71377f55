//! Runs without processes.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    future::poll_fn,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

use async_trait::async_trait;
use bytes::Bytes;
use labdata_ports::work::runner::{
    EndReason, JobRunner, LOG_PIECE, LogChunk, RunExit, RunId, RunSpec, RunStatus, RunView,
    RunnerError, ScriptEnd,
};

/// Plays scripts instead of running them.
///
/// It understands one statement a line: `import …`, `print("…")`, `print("…", flush=True)`,
/// `print("…", file=sys.stderr)`, `print(os.environ["…"])`, `sys.exit(…)`, and `time.sleep(…)`,
/// which runs until it is ended ([`InMemoryJobRunner::finish`] and others), or has
/// timed out already if its seconds are more than the run's limit. A script with dependencies never
/// gets them. Anything else is a syntax error: exit code 1. Clones are the same runner.
#[derive(Clone, Debug, Default)]
pub struct InMemoryJobRunner {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    runs: BTreeMap<RunId, Run>,
    submitted: Vec<RunSpec>,
    unavailable: Option<String>,
    waiting: Vec<Waker>,
}

#[derive(Debug)]
struct Run {
    status: RunStatus,
    log: Vec<u8>,
}

impl InMemoryJobRunner {
    /// A runner that runs nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every submission that began a run, in order.
    #[must_use]
    pub fn submitted(&self) -> Vec<RunSpec> {
        self.lock().submitted.clone()
    }

    /// From now on every call gets [`RunnerError::Unavailable`] and that text; with
    /// `None` once the backend responds again.
    pub fn set_unavailable(&self, reason: Option<&str>) {
        self.change(|state| state.unavailable = reason.map(str::to_owned));
    }

    /// Forgets every run, as a backend does that dies and comes back.
    pub fn lose_everything(&self) {
        self.change(|state| state.runs.clear());
    }

    /// The script writes that, if it still runs.
    pub fn write(&self, run: RunId, bytes: &[u8]) {
        self.change(|state| {
            if let Some(run) = state.running(run) {
                run.log.extend_from_slice(bytes);
            }
        });
    }

    /// The script ends so, if it still runs.
    pub fn finish(&self, run: RunId, end: ScriptEnd) {
        self.change(|state| {
            if let Some(run) = state.running(run) {
                run.status = RunStatus::Ended(end);
            }
        });
    }

    /// One change, which wakes all who wait.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let response = change(&mut state);
        mem::take(&mut state.waiting)
            .into_iter()
            .for_each(Waker::wake);
        response
    }
}

impl State {
    fn available(&self) -> Result<(), RunnerError> {
        match &self.unavailable {
            Some(reason) => Err(RunnerError::Unavailable(reason.clone())),
            None => Ok(()),
        }
    }

    fn running(&mut self, run: RunId) -> Option<&mut Run> {
        self.runs
            .get_mut(&run)
            .filter(|run| !matches!(run.status, RunStatus::Ended(_)))
    }

    fn view(&self, run: RunId) -> Result<RunView, RunnerError> {
        self.available()?;
        Ok(self
            .runs
            .get(&run)
            .map_or_else(RunView::lost, |run| RunView {
                status: run.status.clone(),
                logged: u64::try_from(run.log.len()).unwrap_or(u64::MAX),
            }))
    }
}

#[async_trait]
impl JobRunner for InMemoryJobRunner {
    async fn submit(&self, spec: &RunSpec) -> Result<(), RunnerError> {
        self.lock().available()?;
        spec.check_environment()?;
        self.change(|state| {
            if let Entry::Vacant(place) = state.runs.entry(spec.run) {
                place.insert(play(spec));
                state.submitted.push(spec.clone());
            }
        });
        Ok(())
    }

    async fn check(&self) -> Result<(), RunnerError> {
        self.lock().available()
    }

    async fn status(&self, run: RunId) -> Result<RunView, RunnerError> {
        self.lock().view(run)
    }

    async fn wait(&self, run: RunId, seen: &RunView) -> Result<RunView, RunnerError> {
        poll_fn(|context| {
            let mut state = self.lock();
            match state.view(run) {
                Ok(view) if view == *seen && view.end().is_none() => {
                    state.waiting.push(context.waker().clone());
                    Poll::Pending
                }
                response => Poll::Ready(response),
            }
        })
        .await
    }

    async fn logs(&self, run: RunId, offset: u64) -> Result<LogChunk, RunnerError> {
        let state = self.lock();
        state.available()?;
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = state.runs.get(&run).and_then(|run| run.log.get(at..));
        let chunk = rest.map(|rest| rest.get(..LOG_PIECE).unwrap_or(rest));
        Ok(LogChunk {
            offset,
            bytes: Bytes::copy_from_slice(chunk.unwrap_or_default()),
        })
    }

    async fn cancel(&self, run: RunId) -> Result<(), RunnerError> {
        self.lock().available()?;
        self.finish(
            run,
            ScriptEnd {
                reason: EndReason::Cancelled,
                exit: Some(RunExit::Signal(15)),
                error_tail: String::new(),
            },
        );
        Ok(())
    }

    async fn reap(&self, run: RunId) -> Result<(), RunnerError> {
        self.lock().available()?;
        self.change(|state| state.runs.remove(&run));
        Ok(())
    }
}

/// Plays the script, up to its end or to where it waits.
fn play(spec: &RunSpec) -> Run {
    let mut log = Vec::new();
    let mut errors = String::new();
    let status = play_lines(spec, &mut log, &mut errors).map_or(RunStatus::Running, |ending| {
        RunStatus::Ended(ScriptEnd {
            reason: ending.0,
            exit: ending.1,
            error_tail: errors,
        })
    });
    Run { status, log }
}

/// The end of the script; `None` if it continues running.
fn play_lines(
    spec: &RunSpec,
    log: &mut Vec<u8>,
    errors: &mut String,
) -> Option<(EndReason, Option<RunExit>)> {
    let exited = |code| Some((EndReason::Exited, Some(RunExit::Code(code))));
    let mut print = |text: &str| {
        log.extend_from_slice(text.as_bytes());
        log.push(b'\n');
    };
    for line in spec.script.lines() {
        let argument = |start: &str, end: &str| line.strip_prefix(start)?.strip_suffix(end);
        if let Some(names) = argument("# dependencies = [", "]").filter(|names| !names.is_empty()) {
            errors.push_str("no such packages: ");
            errors.push_str(names);
            return Some((EndReason::PreparationFailed, Some(RunExit::Code(1))));
        } else if line.is_empty() || line.starts_with('#') || line.starts_with("import ") {
        } else if let Some(name) = argument("print(os.environ[\"", "\"])") {
            let found = spec.environment.iter().find(|(known, _)| known == name);
            let Some((_, value)) = found else {
                let text = format!("KeyError: '{name}'");
                print(&text);
                errors.push_str(&text);
                return exited(1);
            };
            print(value);
        } else if let Some(text) = argument("print(\"", "\", file=sys.stderr)") {
            print(text);
            errors.push_str(text);
            errors.push('\n');
        } else if let Some(text) =
            argument("print(\"", "\", flush=True)").or_else(|| argument("print(\"", "\")"))
        {
            print(text);
        } else if let Some(code) = argument("sys.exit(", ")").and_then(|code| code.parse().ok()) {
            return exited(code);
        } else if let Some(seconds) =
            argument("time.sleep(", ")").and_then(|text| text.parse().ok())
        {
            let in_time = std::time::Duration::from_secs(seconds) <= spec.limits.wall_clock;
            return if in_time {
                None
            } else {
                Some((EndReason::TimedOut, Some(RunExit::Signal(9))))
            };
        } else {
            let text = format!("SyntaxError: the fake does not understand {line}");
            print(&text);
            errors.push_str(&text);
            return exited(1);
        }
    }
    exited(0)
}
