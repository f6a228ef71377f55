//! Life of one process, from its preparation to its end.

use std::{
    collections::HashMap,
    io,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use labdata_domain::models::{ModelFailure, ModelSignature, PredictionDelay, Predictions};
use labdata_ports::models::{PredictError, ServedModel};
use labdata_sandbox::{
    ProcessOutcome, Sandbox, SandboxError, Streams, frames, process_pipes, stop_channel,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, BufReader},
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

use crate::{
    process,
    response::{BrokenProtocol, Content, Response, Start, read_response, read_start},
    settings::PredictorSettings,
};

/// Maximum number of requests that wait for one process.
pub(crate) const MAX_REQUESTS: usize = 64;

/// Maximum length of a frame, in bytes.
pub(crate) const MAX_FRAME: usize = 64 << 20;

/// Time that a process may take to load its model.
const LOADING: Duration = Duration::from_mins(5);

/// Time in which the outcome of a process is known once its output has ended.
const DYING: Duration = Duration::from_secs(10);

/// Maximum interval between two checks for idle and stuck processes.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Phase of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionPhase {
    /// Packages are installed, or the model is loaded.
    Preparing,
    /// The process responds.
    Ready,
}

/// End of a request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The process answered, or failed.
    Answered(Result<Predictions, PredictError>),
    /// The process ended before the request was sent, so another one can respond it.
    NotSent,
}

/// Request that waits to be sent.
#[derive(Debug)]
pub(crate) struct Pending {
    /// Its id, unique in this program.
    pub(crate) id: u64,
    /// Number of rows.
    pub(crate) rows: usize,
    /// Body of its frame.
    pub(crate) body: Arc<Vec<u8>>,
    /// Channel of the response.
    pub(crate) reply: oneshot::Sender<Reply>,
}

/// Process of a model.
#[derive(Debug)]
pub(crate) struct Session {
    /// Its number, unique in this program.
    pub(crate) number: u64,
    pub(crate) model: ServedModel,
    pub(crate) settings: PredictorSettings,
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) requests: mpsc::Receiver<Pending>,
    pub(crate) phase: watch::Sender<SessionPhase>,
    /// Closed when the process is not needed any more.
    pub(crate) stopped: watch::Receiver<()>,
}

/// Cause of the end of the exchange of requests and responses.
#[derive(Debug)]
enum ExchangeEnd {
    /// The process closed its output or its input.
    Closed,
    /// It sent something that is no response.
    Broken(BrokenProtocol),
    /// It did not respond in time.
    Stuck,
    /// Its model could not be loaded.
    NotLoaded(ModelFailure),
    /// It was not used for some time.
    Idle,
}

impl From<io::Error> for ExchangeEnd {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData => {
                Self::Broken(BrokenProtocol("a frame is too long".into()))
            }
            _ => Self::Closed,
        }
    }
}

/// Request that was sent.
#[derive(Debug)]
struct Sent {
    rows: usize,
    reply: oneshot::Sender<Reply>,
}

/// Requests that were sent and not answered.
#[derive(Debug)]
struct Ledger {
    sent: HashMap<u64, Sent>,
    /// When the last response arrived, or the first request was sent.
    progressed: Instant,
    /// When the process was ready.
    ready: Option<Instant>,
}

/// Shared ledger of the reading and the writing side.
#[derive(Debug)]
struct Exchange {
    ledger: Mutex<Ledger>,
    signature: Arc<ModelSignature>,
    response_limit: Duration,
    idle: Duration,
}

impl Session {
    /// Runs the session to its end. `retire_idle` removes it from the pool if it is not used, and `ended`
    /// in any case, with the reason if it never became ready.
    pub(crate) async fn run(
        mut self,
        retire_idle: impl Fn() -> bool,
        ended: impl FnOnce(Option<PredictionDelay>),
    ) {
        let end = self.serve(retire_idle).await;
        // A process that never was ready would fail again, so its requests get the reason in place of another
        // process.
        let is_preparing = *self.phase.borrow() == SessionPhase::Preparing;
        let not_started = end.err().filter(|_| is_preparing);
        // Before the replies: a request that is repeated gets another process.
        ended(not_started.clone());
        // From here on senders see a closed channel, so none is left behind in the queue below.
        self.requests.close();
        while let Ok(pending) = self.requests.try_recv() {
            let _ = pending.reply.send(match &not_started {
                Some(delay) => Reply::Answered(Err(delay.clone().into())),
                None => Reply::NotSent,
            });
        }
    }

    async fn serve(&mut self, retire_idle: impl Fn() -> bool) -> Result<(), PredictionDelay> {
        let host = self.sandbox.host().await.map_err(process::unavailable)?;
        let workspace = host.workspace(&format!("predictor-{}", self.number));
        let script = self.settings.scripts.of(self.model.task);
        let active = host.activate(&workspace, script).await;
        let served = match active.map_err(process::unavailable) {
            Ok(active) => self.serve_in(&host, &active, retire_idle).await,
            Err(delay) => Err(delay),
        };
        if let Err(error) = workspace.remove().await {
            tracing::warn!(%error, "could not remove the workspace of a predictor");
        }
        served
    }

