//! Triggers of jobs, in bodies and answers.

use labdata_application::Error;
use labdata_domain::{
    ids::InstrumentId,
    triggers::{Category, Trigger, TriggerChange},
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::http::{
    OrNotFound,
    shape::{
        Fields, Kind,
        readers::{MaybeId, boolean, choice, id, object, storable},
    },
};

/// The fields of a body that are about the job's trigger.
#[derive(Clone, Debug)]
pub(super) struct TriggerFields {
    pub(super) enabled: Option<bool>,
    pub(super) category: Option<Category>,
    pub(super) instrument: Option<MaybeId<InstrumentId>>,
    pub(super) conditions: Option<Map<String, Value>>,
}

impl TriggerFields {
    /// Reads them.
    pub(super) fn of(fields: &mut Fields<'_>) -> Option<Self> {
        let enabled = fields.nullable("trigger_enabled", boolean());
        let category = fields.nullable("trigger_category", choice(&Category::ALL));
        let instrument = fields.nullable("trigger_instrument_id", id());
        let conditions = fields.nullable("trigger_conditions", storable(object()));
        if let (Some(Some(true)), Some(None)) = (enabled, category) {
            return fields.refuse("trigger_category", Kind::missing());
        }
        Some(Self {
            enabled: enabled?,
            category: category?,
            instrument: instrument?,
            conditions: conditions?,
        })
    }

    /// What they ask for.
    pub(super) fn change(self) -> Result<TriggerChange, Error> {
        let instrument = self.instrument.map(|id| id.or_not_found("instrument"));
        Ok(TriggerChange {
            enabled: self.enabled,
            category: self.category,
            instrument: instrument.transpose()?,
            conditions: self.conditions,
        })
    }
}

/// What starts a job without anybody asking.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TriggerView {
    id: String,
    /// `file_uploaded`, `job_completed` or `schedule`.
    #[schema(example = "file_uploaded")]
    category: &'static str,
    /// Only files of this instrument.
    instrument_id: Option<String>,
    /// As they were given.
    conditions: Map<String, Value>,
}

impl From<Trigger> for TriggerView {
    fn from(trigger: Trigger) -> Self {
        Self {
            id: trigger.id.to_string(),
            category: trigger.category.as_str(),
            instrument_id: trigger.instrument.map(|id| id.to_string()),
            conditions: trigger.conditions,
        }
    }
}
