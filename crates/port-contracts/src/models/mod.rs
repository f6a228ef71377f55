//! Contract of [`DatasetRepository`], and those of models and trainings.

pub mod lab;
pub mod notices;
pub mod predictions;
pub mod queue_limit;
pub mod records;
pub mod reports;
pub mod training_ends;
pub mod trainings;

use std::cmp::Reverse;

use futures::future::join_all;
use labdata_domain::{
    ids::{DatasetId, FileId, OrganizationId, UserId},
    models::{Dataset, DatasetSource},
    people::tenancy::User,
    scalar::DataType,
    storage::{InsufficientStorage, StorageQuota},
};
use labdata_ports::{
    files::FileRepository,
    models::{AddDatasetError, DatasetRepository},
};

use crate::{
    Subject,
    assertions::assert_not_found,
    files::object,
    fixtures::Tenants,
    given::{self, at},
    paging::{ALL, read_to_the_end},
};

/// Makes one test of each clause of [`crate::models`].
#[macro_export]
macro_rules! datasets_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, datasets in models:
            a_dataset_reads_back_as_it_was_added,
            an_unknown_dataset_is_not_found,
            a_dataset_of_another_organization_is_not_found,
            a_dataset_needs_a_user_of_its_organization,
            the_list_is_newest_first_and_total,
            the_list_shows_no_other_organization,
            the_object_of_a_dataset_is_referenced,
            datasets_count_for_the_quota,
            of_racing_datasets_none_passes_the_quota,
        }
    };
}

/// Prerequisites of these clauses.
pub trait Datasets: Tenants + Subject<dyn DatasetRepository> + Subject<dyn FileRepository> {}

impl<H: Tenants + Subject<dyn DatasetRepository> + Subject<dyn FileRepository>> Datasets for H {}

fn datasets<H: Datasets>(harness: &H) -> std::sync::Arc<dyn DatasetRepository> {
    Subject::<dyn DatasetRepository>::subject(harness)
}

async fn add(datasets: &dyn DatasetRepository, organization: OrganizationId, dataset: &Dataset) {
    let added = datasets.add(organization, dataset, StorageQuota::UNLIMITED);
    added.await.unwrap();
}

async fn user<H: Datasets>(harness: &H, organization: &str) -> User {
    let organization = harness.organization(organization).await.id;
    harness.user(organization, "ada@example.org").await
}

/// Every field is stored, with and without the optional ones, columns of every type in their order.
pub async fn a_dataset_reads_back_as_it_was_added<H: Datasets>(harness: &H) {
    let (datasets, ada) = (datasets(harness), user(harness, "lab").await);
    let full = given::dataset("Wein \"Süd\" – 2", ada.id, at(0));
    assert_eq!(full.columns.len(), DataType::ALL.len());
    let bare = Dataset {
        description: None,
        columns: Vec::new(),
        row_count: 0,
        source: DatasetSource::File(FileId::new(given::uuid())),
        ..given::dataset("bare", ada.id, at(1))
    };
    for dataset in [full, bare] {
        add(&*datasets, ada.organization, &dataset).await;
        let found = datasets.get(ada.organization, dataset.id).await.unwrap();
        assert_eq!(found, dataset);
    }
}

/// An id that no dataset has is not found.
pub async fn an_unknown_dataset_is_not_found<H: Datasets>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let unknown = DatasetId::new(given::uuid());
    assert_not_found(datasets(harness).get(lab, unknown).await);
}

/// Another organization's dataset is answered like one that does not exist.
pub async fn a_dataset_of_another_organization_is_not_found<H: Datasets>(harness: &H) {
    let ours = harness.organization("ours").await.id;
    let (datasets, theirs) = (datasets(harness), user(harness, "theirs").await);
    let dataset = given::dataset("wines", theirs.id, at(0));
    add(&*datasets, theirs.organization, &dataset).await;
    assert_not_found(datasets.get(ours, dataset.id).await);
}

/// A user of another organization, or of none, makes no dataset.
pub async fn a_dataset_needs_a_user_of_its_organization<H: Datasets>(harness: &H) {
    let ours = harness.organization("ours").await.id;
    let (datasets, theirs) = (datasets(harness), user(harness, "theirs").await);
    for user in [theirs.id, UserId::new(given::uuid())] {
        let dataset = given::dataset("wines", user, at(0));
        let added = datasets.add(ours, &dataset, StorageQuota::UNLIMITED).await;
        let Err(AddDatasetError::Port(refused)) = added else {
            panic!("{added:?}");
        };
        assert_not_found::<()>(Err(refused));
        assert_not_found(datasets.get(ours, dataset.id).await);
    }
}

