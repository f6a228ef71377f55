//! Source files: captured from an instrument, or made by a job.
//!
//! The record of a file is in the database, its bytes are in the object storage under an
//! [`ObjectKey`] that the platform chooses: no file name becomes part of a storage path.

pub mod content_type;
pub mod crc32c;
mod displayed_table;
pub mod disposition;
pub mod executable;
pub mod filter;
pub mod path;
pub mod preview;
mod record;
mod refusal;

use std::{fmt, str::FromStr};

use time::{Duration, OffsetDateTime};
use uuid::Uuid;

pub use content_type::ContentType;
pub use crc32c::Crc32c;
pub use displayed_table::{
    DisplayedTableTooLarge, MAX_DISPLAYED_TABLE_BYTES, MAX_DISPLAYED_TABLE_ROWS,
};
pub use filter::{ExtensionFilter, FileFilter, NameQuery};
pub use path::{FilePath, InvalidFilePath};
pub use record::{Recorded, UploadState};
pub use refusal::FileRefusal;

use crate::{
    ids::{ExecutionId, FileId, InstrumentId},
    page::Cursor,
    refusal::{ErrorCode, Refuse},
};

/// Maximum size of a file in bytes (500 MB, contract §4).
pub const MAX_FILE_BYTES: u64 = 524_288_000;
/// Lifetime of a signed upload URL.
pub const UPLOAD_URL_LIFETIME: Duration = Duration::minutes(15);
/// Lifetime of a signed download URL.
pub const DOWNLOAD_URL_LIFETIME: Duration = Duration::minutes(15);

/// Name of an organization's object in the object storage. Every upload and every upload URL gets a
/// new one: an object is created once and never replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(Uuid);

impl ObjectKey {
    /// Wraps a UUID.
    #[must_use]
    pub const fn new(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// Returns the UUID.
    #[must_use]
    pub const fn as_uuid(self) -> Uuid {
        self.0
    }

    /// Returns its creation time, to the millisecond; `None` if the key has no timestamp.
    #[must_use]
    pub fn made_at(self) -> Option<OffsetDateTime> {
        // Keys are UUIDs of version 7, so the sweep knows their age without a record.
        let (seconds, nanoseconds) = self.0.get_timestamp()?.to_unix();
        let seconds = i64::try_from(seconds).ok()?;
        OffsetDateTime::from_unix_timestamp(seconds)
            .ok()?
            .replace_nanosecond(nanoseconds)
            .ok()
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ObjectKey {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// Source of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourceType {
    /// A person or script uploaded it for an instrument.
    ManualUpload,
    /// An execution made it.
    JobArtifact,
    /// A sync agent captured it.
    InstrumentSync,
}

impl SourceType {
    /// The source types that a client may declare; the platform finds out the rest.
    pub const DECLARABLE: [Self; 1] = [Self::InstrumentSync];
    /// Every source type.
    pub const ALL: [Self; 3] = [Self::ManualUpload, Self::JobArtifact, Self::InstrumentSync];

    /// Returns its name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ManualUpload => "manual_upload",
            Self::JobArtifact => "job_artifact",
            Self::InstrumentSync => "instrument_sync",
        }
    }

    /// Returns the source type of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.as_str() == name)
    }
}

/// Error: a synchronized file names no instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("instrument_sync needs an instrument_id")]
pub struct SyncWithoutInstrument;

/// Checks the source that a client declares for an upload.
///
/// # Errors
/// [`SyncWithoutInstrument`].
pub fn check_declared_source(
    source: Option<SourceType>,
    has_instrument: bool,
) -> Result<(), SyncWithoutInstrument> {
    if source == Some(SourceType::InstrumentSync) && !has_instrument {
        Err(SyncWithoutInstrument)
    } else {
        Ok(())
    }
}

/// Owner of a file: an instrument, an execution, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attribution {
    instrument: Option<InstrumentId>,
    execution: Option<ExecutionId>,
}

/// Error: neither an instrument nor an execution was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at least one of job_execution_id and instrument_id is required")]
pub struct Unattributed;

impl Refuse for Unattributed {
    fn code(&self) -> ErrorCode {
        ErrorCode::UploadUnattributed
    }
}

impl Attribution {
    /// Attributes a file.
    ///
    /// # Errors
    /// [`Unattributed`] if both are absent.
    pub const fn new(
        instrument: Option<InstrumentId>,
        execution: Option<ExecutionId>,
    ) -> Result<Self, Unattributed> {
        match (instrument, execution) {
            (None, None) => Err(Unattributed),
            _ => Ok(Self {
                instrument,
                execution,
            }),
        }
    }

