//! Instruments: sources of captured files.

use time::OffsetDateTime;

use crate::ids::InstrumentId;

/// Maximum number of characters of an instrument's name.
pub const MAX_NAME_LENGTH: usize = 200;
/// Maximum number of characters of an instrument's description.
pub const MAX_DESCRIPTION_LENGTH: usize = 2_000;
/// Maximum number of characters of an instrument's type.
pub const MAX_TYPE_LENGTH: usize = 200;

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

impl Instrument {
    /// Message for an instrument whose name another one of the organization has.
    #[must_use]
    pub fn name_taken(&self) -> String {
        format!("there is an instrument named \"{}\" already", self.name)
    }
}
