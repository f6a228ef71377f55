//! Contract of [`InstrumentRepository`](labdata_ports::instruments::InstrumentRepository): changes and deletion.

use futures::{future::join_all, join};
use labdata_domain::{
    ids::InstrumentId,
    instruments::{Instrument, InstrumentChange},
    jobs::Job,
    storage::StorageQuota,
    triggers::{Category, Trigger},
};
use labdata_ports::{PortError, files::AddFileError};
use serde_json::json;

use crate::{
    assertions::{assert_conflict_is, assert_not_found},
    files::{confirmed, of},
    given::{self, at},
    instruments::InstrumentsLab,
};

fn renamed(name: &str) -> InstrumentChange {
    InstrumentChange {
        name: Some(name.to_owned()),
        ..InstrumentChange::default()
    }
}

impl InstrumentsLab {
    async fn update(
        &self,
        id: InstrumentId,
        change: &InstrumentChange,
    ) -> Result<Instrument, PortError> {
        self.instruments.update(self.ours, id, change).await
    }

    /// Deletes an instrument unless something refers to it; returns whether it did.
    async fn delete(&self, id: InstrumentId) -> Result<bool, PortError> {
        self.instruments.delete(self.ours, id).await
    }
}

crate::suite!(
    use instruments::changes as instrument_changes;

    /// The response is the instrument after the change, and it is stored so.
    async fn a_change_keeps_the_fields_that_it_does_not_name(lab: &InstrumentsLab) {
        let instrument = lab.instrument(lab.ours, "reader").await;
        for change in [
            InstrumentChange::default(),
            renamed("Réader 2"),
            InstrumentChange {
                description: Some("by the window".to_owned()),
                instrument_type: Some(String::new()),
                ..InstrumentChange::default()
            },
            InstrumentChange {
                reader: Some(String::new()),
                timezone: Some("America/New_York".to_owned()),
                last_reader: Some("LUMINEX_XPONENT".to_owned()),
                ..InstrumentChange::default()
            },
        ] {
            let before = lab.get(instrument.id).await.unwrap();
            let after = lab.update(instrument.id, &change).await.unwrap();
            assert_eq!(after, change.apply(before));
            assert_eq!(lab.get(instrument.id).await.unwrap(), after);
        }
    }

    /// The name of another instrument of the organization is a conflict, and nothing is changed.
    async fn a_change_to_a_name_that_is_taken_conflicts(lab: &InstrumentsLab) {
        let instrument = lab.instrument(lab.ours, "reader").await;
        let other = lab.instrument(lab.ours, "other").await;
        let change = InstrumentChange {
            description: Some("changed".to_owned()),
            ..renamed("other")
        };
        assert_conflict_is(
            lab.update(instrument.id, &change).await,
            &other.name_taken(),
        );
        assert_eq!(lab.get(instrument.id).await.unwrap(), instrument);
    }

    /// A change that names the current name does not conflict with the instrument itself.
    async fn an_instrument_keeps_its_own_name(lab: &InstrumentsLab) {
        let instrument = lab.instrument(lab.ours, "reader").await;
        let change = renamed(&instrument.name);
        let after = lab.update(instrument.id, &change).await.unwrap();
        assert_eq!(after, instrument);
    }

    /// Concurrent changes of different fields lose nothing of each other.
    async fn racing_changes_of_different_fields_all_take_effect(lab: &InstrumentsLab) {
        let instrument = lab.instrument(lab.ours, "reader").await;
        let changes = [
            renamed("renamed"),
            InstrumentChange {
                description: Some("described".to_owned()),
                ..InstrumentChange::default()
            },
            InstrumentChange {
                instrument_type: Some("typed".to_owned()),
                ..InstrumentChange::default()
            },
        ];
        let racing = changes
            .iter()
            .map(|change| lab.update(instrument.id, change));
        for outcome in join_all(racing).await {
            outcome.unwrap();
        }
        let expected = Instrument {
            name: "renamed".to_owned(),
            description: Some("described".to_owned()),
            instrument_type: Some("typed".to_owned()),
            ..instrument
        };
        assert_eq!(lab.get(expected.id).await.unwrap(), expected);
    }

    /// Another organization's instrument, or none, is not found.
    async fn only_its_own_organization_changes_an_instrument(lab: &InstrumentsLab) {
        let instrument = lab.instrument(lab.theirs, "reader").await;
        for id in [instrument.id, InstrumentId::new(given::uuid())] {
            assert_not_found(lab.update(id, &renamed("taken over")).await);
        }
        assert_eq!(
            lab.instruments
                .get(lab.theirs, instrument.id)
                .await
                .unwrap(),
            instrument
        );
    }

    /// A deleted instrument is not found, also by a second deletion, and another may bear its name.
    async fn a_deleted_instrument_is_gone_and_its_name_free(lab: &InstrumentsLab) {
        let instrument = lab.instrument(lab.ours, "reader").await;
        assert!(lab.delete(instrument.id).await.unwrap());
        assert_not_found(lab.get(instrument.id).await);
        assert_not_found(lab.delete(instrument.id).await);
        let next = lab.instrument(lab.ours, &instrument.name).await;
        assert_eq!(lab.list().await, [next]);
    }

    /// An instrument stays as long as it has files.
    async fn an_instrument_with_files_is_not_deleted(lab: &InstrumentsLab) {
        let instrument = lab.instrument(lab.ours, "reader").await;
        let file = confirmed("a.csv", of(Some(instrument.id), None), at(1));
        lab.files
            .add(lab.ours, &file, StorageQuota::UNLIMITED, at(1))
            .await
            .unwrap();
        assert!(!lab.delete(instrument.id).await.unwrap());
        assert_eq!(lab.get(instrument.id).await.unwrap(), instrument);
        lab.files.delete(lab.ours, file.id, at(2)).await.unwrap();
        assert!(lab.delete(instrument.id).await.unwrap());
    }

    /// An instrument stays as long as a job's trigger waits for its files.
    async fn an_instrument_of_a_trigger_is_not_deleted(lab: &InstrumentsLab) {
        let reader = lab.instrument(lab.ours, "reader").await;
        let trigger = Trigger {
            instrument: Some(reader.id),
            ..given::trigger(Category::FileUploaded, json!({}), lab.ada.id)
        };
        let mut job = Job {
            trigger: Some(trigger),
            version_number: Some(1),
            ..given::job("parse", at(0))
        };
        let script = given::script(1, "pass\n", lab.ada.id);
        lab.jobs.add(lab.ours, &job, &script).await.unwrap();
        assert!(!lab.delete(reader.id).await.unwrap());
        job.trigger = None;
        let changed = lab.jobs.update(lab.ours, job.revision, &job, None);
        assert!(changed.await.unwrap());
        assert!(lab.delete(reader.id).await.unwrap());
    }

    /// Of a deletion and a file that race, one comes first: no file is left without its instrument.
    async fn of_a_file_and_a_deletion_one_comes_first(lab: &InstrumentsLab) {
        let instrument = lab.instrument(lab.ours, "reader").await;
        let file = confirmed("a.csv", of(Some(instrument.id), None), at(1));
        let (added, deleted) = join!(
            lab.files
                .add(lab.ours, &file, StorageQuota::UNLIMITED, at(1)),
            lab.delete(instrument.id)
        );
        match added {
            Ok(_) => {
                assert!(!deleted.unwrap());
                assert!(lab.get(instrument.id).await.is_ok());
            }
            Err(error) => {
                assert!(
                    matches!(error, AddFileError::UnknownInstrument),
                    "{error:?}"
                );
                assert!(deleted.unwrap());
            }
        }
    }

    /// Another organization's instrument is not found, and stays.
    async fn only_its_own_organization_deletes_an_instrument(lab: &InstrumentsLab) {
        let instrument = lab.instrument(lab.theirs, "reader").await;
        assert_not_found(lab.delete(instrument.id).await);
        assert_eq!(
            lab.instruments
                .get(lab.theirs, instrument.id)
                .await
                .unwrap(),
            instrument
        );
    }
);
