//! Instruments: sources of captured files.

use time::OffsetDateTime;

use crate::{conflict::Conflict, ids::InstrumentId};

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

/// Error: an instrument's name is blank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an instrument's name is not blank")]
pub struct BlankName;

/// Checks the name of an instrument.
///
/// # Errors
/// [`BlankName`].
pub fn check_name(name: &str) -> Result<(), BlankName> {
    if name.trim().is_empty() {
        Err(BlankName)
    } else {
        Ok(())
    }
}

impl Instrument {
    /// The conflict of an instrument whose name another one of the organization has.
    #[must_use]
    pub fn name_taken(&self) -> Conflict {
        Conflict::InstrumentName(self.name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_more_than_white_space() {
        assert_eq!(check_name("Reader 1"), Ok(()));
        for name in ["", " \t"] {
            assert_eq!(check_name(name), Err(BlankName), "{name:?}");
        }
    }
}
