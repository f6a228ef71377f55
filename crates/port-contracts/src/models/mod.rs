//! Contract of [`DatasetRepository`], and those of models and trainings.

pub mod lab;
pub mod notices;
pub mod predictions;
pub mod queue_limit;
pub mod records;
pub mod reports;
pub mod training_ends;

use std::cmp::Reverse;

use futures::future::join_all;
use labdata_domain::{
    ids::{DatasetId, FileId, UserId},
    models::{Dataset, DatasetSource},
    people::visible_tables::VisibleTables,
    scalar::DataType,
    storage::{InsufficientStorage, StorageQuota},
};
use labdata_ports::{
    files::FileRepository,
    models::{AddDatasetError, DatasetRepository},
};

use crate::{
    assertions::assert_not_found,
    files::object,
    given::{self, at},
    lab::lab,
    paging::{ALL, assert_pages},
};

lab!(
    /// Datasets. Files of the same store, because the objects of datasets are its.
    pub struct DatasetsLab {
        /// Datasets.
        pub datasets: dyn DatasetRepository,
        /// Files.
        pub files: dyn FileRepository,
    }
);

impl DatasetsLab {
    /// Adds a dataset of ada, up to a quota.
    async fn try_add(&self, dataset: &Dataset, bytes: u64) -> Result<(), AddDatasetError> {
        let quota = StorageQuota::of_bytes(bytes);
        self.datasets.add(self.ours, dataset, quota).await
    }

    /// Adds a dataset of ada.
    async fn add(&self, dataset: &Dataset) {
        let added = self
            .datasets
            .add(self.ours, dataset, StorageQuota::UNLIMITED);
        added.await.unwrap();
    }

    /// Adds a dataset of eve.
    async fn add_theirs(&self, dataset: &Dataset) {
        let added = self
            .datasets
            .add(self.theirs, dataset, StorageQuota::UNLIMITED);
        added.await.unwrap();
    }
}

crate::suite!(
    use models as datasets;

    /// Every field is stored, with and without the optional ones, columns of every type in their order.
    async fn a_dataset_reads_back_as_it_was_added(lab: &DatasetsLab) {
        let full = given::dataset("Wein \"Süd\" – 2", lab.ada.id, at(0));
        assert_eq!(full.columns.len(), DataType::ALL.len());
        let bare = Dataset {
            description: None,
            columns: Vec::new(),
            row_count: 0,
            source: DatasetSource::File(FileId::new(given::uuid())),
            ..given::dataset("bare", lab.ada.id, at(1))
        };
        for dataset in [full, bare] {
            lab.add(&dataset).await;
            let found = lab.datasets.get(lab.ours, dataset.id).await.unwrap();
            assert_eq!(found, dataset);
        }
    }

    /// An id that no dataset has is not found.
    async fn an_unknown_dataset_is_not_found(lab: &DatasetsLab) {
        let unknown = DatasetId::new(given::uuid());
        assert_not_found(lab.datasets.get(lab.ours, unknown).await);
    }

    /// Another organization's dataset is answered like one that does not exist.
    async fn a_dataset_of_another_organization_is_not_found(lab: &DatasetsLab) {
        let dataset = given::dataset("wines", lab.eve.id, at(0));
        lab.add_theirs(&dataset).await;
        assert_not_found(lab.datasets.get(lab.ours, dataset.id).await);
    }

    /// A user of another organization, or of none, makes no dataset.
    async fn a_dataset_needs_a_user_of_its_organization(lab: &DatasetsLab) {
        for user in [lab.eve.id, UserId::new(given::uuid())] {
            let dataset = given::dataset("wines", user, at(0));
            let added = lab
                .datasets
                .add(lab.ours, &dataset, StorageQuota::UNLIMITED)
                .await;
            let Err(AddDatasetError::Port(refused)) = added else {
                panic!("{added:?}");
            };
            assert_not_found::<()>(Err(refused));
            assert_not_found(lab.datasets.get(lab.ours, dataset.id).await);
        }
    }

    /// The list is ordered by creation time, then id, newest first, with any page size. Names may repeat.
    async fn the_list_is_newest_first_and_total(lab: &DatasetsLab) {
        let mut expected = Vec::new();
        for seconds in [20, 10, 30, 10] {
            let dataset = given::dataset("wines", lab.ada.id, at(seconds));
            lab.add(&dataset).await;
            expected.push(dataset);
        }
        expected.sort_by_key(|dataset| Reverse((dataset.created_at, dataset.id)));
        let all = lab
            .datasets
            .list(lab.ours, &VisibleTables::All, ALL)
            .await
            .unwrap();
        assert_eq!(all.items, expected);
        let read = async |page| lab.datasets.list(lab.ours, &VisibleTables::All, page).await;
        assert_pages([1, 3, 4], &expected, read).await;
    }

    /// An organization's list has no datasets of another.
    async fn the_list_shows_no_other_organization(lab: &DatasetsLab) {
        let dataset = given::dataset("wines", lab.eve.id, at(0));
        lab.add_theirs(&dataset).await;
        let listed = lab
            .datasets
            .list(lab.ours, &VisibleTables::All, ALL)
            .await
            .unwrap();
        assert_eq!(listed.items, []);
    }

    /// The sweeper of uploads retains the objects of datasets.
    async fn the_object_of_a_dataset_is_referenced(lab: &DatasetsLab) {
        let dataset = given::dataset("wines", lab.ada.id, at(0));
        lab.add(&dataset).await;
        let stray = (lab.ours, object());
        let objects = [(lab.ours, dataset.object), stray];
        assert_eq!(lab.files.unreferenced(&objects).await.unwrap(), [stray]);
    }

    /// A dataset that fits beside the earlier ones to the byte is stored, a larger one is not. Usage shows
    /// them, of their organization alone.
    async fn datasets_count_for_the_quota(lab: &DatasetsLab) {
        let of_size = |size, created_by| Dataset {
            size,
            ..given::dataset("wines", created_by, at(0))
        };
        let foreign = of_size(99, lab.eve.id);
        lab.add_theirs(&foreign).await;
        let first = of_size(60, lab.ada.id);
        lab.try_add(&first, 100).await.unwrap();
        let large = of_size(41, lab.ada.id);
        let refused = lab.try_add(&large, 100).await;
        let Err(AddDatasetError::InsufficientStorage(refusal)) = refused else {
            panic!("{refused:?}");
        };
        let expected = InsufficientStorage::QuotaExceeded {
            quota: 100,
            used: 60,
            more: 41,
        };
        assert_eq!(refusal, expected);
        assert_not_found(lab.datasets.get(lab.ours, large.id).await);
        let fitting = of_size(40, lab.ada.id);
        lab.try_add(&fitting, 100).await.unwrap();
        assert_eq!(lab.files.used_bytes(lab.ours).await.unwrap(), 100);
        assert_eq!(lab.files.used_bytes(lab.theirs).await.unwrap(), 99);
    }

    /// Of several datasets that each fit alone, as many are stored as fit together.
    async fn of_racing_datasets_none_passes_the_quota(lab: &DatasetsLab) {
        let racing = (0..4).map(|_| Dataset {
            size: 40,
            ..given::dataset("wines", lab.ada.id, at(0))
        });
        let racing: Vec<Dataset> = racing.collect();
        let adding = racing.iter().map(|dataset| lab.try_add(dataset, 100));
        let added = join_all(adding).await;
        assert_eq!(added.iter().filter(|added| added.is_ok()).count(), 2);
    }
);
