//! Contract of [`InstrumentRepository`]: changes and deletion.

use futures::{future::join_all, join};
use labdata_domain::{
    ids::{InstrumentId, OrganizationId},
    instruments::{Instrument, InstrumentChange},
    storage::StorageQuota,
    triggers::{Category, Trigger},
};
use labdata_ports::{
    files::{AddFileError, FileRepository},
    instruments::InstrumentRepository,
};
use serde_json::json;

use crate::{
    Subject,
    assertions::{assert_conflict_is, assert_not_found},
    files::{Files, confirmed, of},
    fixtures::{Instruments, Tenants},
    given::{self, at},
    paging::ALL,
    triggers::lab::{Lab, Triggers},
};

fn instruments<H: Subject<dyn InstrumentRepository>>(
    harness: &H,
) -> std::sync::Arc<dyn InstrumentRepository> {
    harness.subject()
}

fn renamed(name: &str) -> InstrumentChange {
    InstrumentChange {
        name: Some(name.to_owned()),
        ..InstrumentChange::default()
    }
}

/// An organization with an instrument.
async fn stored<H: Instruments>(harness: &H) -> (OrganizationId, Instrument) {
    let lab = harness.organization("lab").await.id;
    (lab, harness.instrument(lab, "reader").await)
}

/// The answer is the instrument after the change, and it is stored so.
pub async fn a_change_keeps_the_fields_that_it_does_not_name<H>(harness: &H)
where
    H: Tenants + Subject<dyn InstrumentRepository>,
{
    let (lab, instrument) = stored(harness).await;
    for change in [
        InstrumentChange::default(),
        renamed("Réader 2"),
        InstrumentChange {
            description: Some("by the window".to_owned()),
            instrument_type: Some(String::new()),
            ..InstrumentChange::default()
        },
    ] {
        let before = instruments(harness).get(lab, instrument.id).await.unwrap();
        let after = instruments(harness)
            .update(lab, instrument.id, &change)
            .await
            .unwrap();
        assert_eq!(after, change.apply(before));
        assert_eq!(
            instruments(harness).get(lab, instrument.id).await.unwrap(),
            after
        );
    }
}

/// The name of another instrument of the organization is a conflict, and nothing is changed.
pub async fn a_change_to_a_name_that_is_taken_conflicts<H>(harness: &H)
where
    H: Tenants + Subject<dyn InstrumentRepository>,
{
    let (lab, instrument) = stored(harness).await;
    let other = harness.instrument(lab, "other").await;
    let change = InstrumentChange {
        description: Some("changed".to_owned()),
        ..renamed("other")
    };
    assert_conflict_is(
        instruments(harness)
            .update(lab, instrument.id, &change)
            .await,
        &other.name_taken(),
    );
    assert_eq!(
        instruments(harness).get(lab, instrument.id).await.unwrap(),
        instrument
    );
}

/// A change that names the current name does not conflict with the instrument itself.
pub async fn an_instrument_keeps_its_own_name<H>(harness: &H)
where
    H: Tenants + Subject<dyn InstrumentRepository>,
{
    let (lab, instrument) = stored(harness).await;
    let change = renamed(&instrument.name);
    let after = instruments(harness)
        .update(lab, instrument.id, &change)
        .await
        .unwrap();
    assert_eq!(after, instrument);
}

/// Concurrent changes of different fields lose nothing of each other.
pub async fn racing_changes_of_different_fields_all_take_effect<H>(harness: &H)
where
    H: Tenants + Subject<dyn InstrumentRepository>,
{
    let (lab, instrument) = stored(harness).await;
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
    let instruments = instruments(harness);
    let racing = changes
        .iter()
        .map(|change| instruments.update(lab, instrument.id, change));
    for outcome in join_all(racing).await {
        outcome.unwrap();
    }
    let expected = Instrument {
        name: "renamed".to_owned(),
        description: Some("described".to_owned()),
        instrument_type: Some("typed".to_owned()),
        ..instrument
    };
    assert_eq!(instruments.get(lab, expected.id).await.unwrap(), expected);
}

