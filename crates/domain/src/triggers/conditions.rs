//! Under which conditions a trigger fires.

use serde_json::{Map, Value};

use super::{
    Category,
    glob::{MAX_PATTERN_LENGTH, NamePattern},
    schedule::Schedule,
};
use crate::{
    files::{ExtensionFilter, FilePath, SourceType},
    ids::JobId,
};

/// The longest list of a condition.
const MAX_ITEMS: usize = 100;

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

/// Which files; what is left out does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileConditions {
    pattern: Option<NamePattern>,
    extensions: Option<ExtensionFilter>,
    source: Option<SourceType>,
    min_size_kb: Option<u64>,
    max_size_kb: Option<u64>,
}

/// What conditions look at in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Its path.
    pub path: FilePath,
    /// Where it came from.
    pub source: SourceType,
    /// Its size in KiB, rounded up.
    pub size_kilobytes: u64,
}

impl FileConditions {
    /// Whether the file is one of them.
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
    }
}

/// How an execution may have ended.
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

/// Which executions, and how they must have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobConditions {
    /// Executions of this job.
    pub source: JobId,
    /// That ended so.
    pub statuses: Vec<EndStatus>,
}

impl JobConditions {
    /// Whether an execution that ended with that status is one of them.
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
            if !known.contains(&name.as_str()) {
                return Err(InvalidConditions(format!(
                    "{name:?} is no condition of {}, which knows {}",
                    category.as_str(),
                    known.join(", ")
                )));
            }
        }
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
        (float.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&float))
            .then_some(float as u64)
    };
    value
        .as_u64()
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
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            _ => panic!("not an object"),
        }
    }

    fn files(conditions: Value) -> FileConditions {
        match Conditions::parse(Category::FileUploaded, &map(conditions)) {
            Ok(Conditions::FileUploaded(conditions)) => conditions,
            other => panic!("{other:?}"),
        }
    }

    fn file(path: &str, source: SourceType, size_kilobytes: u64) -> FileFacts {
        FileFacts {
            path: FilePath::parse(path).unwrap(),
            source,
            size_kilobytes,
        }
    }

    #[test]
    fn without_conditions_every_file_matches() {
        for conditions in [
            json!({}),
            json!({"file_extensions": [], "source_type": null}),
        ] {
            let any = file("a", SourceType::JobArtifact, 0);
            assert!(files(conditions).matches(&any));
        }
    }

    #[test]
    fn every_condition_must_hold() {
        let conditions = files(
            json!({"file_name_pattern": "plate*", "file_extensions": ["csv", ".TXT"],
            "source_type": "manual_upload", "min_size_kb": 2, "max_size_kb": 3.0}),
        );
        let manual = SourceType::ManualUpload;
        for path in ["plate.csv", "runs/plate 7.txt", "plate.CSV"] {
            assert!(conditions.matches(&file(path, manual, 2)), "{path}");
            assert!(conditions.matches(&file(path, manual, 3)), "{path}");
        }
        for other in [
            file("Plate.csv", manual, 2),
            file("plate.tsv", manual, 2),
            file("platecsv", manual, 2),
            file("plate.csv", SourceType::JobArtifact, 2),
            file("plate.csv", manual, 1),
            file("plate.csv", manual, 4),
        ] {
            assert!(!conditions.matches(&other), "{other:?}");
        }
    }

    #[test]
    fn a_finished_execution_matches_by_its_status() {
        let id = "0191d5a4-0000-7000-8000-000000000000";
        for (conditions, matching) in [
            (json!({"source_job_id": id}), vec!["completed"]),
            (
                json!({"source_job_id": id, "statuses": ["failed", "cancelled"]}),
                vec!["failed", "cancelled"],
            ),
        ] {
            let parsed = Conditions::parse(Category::JobCompleted, &map(conditions)).unwrap();
            let Conditions::JobCompleted(parsed) = parsed else {
                panic!("{parsed:?}");
            };
            assert_eq!(parsed.source.to_string(), id);
            for status in ["completed", "failed", "cancelled", "running"] {
                assert_eq!(
                    parsed.matches(status),
                    matching.contains(&status),
                    "{status}"
                );
            }
        }
    }

    #[test]
    fn bad_conditions_are_refused_naming_what_is_wrong() {
        let id = "0191d5a4-0000-7000-8000-000000000000";
        for (category, conditions, word) in [
            (Category::FileUploaded, json!({"pattern": "*"}), "pattern"),
            (
                Category::FileUploaded,
                json!({"file_name_pattern": ""}),
                "file_name_pattern",
            ),
            (
                Category::FileUploaded,
                json!({"file_name_pattern": 5}),
                "file_name_pattern",
            ),
            (
                Category::FileUploaded,
                json!({"file_extensions": "csv"}),
                "file_extensions",
            ),
            (
                Category::FileUploaded,
                json!({"file_extensions": ["."]}),
                "file_extensions",
            ),
            (
                Category::FileUploaded,
                json!({"source_type": "fax"}),
                "source_type",
            ),
            (
                Category::FileUploaded,
                json!({"min_size_kb": -1}),
                "min_size_kb",
            ),
            (
                Category::FileUploaded,
                json!({"max_size_kb": 0.5}),
                "max_size_kb",
            ),
            (
                Category::FileUploaded,
                json!({"min_size_kb": 2, "max_size_kb": 1}),
                "greater",
            ),
            (Category::FileUploaded, json!({"cron": "* * * * *"}), "cron"),
            (Category::JobCompleted, json!({}), "source_job_id"),
            (
                Category::JobCompleted,
                json!({"source_job_id": "x"}),
                "source_job_id",
            ),
            (
                Category::JobCompleted,
                json!({"source_job_id": id, "statuses": []}),
                "statuses",
            ),
            (
                Category::JobCompleted,
                json!({"source_job_id": id, "statuses": ["running"]}),
                "statuses",
            ),
            (Category::Schedule, json!({}), "cron"),
            (Category::Schedule, json!({"cron": "* * * *"}), "cron"),
            (Category::Schedule, json!({"cron": 5}), "cron"),
            (
                Category::Schedule,
                json!({"cron": "* * * * *", "timezone": "Mars/Olympus"}),
                "Mars/Olympus",
            ),
            (
                Category::Schedule,
                json!({"cron": "* * * * *", "timezone": 1}),
                "timezone",
            ),
        ] {
            let error = Conditions::parse(category, &map(conditions.clone())).unwrap_err();
            assert!(error.to_string().contains(word), "{conditions}: {error}");
        }
    }

    #[test]
    fn limits_of_conditions_are_still_accepted() {
        let extensions = |count: usize| {
            let extensions: Vec<String> = (0..count).map(|number| format!("e{number}")).collect();
            let conditions = map(json!({ "file_extensions": extensions }));
            Conditions::parse(Category::FileUploaded, &conditions)
        };
        assert!(extensions(100).is_ok());
        assert!(extensions(101).is_err());
        let exact = files(json!({"min_size_kb": 2, "max_size_kb": 2}));
        assert!(exact.matches(&file("a", SourceType::ManualUpload, 2)));
    }
}
