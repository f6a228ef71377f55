//! Instruments: where captured files come from.

use time::OffsetDateTime;

use crate::ids::InstrumentId;

/// An instrument of an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instrument {
    /// Its id.
    pub id: InstrumentId,
    /// Its name, unique within the organization.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
    /// Its kind, such as `plate_reader`.
    pub instrument_type: Option<String>,
    /// When it was created.
    pub created_at: OffsetDateTime,
}