    async fn serve_in(
        &mut self,
        host: &labdata_sandbox::HostCapabilities,
        active: &labdata_sandbox::ActiveWorkspace,
        retire_idle: impl Fn() -> bool,
    ) -> Result<(), PredictionDelay> {
        let (stop, mut stop_signal) = stop_channel();
        let mut stopped = self.stopped.clone();
        let not_needed = async {
            // No value is ever sent: this is the end of the entry in the pool.
            while stopped.changed().await.is_ok() {}
        };
        let mut not_needed = pin!(not_needed);
        let spec = {
            let prepared =
                process::prepare(host, active, &self.model, &self.settings, &mut stop_signal);
            tokio::select! {
                spec = prepared => spec?,
                () = &mut not_needed => return Ok(()),
            }
        };
        let (pipes, streams) = process_pipes()
            .map_err(|error| process::unavailable(SandboxError::Unavailable(error.to_string())))?;
        // Polled beside the exchange: dropping it would kill the process without an outcome.
        let mut running = pin!(host.serve(active, &spec, pipes, &mut stop_signal, |_| ()));
        let exchange = Exchange {
            ledger: Mutex::new(Ledger {
                sent: HashMap::new(),
                progressed: Instant::now(),
                ready: None,
            }),
            signature: Arc::clone(&self.model.signature),
            response_limit: self.settings.response_limit,
            idle: self.settings.idle,
        };
        // A short idle time, as tests have, is noticed in time as well.
        let check_interval = CHECK_INTERVAL.min(self.settings.idle / 2 + Duration::from_millis(1));
        let mut outcome = None;
        let end = tokio::select! {
            ended = &mut running => {
                outcome = Some(ended);
                ExchangeEnd::Closed
            }
            end = exchange.run(streams, &mut self.requests, &self.phase) => end,
            end = exchange.watch(check_interval, retire_idle) => end,
            () = &mut not_needed => ExchangeEnd::Idle,
        };
        if outcome.is_none() && matches!(end, ExchangeEnd::Closed) {
            // Its outcome says why.
            outcome = timeout(DYING, &mut running).await.ok();
        }
        if outcome.is_none() && matches!(end, ExchangeEnd::Stuck) {
            // Other than a kill, this has an outcome, which may say why.
            stop.cancel();
            outcome = Some(running.await);
        } else if outcome.is_none() {
            stop.kill();
            let _ = running.await;
        }
        let result = self.interpret(end, outcome);
        exchange.fail(&result);
        result
    }

    /// Returns the meaning of an end, and logs it.
    fn interpret(
        &self,
        end: ExchangeEnd,
        outcome: Option<Result<ProcessOutcome, SandboxError>>,
    ) -> Result<(), PredictionDelay> {
        let (organization, version) = (self.model.organization, self.model.version);
        let failure = match end {
            ExchangeEnd::Idle => {
                tracing::debug!(%organization, %version, "ended a predictor that is not used");
                return Ok(());
            }
            ExchangeEnd::NotLoaded(failure) => {
                tracing::warn!(%organization, %version, %failure, "a model cannot be loaded");
                failure
            }
            ExchangeEnd::Stuck => {
                let outcome = outcome.and_then(Result::ok);
                let errors = outcome.as_ref().map(|outcome| &*outcome.error_tail);
                tracing::warn!(%organization, %version, errors, "ended a predictor that did not respond");
                outcome.map_or(ModelFailure::TooSlow, |outcome| process::hang(&outcome))
            }
            ExchangeEnd::Broken(error) => {
                let reason = error.0;
                tracing::warn!(%organization, %version, reason, "killed a predictor that broke the protocol");
                ModelFailure::InvalidResponse
            }
            ExchangeEnd::Closed => match outcome {
                Some(Ok(outcome)) => {
                    let errors = &outcome.error_tail;
                    tracing::warn!(
                        %organization, %version, cause = ?outcome.cause, exit = ?outcome.exit, errors,
                        "a predictor ended"
                    );
                    process::failure(&outcome)
                }
                Some(Err(error)) => {
                    tracing::warn!(%organization, %version, %error, "a predictor was lost");
                    ModelFailure::Ended
                }
                None => {
                    tracing::warn!(%organization, %version, "killed a predictor that closed its output");
                    ModelFailure::Ended
                }
            },
        };
        Err(PredictionDelay::Failed(failure))
    }
}

