//! Metrics in Prometheus' format (contract §11).

use std::{sync::Arc, time::Duration};

use actix_web::http::{Method, StatusCode};
use labdata_application::{agent::UsageObserver, maintenance::measure_platform::Measurements};
use labdata_domain::agent::Usage;
use labdata_ports::Clock;
use labdata_worker::TaskObserver;
use prometheus::{
    Encoder, GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder, core::Collector,
};
use time::{Duration as TimeSpan, OffsetDateTime};
use tokio::sync::Mutex;

/// Buckets of durations, in seconds.
const DURATIONS: [f64; 13] = [
    0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// Metrics of one server. Clones are the same metrics.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Registry,
    requests: HistogramVec,
    task_durations: HistogramVec,
    task_failures: IntCounterVec,
    task_successes: GaugeVec,
    runs: IntGaugeVec,
    run_queue_age: GaugeVec,
    trainings: IntGaugeVec,
    training_queue_age: GaugeVec,
    instruments: IntGaugeVec,
    queued_instrument_files: IntGaugeVec,
    outbox_age: GaugeVec,
    connections: IntGaugeVec,
    agent_tokens: IntCounterVec,
    resident_memory: IntGauge,
    open_files: IntGauge,
    measured: Arc<Mutex<Option<Measured>>>,
}

/// Age at which measurements of the platform are taken again: they can be read without a key.
const MEASURED_FOR: TimeSpan = TimeSpan::SECOND;

/// Result of measuring the platform; none where that failed.
#[derive(Clone, Copy, Debug)]
struct Measured {
    at: OffsetDateTime,
    measurements: Option<Measurements>,
}

impl Metrics {
    /// Shows measurements of the platform that are at most a second old. Requests that come while it is
    /// measured wait for the same result.
    pub async fn measure(
        &self,
        clock: &dyn Clock,
        measure: impl Future<Output = Option<Measurements>>,
    ) {
        let mut measured = self.measured.lock().await;
        let now = clock.now();
        // A clock that was set back makes no measurement of the future last.
        let is_recent = |it: &Measured| (TimeSpan::ZERO..MEASURED_FOR).contains(&(now - it.at));
        if measured.as_ref().is_none_or(|it| !is_recent(it)) {
            let measurements = measure.await;
            *measured = Some(Measured {
                at: clock.now(),
                measurements,
            });
        }
        self.set_measurements(measured.and_then(|it| it.measurements));
    }

    /// Registers the metrics, all at zero.
    ///
    /// # Errors
    /// When a name is malformed or taken, which is a bug in this file.
    pub fn new() -> Result<Self, prometheus::Error> {
        let metrics = Self {
            registry: Registry::new(),
            requests: durations(
                "labdata_http_request_duration_seconds",
                "Duration of HTTP requests",
                &["method", "route", "status"],
            )?,
            task_durations: durations(
                "labdata_periodic_task_duration_seconds",
                "Duration of the passes of periodic tasks on this server",
                &["task"],
            )?,
            task_failures: IntCounterVec::new(
                Opts::new(
                    "labdata_periodic_task_failures_total",
                    "Failed passes of periodic tasks on this server",
                ),
                &["task"],
            )?,
            task_successes: GaugeVec::new(
                Opts::new(
                    "labdata_periodic_task_last_success_timestamp_seconds",
                    "End of the last successful pass of a periodic task",
                ),
                &["task"],
            )?,
            runs: IntGaugeVec::new(
                Opts::new("labdata_runs", "Job runs of all organizations by state"),
                &["state"],
            )?,
            run_queue_age: GaugeVec::new(
                Opts::new(
                    "labdata_run_queue_age_seconds",
                    "Age of the oldest run that waits for a worker",
                ),
                &[],
            )?,
            trainings: IntGaugeVec::new(
                Opts::new(
                    "labdata_trainings",
                    "Trainings of models of all organizations by state",
                ),
                &["state"],
            )?,
            training_queue_age: GaugeVec::new(
                Opts::new(
                    "labdata_training_queue_age_seconds",
                    "Age of the oldest training that waits for a worker",
                ),
                &[],
            )?,
            instruments: IntGaugeVec::new(
                Opts::new(
                    "labdata_instruments",
                    "Instruments whose computers have reported, by status",
                ),
                &["status"],
            )?,
            queued_instrument_files: IntGaugeVec::new(
                Opts::new(
                    "labdata_instrument_queued_files",
                    "Files that wait to be sent at the computers of instruments that report",
                ),
                &[],
            )?,
            outbox_age: GaugeVec::new(
                Opts::new(
                    "labdata_outbox_age_seconds",
                    "Age of the oldest entry of an outbox",
                ),
                &["outbox"],
            )?,
            connections: IntGaugeVec::new(
                Opts::new(
                    "labdata_database_connections",
                    "Database connections of this server by state, and callers that wait for one",
                ),
                &["state"],
            )?,
            agent_tokens: IntCounterVec::new(
                Opts::new(
                    "labdata_agent_tokens_total",
                    "Tokens of agent runs on this server by kind",
                ),
                &["kind"],
            )?,
            resident_memory: IntGauge::new(
                "process_resident_memory_bytes",
                "Resident memory size in bytes",
            )?,
            open_files: IntGauge::new("process_open_fds", "Number of open file descriptors")?,
            measured: Arc::default(),
        };
        metrics.register_all()?;
        // Makes the counters visible before the first run.
        metrics.used(Usage::default());
        Ok(metrics)
    }

