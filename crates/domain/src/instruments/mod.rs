//! Instruments: sources of captured files, and the computers beside them.

mod device;

pub mod images;

mod reader;
mod reader_kind;
mod reader_table;
mod reading;

use time::OffsetDateTime;

use crate::{
    conflict::Conflict,
    ids::InstrumentId,
    refusal::{ErrorCode, Refuse},
};

pub use device::{
    Beat, DEVICE_RETENTION, DetailTooLarge, Device, DeviceState, DeviceStatus, DeviceTimeline,
    DeviceWatch, Heartbeat, MAX_APP_VERSION_LENGTH, MAX_DETAIL_BYTES, MAX_STATUSES, OFFLINE_AFTER,
    OUTAGE_AFTER, Period, ReportedStatus, StartsAfterEnd, StatusPeriod, StatusRange, WatchedDevice,
    outage_notice,
};
pub use reader::{
    AUTO_READER, MAX_READER_LENGTH, MAX_TIMEZONE_LENGTH, UnknownReader, UnknownTimezone,
    check_reader, check_timezone,
};
pub use reader_kind::Reader;
pub use reader_table::READERS;
pub use reading::{
    Curve, MAX_READING_BYTES, MAX_READING_FILE_BYTES, NoReader, READ_JOB_DESCRIPTION,
    READ_JOB_NAME, READING_MEMORY, READING_TIME_LIMIT, ReadJobNameIsTaken, ReaderRefusal, Reading,
    ReadingFailure, TableIsTaken,
};

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
    /// Reader of its files: a name of [`READERS`] or [`AUTO_READER`]; `None` if they are not read.
    pub reader: Option<String>,
    /// Time zone of its files' times, as IANA names it.
    pub timezone: Option<String>,
    /// Reader that took its files last, which [`AUTO_READER`] tries first.
    pub last_reader: Option<String>,
    /// Creation time.
    pub created_at: OffsetDateTime,
}

/// Change of an instrument. Fields that are `None` stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstrumentChange {
    /// Name.
    pub name: Option<String>,
    /// Description; an empty one removes it.
    pub description: Option<String>,
    /// Kind; an empty one removes it.
    pub instrument_type: Option<String>,
    /// Reader; an empty one removes it.
    pub reader: Option<String>,
    /// Time zone; an empty one removes it.
    pub timezone: Option<String>,
    /// Reader that took its files last.
    pub last_reader: Option<String>,
}

impl InstrumentChange {
    /// Returns the instrument as it is after the change.
    #[must_use]
    pub fn apply(&self, instrument: Instrument) -> Instrument {
        Instrument {
            name: self.name.clone().unwrap_or(instrument.name),
            description: changed(self.description.as_ref(), instrument.description),
            instrument_type: changed(self.instrument_type.as_ref(), instrument.instrument_type),
            reader: changed(self.reader.as_ref(), instrument.reader),
            timezone: changed(self.timezone.as_ref(), instrument.timezone),
            last_reader: changed(self.last_reader.as_ref(), instrument.last_reader),
            ..instrument
        }
    }
}

/// Returns an optional text after a change, in which an empty text removes it.
fn changed(change: Option<&String>, current: Option<String>) -> Option<String> {
    match change {
        // Null leaves a field unchanged, so an empty text is the way to clear it.
        Some(text) if text.is_empty() => None,
        Some(text) => Some(text.clone()),
        None => current,
    }
}

/// Error: files or triggers refer to the instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this instrument has files, or a job's trigger waits for its files: delete them or change the trigger first"
)]
pub struct InstrumentInUse;

impl Refuse for InstrumentInUse {
    fn code(&self) -> ErrorCode {
        ErrorCode::InstrumentInUse
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

    fn reader() -> Instrument {
        Instrument {
            id: InstrumentId::new(uuid::Uuid::nil()),
            name: "Reader 1".to_owned(),
            description: Some("by the window".to_owned()),
            instrument_type: Some("plate_reader".to_owned()),
            reader: Some(AUTO_READER.to_owned()),
            timezone: None,
            last_reader: None,
            created_at: OffsetDateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name_and_empty_texts_remove() {
        assert_eq!(InstrumentChange::default().apply(reader()), reader());
        let change = InstrumentChange {
            name: Some("Reader 2".to_owned()),
            description: Some(String::new()),
            reader: Some(String::new()),
            timezone: Some("Europe/Berlin".to_owned()),
            ..InstrumentChange::default()
        };
        let expected = Instrument {
            name: "Reader 2".to_owned(),
            description: None,
            reader: None,
            timezone: Some("Europe/Berlin".to_owned()),
            ..reader()
        };
        assert_eq!(change.apply(reader()), expected);
    }
}