    /// Returns the instrument that captured it.
    #[must_use]
    pub const fn instrument(self) -> Option<InstrumentId> {
        self.instrument
    }

    /// Returns the execution that made it.
    #[must_use]
    pub const fn execution(self) -> Option<ExecutionId> {
        self.execution
    }

    /// Returns the source type of an upload with this attribution, for which the client declared that
    /// source or none.
    #[must_use]
    pub const fn source_type(self, declared: Option<SourceType>) -> SourceType {
        match declared {
            Some(source) => source,
            None if self.execution.is_some() => SourceType::JobArtifact,
            None => SourceType::ManualUpload,
        }
    }
}

/// Size and checksum of a stored object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredBytes {
    /// Size in bytes.
    pub size: u64,
    /// Checksum of the bytes.
    pub crc32c: Crc32c,
}

/// State of a file. A discarded or deleted file has no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// An upload URL was given out; the file is not listed yet.
    AwaitingBytes {
        /// The object that the URL creates.
        object: ObjectKey,
        /// Expiry time of the URL.
        expires_at: OffsetDateTime,
        /// Size and checksum, if the platform itself received the bytes.
        received: Option<StoredBytes>,
    },
    /// The bytes are stored and checked.
    Confirmed {
        /// The object that holds them.
        object: ObjectKey,
        /// Their size and checksum.
        bytes: StoredBytes,
        /// Time of confirmation, which orders file lists.
        uploaded_at: OffsetDateTime,
    },
}

impl FileState {
    /// Returns the object of the file's bytes, stored or awaited.
    #[must_use]
    pub const fn object(&self) -> ObjectKey {
        match self {
            Self::AwaitingBytes { object, .. } | Self::Confirmed { object, .. } => *object,
        }
    }

    /// Returns size and checksum; `None` until the file is confirmed.
    #[must_use]
    pub const fn bytes(&self) -> Option<StoredBytes> {
        match self {
            Self::AwaitingBytes { .. } => None,
            Self::Confirmed { bytes, .. } => Some(*bytes),
        }
    }

    /// Returns the time at which the bytes were confirmed.
    #[must_use]
    pub const fn uploaded_at(&self) -> Option<OffsetDateTime> {
        match self {
            Self::AwaitingBytes { .. } => None,
            Self::Confirmed { uploaded_at, .. } => Some(*uploaded_at),
        }
    }

    /// Returns its name in the database.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::AwaitingBytes { .. } => "awaiting_bytes",
            Self::Confirmed { .. } => "confirmed",
        }
    }
}

/// The record of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Id.
    pub id: FileId,
    /// Name or path under which it was uploaded; unique per instrument.
    pub path: FilePath,
    /// Content type with which it is served.
    pub content_type: ContentType,
    /// Source.
    pub source_type: SourceType,
    /// Instrument and execution to which it belongs.
    pub attribution: Attribution,
    /// Creation time of the source file, if known.
    pub file_created_at: Option<OffsetDateTime>,
    /// Creation time of the record.
    pub created_at: OffsetDateTime,
    /// State.
    pub state: FileState,
}

impl File {
    /// Returns the file's position in lists; `None` until it is confirmed, because it is not listed
    /// before.
    #[must_use]
    pub fn place(&self) -> Option<Cursor> {
        self.state.uploaded_at().map(|at| Cursor {
            at,
            id: self.id.as_uuid(),
        })
    }

    /// Returns its size as the API shows it: kilobytes, rounded up; `None` until it is confirmed.
    #[must_use]
    pub fn size_kilobytes(&self) -> Option<u64> {
        self.state.bytes().map(|bytes| size_kilobytes(bytes.size))
    }
}

