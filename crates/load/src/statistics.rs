//! Figures of requests by endpoint.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Number of latency classes, each 5 % wider than the one before; the last one begins at 50 minutes.
const CLASSES: usize = 450;

/// Growth of a latency class.
const GROWTH: f64 = 1.05;

/// The endpoint whose longest pause is measured.
pub(crate) const WRITE: &str = "POST /data/write";

/// Most problems that are stored in full.
const MAX_PROBLEMS: usize = 50;

/// Result of one attempt at a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Attempt {
    /// A response with this status.
    Status(u16),
    /// An error that leaves open whether the request had its effect.
    OutcomeUnknown,
    /// No response: the connection was refused or lost, or a time limit passed.
    Lost,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{status}"),
            Self::OutcomeUnknown => f.write_str("outcome unknown"),
            Self::Lost => f.write_str("lost"),
        }
    }
}

/// Figures of one endpoint.
#[derive(Clone, Debug)]
struct Endpoint {
    classes: Vec<u64>,
    attempts: BTreeMap<Attempt, u64>,
}

impl Default for Endpoint {
    fn default() -> Self {
        Self {
            classes: vec![0; CLASSES],
            attempts: BTreeMap::new(),
        }
    }
}

impl Endpoint {
    /// Upper bound of the class that holds the percentile of all responses.
    fn percentile(&self, percent: u64) -> Duration {
        let total: u64 = self.classes.iter().sum();
        let wanted = (total * percent).div_ceil(100).max(1);
        let mut passed = 0;
        let mut bound = 1.0;
        for count in &self.classes {
            bound *= GROWTH;
            passed += count;
            if passed >= wanted {
                break;
            }
        }
        Duration::from_secs_f64(bound / 1e6)
    }
}

/// The class of a latency.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a logarithm of at least 0, limited to the number of classes"
)]
fn class(latency: Duration) -> usize {
    let microseconds = (latency.as_secs_f64() * 1e6).max(1.0);
    let class = (microseconds.ln() / GROWTH.ln()) as usize;
    class.min(CLASSES - 1)
}

#[derive(Debug, Default)]
struct Figures {
    endpoints: BTreeMap<&'static str, Endpoint>,
    last_success: Option<Instant>,
    longest_gap: Duration,
    problems: Vec<String>,
    problem_count: u64,
}

/// Figures of all requests. Memory does not grow with their number.
#[derive(Debug, Default)]
pub(crate) struct Statistics(Mutex<Figures>);

impl Statistics {
    fn figures(&self) -> MutexGuard<'_, Figures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an attempt.
    pub(crate) fn record(&self, endpoint: &'static str, attempt: Attempt, latency: Duration) {
        let mut figures = self.figures();
        let entry = figures.endpoints.entry(endpoint).or_default();
        *entry.attempts.entry(attempt).or_default() += 1;
        if matches!(attempt, Attempt::Status(_))
            && let Some(count) = entry.classes.get_mut(class(latency))
        {
            *count += 1;
        }
        if endpoint == WRITE && matches!(attempt, Attempt::Status(200..300)) {
            let now = Instant::now();
            if let Some(last) = figures.last_success {
                figures.longest_gap = figures.longest_gap.max(now - last);
            }
            figures.last_success = Some(now);
        }
    }

    /// Adds a response that the platform must not give.
    pub(crate) fn problem(&self, problem: String) {
        let mut figures = self.figures();
        figures.problem_count += 1;
        if figures.problems.len() < MAX_PROBLEMS {
            figures.problems.push(problem);
        }
    }

    /// Sums the figures up.
    pub(crate) fn summary(&self) -> Summary {
        let figures = self.figures();
        let endpoints = figures.endpoints.iter();
        Summary {
            endpoints: endpoints
                .map(|(name, endpoint)| EndpointSummary {
                    name,
                    count: endpoint.attempts.values().sum(),
                    p50: endpoint.percentile(50),
                    p99: endpoint.percentile(99),
                    errors: endpoint
                        .attempts
                        .iter()
                        .filter(|(attempt, _)| !matches!(attempt, Attempt::Status(200..300)))
                        .map(|(attempt, count)| (*attempt, *count))
                        .collect(),
                })
                .collect(),
            longest_gap: figures.longest_gap,
            problems: figures.problems.clone(),
            problem_count: figures.problem_count,
        }
    }
}

/// Figures of an endpoint, for people.
#[derive(Clone, Debug)]
pub(crate) struct EndpointSummary {
    pub(crate) name: &'static str,
    pub(crate) count: u64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) errors: BTreeMap<Attempt, u64>,
}

/// Figures of all endpoints.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    pub(crate) endpoints: Vec<EndpointSummary>,
    /// Longest time between two acknowledged data writes.
    pub(crate) longest_gap: Duration,
    pub(crate) problems: Vec<String>,
    pub(crate) problem_count: u64,
}

impl Summary {
    /// Number of attempts at all endpoints with that result.
    pub(crate) fn count(&self, attempt: Attempt) -> u64 {
        let errors = self.endpoints.iter().map(|endpoint| &endpoint.errors);
        errors.filter_map(|errors| errors.get(&attempt)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_class_of_the_latency() {
        let statistics = Statistics::default();
        for milliseconds in 1..=100 {
            let latency = Duration::from_millis(milliseconds);
            statistics.record("GET /", Attempt::Status(200), latency);
        }
        statistics.record("GET /", Attempt::Lost, Duration::from_mins(1));
        statistics.record("GET /", Attempt::Status(503), Duration::from_millis(1));
        let summary = statistics.summary();
        let endpoint = summary.endpoints.first().expect("an endpoint");
        assert_eq!(endpoint.count, 102);
        for (found, expected) in [(endpoint.p50, 0.050), (endpoint.p99, 0.099)] {
            let ratio = found.as_secs_f64() / expected;
            assert!((0.94..1.06).contains(&ratio), "{found:?}");
        }
        assert_eq!(summary.count(Attempt::Lost), 1);
        assert_eq!(summary.count(Attempt::Status(503)), 1);
        assert_eq!(summary.count(Attempt::Status(500)), 0);
    }
}
