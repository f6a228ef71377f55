//! Triggers: they start jobs after uploads, after other jobs, and by schedule.

mod arming;
mod backfill;
mod category;
mod conditions;
pub mod event;
mod firing;
mod glob;
mod local_times;
mod schedule;

use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::{
    ids::{InstrumentId, JobId, TriggerId, UserId},
    refusal::{ErrorCode, Refuse},
};

pub use arming::Arming;
pub use backfill::{
    Backfill, BackfillFiles, BackfillOnly, LISTED_BACKFILL_FILES, MAX_BACKFILL_RUNS, NoFileTrigger,
    StoredUpload,
};
pub use category::Category;
pub use conditions::{
    Conditions, EndStatus, FileConditions, FileFacts, INSTRUMENT_HAS_READER, InvalidConditions,
    JobConditions,
};
pub use firing::{Candidate, Firing, Occurrence, Response, Tick, TriggerEvent};
pub use glob::{MAX_PATTERN_LENGTH, NamePattern};
pub use schedule::{InvalidSchedule, Schedule};

/// Longest chain of triggered runs that follow from one another.
pub const MAX_CHAIN: usize = 32;

/// A job's trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Its id, which stays the same for as long as the job has a trigger.
    pub id: TriggerId,
    /// Its kind.
    pub category: Category,
    /// Restricts it to files of this instrument.
    pub instrument: Option<InstrumentId>,
    /// Its conditions as they were given; [`Conditions::parse`] reads them.
    pub conditions: Map<String, Value>,
    /// The user who set it. Its runs are in this user's name.
    pub set_by: UserId,
    /// When it was set. The first tick of a schedule is after this.
    pub armed_at: OffsetDateTime,
}

impl Trigger {
    /// Its conditions.
    ///
    /// # Errors
    /// [`InvalidConditions`].
    pub fn parsed(&self) -> Result<Conditions, InvalidConditions> {
        Conditions::parse(self.category, &self.conditions)
    }

    /// The job for whose executions it waits, if it waits for any.
    #[must_use]
    pub fn source_job(&self) -> Option<JobId> {
        match self.parsed() {
            Ok(Conditions::JobCompleted(conditions)) => Some(conditions.source),
            _ => None,
        }
    }

    /// Returns true if it waits for executions of that job. The end of an execution is recorded in the
    /// outbox exactly if a trigger of the organization does.
    #[must_use]
    pub fn awaits_end_of(&self, job: JobId) -> bool {
        self.source_job() == Some(job)
    }

    /// The first tick after that time; `None` unless it is a schedule.
    #[must_use]
    pub fn next_after(&self, now: OffsetDateTime) -> Option<OffsetDateTime> {
        match self.parsed() {
            Ok(Conditions::Schedule(schedule)) => schedule.next_after(now),
            _ => None,
        }
    }
}

/// A change of a job's trigger. Fields that are `None` stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TriggerChange {
    /// True replaces the trigger by this change; false removes it.
    pub enabled: Option<bool>,
    /// Its kind.
    pub category: Option<Category>,
    /// Restricts it to files of this instrument.
    pub instrument: Option<InstrumentId>,
    /// Its conditions.
    pub conditions: Option<Map<String, Value>>,
}

/// Why a trigger cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTrigger {
    /// The job has no trigger to change.
    #[error("this job has no trigger: set trigger_enabled to true to give it one")]
    None,
    /// The category is missing.
    #[error("trigger_enabled needs a trigger_category")]
    NoCategory,
    /// An instrument is given for a trigger that does not wait for files.
    #[error("only a trigger of the category file_uploaded has a trigger_instrument_id")]
    Instrument,
    /// Its conditions are invalid.
    #[error(transparent)]
    Conditions(#[from] InvalidConditions),
    /// The job that it names does not exist.
    #[error("trigger_conditions: there is no job {0}")]
    UnknownSource(JobId),
    /// The job has no script.
    #[error("this job has no script that a trigger could run: give its code")]
    NoScript,
    /// The job would start itself forever.
    #[error("trigger_conditions: a job cannot be its own source_job_id")]
    OwnSource,
}

