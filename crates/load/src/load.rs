//! The state that all connections of a load share, and that of each connection.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Instant,
};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{
    client::{Client, Outcome, Request, Response},
    ledger::{Certainty, Kind, Ledger, State},
    options::Options,
    random::Random,
    setup::Lab,
    statistics::WRITE,
};

/// Runs, and triggering files, that may wait for a worker at a time.
const MAX_OPEN_RUNS: usize = 6;

/// Models that one load trains.
const MAX_TRAININGS: usize = 3;

/// Number of its rows and files that a connection remembers.
const MAX_OWNED: usize = 200;

/// State of a load.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) options: Options,
    pub(crate) client: Client,
    pub(crate) ledger: Ledger,
    /// Mark of everything that this load creates.
    pub(crate) run: String,
    pub(crate) lab: Lab,
    pub(crate) ends_at: Instant,
    /// Places for runs that wait for a worker.
    pub(crate) open_runs: Arc<Semaphore>,
    pub(crate) notifications_are_capped: AtomicBool,
    trainings: AtomicUsize,
    pub(crate) revoked_keys: std::sync::Mutex<Vec<String>>,
}

impl Load {
    pub(crate) fn new(options: Options, client: Client, run: String, lab: Lab) -> Self {
        Self {
            ends_at: Instant::now() + options.duration,
            options,
            client,
            ledger: Ledger::default(),
            run,
            lab,
            open_runs: Arc::new(Semaphore::new(MAX_OPEN_RUNS)),
            notifications_are_capped: AtomicBool::new(false),
            trainings: AtomicUsize::new(0),
            revoked_keys: std::sync::Mutex::default(),
        }
    }

    /// Returns whether one more model may be trained.
    pub(crate) fn may_train(&self) -> bool {
        self.trainings.fetch_add(1, Ordering::Relaxed) < MAX_TRAININGS
    }

    /// Job of the executions that data writes create.
    pub(crate) fn writes_job(&self) -> String {
        format!("Load {} writes", self.run)
    }

    /// Job of the executions that the load opens.
    pub(crate) fn opened_job(&self) -> String {
        format!("Load {} opened", self.run)
    }

    /// Adds a problem to the report.
    pub(crate) fn problem(&self, problem: String) {
        self.client.statistics.problem(problem);
    }
}

/// A row that one connection changes alone.
#[derive(Clone, Debug)]
pub(crate) struct OwnedRow {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) counter: u64,
    pub(crate) has_curve: bool,
}

/// A confirmed file.
#[derive(Clone, Debug)]
pub(crate) struct OwnedFile {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) bytes: Bytes,
}

/// One connection: it sends one request at a time.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) load: Arc<Load>,
    pub(crate) random: Random,
    number: usize,
    made: u64,
    /// Execution for uploads and writes; empty if it could not be opened.
    pub(crate) execution: String,
    pub(crate) rows: Vec<OwnedRow>,
    pub(crate) files: Vec<OwnedFile>,
}

impl Connection {
    pub(crate) fn new(load: &Arc<Load>, number: usize) -> Self {
        let stream = u64::try_from(number).unwrap_or_default() + 1;
        Self {
            load: Arc::clone(load),
            random: Random::new(load.options.seed.wrapping_mul(1_000_003) ^ (stream << 32)),
            number,
            made: 0,
            execution: String::new(),
            rows: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Makes a name that nothing else has.
    pub(crate) fn tag(&mut self) -> String {
        self.made += 1;
        format!("{}-{}-{}", self.load.run, self.number, self.made)
    }

    pub(crate) fn own_row(&mut self, row: OwnedRow) {
        if self.rows.len() >= MAX_OWNED {
            self.take_row();
        }
        self.rows.push(row);
    }

    pub(crate) fn own_file(&mut self, file: OwnedFile) {
        if self.files.len() >= MAX_OWNED {
            self.take_file();
        }
        self.files.push(file);
    }

    /// Takes one of its rows.
    pub(crate) fn take_row(&mut self) -> Option<OwnedRow> {
        let index = self.index_below(self.rows.len())?;
        Some(self.rows.swap_remove(index))
    }

    /// Takes one of its files.
    pub(crate) fn take_file(&mut self) -> Option<OwnedFile> {
        let index = self.index_below(self.files.len())?;
        Some(self.files.swap_remove(index))
    }

    fn index_below(&mut self, end: usize) -> Option<usize> {
        let drawn = self.random.below(u64::try_from(end).ok()?);
        (end > 0).then(|| usize::try_from(drawn).ok()).flatten()
    }

    /// Sends a request, and enters its effect: acknowledged, possible, or none. Returns the response of
    /// an acknowledged one. A refusal is a problem.
    pub(crate) async fn change(
        &self,
        request: &Request,
        kind: Kind,
        name: &str,
        state: Option<State>,
    ) -> Option<Response> {
        let outcome = self.load.client.send(request).await;
        let certainty = match &outcome {
            Outcome::Done(_) => Certainty::Acknowledged,
            // An earlier attempt deleted it, whose response was lost.
            Outcome::Refused(response) if response.status == 404 && state.is_none() => {
                Certainty::Acknowledged
            }
            Outcome::Refused(response) => {
                self.load
                    .client
                    .wrong(request, response, "was not expected");
                return None;
            }
            Outcome::Unknown => Certainty::Unknown,
        };
        self.load.ledger.enter(kind, name, state, certainty);
        match outcome {
            Outcome::Done(response) | Outcome::Refused(response) => Some(response),
            Outcome::Unknown => None,
        }
    }

    /// A data write with an idempotency key.
    pub(crate) fn write(&self, tag: &str, mut body: Value) -> Request {
        if let Some(fields) = body.as_object_mut()
            && !fields.contains_key("job_execution_id")
        {
            fields.insert("job_name".to_owned(), json!(self.load.writes_job()));
        }
        Request::post(WRITE, "/api/v1/data/write", body).idempotent(tag)
    }
}
