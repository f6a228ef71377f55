//! `/api/v1/instruments`

use labdata_domain::{ids::InstrumentId, instruments::Instrument};
use labdata_request_body::{
    fields::required,
    readers::{MaybeId, id},
    shape,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::Timestamp;

pub mod create;
pub mod delete;
pub mod get;
pub mod list;
pub mod update;

shape! {
    /// The path of an instrument.
    #[derive(Clone, Copy, Debug)]
    pub struct InstrumentPath {
        /// The instrument's id
        instrument_id: MaybeId<InstrumentId> = required(id()),
    }
}

/// An instrument.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Instrument)]
pub struct InstrumentView {
    /// Its id.
    id: String,
    /// Its name, unique within the organization.
    name: String,
    /// Remarks for people.
    description: Option<String>,
    /// Its kind.
    #[schema(example = "plate_reader")]
    instrument_type: Option<String>,
    created_at: Timestamp,
}

impl From<Instrument> for InstrumentView {
    fn from(instrument: Instrument) -> Self {
        Self {
            id: instrument.id.to_string(),
            name: instrument.name,
            description: instrument.description,
            instrument_type: instrument.instrument_type,
            created_at: instrument.created_at.into(),
        }
    }
}
