//! Triggers of jobs, in bodies and responses.

use labdata_application::Error;
use labdata_domain::{
    ids::{InstrumentId, TriggerId},
    refusal::Resource,
    triggers::{Category, Trigger, TriggerChange},
};
use labdata_request_body::{
    ProblemKind,
    fields::optional,
    names, output,
    readers::{MaybeId, boolean, choice, id, object, storable},
    shape,
};
use serde_json::{Map, Value};

use crate::OrNotFound;

shape! {
    /// The fields of a body that are about the job's trigger.
    #[derive(Clone, Debug)]
    #[expect(clippy::struct_field_names, reason = "the contract names the fields so")]
    pub(super) struct TriggerFields {
        /// True sets the trigger as this body says, and nothing of an earlier one stays; false
        /// removes it. Without it, the other `trigger_` fields change the trigger that there is.
        trigger_enabled: Option<bool> = optional(boolean()),
        /// Kind of event. Required where `trigger_enabled` is true.
        trigger_category: Option<Category> = optional(choice(Category::ALL)),
        /// Only files of this instrument; of `file_uploaded` only.
        trigger_instrument_id: Option<MaybeId<InstrumentId>> = optional(id()),
        /// Of `file_uploaded`: `file_name_pattern`, `file_extensions`, `source_type`, `min_size_kb`,
        /// `max_size_kb`, `instrument_has_reader`. Of `job_completed`: `source_job_id`, `statuses`. Of
        /// `schedule`: `cron`, `timezone`.
        trigger_conditions: Option<Map<String, Value>> = optional(storable(object())),
    }
    rules |at| {
        if let (Some(Some(true)), Some(None)) = (trigger_enabled, trigger_category) {
            at.field("trigger_category").report(ProblemKind::missing());
        }
    }
}

impl TriggerFields {
    /// The requested conditions.
    pub(super) fn change(self) -> Result<TriggerChange, Error> {
        let instrument = self.trigger_instrument_id;
        let instrument = instrument.map(|id| id.or_not_found(Resource::Instrument));
        Ok(TriggerChange {
            enabled: self.trigger_enabled,
            category: self.trigger_category,
            instrument: instrument.transpose()?,
            conditions: self.trigger_conditions,
        })
    }
}

names! {
    /// Kind of trigger.
    pub JobTriggerCategory = Category::ALL.map(|(name, _)| name);
}

output! {
    /// Automatic start condition of a job.
    #[derive(Clone, Debug)]
    pub struct TriggerView as "JobTrigger" from trigger: Trigger {
        /// Its id.
        id: TriggerId = trigger.id,
        /// Kind of event that starts the job.
        category: JobTriggerCategory = trigger.category.as_str().into(),
        /// Only files of this instrument.
        instrument_id: Option<InstrumentId> = trigger.instrument,
        /// As they were given.
        conditions: Map<String, Value> = trigger.conditions,
    }
}