/// The list is ordered by creation time, then id, newest first, with any page size. Names may repeat.
pub async fn the_list_is_newest_first_and_total<H: Datasets>(harness: &H) {
    let (datasets, ada) = (datasets(harness), user(harness, "lab").await);
    let mut expected = Vec::new();
    for seconds in [20, 10, 30, 10] {
        let dataset = given::dataset("wines", ada.id, at(seconds));
        add(&*datasets, ada.organization, &dataset).await;
        expected.push(dataset);
    }
    expected.sort_by_key(|dataset| Reverse((dataset.created_at, dataset.id)));
    let all = datasets.list(ada.organization, ALL).await.unwrap();
    assert_eq!(all.items, expected);
    for limit in [1, 3, 4] {
        let items = read_to_the_end(limit, async |_, page| {
            datasets.list(ada.organization, page).await
        });
        assert_eq!(items.await, expected, "in pages of {limit}");
    }
}

/// An organization's list has no datasets of another.
pub async fn the_list_shows_no_other_organization<H: Datasets>(harness: &H) {
    let (datasets, ours) = (datasets(harness), user(harness, "ours").await);
    let theirs = user(harness, "theirs").await;
    let dataset = given::dataset("wines", theirs.id, at(0));
    add(&*datasets, theirs.organization, &dataset).await;
    let listed = datasets.list(ours.organization, ALL).await.unwrap();
    assert_eq!(listed.items, []);
}

/// The sweeper of uploads keeps the objects of datasets.
pub async fn the_object_of_a_dataset_is_referenced<H: Datasets>(harness: &H) {
    let (datasets, ada) = (datasets(harness), user(harness, "lab").await);
    let dataset = given::dataset("wines", ada.id, at(0));
    add(&*datasets, ada.organization, &dataset).await;
    let stray = (ada.organization, object());
    let objects = [(ada.organization, dataset.object), stray];
    let files = Subject::<dyn FileRepository>::subject(harness);
    assert_eq!(files.unreferenced(&objects).await.unwrap(), [stray]);
}

/// A dataset that fits beside the earlier ones to the byte is stored, a larger one is not. Usage shows
/// them, of their organization alone.
pub async fn datasets_count_for_the_quota<H: Datasets>(harness: &H) {
    let (datasets, ada) = (datasets(harness), user(harness, "lab").await);
    let theirs = user(harness, "theirs").await;
    let quota = StorageQuota::of_bytes(100);
    let of_size = |size, created_by| Dataset {
        size,
        ..given::dataset("wines", created_by, at(0))
    };
    let foreign = of_size(99, theirs.id);
    add(&*datasets, theirs.organization, &foreign).await;
    let first = of_size(60, ada.id);
    datasets.add(ada.organization, &first, quota).await.unwrap();
    let large = of_size(41, ada.id);
    let refused = datasets.add(ada.organization, &large, quota).await;
    let Err(AddDatasetError::InsufficientStorage(refusal)) = refused else {
        panic!("{refused:?}");
    };
    let expected = InsufficientStorage::QuotaExceeded {
        quota: 100,
        used: 60,
        more: 41,
    };
    assert_eq!(refusal, expected);
    assert_not_found(datasets.get(ada.organization, large.id).await);
    let fitting = of_size(40, ada.id);
    datasets
        .add(ada.organization, &fitting, quota)
        .await
        .unwrap();
    let files = Subject::<dyn FileRepository>::subject(harness);
    assert_eq!(files.used_bytes(ada.organization).await.unwrap(), 100);
    assert_eq!(files.used_bytes(theirs.organization).await.unwrap(), 99);
}

/// Of several datasets that each fit alone, as many are stored as fit together.
pub async fn of_racing_datasets_none_passes_the_quota<H: Datasets>(harness: &H) {
    let (datasets, ada) = (datasets(harness), user(harness, "lab").await);
    let racing = (0..4).map(|_| Dataset {
        size: 40,
        ..given::dataset("wines", ada.id, at(0))
    });
    let racing: Vec<Dataset> = racing.collect();
    let quota = StorageQuota::of_bytes(100);
    let adding = racing
        .iter()
        .map(|dataset| datasets.add(ada.organization, dataset, quota));
    let added = join_all(adding).await;
    assert_eq!(added.iter().filter(|added| added.is_ok()).count(), 2);
}
