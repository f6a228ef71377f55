//! Readings: what a reader finds in a file.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::refusal::{ErrorCode, RefusalKind, Refuse};

/// Name of the built-in job that reads files.
pub const READ_JOB_NAME: &str = "Read instrument file";

/// Description of the built-in job that reads files.
pub const READ_JOB_DESCRIPTION: &str = "Reads the files of instruments that have a reader, and writes what is in \
    them to instrument_measurement and instrument_curve.";

/// Maximum number of bytes of a file that is read.
pub const MAX_READING_FILE_BYTES: u64 = 64 << 20;

/// Maximum number of bytes of what a reader finds, as JSON.
pub const MAX_READING_BYTES: usize = 64 << 20;

/// Time limit of a reading, which may try many readers.
pub const READING_TIME_LIMIT: Duration = Duration::from_secs(50);

/// Memory of a reading, in bytes.
pub const READING_MEMORY: u64 = 2 << 30;

/// Result of trying readers on a file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Reading {
    /// The reader that took the file; `None` if none did, or several.
    #[serde(default)]
    pub reader: Option<String>,
    /// The readers that take the file.
    #[serde(default)]
    pub candidates: Vec<String>,
    /// The readers that do not, with their reasons.
    #[serde(default)]
    pub refusals: Vec<ReaderRefusal>,
    /// Rows of `instrument_measurement`, without file and instrument.
    #[serde(default)]
    pub measurements: Vec<Map<String, Value>>,
    /// Curves of the measurements.
    #[serde(default)]
    pub curves: Vec<Curve>,
    /// Notes on the reading for a person.
    #[serde(default)]
    pub doubts: Vec<String>,
    /// The ASM document.
    #[serde(default)]
    pub document: Value,
}

/// A reader that does not take a file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ReaderRefusal {
    /// Its name.
    pub reader: String,
    /// The reason.
    pub reason: String,
}

/// A curve.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Curve {
    /// Index of its measurement.
    pub measurement: usize,
    /// Positions.
    pub x: Vec<Option<f64>>,
    /// Values; `None` where the file has no number.
    pub y: Vec<Option<f64>>,
}

impl Reading {
    /// Returns the reading that a process reported, if it fits together: the process handles untrusted files.
    #[must_use]
    pub fn from_report(report: &[u8]) -> Option<Self> {
        let reading: Self = serde_json::from_slice(report).ok()?;
        let is_whole = reading.curves.iter().all(|curve| {
            curve.measurement < reading.measurements.len() && curve.x.len() == curve.y.len()
        });
        is_whole.then_some(reading)
    }

    /// The reason why no reader read the file; `None` if one did.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        if self.reader.is_some() {
            return None;
        }
        if !self.candidates.is_empty() {
            return Some(format!(
                "several readers take this file: {}; choose one, at the instrument or in the request",
                self.candidates.join(", ")
            ));
        }
        if self.refusals.is_empty() {
            return Some(
                "no reader takes files of this kind (its extension); GET /api/v1/readers lists the kinds"
                    .to_owned(),
            );
        }
        let refusals = self.refusals.iter();
        let reasons: Vec<String> = refusals
            .map(|refusal| format!("{}: {}", refusal.reader, refusal.reason))
            .collect();
        Some(format!(
            "no reader takes this file; the file stays as it is. Tried: {}",
            reasons.join("; ")
        ))
    }
}