impl Refuse for InvalidTrigger {
    fn code(&self) -> ErrorCode {
        match self {
            Self::NoScript => ErrorCode::ScriptMissing,
            Self::None
            | Self::NoCategory
            | Self::Instrument
            | Self::Conditions(_)
            | Self::UnknownSource(_)
            | Self::OwnSource => ErrorCode::InvalidTrigger,
        }
    }
}

impl TriggerChange {
    /// Returns true if it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Applies the change, made by that user at that time, to the job's current trigger. `id` is
    /// used if the job has none. Without `enabled`, the named fields alone are replaced; a change
    /// of the category replaces conditions and instrument as well.
    ///
    /// # Errors
    /// [`InvalidTrigger`].
    pub fn apply(
        &self,
        job: JobId,
        current: Option<&Trigger>,
        id: TriggerId,
        set_by: UserId,
        now: OffsetDateTime,
    ) -> Result<Option<Trigger>, InvalidTrigger> {
        if self.is_empty() {
            return Ok(current.cloned());
        }
        let base = match (self.enabled, current) {
            (Some(false), _) => return Ok(None),
            // `enabled: true` defines the whole trigger: no field of the current one carries over.
            (Some(true), _) => None,
            (None, None) => return Err(InvalidTrigger::None),
            (None, Some(current)) => Some(current),
        };
        let category = self.category.or(base.map(|base| base.category));
        let category = category.ok_or(InvalidTrigger::NoCategory)?;
        // Conditions and instruments of one category mean nothing in another.
        let base = base.filter(|base| base.category == category);
        let conditions = match (&self.conditions, base) {
            (Some(conditions), _) => {
                let given = conditions.iter().filter(|(_, value)| !value.is_null());
                given
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect()
            }
            (None, Some(base)) => base.conditions.clone(),
            (None, None) => Map::new(),
        };
        let trigger = Trigger {
            // The id survives changes, because runs refer to the trigger that started them.
            id: current.map_or(id, |current| current.id),
            category,
            instrument: self.instrument.or(base.and_then(|base| base.instrument)),
            conditions,
            set_by,
            armed_at: now,
        };
        if trigger.instrument.is_some() && category != Category::FileUploaded {
            return Err(InvalidTrigger::Instrument);
        }
        // With the nulls, so that an unknown name is reported even if its value is null.
        Conditions::parse(
            category,
            self.conditions.as_ref().unwrap_or(&trigger.conditions),
        )?;
        // Longer circles depend on other jobs, which may change; they are found when an event fires.
        if trigger.source_job() == Some(job) {
            return Err(InvalidTrigger::OwnSource);
        }
        Ok(Some(trigger))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use time::{Duration, macros::datetime};
    use uuid::Uuid;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-03-01 12:00 UTC);

