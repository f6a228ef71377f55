//! Readers of files, and the time zones of instruments.

use jiff::tz::TimeZone;

use super::reader_table::READERS;
use crate::refusal::{ErrorCode, Refuse};

/// Reader of an instrument whose files are tried with all readers of their kind.
pub const AUTO_READER: &str = "auto";

/// Maximum number of characters of a reader's name.
pub const MAX_READER_LENGTH: usize = 100;

/// Maximum number of characters of a time zone's name.
pub const MAX_TIMEZONE_LENGTH: usize = 100;

/// Error: there is no reader of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no reader {0:?}: GET /api/v1/readers lists them, and \"auto\" finds the one that takes a file"
)]
pub struct UnknownReader(pub String);

impl Refuse for UnknownReader {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidValue
    }
}

/// Error: there is no time zone of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no time zone {0:?}: give its IANA name, such as \"Europe/Berlin\"")]
pub struct UnknownTimezone(pub String);

impl Refuse for UnknownTimezone {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidValue
    }
}

/// Checks the name of a reader; an empty one stands for none.
///
/// # Errors
/// [`UnknownReader`].
pub fn check_reader(name: &str) -> Result<(), UnknownReader> {
    let is_known =
        name.is_empty() || name == AUTO_READER || READERS.iter().any(|reader| reader.name == name);
    is_known
        .then_some(())
        .ok_or_else(|| UnknownReader(name.to_owned()))
}

/// Checks the name of a time zone; an empty one stands for none.
///
/// # Errors
/// [`UnknownTimezone`].
pub fn check_timezone(name: &str) -> Result<(), UnknownTimezone> {
    if name.is_empty() || TimeZone::get(name).is_ok() {
        Ok(())
    } else {
        Err(UnknownTimezone(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_have_names_by_which_they_are_found() {
        assert!(READERS.is_sorted_by_key(|reader| reader.name));
        for reader in READERS {
            assert_eq!(check_reader(reader.name), Ok(()));
            assert!(!reader.extensions.is_empty(), "{reader:?}");
            assert!(reader.name.len() <= MAX_READER_LENGTH);
        }
        for name in ["", "auto"] {
            assert_eq!(check_reader(name), Ok(()), "{name:?}");
        }
        for name in ["agilent_gen5", "Auto", "GEN5"] {
            assert_eq!(check_reader(name), Err(UnknownReader(name.to_owned())));
        }
    }

    #[test]
    fn time_zones_have_iana_names() {
        for name in ["", "UTC", "Europe/Berlin", "America/New_York"] {
            assert_eq!(check_timezone(name), Ok(()), "{name:?}");
        }
        for name in ["Berlin", "CEST+1", "Europe/Nowhere"] {
            assert_eq!(check_timezone(name), Err(UnknownTimezone(name.to_owned())));
        }
    }
}