/// Converts bytes to whole kilobytes of 1,024, rounded up.
#[must_use]
pub const fn size_kilobytes(bytes: u64) -> u64 {
    bytes.div_ceil(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up_to_whole_kilobytes() {
        let cases = [
            (0, 0),
            (1, 1),
            (1024, 1),
            (1025, 2),
            (MAX_FILE_BYTES, 512_000),
        ];
        for (bytes, kilobytes) in cases {
            assert_eq!(size_kilobytes(bytes), kilobytes, "{bytes}");
        }
    }

    #[test]
    fn a_file_belongs_to_an_instrument_or_an_execution() {
        let instrument = InstrumentId::new(Uuid::from_u128(1));
        let execution = ExecutionId::new(Uuid::from_u128(2));
        let source = |i, e| Attribution::new(i, e).map(|it| it.source_type(None));
        assert_eq!(source(None, None), Err(Unattributed));
        assert_eq!(source(Some(instrument), None), Ok(SourceType::ManualUpload));
        assert_eq!(source(None, Some(execution)), Ok(SourceType::JobArtifact));
        assert_eq!(
            source(Some(instrument), Some(execution)),
            Ok(SourceType::JobArtifact)
        );
    }

    #[test]
    fn a_declared_source_comes_first_and_a_synchronized_file_has_an_instrument() {
        let instrument = InstrumentId::new(Uuid::from_u128(1));
        let sync = Some(SourceType::InstrumentSync);
        let attribution = Attribution::new(Some(instrument), None).unwrap();
        assert_eq!(attribution.source_type(sync), SourceType::InstrumentSync);
        assert_eq!(check_declared_source(sync, true), Ok(()));
        assert_eq!(
            check_declared_source(sync, false),
            Err(SyncWithoutInstrument)
        );
        assert_eq!(check_declared_source(None, false), Ok(()));
    }

    #[test]
    fn an_object_key_has_the_time_of_its_creation() {
        let at = OffsetDateTime::UNIX_EPOCH + Duration::milliseconds(1_767_225_600_123);
        let key = uuid::Builder::from_unix_timestamp_millis(1_767_225_600_123, &[7; 10]);
        assert_eq!(ObjectKey::new(key.into_uuid()).made_at(), Some(at));
        assert_eq!(ObjectKey::new(Uuid::from_u128(7)).made_at(), None);
    }

    #[test]
    fn source_types_have_names_that_read_back() {
        for source in SourceType::ALL {
            assert_eq!(SourceType::from_name(source.as_str()), Some(source));
        }
        assert_eq!(SourceType::from_name("fax"), None);
    }

    const AT: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    fn object() -> ObjectKey {
        ObjectKey::new(Uuid::from_u128(3))
    }

    fn bytes() -> StoredBytes {
        StoredBytes {
            size: 1025,
            crc32c: Crc32c::new(7),
        }
    }

    fn awaiting() -> FileState {
        FileState::AwaitingBytes {
            object: object(),
            expires_at: AT,
            received: Some(bytes()),
        }
    }

    fn confirmed() -> FileState {
        FileState::Confirmed {
            object: object(),
            bytes: bytes(),
            uploaded_at: AT,
        }
    }

    fn file(state: FileState) -> File {
        File {
            id: FileId::new(Uuid::from_u128(9)),
            path: FilePath::parse("plate.csv").unwrap(),
            content_type: ContentType::default(),
            source_type: SourceType::ManualUpload,
            attribution: Attribution::new(Some(InstrumentId::new(Uuid::from_u128(1))), None)
                .unwrap(),
            file_created_at: None,
            created_at: AT,
            state,
        }
    }

    #[test]
    fn a_file_has_a_size_and_a_place_in_lists_once_it_is_confirmed() {
        let listed = file(confirmed());
        assert_eq!(listed.state.object(), object());
        assert_eq!(listed.state.bytes(), Some(bytes()));
        assert_eq!(listed.state.uploaded_at(), Some(AT));
        assert_eq!(listed.size_kilobytes(), Some(2));
        let place = Cursor {
            at: AT,
            id: Uuid::from_u128(9),
        };
        assert_eq!(listed.place(), Some(place));

        let unlisted = file(awaiting());
        assert_eq!(unlisted.state.object(), object());
        assert_eq!(unlisted.state.bytes(), None);
        assert_eq!(unlisted.state.uploaded_at(), None);
        assert_eq!(unlisted.size_kilobytes(), None);
        assert_eq!(unlisted.place(), None);
    }

    #[test]
    fn states_have_the_names_that_the_database_stores() {
        assert_eq!(awaiting().as_str(), "awaiting_bytes");
        assert_eq!(confirmed().as_str(), "confirmed");
    }

    #[test]
    fn an_attribution_keeps_its_instrument_and_its_execution() {
        let instrument = InstrumentId::new(Uuid::from_u128(1));
        let execution = ExecutionId::new(Uuid::from_u128(2));
        let both = Attribution::new(Some(instrument), Some(execution)).unwrap();
        assert_eq!(both.instrument(), Some(instrument));
        assert_eq!(both.execution(), Some(execution));
        let one = Attribution::new(Some(instrument), None).unwrap();
        assert_eq!(one.execution(), None);
    }

    #[test]
    fn an_object_key_is_written_as_its_uuid_and_reads_back() {
        let text = "00000000-0000-0000-0000-000000000003";
        assert_eq!(object().to_string(), text);
        assert_eq!(text.parse(), Ok(object()));
        assert_eq!(object().as_uuid(), Uuid::from_u128(3));
    }
}
