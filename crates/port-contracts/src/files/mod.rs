//! Contract of [`FileRepository`]: recording files. [`crate::files::ends`] covers confirming and
//! deleting, [`crate::files::lists`] lists.

pub mod blob;
pub mod ends;
pub mod lists;
pub mod quota;
pub mod sweeps;

use futures::future::join_all;
use labdata_domain::{
    executions::FinalStatus,
    files::{
        Attribution, ContentType, Crc32c, File, FileFilter, FilePath, FileState, ObjectKey,
        Recorded, SourceType, StoredBytes,
    },
    ids::{ExecutionId, FileId, InstrumentId, OrganizationId},
    storage::StorageQuota,
};
use labdata_ports::files::{AddFileError, ConfirmFileError, FileRepository};
use time::OffsetDateTime;

use crate::{
    assertions::assert_not_found,
    given::{self, at},
    lab::lab,
    paging::ALL,
};

/// Instrument and execution of a file.
#[must_use]
pub fn of(instrument: Option<InstrumentId>, execution: Option<ExecutionId>) -> Attribution {
    Attribution::new(instrument, execution).unwrap()
}

/// A confirmed file that is not stored yet.
#[must_use]
pub fn confirmed(path: &str, attribution: Attribution, at: OffsetDateTime) -> File {
    let bytes = StoredBytes {
        size: 1_500,
        crc32c: Crc32c::new(0xe306_9283),
    };
    File {
        id: FileId::new(given::uuid()),
        path: FilePath::parse(path).unwrap(),
        content_type: ContentType::substitute(Some("text/csv; charset=utf-8")),
        source_type: attribution.source_type(None),
        attribution,
        file_created_at: None,
        created_at: at,
        state: FileState::Confirmed {
            object: object(),
            bytes,
            uploaded_at: at,
        },
    }
}

pub(crate) fn awaiting(path: &str, attribution: Attribution, at: OffsetDateTime) -> File {
    let expires_at = at + time::Duration::minutes(15);
    File {
        state: FileState::AwaitingBytes {
            object: object(),
            expires_at,
            received: None,
        },
        ..confirmed(path, attribution, at)
    }
}

pub(crate) fn object() -> ObjectKey {
    ObjectKey::new(given::uuid())
}

/// Size and checksum with which [`FilesLab::confirm`] confirms a file.
pub(crate) const BYTES: StoredBytes = StoredBytes {
    size: 77,
    crc32c: Crc32c::new(0x8000_0001),
};

lab!(
    /// Files, and the records that they refer to.
    pub struct FilesLab {
        /// Files.
        pub files: dyn FileRepository,
    }
);

impl FilesLab {
    /// A new instrument of the organization.
    pub(crate) async fn reader(&self, organization: OrganizationId) -> Attribution {
        let instrument = self.instrument(organization, "reader").await;
        of(Some(instrument.id), None)
    }

    /// Adds a file without a quota, when it was created.
    pub(crate) async fn try_add(&self, file: &File) -> Result<Recorded, AddFileError> {
        self.files
            .add(self.ours, file, StorageQuota::UNLIMITED, file.created_at)
            .await
    }

    /// Adds a file, which succeeds.
    pub(crate) async fn add(&self, file: &File) -> Recorded {
        self.try_add(file).await.unwrap()
    }

    /// Adds a file of that organization, which succeeds.
    pub(crate) async fn add_to(&self, organization: OrganizationId, file: &File) -> Recorded {
        self.files
            .add(organization, file, StorageQuota::UNLIMITED, file.created_at)
            .await
            .unwrap()
    }

    /// Confirms the object that a file awaits, without a quota.
    pub(crate) async fn confirm(
        &self,
        file: &File,
        now: OffsetDateTime,
    ) -> Result<(File, bool), ConfirmFileError> {
        let object = file.state.object();
        self.files
            .confirm(
                self.ours,
                file.id,
                object,
                BYTES,
                StorageQuota::UNLIMITED,
                now,
            )
            .await
    }

