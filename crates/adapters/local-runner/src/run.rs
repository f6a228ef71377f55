//! One run, from its directories to its end.

use std::sync::Arc;

use labdata_ports::runner::{EndReason, RunEnd, RunExit, RunSpec, RunStatus, RunView};
use tokio::sync::watch;

use crate::{
    ground::{Ground, blocking, limits, text},
    places::RunPlaces,
    prepare::{Prepared, prepare},
    step::{self, StepEnd, Wish},
    supervisor::{Cause, Exit},
};

/// Runs the script; what there is to be seen of it goes to `view`.
pub(crate) async fn run(
    ground: Arc<Ground>,
    places: RunPlaces,
    spec: RunSpec,
    mut wish: watch::Receiver<Wish>,
    view: watch::Sender<RunView>,
) {
    let end = follow(&ground, &places, &spec, &mut wish, &view)
        .await
        .unwrap_or_else(|reason| {
            tracing::warn!(run = %spec.run, reason, "a run was lost");
            RunEnd {
                error_tail: reason,
                ..RunEnd::lost()
            }
        });
    view.send_modify(|view| view.status = RunStatus::Ended(end));
}

async fn follow(
    ground: &Ground,
    places: &RunPlaces,
    spec: &RunSpec,
    wish: &mut watch::Receiver<Wish>,
    view: &watch::Sender<RunView>,
) -> Result<RunEnd, String> {
    let account = ground.account_of_run(spec.run);
    let (made, script) = (places.clone(), spec.script.clone());
    blocking(move || {
        made.make(&script, account)
            .map_err(|error| format!("{}: {error}", made.whole.display()))
    })
    .await?;
    let logged = |length| view.send_modify(|view| view.logged = length);

    let prepared = prepare(ground, places, spec, wish, logged).await?;
    if *wish.borrow() != Wish::Run {
        return Ok(cancelled());
    }
    let environment = match prepared {
        Prepared::Plain => None,
        Prepared::Environment { cache, directory } => Some((cache, directory)),
        Prepared::Failed(end, reason) => {
            let mut failed = RunEnd {
                reason: EndReason::PreparationFailed,
                exit: None,
                error_tail: reason,
            };
            if let Some(step) = end {
                failed.exit = Some(exit(step.exit));
                if step.cause != Cause::Itself {
                    failed.reason = reason_of(step.cause);
                }
            }
            return Ok(failed);
        }
    };

    let arguments = vec![text(&places.script().join("script.py"))];
    let limits = limits(&spec.limits, spec.limits.wall_clock);
    let mut order = ground.order(ground.isolation, places, arguments, limits);
    order.account = account;
    order.logged = view.borrow().logged;
    if let Some((cache, environment)) = environment {
        order.readable.push(cache);
        order
            .command
            .splice(..1, [text(&environment.join("bin/python"))]);
        for (name, value) in &mut order.environment {
            if name == "PATH" {
                *value = format!("{}:{value}", environment.join("bin").display());
            }
        }
        order
            .environment
            .push(("VIRTUAL_ENV".to_owned(), text(&environment)));
    }
    order.environment.extend(spec.environment.iter().cloned());
    view.send_modify(|view| view.status = RunStatus::Running);
    let end = step::run(&ground.settings.supervisor, &order, wish, logged).await;
    end.map(|end| ended(end, view))
}

fn ended(end: StepEnd, view: &watch::Sender<RunView>) -> RunEnd {
    let seen = RunEnd {
        reason: reason_of(end.cause),
        exit: Some(exit(end.exit)),
        error_tail: end.tail,
    };
    // Together: who sees the end finds the whole log.
    view.send_modify(|view| {
        view.logged = end.logged;
        view.status = RunStatus::Ended(seen.clone());
    });
    seen
}

/// The end of a run that was not to begin any more.
const fn cancelled() -> RunEnd {
    RunEnd {
        reason: EndReason::Cancelled,
        exit: None,
        error_tail: String::new(),
    }
}

const fn reason_of(cause: Cause) -> EndReason {
    match cause {
        Cause::Itself => EndReason::Exited,
        Cause::Cancelled => EndReason::Cancelled,
        Cause::TimedOut => EndReason::TimedOut,
        Cause::Memory => EndReason::Memory,
    }
}

const fn exit(exit: Exit) -> RunExit {
    match exit {
        Exit::Code(code) => RunExit::Code(code),
        Exit::Signal(signal) => RunExit::Signal(signal),
    }
}
