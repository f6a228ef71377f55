//! Triggers: what starts a job without anybody asking.

mod conditions;
pub mod event;
mod firing;
mod glob;
mod schedule;

use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::ids::{InstrumentId, JobId, TriggerId, UserId};

pub use conditions::{
    Conditions, EndStatus, FileConditions, FileFacts, InvalidConditions, JobConditions,
};
pub use firing::{Candidate, Firing, Occurrence, Response};
pub use glob::{MAX_PATTERN_LENGTH, NamePattern};
pub use schedule::{InvalidSchedule, Schedule};

/// How many triggered runs may follow from one another: then the chain ends.
pub const MAX_CHAIN: usize = 32;

/// What a trigger waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// A file whose bytes were confirmed.
    FileUploaded,
    /// An execution of another job that ended.
    JobCompleted,
    /// A time.
    Schedule,
}

impl Category {
    /// Every category and its name in the API.
    pub const ALL: [(&'static str, Self); 3] = [
        ("file_uploaded", Self::FileUploaded),
        ("job_completed", Self::JobCompleted),
        ("schedule", Self::Schedule),
    ];

    /// Its name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FileUploaded => "file_uploaded",
            Self::JobCompleted => "job_completed",
            Self::Schedule => "schedule",
        }
    }

    /// The category of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, category)| category)
    }
}

/// What starts a job without anybody asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Its id, the same as long as the job has a trigger.
    pub id: TriggerId,
    /// What it waits for.
    pub category: Category,
    /// Only files of this instrument.
    pub instrument: Option<InstrumentId>,
    /// Its conditions as they were given; [`Conditions::parse`] reads them.
    pub conditions: Map<String, Value>,
    /// Who set it: its runs are in this user's name.
    pub set_by: UserId,
    /// Since when it waits: a schedule's first tick is after this.
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

    /// The job whose executions it waits for, where it waits for such.
    #[must_use]
    pub fn source_job(&self) -> Option<JobId> {
        match self.parsed() {
            Ok(Conditions::JobCompleted(conditions)) => Some(conditions.source),
            _ => None,
        }
    }

    /// When it fires first after that time, where that is a matter of time.
    #[must_use]
    pub fn next_after(&self, now: OffsetDateTime) -> Option<OffsetDateTime> {
        match self.parsed() {
            Ok(Conditions::Schedule(schedule)) => schedule.next_after(now),
            _ => None,
        }
    }
}

/// What is asked of a job's trigger; what is left out stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TriggerChange {
    /// True sets it as this change says and no other way; false takes it away.
    pub enabled: Option<bool>,
    /// What it waits for.
    pub category: Option<Category>,
    /// Only files of this instrument.
    pub instrument: Option<InstrumentId>,
    /// Its conditions.
    pub conditions: Option<Map<String, Value>>,
}

/// Why a trigger cannot be set so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTrigger {
    /// There is none that could be changed.
    #[error("this job has no trigger: set trigger_enabled to true to give it one")]
    None,
    /// It is to be set, but not to what.
    #[error("trigger_enabled needs a trigger_category")]
    NoCategory,
    /// Files alone are of an instrument.
    #[error("only a trigger of the category file_uploaded has a trigger_instrument_id")]
    Instrument,
    /// Its conditions cannot be.
    #[error(transparent)]
    Conditions(#[from] InvalidConditions),
    /// A job would start itself for ever.
    #[error("trigger_conditions: a job cannot be its own source_job_id")]
    OwnSource,
}

impl TriggerChange {
    /// Whether it asks for nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The trigger as it is after the change, which is that user's at that time; `id` is for one
    /// that is new. Given without `enabled`, the parts of the standing trigger that the change
    /// names are replaced; with another category, its conditions and instrument are those of the
    /// change alone.
    ///
    /// # Errors
    /// [`InvalidTrigger`].
    pub fn apply(
        &self,
        job: JobId,
        standing: Option<&Trigger>,
        id: TriggerId,
        set_by: UserId,
        now: OffsetDateTime,
    ) -> Result<Option<Trigger>, InvalidTrigger> {
        if self.is_empty() {
            return Ok(standing.cloned());
        }
        let kept = match (self.enabled, standing) {
            (Some(false), _) => return Ok(None),
            (Some(true), _) => None,
            (None, None) => return Err(InvalidTrigger::None),
            (None, Some(standing)) => Some(standing),
        };
        let category = self.category.or(kept.map(|kept| kept.category));
        let category = category.ok_or(InvalidTrigger::NoCategory)?;
        let kept = kept.filter(|kept| kept.category == category);
        let conditions = match (&self.conditions, kept) {
            (Some(conditions), _) => {
                let given = conditions.iter().filter(|(_, value)| !value.is_null());
                given
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect()
            }
            (None, Some(kept)) => kept.conditions.clone(),
            (None, None) => Map::new(),
        };
        let trigger = Trigger {
            id: standing.map_or(id, |standing| standing.id),
            category,
            instrument: self.instrument.or(kept.and_then(|kept| kept.instrument)),
            conditions,
            set_by,
            armed_at: now,
        };
        if trigger.instrument.is_some() && category != Category::FileUploaded {
            return Err(InvalidTrigger::Instrument);
        }
        // With its nulls, so that an unknown name is told whatever its value.
        Conditions::parse(
            category,
            self.conditions.as_ref().unwrap_or(&trigger.conditions),
        )?;
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
        standing: Option<&Trigger>,
    ) -> Result<Option<Trigger>, InvalidTrigger> {
        let job = JobId::new(Uuid::from_u128(1));
        let id = TriggerId::new(Uuid::from_u128(2));
        let later = NOW + Duration::hours(1);
        change.apply(job, standing, id, UserId::new(Uuid::from_u128(3)), later)
    }

    fn standing() -> Trigger {
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
        assert_eq!(apply(&change, Some(&standing())), Ok(Some(standing())));
    }

    #[test]
    fn a_trigger_that_is_set_keeps_nothing_of_the_standing_one_but_its_id() {
        let change = TriggerChange {
            enabled: Some(true),
            category: Some(Category::FileUploaded),
            ..TriggerChange::default()
        };
        let set = apply(&change, Some(&standing())).unwrap().unwrap();
        assert_eq!(set.id, standing().id);
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
        let set = apply(&change, Some(&standing())).unwrap().unwrap();
        assert_eq!(set.instrument, standing().instrument);
        assert_eq!(set.conditions, map(json!({"max_size_kb": 5})));
        assert_eq!(apply(&change, None), Err(InvalidTrigger::None));
        let other = TriggerChange {
            category: Some(Category::Schedule),
            conditions: Some(map(json!({"cron": "0 9 * * *"}))),
            ..TriggerChange::default()
        };
        let set = apply(&other, Some(&standing())).unwrap().unwrap();
        assert_eq!((set.instrument, set.category), (None, Category::Schedule));
        let next = set.next_after(set.armed_at);
        assert_eq!(next, Some(datetime!(2026-03-02 09:00 UTC)));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let schedule = TriggerChange {
            enabled: Some(true),
            category: Some(Category::Schedule),
            instrument: standing().instrument,
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
    fn a_disabled_trigger_is_gone() {
        let change = TriggerChange {
            enabled: Some(false),
            category: Some(Category::Schedule),
            ..TriggerChange::default()
        };
        assert_eq!(apply(&change, Some(&standing())), Ok(None));
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
