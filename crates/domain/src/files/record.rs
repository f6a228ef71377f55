//! Transitions of a file's record: from awaited bytes to confirmed ones.

use time::OffsetDateTime;

use super::{File, FileState, ObjectKey};

/// A file's record as it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The record. Its id is that of an earlier record where one was taken over.
    pub file: File,
    /// An object that the earlier record awaited and that nothing refers to any more. Its upload
    /// URL may still work until that time.
    pub abandoned: Option<(ObjectKey, OffsetDateTime)>,
}

/// State of an upload: a file's record, compared with the object that holds the upload's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadState {
    /// The record awaits this object.
    Awaited,
    /// The record awaits another object, or was confirmed with it.
    Superseded,
    /// The file is confirmed, with this object.
    Confirmed,
}

impl FileState {
    /// Returns the state of the upload that stored this object.
    #[must_use]
    pub fn upload(&self, object: ObjectKey) -> UploadState {
        match self {
            // Its client would take the bytes of another upload for its own.
            _ if self.object() != object => UploadState::Superseded,
            Self::Confirmed { .. } => UploadState::Confirmed,
            Self::AwaitingBytes { .. } => UploadState::Awaited,
        }
    }
}

impl File {
    /// Replaces an earlier record of the same path that awaits its bytes, and retains its id and
    /// creation time. `None` if the earlier one is confirmed, which gives way to nothing.
    #[must_use]
    pub fn take_over(self, earlier: &Self) -> Option<Recorded> {
        let FileState::AwaitingBytes {
            object, expires_at, ..
        } = earlier.state
        else {
            return None;
        };
        // The URL of the earlier object may still be used until it expires; only then it can be swept.
        let abandoned = (object != self.state.object()).then_some((object, expires_at));
        Some(Recorded {
            file: Self {
                // Clients may already hold the id of the earlier record.
                id: earlier.id,
                created_at: earlier.created_at,
                ..self
            },
            abandoned,
        })
    }
}

#[cfg(test)]
mod tests {
    use time::Duration;
    use uuid::Uuid;

    use super::*;
    use crate::{
        files::{Attribution, ContentType, Crc32c, FilePath, SourceType, StoredBytes},
        ids::{FileId, InstrumentId},
    };

    fn object(number: u128) -> ObjectKey {
        ObjectKey::new(Uuid::from_u128(number))
    }

    fn at(seconds: i64) -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH + Duration::seconds(seconds)
    }

    fn awaiting(number: u128) -> FileState {
        FileState::AwaitingBytes {
            object: object(number),
            expires_at: at(900),
            received: None,
        }
    }

    fn confirmed(number: u128) -> FileState {
        FileState::Confirmed {
            object: object(number),
            bytes: StoredBytes {
                size: 1,
                crc32c: Crc32c::new(7),
            },
            uploaded_at: at(5),
        }
    }

    fn file(id: u128, created: i64, state: FileState) -> File {
        let instrument = InstrumentId::new(Uuid::from_u128(9));
        File {
            id: FileId::new(Uuid::from_u128(id)),
            path: FilePath::parse("run.csv").expect("a path"),
            content_type: ContentType::substitute(Some("text/csv")),
            source_type: SourceType::ManualUpload,
            attribution: Attribution::new(Some(instrument), None).expect("an owner"),
            file_created_at: None,
            created_at: at(created),
            state,
        }
    }

    #[test]
    fn an_upload_is_awaited_superseded_or_confirmed() {
        assert_eq!(awaiting(1).upload(object(1)), UploadState::Awaited);
        assert_eq!(awaiting(1).upload(object(2)), UploadState::Superseded);
        assert_eq!(confirmed(1).upload(object(1)), UploadState::Confirmed);
        assert_eq!(confirmed(1).upload(object(2)), UploadState::Superseded);
    }

    #[test]
    fn a_new_upload_takes_over_the_id_and_abandons_the_object() {
        let earlier = file(1, 10, awaiting(1));
        let recorded = file(2, 20, awaiting(2)).take_over(&earlier);
        assert_eq!(
            recorded,
            Some(Recorded {
                file: file(1, 10, awaiting(2)),
                abandoned: Some((object(1), at(900))),
            })
        );
    }

    #[test]
    fn an_object_that_both_records_have_is_not_abandoned() {
        let earlier = file(1, 10, awaiting(1));
        let recorded = file(2, 20, awaiting(1)).take_over(&earlier).expect("free");
        assert_eq!(recorded.abandoned, None);
    }

    #[test]
    fn a_confirmed_file_is_not_taken_over() {
        let earlier = file(1, 10, confirmed(1));
        assert_eq!(file(2, 20, awaiting(2)).take_over(&earlier), None);
    }
}