    fn map(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            _ => panic!("not an object"),
        }
    }

    fn apply(
        change: &TriggerChange,
        current: Option<&Trigger>,
    ) -> Result<Option<Trigger>, InvalidTrigger> {
        let job = JobId::new(Uuid::from_u128(1));
        let id = TriggerId::new(Uuid::from_u128(2));
        let later = NOW + Duration::hours(1);
        change.apply(job, current, id, UserId::new(Uuid::from_u128(3)), later)
    }

    fn current() -> Trigger {
        Trigger {
            id: TriggerId::new(Uuid::from_u128(7)),
            category: Category::FileUploaded,
            instrument: Some(InstrumentId::new(Uuid::from_u128(8))),
            conditions: map(json!({"min_size_kb": 1})),
            set_by: UserId::new(Uuid::from_u128(9)),
            armed_at: NOW,
        }
    }

    #[test]
    fn nothing_asked_is_nothing_changed() {
        let change = TriggerChange::default();
        assert_eq!(apply(&change, None), Ok(None));
        assert_eq!(apply(&change, Some(&current())), Ok(Some(current())));
    }

    #[test]
    fn a_trigger_that_is_set_keeps_nothing_of_the_one_before_but_its_id() {
        let change = TriggerChange {
            enabled: Some(true),
            category: Some(Category::FileUploaded),
            ..TriggerChange::default()
        };
        let set = apply(&change, Some(&current())).unwrap().unwrap();
        assert_eq!(set.id, current().id);
        assert_eq!((set.instrument, set.conditions), (None, Map::new()));
        assert_eq!(set.set_by, UserId::new(Uuid::from_u128(3)));
        assert_eq!(set.armed_at, NOW + Duration::hours(1));
    }

    #[test]
    fn a_part_that_is_passed_alone_changes_alone() {
        let change = TriggerChange {
            conditions: Some(map(json!({"max_size_kb": 5, "source_type": null}))),
            ..TriggerChange::default()
        };
        let set = apply(&change, Some(&current())).unwrap().unwrap();
        assert_eq!(set.instrument, current().instrument);
        assert_eq!(set.conditions, map(json!({"max_size_kb": 5})));
        assert_eq!(apply(&change, None), Err(InvalidTrigger::None));
        let other = TriggerChange {
            category: Some(Category::Schedule),
            conditions: Some(map(json!({"cron": "0 9 * * *"}))),
            ..TriggerChange::default()
        };
        let set = apply(&other, Some(&current())).unwrap().unwrap();
        assert_eq!((set.instrument, set.category), (None, Category::Schedule));
        let next = set.next_after(set.armed_at);
        assert_eq!(next, Some(datetime!(2026-03-02 09:00 UTC)));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let schedule = TriggerChange {
            enabled: Some(true),
            category: Some(Category::Schedule),
            instrument: current().instrument,
            conditions: Some(map(json!({"cron": "0 9 * * *"}))),
        };
        assert_eq!(apply(&schedule, None), Err(InvalidTrigger::Instrument));
        let own = TriggerChange {
            enabled: Some(true),
            category: Some(Category::JobCompleted),
            conditions: Some(map(json!({"source_job_id": Uuid::from_u128(1)}))),
            ..TriggerChange::default()
        };
        assert_eq!(apply(&own, None), Err(InvalidTrigger::OwnSource));
        let unknown = TriggerChange {
            enabled: Some(true),
            category: Some(Category::FileUploaded),
            conditions: Some(map(json!({"nonsense": null}))),
            ..TriggerChange::default()
        };
        let refused = apply(&unknown, None);
        assert!(
            matches!(refused, Err(InvalidTrigger::Conditions(_))),
            "{refused:?}"
        );
    }

    #[test]
    fn a_trigger_awaits_the_ends_of_its_source_job_alone() {
        let source = JobId::new(Uuid::from_u128(11));
        let waiting = Trigger {
            category: Category::JobCompleted,
            instrument: None,
            conditions: map(json!({"source_job_id": source})),
            ..current()
        };
        assert!(waiting.awaits_end_of(source));
        assert!(!waiting.awaits_end_of(JobId::new(Uuid::from_u128(12))));
        assert!(!current().awaits_end_of(source));
    }

    #[test]
    fn a_disabled_trigger_is_gone() {
        let change = TriggerChange {
            enabled: Some(false),
            category: Some(Category::Schedule),
            ..TriggerChange::default()
        };
        assert_eq!(apply(&change, Some(&current())), Ok(None));
        assert_eq!(apply(&change, None), Ok(None));
    }

    #[test]
    fn categories_have_names_that_read_back() {
        for (category, name) in [
            (Category::FileUploaded, "file_uploaded"),
            (Category::JobCompleted, "job_completed"),
            (Category::Schedule, "schedule"),
        ] {
            assert_eq!(category.as_str(), name);
            assert_eq!(Category::from_name(name), Some(category));
        }
        assert_eq!(Category::from_name("manual"), None);
    }
}
