//! Under which conditions a trigger fires.

use serde_json::{Map, Value};

use super::{
    category::Category,
    glob::{MAX_PATTERN_LENGTH, NamePattern},
    schedule::Schedule,
};
use crate::{
    files::{ExtensionFilter, FilePath, SourceType},
    ids::JobId,
};

/// The longest list of a condition.
const MAX_ITEMS: usize = 100;

/// Condition on whether the file's instrument has a reader.
pub const INSTRUMENT_HAS_READER: &str = "instrument_has_reader";

/// Conditions as a trigger acts on them.
#[derive(Clone, Debug)]
pub enum Conditions {
    /// Of `file_uploaded`.
    FileUploaded(FileConditions),
    /// Of `job_completed`.
    JobCompleted(JobConditions),
    /// Of `schedule`.
    Schedule(Box<Schedule>),
}

/// Conditions on a file. A condition that is `None` always holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileConditions {
    pattern: Option<NamePattern>,
    extensions: Option<ExtensionFilter>,
    source: Option<SourceType>,
    min_size_kb: Option<u64>,
    max_size_kb: Option<u64>,
    has_reader: Option<bool>,
}

/// Facts about a file that conditions compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Its path.
    pub path: FilePath,
    /// Source of the file.
    pub source: SourceType,
    /// Its size in KiB, rounded up.
    pub size_kilobytes: u64,
    /// True if the file's instrument has a reader of files.
    pub has_reader: bool,
}

impl FileConditions {
    /// Returns true if the file meets the conditions.
    #[must_use]
    pub fn matches(&self, file: &FileFacts) -> bool {
        self.pattern
            .as_ref()
            .is_none_or(|pattern| pattern.matches(&file.path))
            && self
                .extensions
                .as_ref()
                .is_none_or(|extensions| extensions.matches(&file.path))
            && self.source.is_none_or(|source| source == file.source)
            && self
                .min_size_kb
                .is_none_or(|least| least <= file.size_kilobytes)
            && self
                .max_size_kb
                .is_none_or(|most| file.size_kilobytes <= most)
            && self
                .has_reader
                .is_none_or(|wanted| wanted == file.has_reader)
    }
}

/// Final status of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndStatus {
    /// It did what it should.
    Completed,
    /// It did not.
    Failed,
    /// Somebody called it off.
    Cancelled,
}

impl EndStatus {
    const ALL: [Self; 3] = [Self::Completed, Self::Failed, Self::Cancelled];

    /// Its name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Conditions on an execution that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobConditions {
    /// Executions of this job.
    pub source: JobId,
    /// Accepted final statuses.
    pub statuses: Vec<EndStatus>,
}

impl JobConditions {
    /// Returns true if that final status is accepted.
    #[must_use]
    pub fn matches(&self, status: &str) -> bool {
        self.statuses.iter().any(|wanted| wanted.as_str() == status)
    }
}

/// Why conditions cannot be a trigger's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("trigger_conditions: {0}")]
pub struct InvalidConditions(pub String);

/// The fields of conditions, taken one by one. A field that is null counts as absent.
struct Fields<'a> {
    left: Map<String, Value>,
    category: Category,
    known: &'a [&'a str],
}

