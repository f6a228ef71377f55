//! The report.

use std::{collections::BTreeMap, fmt, time::Duration};

use crate::{
    ledger::Kind,
    memory::Memory,
    statistics::{Attempt, Summary},
};

/// Problems that are printed.
const SHOWN: usize = 50;

/// Figures of a load, and what is wrong.
#[derive(Debug)]
pub struct Report {
    pub(crate) duration: Duration,
    pub(crate) summary: Summary,
    pub(crate) memory: Vec<Memory>,
    pub(crate) changes: BTreeMap<Kind, (u64, u64)>,
    pub(crate) differences: Vec<String>,
}

impl Report {
    /// Returns all problems: responses that the platform must not give, and differences between the ledger and
    /// what the platform holds.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let responses = self.summary.problems.iter();
        responses.chain(&self.differences).cloned().collect()
    }

    /// Number of requests, attempts counted.
    #[must_use]
    pub fn requests(&self) -> u64 {
        let endpoints = self.summary.endpoints.iter();
        endpoints.map(|endpoint| endpoint.count).sum()
    }

    /// Number of responses with that status.
    #[must_use]
    pub fn responses(&self, status: u16) -> u64 {
        self.summary.count(Attempt::Status(status))
    }

    /// Number of changes that were acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.changes.values().map(|counts| counts.0).sum()
    }

    /// Longest time without an acknowledged data write.
    #[must_use]
    pub const fn longest_gap(&self) -> Duration {
        self.summary.longest_gap
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<34} {:>9} {:>9} {:>9}  errors",
            "endpoint", "requests", "p50 ms", "p99 ms"
        )?;
        for endpoint in &self.summary.endpoints {
            let milliseconds = |duration: Duration| duration.as_secs_f64() * 1e3;
            let errors = endpoint.errors.iter();
            let errors: Vec<_> = errors
                .map(|(attempt, count)| format!("{attempt}: {count}"))
                .collect();
            writeln!(
                f,
                "{:<34} {:>9} {:>9.1} {:>9.1}  {}",
                endpoint.name,
                endpoint.count,
                milliseconds(endpoint.p50),
                milliseconds(endpoint.p99),
                errors.join(", ")
            )?;
        }
        let seconds = self.duration.as_secs_f64();
        writeln!(f)?;
        writeln!(f, "{} requests in {seconds:.0} s", self.requests())?;
        writeln!(
            f,
            "longest time without an acknowledged data write: {:.1} s",
            self.longest_gap().as_secs_f64()
        )?;
        for memory in &self.memory {
            writeln!(f, "{memory}")?;
        }
        let changes = self.changes.iter();
        let changes: Vec<_> = changes
            .map(|(kind, (acknowledged, unknown))| format!("{kind:?} {acknowledged}+{unknown}"))
            .collect();
        writeln!(f, "changes, acknowledged + unknown: {}", changes.join(", "))?;
        let problems = self.problems();
        if problems.is_empty() {
            return writeln!(
                f,
                "everything acknowledged is there exactly once, and nothing is stuck"
            );
        }
        let unshown =
            self.summary.problem_count - u64::try_from(self.summary.problems.len()).unwrap_or(0);
        writeln!(f, "{} PROBLEMS, and {unshown} more answers", problems.len())?;
        for problem in problems.iter().take(SHOWN) {
            writeln!(f, "  {problem}")?;
        }
        Ok(())
    }
}