/// Another organization's instrument, or none, is not found.
pub async fn only_its_own_organization_changes_an_instrument<H>(harness: &H)
where
    H: Tenants + Subject<dyn InstrumentRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let instrument = harness.instrument(theirs, "reader").await;
    for id in [instrument.id, InstrumentId::new(given::uuid())] {
        assert_not_found(
            instruments(harness)
                .update(ours, id, &renamed("taken over"))
                .await,
        );
    }
    assert_eq!(
        instruments(harness)
            .get(theirs, instrument.id)
            .await
            .unwrap(),
        instrument
    );
}

/// A deleted instrument is not found, also by a second deletion, and another may bear its name.
pub async fn a_deleted_instrument_is_gone_and_its_name_free<H>(harness: &H)
where
    H: Tenants + Subject<dyn InstrumentRepository>,
{
    let (lab, instrument) = stored(harness).await;
    let instruments = instruments(harness);
    assert!(instruments.delete(lab, instrument.id).await.unwrap());
    assert_not_found(instruments.get(lab, instrument.id).await);
    assert_not_found(instruments.delete(lab, instrument.id).await);
    let next = harness.instrument(lab, &instrument.name).await;
    assert_eq!(instruments.list(lab, ALL).await.unwrap().items, [next]);
}

/// An instrument stays as long as it has files.
pub async fn an_instrument_with_files_is_not_deleted<
    H: Files + Subject<dyn InstrumentRepository>,
>(
    harness: &H,
) {
    let (lab, instrument) = stored(harness).await;
    let files: std::sync::Arc<dyn FileRepository> = harness.subject();
    let file = confirmed("a.csv", of(Some(instrument.id), None), at(1));
    files
        .add(lab, &file, StorageQuota::UNLIMITED, at(1))
        .await
        .unwrap();
    let instruments = instruments(harness);
    assert!(!instruments.delete(lab, instrument.id).await.unwrap());
    assert_eq!(
        instruments.get(lab, instrument.id).await.unwrap(),
        instrument
    );
    files.delete(lab, file.id, at(2)).await.unwrap();
    assert!(instruments.delete(lab, instrument.id).await.unwrap());
}

/// An instrument stays as long as a job's trigger waits for its files.
pub async fn an_instrument_of_a_trigger_is_not_deleted<
    H: Triggers + Subject<dyn InstrumentRepository>,
>(
    harness: &H,
) {
    let lab = Lab::new(harness).await;
    let organization = lab.user.organization;
    let trigger = Trigger {
        instrument: Some(lab.instrument),
        ..given::trigger(Category::FileUploaded, json!({}), lab.user.id)
    };
    let mut job = lab.job_with("parse", Some(trigger)).await;
    let instruments = instruments(harness);
    assert!(
        !instruments
            .delete(organization, lab.instrument)
            .await
            .unwrap()
    );
    job.trigger = None;
    lab.change(&job).await;
    assert!(
        instruments
            .delete(organization, lab.instrument)
            .await
            .unwrap()
    );
}

/// Of a deletion and a file that race, one comes first: no file is left without its instrument.
pub async fn of_a_file_and_a_deletion_one_comes_first<
    H: Files + Subject<dyn InstrumentRepository>,
>(
    harness: &H,
) {
    let (lab, instrument) = stored(harness).await;
    let files: std::sync::Arc<dyn FileRepository> = harness.subject();
    let instruments = instruments(harness);
    let file = confirmed("a.csv", of(Some(instrument.id), None), at(1));
    let (added, deleted) = join!(
        files.add(lab, &file, StorageQuota::UNLIMITED, at(1)),
        instruments.delete(lab, instrument.id)
    );
    match added {
        Ok(_) => {
            assert!(!deleted.unwrap());
            assert!(instruments.get(lab, instrument.id).await.is_ok());
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
pub async fn only_its_own_organization_deletes_an_instrument<H>(harness: &H)
where
    H: Tenants + Subject<dyn InstrumentRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let instrument = harness.instrument(theirs, "reader").await;
    assert_not_found(instruments(harness).delete(ours, instrument.id).await);
    assert_eq!(
        instruments(harness)
            .get(theirs, instrument.id)
            .await
            .unwrap(),
        instrument
    );
}