    /// The confirmed files.
    pub(crate) async fn listed(&self) -> Vec<File> {
        let all = FileFilter::default();
        let page = self.files.list(self.ours, &all, ALL);
        page.await.unwrap().items
    }
}

macro_rules! assert_refused {
    ($result:expr, $error:pat) => {
        match $result {
            Err($error) => {}
            other => panic!("expected {}, got {other:?}", stringify!($error)),
        }
    };
}
pub(crate) use assert_refused;

crate::suite!(
    use files;

    /// Every field of every kind of record is stored, times to the microsecond.
    async fn a_file_reads_back_as_it_was_added(lab: &FilesLab) {
        let instrument = lab.instrument(lab.ours, "reader").await.id;
        let execution = lab.execution(lab.ours, at(0), Some(60)).await.id;
        let largest = File {
            file_created_at: Some(at(-500)),
            source_type: SourceType::InstrumentSync,
            state: FileState::Confirmed {
                object: object(),
                bytes: StoredBytes {
                    size: 524_288_000,
                    crc32c: Crc32c::new(u32::MAX),
                },
                uploaded_at: at(9),
            },
            ..confirmed(
                "C:\\Süd\\%_'\"\\plate 1.CSV",
                of(Some(instrument), None),
                at(1),
            )
        };
        let added = [
            largest,
            confirmed("a.csv", of(None, Some(execution)), at(1)),
            confirmed("b", of(Some(instrument), Some(execution)), at(1)),
            awaiting("c.csv", of(Some(instrument), None), at(1)),
            awaiting(&"é".repeat(1024), of(None, Some(execution)), at(1)),
        ];
        for file in added {
            let recorded = lab.add(&file).await;
            assert_eq!((&recorded.file, recorded.abandoned), (&file, None));
            assert_eq!(lab.files.get(lab.ours, file.id).await.unwrap(), file);
        }
    }

    /// An id that no file has is not found.
    async fn an_unknown_file_is_not_found(lab: &FilesLab) {
        let unknown = FileId::new(given::uuid());
        assert_not_found(lab.files.get(lab.ours, unknown).await);
        assert_not_found(lab.files.delete(lab.ours, unknown, at(50)).await);
    }

    /// Another organization's file is answered like one that does not exist.
    async fn a_file_of_another_organization_is_not_found(lab: &FilesLab) {
        let file = confirmed("a.csv", lab.reader(lab.theirs).await, at(0));
        lab.add_to(lab.theirs, &file).await;
        assert_not_found(lab.files.get(lab.ours, file.id).await);
    }

    /// An execution that does not exist, or is another organization's, is unknown.
    async fn an_execution_that_is_not_the_organizations_is_unknown(lab: &FilesLab) {
        let foreign = lab.execution(lab.theirs, at(0), None).await.id;
        for execution in [foreign, ExecutionId::new(given::uuid())] {
            let file = confirmed("a.csv", of(None, Some(execution)), at(1));
            assert_refused!(lab.try_add(&file).await, AddFileError::UnknownExecution);
            assert_not_found(lab.files.get(lab.ours, file.id).await);
        }
    }

    /// An instrument that does not exist, or is another organization's, is unknown.
    async fn an_instrument_that_is_not_the_organizations_is_unknown(lab: &FilesLab) {
        let foreign = lab.instrument(lab.theirs, "reader").await.id;
        for instrument in [foreign, InstrumentId::new(given::uuid())] {
            let file = confirmed("a.csv", of(Some(instrument), None), at(1));
            assert_refused!(lab.try_add(&file).await, AddFileError::UnknownInstrument);
            assert_not_found(lab.files.get(lab.ours, file.id).await);
        }
    }

    /// An execution that ended, or whose deadline has passed, takes no file; an open one does.
    async fn a_closed_execution_takes_no_file(lab: &FilesLab) {
        let ended = lab.execution(lab.ours, at(0), None).await.id;
        lab.executions
            .close(lab.ours, ended, FinalStatus::Completed, at(1))
            .await
            .unwrap();
        let overdue = lab.execution(lab.ours, at(0), Some(1)).await.id;
        for execution in [ended, overdue] {
            let file = confirmed("a.csv", of(None, Some(execution)), at(60));
            assert_refused!(lab.try_add(&file).await, AddFileError::ExecutionClosed);
            assert_not_found(lab.files.get(lab.ours, file.id).await);
        }
        let in_time = lab.execution(lab.ours, at(0), Some(1)).await.id;
        let file = confirmed("a.csv", of(None, Some(in_time)), at(59));
        lab.add(&file).await;
    }

    /// The path of an instrument's confirmed file is taken, for records of either state.
    async fn a_confirmed_path_of_an_instrument_is_taken(lab: &FilesLab) {
        let of = lab.reader(lab.ours).await;
        let first = confirmed("a.csv", of, at(0));
        lab.add(&first).await;
        for second in [confirmed("a.csv", of, at(1)), awaiting("a.csv", of, at(1))] {
            assert_refused!(lab.try_add(&second).await, AddFileError::PathTaken);
            assert_not_found(lab.files.get(lab.ours, second.id).await);
        }
        assert_eq!(lab.files.get(lab.ours, first.id).await.unwrap(), first);
    }

    /// Paths are compared to the letter.
    async fn paths_differ_by_every_character(lab: &FilesLab) {
        let of = lab.reader(lab.ours).await;
        for path in [
            "a.csv",
            "A.csv",
            "a.csv ",
            " a.csv",
            "x/a.csv",
            "x\\a.csv",
            "á.csv",
            "a\u{301}.csv",
        ] {
            lab.add(&confirmed(path, of, at(0))).await;
        }
    }

    /// Without an instrument paths may repeat, and so may they on another one or elsewhere.
    async fn paths_of_other_instruments_and_of_none_may_repeat(lab: &FilesLab) {
        let execution = lab.execution(lab.ours, at(0), None).await.id;
        let other = lab.instrument(lab.ours, "other").await.id;
        let here = [
            lab.reader(lab.ours).await,
            of(Some(other), Some(execution)),
            of(None, Some(execution)),
            of(None, Some(execution)),
        ];
        for attribution in here {
            lab.add(&confirmed("a.csv", attribution, at(0))).await;
        }
        let there = lab.reader(lab.theirs).await;
        lab.add_to(lab.theirs, &confirmed("a.csv", there, at(0)))
            .await;
    }

    /// The next record of a path that still awaits its bytes retains the id and the time of creation of
    /// the first, takes everything else of the new one, and tells which object is awaited no more.
    async fn an_awaiting_record_gives_way_to_the_next_of_its_path(lab: &FilesLab) {
        let on_reader = lab.reader(lab.ours).await;
        let execution = lab.execution(lab.ours, at(0), None).await.id;
        let first = awaiting("a.csv", on_reader, at(0));
        lab.add(&first).await;
        let second = File {
            content_type: ContentType::default(),
            ..awaiting("a.csv", of(on_reader.instrument(), Some(execution)), at(5))
        };
        let recorded = lab.add(&second).await;
        let expected = File {
            id: first.id,
            created_at: first.created_at,
            ..second.clone()
        };
        assert_eq!(recorded.file, expected);
        let FileState::AwaitingBytes {
            object, expires_at, ..
        } = first.state
        else {
            panic!("it awaits")
        };
        assert_eq!(recorded.abandoned, Some((object, expires_at)));
        assert_eq!(lab.files.get(lab.ours, first.id).await.unwrap(), expected);
        assert_not_found(lab.files.get(lab.ours, second.id).await);
    }

    /// An upload whose bytes are stored takes the record of an unfinished one over and is listed.
    async fn a_confirmed_upload_takes_an_awaiting_record_over(lab: &FilesLab) {
        let of = lab.reader(lab.ours).await;
        let first = awaiting("a.csv", of, at(0));
        lab.add(&first).await;
        let second = confirmed("a.csv", of, at(5));
        let recorded = lab.add(&second).await;
        let expected = File {
            id: first.id,
            created_at: first.created_at,
            ..second
        };
        assert_eq!(recorded.file, expected);
        assert_eq!(
            recorded.abandoned.map(|(object, _)| object),
            Some(first.state.object())
        );
        assert_eq!(lab.listed().await, [expected]);
    }

    /// Of confirmed files stored concurrently under one path, one is recorded; the rest find it taken.
    async fn of_racing_confirmed_files_of_a_path_one_is_recorded(lab: &FilesLab) {
        let of = lab.reader(lab.ours).await;
        for path in ["new.csv", "awaited.csv"] {
            if path == "awaited.csv" {
                lab.add(&awaiting(path, of, at(0))).await;
            }
            let candidates: Vec<File> = (0..6).map(|_| confirmed(path, of, at(1))).collect();
            let results = join_all(candidates.iter().map(|file| lab.try_add(file))).await;
            assert_eq!(
                results.iter().filter(|result| result.is_ok()).count(),
                1,
                "{results:?}"
            );
            for result in results.into_iter().filter(Result::is_err) {
                assert_refused!(result, AddFileError::PathTaken);
            }
        }
        let listed = lab.listed().await;
        assert_eq!(listed.len(), 2);
    }

    /// Awaiting files stored concurrently under one path all succeed, in one record.
    async fn racing_awaiting_files_of_a_path_share_one_record(lab: &FilesLab) {
        let of = lab.reader(lab.ours).await;
        let candidates: Vec<File> = (0..6).map(|_| awaiting("a.csv", of, at(1))).collect();
        let results = join_all(candidates.iter().map(|file| lab.try_add(file))).await;
        let recorded: Vec<_> = results.into_iter().map(Result::unwrap).collect();
        let ids: std::collections::BTreeSet<FileId> = recorded.iter().map(|r| r.file.id).collect();
        assert_eq!(ids.len(), 1, "one record");
        let id = recorded.first().unwrap().file.id;
        let last = lab.files.get(lab.ours, id).await.unwrap().state.object();
        let mut given_up: Vec<ObjectKey> = recorded
            .iter()
            .filter_map(|r| r.abandoned.map(|(object, _)| object))
            .collect();
        given_up.push(last);
        given_up.sort_unstable();
        let mut all: Vec<ObjectKey> = candidates.iter().map(|file| file.state.object()).collect();
        all.sort_unstable();
        assert_eq!(given_up, all, "every object but the last is told of once");
    }

    /// If an execution is closed during its uploads, each upload succeeds or is refused as a whole.
    async fn of_a_close_and_an_upload_none_is_torn(lab: &FilesLab) {
        let execution = lab.execution(lab.ours, at(0), None).await.id;
        let candidates: Vec<File> = (0..6)
            .map(|n| confirmed(&format!("{n}.csv"), of(None, Some(execution)), at(1)))
            .collect();
        let adds = join_all(candidates.iter().map(|file| lab.try_add(file)));
        let close = lab
            .executions
            .close(lab.ours, execution, FinalStatus::Completed, at(1));
        let (added, closed) = futures::join!(adds, close);
        closed.unwrap();
        for (file, result) in candidates.iter().zip(added) {
            match result {
                Ok(recorded) => assert_eq!(
                    lab.files.get(lab.ours, file.id).await.unwrap(),
                    recorded.file
                ),
                Err(AddFileError::ExecutionClosed) => {
                    assert_not_found(lab.files.get(lab.ours, file.id).await);
                }
                Err(other) => panic!("expected ExecutionClosed, got {other:?}"),
            }
        }
        let late = confirmed("late.csv", of(None, Some(execution)), at(2));
        assert_refused!(lab.try_add(&late).await, AddFileError::ExecutionClosed);
    }
);
