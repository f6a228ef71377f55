//! Instruments: sources of captured files.

use time::OffsetDateTime;

use crate::ids::InstrumentId;

/// An instrument of an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instrument {
    /// Id.
    pub id: InstrumentId,
    /// Name, unique within the organization.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// Kind, such as `plate_reader`.
    pub instrument_type: Option<String>,
    /// Creation time.
    pub created_at: OffsetDateTime,
}