/// Why a file was not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadingFailure {
    /// The packages are being installed.
    #[error(
        "the readers are being prepared on this server, which takes up to some minutes at their first use; \
         try again later"
    )]
    Preparing,
    /// The packages could not be installed.
    #[error(
        "the packages of the readers could not be installed: the package index cannot be reached, or has not \
         all of them; the log of the server has the details"
    )]
    NotInstalled,
    /// This server runs no scripts, for that reason.
    #[error("this server cannot read files of instruments: {0}")]
    Unavailable(String),
    /// As many files are read as may.
    #[error("other files are being read; try again in a moment")]
    Busy,
    /// The file is too large.
    #[error("a file of more than {} MiB is not read", MAX_READING_FILE_BYTES >> 20)]
    FileTooLarge,
    /// The result is too large.
    #[error("the file holds more than a reading may: over {} MiB of measurements", MAX_READING_BYTES >> 20)]
    ResultTooLarge,
    /// The time limit was reached.
    #[error("reading the file took more than {} s, which is the limit", READING_TIME_LIMIT.as_secs())]
    TimedOut,
    /// The memory limit was reached.
    #[error("reading the file took more than {} MiB of memory, which is the limit", READING_MEMORY >> 20)]
    Memory,
    /// The process ended without a result.
    #[error("the reader of the file ended without a result: {0}")]
    Broken(String),
}

impl Refuse for ReadingFailure {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Preparing | Self::NotInstalled | Self::Unavailable(_) | Self::Busy => {
                ErrorCode::PythonUnavailable
            }
            Self::FileTooLarge => ErrorCode::FileTooLarge,
            Self::ResultTooLarge | Self::TimedOut | Self::Memory | Self::Broken(_) => {
                ErrorCode::FileNotReadable
            }
        }
    }

    fn kind(&self) -> RefusalKind {
        match self {
            Self::Preparing | Self::NotInstalled | Self::Unavailable(_) | Self::Busy => {
                RefusalKind::Unavailable
            }
            _ => RefusalKind::Invalid,
        }
    }
}

/// Error: no reader is named for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("neither the request nor the file's instrument names a reader: give one, or \"auto\"")]
pub struct NoReader;

impl Refuse for NoReader {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidValue
    }
}

/// Error: the organization has its own table by the name of one to which readers write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this organization has a table {0:?} of its own, to which readers cannot write: rename it first \
     (PUT /api/v1/tables with renamed_from)"
)]
pub struct TableIsTaken(pub String);

/// Error: another job bears the name of the built-in job, so files would not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a job of this organization is named {READ_JOB_NAME:?}, like the platform's job that reads files, and is \
     not that one: rename it first (PATCH /api/v1/jobs)"
)]
pub struct ReadJobNameIsTaken;

impl Refuse for ReadJobNameIsTaken {
    fn code(&self) -> ErrorCode {
        ErrorCode::NameTaken
    }
}

impl Refuse for TableIsTaken {
    fn code(&self) -> ErrorCode {
        ErrorCode::NameTaken
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reading(report: &Value) -> Option<Reading> {
        Reading::from_report(report.to_string().as_bytes())
    }

    #[test]
    fn a_report_that_does_not_fit_together_is_none() {
        let measurements = json!([{"key": "1"}]);
        let curve = |measurement: u8, y: Value| json!([{"measurement": measurement, "x": [1.0, 2.0], "y": y}]);
        let report = |curves: Value| {
            reading(
                &json!({"reader": "AGILENT_GEN5", "measurements": measurements, "curves": curves}),
            )
        };
        let whole = report(curve(0, json!([0.5, null]))).unwrap();
        assert_eq!(whole.curves[0].y, [Some(0.5), None]);
        assert_eq!(whole.problem(), None);
        for broken in [
            curve(1, json!([0.5, 1])),
            curve(0, json!([0.5])),
            curve(0, json!(["a", 1])),
        ] {
            assert_eq!(report(broken.clone()), None, "{broken}");
        }
    }

    #[test]
    fn a_file_that_is_not_read_says_why() {
        let several = reading(&json!({"candidates": ["A", "B"]})).unwrap();
        assert!(several.problem().unwrap().contains("A, B; choose one"));
        let none = reading(&json!({"refusals": [{"reader": "A", "reason": "no plate"}]})).unwrap();
        assert!(none.problem().unwrap().ends_with("Tried: A: no plate"));
        let kind = reading(&json!({})).unwrap();
        assert!(kind.problem().unwrap().contains("extension"));
    }
}