impl Exchange {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the process is ready, then sends requests and reads responses.
    async fn run(
        &self,
        streams: Streams,
        requests: &mut mpsc::Receiver<Pending>,
        phase: &watch::Sender<SessionPhase>,
    ) -> ExchangeEnd {
        let Streams { mut input, output } = streams;
        // Frames begin with a short header, which would otherwise cost a separate system call.
        let mut output = BufReader::with_capacity(1 << 16, output);
        let first = match timeout(LOADING, frames::read(&mut output, MAX_FRAME)).await {
            Ok(Ok(first)) => first,
            // Its end before the first message is judged by the outcome of the process.
            Ok(Err(error)) => return error.into(),
            Err(_) => return ExchangeEnd::Stuck,
        };
        match read_start(&first) {
            Ok(Start::Ready) => {
                self.ledger().ready = Some(Instant::now());
                phase.send_replace(SessionPhase::Ready);
            }
            Ok(Start::Failed {
                is_memory: true, ..
            }) => {
                return ExchangeEnd::NotLoaded(ModelFailure::Memory);
            }
            Ok(Start::Failed { message, .. }) => {
                return ExchangeEnd::NotLoaded(ModelFailure::Reported(message));
            }
            Err(error) => return ExchangeEnd::Broken(error),
        }
        tokio::select! {
            end = self.send(&mut input, requests) => end,
            end = self.receive(&mut output) => end,
        }
    }

    async fn send(
        &self,
        input: &mut (impl AsyncWrite + Unpin),
        requests: &mut mpsc::Receiver<Pending>,
    ) -> ExchangeEnd {
        while let Some(pending) = requests.recv().await {
            if pending.reply.is_closed() {
                // Its caller has left.
                continue;
            }
            // Before the write: the response may arrive before the write returns.
            self.ledger().add(pending.id, pending.rows, pending.reply);
            if let Err(error) = frames::write(input, &pending.body).await {
                return error.into();
            }
        }
        ExchangeEnd::Idle
    }

    async fn receive(&self, output: &mut (impl AsyncRead + Unpin)) -> ExchangeEnd {
        loop {
            let body = match frames::read(output, MAX_FRAME).await {
                Ok(body) => body,
                Err(error) => return error.into(),
            };
            let signature = Arc::clone(&self.signature);
            // A separate thread, whose panic is an error here.
            let reading = tokio::task::spawn_blocking(move || read_response(&body, &signature));
            let read = match reading.await {
                Ok(Ok(response)) => self.deliver(response),
                Ok(Err(error)) => Err(error),
                Err(_) => Err(BrokenProtocol("an Arrow stream is malformed".to_owned())),
            };
            if let Err(error) = read {
                return ExchangeEnd::Broken(error);
            }
        }
    }

    /// Gives a response to its caller.
    fn deliver(&self, response: Response) -> Result<(), BrokenProtocol> {
        // By id, so that responses may overtake each other.
        let sent = self.ledger().take(response.id);
        let Sent { rows, reply } =
            sent.ok_or_else(|| BrokenProtocol("a response to no request".to_owned()))?;
        let (result, broken) = match response.content {
            Content::Predicted(raw) => match Predictions::check(&self.signature, rows, raw) {
                Ok(predictions) => (Ok(predictions), None),
                Err(error) => (
                    Err(PredictionDelay::Failed(ModelFailure::InvalidResponse).into()),
                    // After one such response none can be trusted: the process is replaced.
                    Some(BrokenProtocol(error.to_string())),
                ),
            },
            // Problems of the request, not of the process, which serves on.
            Content::Rejected(problems) => (Err(problems.into()), None),
            Content::Refused(reason) => (Err(PredictError::Refused(reason)), None),
        };
        // The caller may have left.
        let _ = reply.send(Reply::Answered(result));
        broken.map_or(Ok(()), Err)
    }

    /// Returns when the process is stuck, or not used any more.
    async fn watch(&self, interval: Duration, retire_idle: impl Fn() -> bool) -> ExchangeEnd {
        loop {
            tokio::time::sleep(interval).await;
            let (is_stuck, ready) = {
                let ledger = self.ledger();
                let is_late = ledger.progressed.elapsed() > self.response_limit;
                // Copied out, so that the lock is not held while the pool decides.
                (is_late && !ledger.sent.is_empty(), ledger.ready)
            };
            if is_stuck {
                return ExchangeEnd::Stuck;
            }
            // Counted from readiness, because loading may take longer than the idle time.
            if ready.is_some_and(|ready| ready.elapsed() >= self.idle) && retire_idle() {
                return ExchangeEnd::Idle;
            }
        }
    }

    /// Fails all requests that were not answered.
    fn fail(&self, end: &Result<(), PredictionDelay>) {
        let delay = match end {
            Ok(()) => PredictionDelay::Failed(ModelFailure::Ended),
            Err(delay) => delay.clone(),
        };
        // Not repeated on another process: one of them may be what ended this one.
        for (_, sent) in self.ledger().sent.drain() {
            let error = PredictError::from(delay.clone());
            let _ = sent.reply.send(Reply::Answered(Err(error)));
        }
    }
}

impl Ledger {
    fn add(&mut self, id: u64, rows: usize, reply: oneshot::Sender<Reply>) {
        // Time without a request must not look like a process that is stuck.
        if self.sent.is_empty() {
            self.progressed = Instant::now();
        }
        self.sent.insert(id, Sent { rows, reply });
    }

    fn take(&mut self, id: u64) -> Option<Sent> {
        self.progressed = Instant::now();
        self.sent.remove(&id)
    }
}
