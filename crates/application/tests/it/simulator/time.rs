//! Virtual time: runs futures one poll at a time, in an order that a seed decides, and moves its clock on
//! when all of them wait.

use std::{
    collections::BTreeMap,
    fmt,
    future::poll_fn,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures::future::BoxFuture;
use time::Duration;

/// Number of the last events that a failure prints.
const TRACED: usize = 80;

type Task = BoxFuture<'static, ()>;

/// One simulation. Clones are the same.
#[derive(Clone)]
pub(super) struct Simulation(Arc<Mutex<State>>);

struct State {
    now: Duration,
    random: u64,
    /// Wakers by the time at which they wake, and a number that makes them unique.
    timers: BTreeMap<(Duration, u64), Waker>,
    numbers: u64,
    spawned: Vec<Task>,
    trace: Vec<String>,
    violation: Option<String>,
}

/// Set while a task may go on.
struct Ready(AtomicBool);

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Simulation {
    pub(super) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            now: Duration::ZERO,
            random: seed,
            timers: BTreeMap::new(),
            numbers: 0,
            spawned: Vec::new(),
            trace: Vec::new(),
            violation: None,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time since the start.
    pub(super) fn now(&self) -> Duration {
        self.state().now
    }

    /// A number below `end` (`SplitMix64`).
    pub(super) fn below(&self, end: u64) -> u64 {
        let mut state = self.state();
        state.random = state.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = state.random;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (number ^ (number >> 31)) % end
    }

    /// True once in `times`.
    pub(super) fn one_in(&self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// A time between those numbers of seconds, to the millisecond.
    pub(super) fn seconds(&self, from: u32, to: u32) -> Duration {
        let milliseconds = self.below(u64::from(to - from) * 1_000);
        Duration::seconds(from.into()) + Duration::milliseconds(milliseconds.try_into().unwrap())
    }

    /// One of several.
    pub(super) fn pick<'t, T>(&self, of: &'t [T]) -> Option<&'t T> {
        let length = u64::try_from(of.len()).unwrap();
        (length > 0).then(|| &of[usize::try_from(self.below(length)).unwrap()])
    }

    /// Notes an event.
    pub(super) fn trace(&self, event: impl fmt::Display) {
        let mut state = self.state();
        let at = state.now.as_seconds_f64();
        state.trace.push(format!("{at:9.3} {event}"));
    }

    /// Reports a broken invariant, which ends the simulation.
    pub(super) fn report(&self, violation: String) {
        self.trace(&violation);
        self.state().violation.get_or_insert(violation);
    }

    /// The broken invariant, and the events before.
    pub(super) fn violation(&self) -> Option<(String, String)> {
        let state = self.state();
        let last = state.trace.len().saturating_sub(TRACED);
        let trace = state.trace[last..].join("\n");
        state.violation.clone().map(|violation| (violation, trace))
    }

    /// Starts a task.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.state().spawned.push(Box::pin(task));
    }

    /// Waits that long.
    pub(super) fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        let (simulation, until) = (self.clone(), self.now() + time);
        let mut is_waiting = false;
        Box::pin(poll_fn(move |context| {
            let mut state = simulation.state();
            if state.now >= until {
                return Poll::Ready(());
            }
            if !is_waiting {
                is_waiting = true;
                state.numbers += 1;
                let number = state.numbers;
                state
                    .timers
                    .insert((until, number), context.waker().clone());
            }
            Poll::Pending
        }))
    }

    /// Lets other tasks go on, as a request to a store does.
    pub(super) async fn turn(&self) {
        let mut is_over = false;
        poll_fn(|context| {
            if std::mem::replace(&mut is_over, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Runs everything until that time, or the first violation.
    pub(super) fn run(&self, until: Duration) {
        let mut tasks: Vec<(Arc<Ready>, Task)> = Vec::new();
        while self.state().violation.is_none() {
            let spawned = std::mem::take(&mut self.state().spawned);
            let new = || Arc::new(Ready(AtomicBool::new(true)));
            tasks.extend(spawned.into_iter().map(|task| (new(), task)));
            let is_ready = |index: &usize| tasks[*index].0.0.load(Ordering::Relaxed);
            let ready: Vec<usize> = (0..tasks.len()).filter(is_ready).collect();
            let Some(index) = self.pick(&ready).copied() else {
                if !self.advance(until) {
                    return;
                }
                continue;
            };
            let (ready, task) = &mut tasks[index];
            ready.0.store(false, Ordering::Relaxed);
            let waker = Waker::from(Arc::clone(ready));
            if task
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_ready()
            {
                drop(tasks.swap_remove(index));
            }
        }
    }

    /// Moves the time on to the next timers and wakes them; returns false if there is none before the end.
    fn advance(&self, until: Duration) -> bool {
        let mut state = self.state();
        let Some(((at, _), _)) = state.timers.first_key_value() else {
            return false;
        };
        let at = *at;
        if at > until {
            return false;
        }
        state.now = at;
        while let Some(timer) = state.timers.first_entry() {
            if timer.key().0 > at {
                break;
            }
            timer.remove().wake();
        }
        true
    }
}
