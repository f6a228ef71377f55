//! The port.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use bytes::Bytes;
use labdata_ports::runner::{
    JobRunner, LogPiece, RunId, RunSpec, RunStatus, RunView, RunnerError, WAIT_AT_MOST,
};
use tokio::{
    sync::{OnceCell, watch},
    task::JoinHandle,
};

use crate::{
    Settings,
    ground::{Ground, blocking},
    log_segments,
    places::{self, RunPlaces},
    run::run,
    step::Wish,
    supervisor::Isolation,
};

/// Runs scripts as processes of this machine. Its runs end with it.
#[derive(Debug)]
pub struct LocalRunner {
    settings: Settings,
    ground: OnceCell<Arc<Ground>>,
    runs: Mutex<HashMap<RunId, Known>>,
}

/// A run that was submitted and not reaped yet.
#[derive(Debug)]
struct Known {
    view: watch::Receiver<RunView>,
    wish: watch::Sender<Wish>,
    places: RunPlaces,
    task: JoinHandle<()>,
}

impl LocalRunner {
    /// A runner with those settings. What it needs is looked for when it is needed for the first
    /// time: a machine without Python can still serve everything else.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            ground: OnceCell::new(),
            runs: Mutex::default(),
        }
    }

    /// How scripts are isolated on this machine. Finds it out if nobody has asked yet, and runs a
    /// Python for that.
    ///
    /// # Errors
    /// [`RunnerError`], saying what is missing.
    pub async fn isolation(&self) -> Result<Isolation, RunnerError> {
        self.ground().await.map(|ground| ground.isolation)
    }

    async fn ground(&self) -> Result<&Arc<Ground>, RunnerError> {
        self.ground
            .get_or_try_init(|| async { Ground::open(&self.settings).await.map(Arc::new) })
            .await
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Known>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view_of(&self, run: RunId) -> Option<watch::Receiver<RunView>> {
        self.runs().get(&run).map(|known| known.view.clone())
    }
}

#[async_trait]
impl JobRunner for LocalRunner {
    async fn submit(&self, spec: &RunSpec) -> Result<(), RunnerError> {
        for (name, value) in &spec.environment {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(RunnerError::Refused(format!(
                    "no process can have an environment variable {name:?}"
                )));
            }
        }
        let ground = Arc::clone(self.ground().await?);
        if let Entry::Vacant(place) = self.runs().entry(spec.run) {
            let places = ground.places.run(spec.run);
            let (wish, wished) = watch::channel(Wish::Run);
            let (seen, view) = watch::channel(RunView {
                status: RunStatus::Preparing,
                logged: 0,
            });
            let task = tokio::spawn(run(ground, places.clone(), spec.clone(), wished, seen));
            place.insert(Known {
                view,
                wish,
                places,
                task,
            });
        }
        Ok(())
    }

    async fn status(&self, run: RunId) -> Result<RunView, RunnerError> {
        let view = self.view_of(run);
        Ok(view.map_or_else(RunView::lost, |view| view.borrow().clone()))
    }

    async fn wait(&self, run: RunId, seen: &RunView) -> Result<RunView, RunnerError> {
        let Some(mut view) = self.view_of(run) else {
            return Ok(RunView::lost());
        };
        let changed = async {
            if view.wait_for(|view| view != seen).await.is_err() {
                // The run's task has ended, and what it ended with is what was seen.
                if self.view_of(run).is_some() {
                    std::future::pending::<()>().await;
                }
            }
        };
        let _ = tokio::time::timeout(WAIT_AT_MOST, changed).await;
        self.status(run).await
    }

    async fn logs(&self, run: RunId, offset: u64) -> Result<LogPiece, RunnerError> {
        let known = self
            .runs()
            .get(&run)
            .map(|known| (known.places.log(), known.view.borrow().logged));
        let Some((directory, length)) = known.filter(|(_, length)| *length > offset) else {
            return Ok(LogPiece {
                offset,
                bytes: Bytes::new(),
            });
        };
        blocking(move || {
            log_segments::read(&directory, length, offset).map_err(|error| error.to_string())
        })
        .await
        .map_err(RunnerError::Unavailable)
    }

    async fn cancel(&self, run: RunId) -> Result<(), RunnerError> {
        if let Some(known) = self.runs().get(&run) {
            known.wish.send_if_modified(|wish| {
                let first = *wish == Wish::Run;
                if first {
                    *wish = Wish::Cancel;
                }
                first
            });
        }
        Ok(())
    }

    async fn reap(&self, run: RunId) -> Result<(), RunnerError> {
        let Some(known) = self.runs().remove(&run) else {
            return Ok(());
        };
        known.wish.send_replace(Wish::Kill);
        // A task of its own, so that a caller who leaves does not leave half of it behind.
        let removal = tokio::spawn(async move {
            let _ = known.task.await;
            let whole = known.places.whole;
            blocking(move || places::remove(&whole).map_err(|error| error.to_string())).await
        });
        match removal.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(RunnerError::Unavailable(error)),
            Err(error) => Err(RunnerError::Unavailable(error.to_string())),
        }
    }
}
