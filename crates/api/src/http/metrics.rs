//! Metrics in Prometheus' format.

use std::time::Duration;

use actix_web::http::{Method, StatusCode};
use prometheus::{
    Encoder, HistogramOpts, HistogramVec, IntGauge, Registry, TextEncoder, core::Collector,
};

/// Metrics of one server.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Registry,
    requests: HistogramVec,
    resident_memory: IntGauge,
    open_files: IntGauge,
}

impl Metrics {
    /// Registers the metrics, all at zero.
    ///
    /// # Errors
    /// When a name is malformed or taken, which is a bug in this file.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let requests = HistogramVec::new(
            HistogramOpts::new(
                "labdata_http_request_duration_seconds",
                "Duration of HTTP requests",
            )
            .buckets(vec![
                0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
            ]),
            &["method", "route", "status"],
        )?;
        let resident_memory = IntGauge::new(
            "process_resident_memory_bytes",
            "Resident memory size in bytes",
        )?;
        let open_files = IntGauge::new("process_open_fds", "Number of open file descriptors")?;
        let metrics = Self {
            registry,
            requests,
            resident_memory,
            open_files,
        };
        metrics.register(metrics.requests.clone())?;
        metrics.register(metrics.resident_memory.clone())?;
        metrics.register(metrics.open_files.clone())?;
        Ok(metrics)
    }

    /// Registers a metric.
    ///
    /// # Errors
    /// When its name is taken.
    pub fn register(&self, figure: impl Collector + 'static) -> Result<(), prometheus::Error> {
        self.registry.register(Box::new(figure))
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
            _ => "other",
        };
        self.requests
            .with_label_values(&[method, route, status.as_str()])
            .observe(took.as_secs_f64());
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