impl<'a> Fields<'a> {
    fn of(
        conditions: &Map<String, Value>,
        category: Category,
        known: &'a [&'a str],
    ) -> Result<Self, InvalidConditions> {
        for name in conditions.keys() {
            // A misspelled condition would otherwise match every event.
            if !known.contains(&name.as_str()) {
                return Err(InvalidConditions(format!(
                    "{name:?} is no condition of {}, which knows {}",
                    category.as_str(),
                    known.join(", ")
                )));
            }
        }
        // After the check of names: `null` for an unknown name is still a mistake.
        let given = conditions.iter().filter(|(_, value)| !value.is_null());
        Ok(Self {
            left: given
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            category,
            known,
        })
    }

    fn take<T>(
        &mut self,
        name: &str,
        wanted: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, InvalidConditions> {
        debug_assert!(self.known.contains(&name), "{name}");
        match self.left.remove(name) {
            None => Ok(None),
            Some(value) => read(&value)
                .map(Some)
                .ok_or_else(|| InvalidConditions(format!("{name} must be {wanted}"))),
        }
    }

    fn require<T>(
        &mut self,
        name: &str,
        wanted: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, InvalidConditions> {
        self.take(name, wanted, read)?.ok_or_else(|| {
            InvalidConditions(format!("{} needs {name}: {wanted}", self.category.as_str()))
        })
    }
}

fn text(value: &Value) -> Option<&str> {
    // PostgreSQL stores NUL in neither `text` nor `jsonb`.
    value.as_str().filter(|text| !text.contains('\0'))
}

fn texts(value: &Value) -> Option<Vec<&str>> {
    let items = value.as_array()?;
    if items.len() > MAX_ITEMS {
        return None;
    }
    items.iter().map(text).collect()
}

impl Conditions {
    /// Reads the conditions of a trigger of that category.
    ///
    /// # Errors
    /// [`InvalidConditions`] for the first one that is unknown, missing, or cannot be.
    pub fn parse(
        category: Category,
        conditions: &Map<String, Value>,
    ) -> Result<Self, InvalidConditions> {
        match category {
            Category::FileUploaded => Ok(Self::FileUploaded(file_conditions(conditions)?)),
            Category::JobCompleted => Ok(Self::JobCompleted(job_conditions(conditions)?)),
            Category::Schedule => Ok(Self::Schedule(Box::new(schedule(conditions)?))),
        }
    }
}

fn file_conditions(conditions: &Map<String, Value>) -> Result<FileConditions, InvalidConditions> {
    let mut fields = Fields::of(
        conditions,
        Category::FileUploaded,
        &[
            "file_name_pattern",
            "file_extensions",
            "source_type",
            "min_size_kb",
            "max_size_kb",
            INSTRUMENT_HAS_READER,
        ],
    )?;
    let pattern = fields.take(
        "file_name_pattern",
        &format!("a text of 1 to {MAX_PATTERN_LENGTH} characters, with * and ?"),
        |value| NamePattern::parse(text(value)?),
    )?;
    let extensions = fields.take(
        "file_extensions",
        "a list of at most 100 extensions, such as [\"csv\", \"txt\"]",
        |value| {
            let extensions = texts(value)?;
            // `ExtensionFilter::parse` skips blank items: a list of only blanks would match every file.
            let blank = extensions
                .iter()
                .any(|text| text.trim_matches([' ', '.']).is_empty());
            (!blank).then(|| ExtensionFilter::parse(&extensions.join(",")))
        },
    )?;
    let names = SourceType::ALL.map(SourceType::as_str).join(", ");
    let source = fields.take("source_type", &format!("one of {names}"), |value| {
        SourceType::from_name(text(value)?)
    })?;
    let size = "a whole number from 0 up";
    let min_size_kb = fields.take("min_size_kb", size, whole)?;
    let max_size_kb = fields.take("max_size_kb", size, whole)?;
    let has_reader = fields.take(INSTRUMENT_HAS_READER, "true or false", Value::as_bool)?;
    if let (Some(least), Some(most)) = (min_size_kb, max_size_kb)
        && least > most
    {
        return Err(InvalidConditions(format!(
            "min_size_kb {least} is greater than max_size_kb {most}"
        )));
    }
    Ok(FileConditions {
        pattern,
        extensions: extensions.flatten(),
        source,
        min_size_kb,
        max_size_kb,
        has_reader,
    })
}

/// A whole number, also as `5.0`.
fn whole(value: &Value) -> Option<u64> {
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it has no fraction, and lies between 0 and 2^53"
    )]
    let from_float = |float: f64| {
        // Above 2^53, several whole numbers share one float.
        (float.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&float))
            .then_some(float as u64)
    };
    value
        .as_u64()
        // `2.0` and `1e3` are integers for JSON Schema.
        .or_else(|| value.as_f64().and_then(from_float))
}

fn job_conditions(conditions: &Map<String, Value>) -> Result<JobConditions, InvalidConditions> {
    let mut fields = Fields::of(
        conditions,
        Category::JobCompleted,
        &["source_job_id", "statuses"],
    )?;
    let source = fields.require("source_job_id", "the id of a job", |value| {
        text(value)?.parse().ok()
    })?;
    let statuses = fields.take(
        "statuses",
        "a list of completed, failed, cancelled",
        |value| {
            let statuses = texts(value)?;
            let read: Option<Vec<EndStatus>> = statuses
                .into_iter()
                .map(|name| {
                    EndStatus::ALL
                        .into_iter()
                        .find(|status| status.as_str() == name)
                })
                .collect();
            // Without a status, the trigger could never fire.
            read.filter(|statuses| !statuses.is_empty())
        },
    )?;
    Ok(JobConditions {
        source,
        statuses: statuses.unwrap_or_else(|| vec![EndStatus::Completed]),
    })
}

fn schedule(conditions: &Map<String, Value>) -> Result<Schedule, InvalidConditions> {
    let mut fields = Fields::of(conditions, Category::Schedule, &["cron", "timezone"])?;
    let cron = fields.require(
        "cron",
        "five fields, such as \"30 6 * * MON-FRI\"",
        |value| text(value).map(str::to_owned),
    )?;
    let zone = fields.take(
        "timezone",
        "the IANA name of a time zone, such as \"Europe/Berlin\"",
        |value| text(value).map(str::to_owned),
    )?;
    Schedule::parse(&cron, zone.as_deref().unwrap_or("UTC"))
        .map_err(|error| InvalidConditions(error.to_string()))
}

#[cfg(test)]
mod tests;