    fn register_all(&self) -> Result<(), prometheus::Error> {
        self.register(self.requests.clone())?;
        self.register(self.task_durations.clone())?;
        self.register(self.task_failures.clone())?;
        self.register(self.task_successes.clone())?;
        self.register(self.runs.clone())?;
        self.register(self.run_queue_age.clone())?;
        self.register(self.trainings.clone())?;
        self.register(self.training_queue_age.clone())?;
        self.register(self.instruments.clone())?;
        self.register(self.queued_instrument_files.clone())?;
        self.register(self.outbox_age.clone())?;
        self.register(self.connections.clone())?;
        self.register(self.agent_tokens.clone())?;
        self.register(self.resident_memory.clone())?;
        self.register(self.open_files.clone())
    }

    fn register(&self, metric: impl Collector + 'static) -> Result<(), prometheus::Error> {
        self.registry.register(Box::new(metric))
    }

    /// Records a request. `route` is the pattern, not the path, to bound the number of series.
    pub fn record_request(&self, method: &Method, route: &str, status: StatusCode, took: Duration) {
        let method = match *method {
            Method::GET
            | Method::HEAD
            | Method::POST
            | Method::PUT
            | Method::PATCH
            | Method::DELETE => method.as_str(),
            // Clients may invent methods, and each label value is a new time series.
            _ => "other",
        };
        self.requests
            .with_label_values(&[method, route, status.as_str()])
            .observe(took.as_secs_f64());
    }

    /// Sets the metrics of the platform; `None`, if they could not be measured, removes them.
    pub fn set_measurements(&self, measured: Option<Measurements>) {
        // A stale value would look healthy; an alert can notice an absent one.
        let Some(measured) = measured else {
            self.runs.reset();
            self.run_queue_age.reset();
            self.trainings.reset();
            self.training_queue_age.reset();
            self.instruments.reset();
            self.queued_instrument_files.reset();
            self.outbox_age.reset();
            self.connections.reset();
            return;
        };
        let set = |gauge: &IntGaugeVec, state, count: u64| {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            gauge.with_label_values(&[state]).set(count);
        };
        set(&self.runs, "queued", measured.queued_runs);
        set(&self.runs, "running", measured.running_runs);
        set(&self.trainings, "pending", measured.pending_trainings);
        set(&self.trainings, "training", measured.running_trainings);
        set(&self.instruments, "online", measured.online_instruments);
        set(&self.instruments, "offline", measured.offline_instruments);
        set(&self.instruments, "error", measured.failing_instruments);
        let waiting = i64::try_from(measured.queued_instrument_files).unwrap_or(i64::MAX);
        self.queued_instrument_files
            .with_label_values::<&str>(&[])
            .set(waiting);
        let set_age = |gauge: &GaugeVec, age: Duration| {
            let gauge = gauge.with_label_values::<&str>(&[]);
            gauge.set(age.as_secs_f64());
        };
        set_age(&self.run_queue_age, measured.run_queue_age);
        set_age(&self.training_queue_age, measured.training_queue_age);
        let outbox = |outbox, age: Duration| {
            let gauge = self.outbox_age.with_label_values(&[outbox]);
            gauge.set(age.as_secs_f64());
        };
        outbox("events", measured.event_outbox_age);
        outbox("notices", measured.notice_outbox_age);
        outbox("emails", measured.email_outbox_age);
        outbox("webhooks", measured.webhook_outbox_age);
        let connections = |state, count: usize| {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.connections.with_label_values(&[state]).set(count);
        };
        connections("active", measured.connections.active);
        connections("idle", measured.connections.idle);
        connections("waiting", measured.connections.waiting);
    }

    /// Renders all metrics in Prometheus' text format.
    ///
    /// # Errors
    /// When a metric cannot be encoded.
    pub fn render(&self) -> Result<String, prometheus::Error> {
        self.resident_memory
            .set(resident_memory().unwrap_or_default());
        self.open_files.set(open_files().unwrap_or_default());
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

impl UsageObserver for Metrics {
    fn used(&self, usage: Usage) {
        let add = |kind, tokens: Option<u64>| {
            let counter = self.agent_tokens.with_label_values(&[kind]);
            counter.inc_by(tokens.unwrap_or_default());
        };
        add("input", usage.input_tokens);
        add("output", usage.output_tokens);
    }
}

impl TaskObserver for Metrics {
    fn succeeded(&self, task: &'static str, finished_at: OffsetDateTime, took: Duration) {
        self.task_durations
            .with_label_values(&[task])
            .observe(took.as_secs_f64());
        // Makes the counter visible before the first failure.
        self.task_failures.with_label_values(&[task]).inc_by(0);
        self.succeeded_earlier(task, finished_at);
    }

    fn failed(&self, task: &'static str, took: Duration) {
        self.task_durations
            .with_label_values(&[task])
            .observe(took.as_secs_f64());
        self.task_failures.with_label_values(&[task]).inc();
    }

    fn succeeded_earlier(&self, task: &'static str, finished_at: OffsetDateTime) {
        let since_epoch = finished_at - OffsetDateTime::UNIX_EPOCH;
        self.task_successes
            .with_label_values(&[task])
            .set(since_epoch.as_seconds_f64());
    }
}

fn durations(name: &str, help: &str, labels: &[&str]) -> Result<HistogramVec, prometheus::Error> {
    let options = HistogramOpts::new(name, help).buckets(DURATIONS.to_vec());
    HistogramVec::new(options, labels)
}

/// Resident memory of the process in bytes; `None` on systems without `/proc`.
fn resident_memory() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: i64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// Number of open files of the process; `None` on systems without `/proc`.
fn open_files() -> Option<i64> {
    i64::try_from(std::fs::read_dir("/proc/self/fd").ok()?.count()).ok()
}
