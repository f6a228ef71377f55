//! Source files: captured from an instrument, or made by a job.
//!
//! The record of a file lives in the database, its bytes in the object storage under an
//! [`ObjectKey`] that nobody outside chooses: no file name ever becomes a part of a storage path.

pub mod content_type;
pub mod crc32c;
pub mod disposition;
pub mod executable;
pub mod filter;
pub mod path;
pub mod preview;

use std::{fmt, str::FromStr};

use time::{Duration, OffsetDateTime};
use uuid::Uuid;

pub use content_type::ContentType;
pub use crc32c::Crc32c;
pub use filter::{ExtensionFilter, FileFilter, NameQuery};
pub use path::{FilePath, InvalidFilePath};

use crate::{
    ids::{ExecutionId, FileId, InstrumentId},
    page::Cursor,
};

/// The most bytes of a file (500 MB, contract §4).
pub const MAX_FILE_BYTES: u64 = 524_288_000;
/// A request body of this size or more is refused on the one-request upload (contract §3).
pub const ONE_REQUEST_LIMIT_BYTES: u64 = 4_718_592;
/// How long a signed upload URL works.
pub const UPLOAD_URL_LIFETIME: Duration = Duration::minutes(15);
/// How long a signed download URL works.
pub const DOWNLOAD_URL_LIFETIME: Duration = Duration::minutes(15);

/// Names an object of an organization in the object storage. A new one is made for every upload
/// and for every upload URL, and never used again: an object is created once, never replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(Uuid);

impl ObjectKey {
    /// Wraps a UUID.
    #[must_use]
    pub const fn new(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The UUID inside.
    #[must_use]
    pub const fn as_uuid(self) -> Uuid {
        self.0
    }

    /// When it was made, to the millisecond; `None` where the key does not tell.
    #[must_use]
    pub fn made_at(self) -> Option<OffsetDateTime> {
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

/// Where a file came from.
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
    /// Every source type.
    pub const ALL: [Self; 3] = [Self::ManualUpload, Self::JobArtifact, Self::InstrumentSync];

    /// The source type's name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ManualUpload => "manual_upload",
            Self::JobArtifact => "job_artifact",
            Self::InstrumentSync => "instrument_sync",
        }
    }

    /// The source type of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.as_str() == name)
    }
}

/// To what a file belongs: an instrument, an execution, or both; never to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attribution {
    instrument: Option<InstrumentId>,
    execution: Option<ExecutionId>,
}

/// Neither an instrument nor an execution was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at least one of job_execution_id and instrument_id is required")]
pub struct Unattributed;

impl Attribution {
    /// Attributes a file.
    ///
    /// # Errors
    /// [`Unattributed`] when both are absent.
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

    /// The instrument that captured it.
    #[must_use]
    pub const fn instrument(self) -> Option<InstrumentId> {
        self.instrument
    }

    /// The execution that made it.
    #[must_use]
    pub const fn execution(self) -> Option<ExecutionId> {
        self.execution
    }

    /// The source type of an upload so attributed.
    #[must_use]
    pub const fn source_type(self) -> SourceType {
        if self.execution.is_some() {
            SourceType::JobArtifact
        } else {
            SourceType::ManualUpload
        }
    }
}

/// What is known of an object once all its bytes are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredBytes {
    /// How many.
    pub size: u64,
    /// Their checksum.
    pub crc32c: Crc32c,
}

/// Where a file stands, with what belongs to that state. A discarded or deleted file has no
/// record any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// An upload URL was given out; the file is not listed yet.
    AwaitingBytes {
        /// The object that the URL creates.
        object: ObjectKey,
        /// When the URL stops working.
        expires_at: OffsetDateTime,
        /// What is known of the bytes, where the platform itself received them.
        received: Option<StoredBytes>,
    },
    /// The bytes are there and were checked.
    Confirmed {
        /// The object that holds them.
        object: ObjectKey,
        /// Their size and checksum.
        bytes: StoredBytes,
        /// When they were confirmed, which is the place of the file in listings.
        uploaded_at: OffsetDateTime,
    },
}

impl FileState {
    /// The object of the file's bytes, there or awaited.
    #[must_use]
    pub const fn object(&self) -> ObjectKey {
        match self {
            Self::AwaitingBytes { object, .. } | Self::Confirmed { object, .. } => *object,
        }
    }

    /// Size and checksum, once confirmed.
    #[must_use]
    pub const fn bytes(&self) -> Option<StoredBytes> {
        match self {
            Self::AwaitingBytes { .. } => None,
            Self::Confirmed { bytes, .. } => Some(*bytes),
        }
    }

    /// When the bytes were confirmed.
    #[must_use]
    pub const fn uploaded_at(&self) -> Option<OffsetDateTime> {
        match self {
            Self::AwaitingBytes { .. } => None,
            Self::Confirmed { uploaded_at, .. } => Some(*uploaded_at),
        }
    }

    /// The state's name in the database.
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
    /// Its id.
    pub id: FileId,
    /// The name or path under which it was uploaded; unique per instrument.
    pub path: FilePath,
    /// The type with which it is served.
    pub content_type: ContentType,
    /// Where it came from.
    pub source_type: SourceType,
    /// To what it belongs.
    pub attribution: Attribution,
    /// When the source file was created, where that is known.
    pub file_created_at: Option<OffsetDateTime>,
    /// When the record was created.
    pub created_at: OffsetDateTime,
    /// Where it stands.
    pub state: FileState,
}

impl File {
    /// The file's place in a listing; `None` until it is confirmed, as it is not listed before.
    #[must_use]
    pub fn place(&self) -> Option<Cursor> {
        self.state.uploaded_at().map(|at| Cursor {
            at,
            id: self.id.as_uuid(),
        })
    }

    /// What the API calls its size: kilobytes, rounded up; `None` until it is confirmed.
    #[must_use]
    pub fn size_kilobytes(&self) -> Option<u64> {
        self.state.bytes().map(|bytes| size_kilobytes(bytes.size))
    }
}

/// Bytes as whole kilobytes of 1,024, rounded up.
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
        let source = |i, e| Attribution::new(i, e).map(Attribution::source_type);
        assert_eq!(source(None, None), Err(Unattributed));
        assert_eq!(source(Some(instrument), None), Ok(SourceType::ManualUpload));
        assert_eq!(source(None, Some(execution)), Ok(SourceType::JobArtifact));
        assert_eq!(
            source(Some(instrument), Some(execution)),
            Ok(SourceType::JobArtifact)
        );
    }

    #[test]
    fn an_object_key_tells_when_it_was_made() {
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
