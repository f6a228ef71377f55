//! Contract of [`AnnotationRepository`].

use futures::future::join_all;
use labdata_domain::{
    executions::FinalStatus,
    files::ObjectKey,
    ids::{AnnotationId, ExecutionId, FileId, OrganizationId, UserId},
    instruments::images::{
        Annotation, AnnotationChange, BoundingBox, Label, MAX_ANNOTATIONS_OF_IMAGE, MaskShape,
        PixelSize,
    },
    models::DatasetMask,
    people::rights::Rights,
    storage::{BytesByKind, StorageQuota, StoredKind},
};
use labdata_ports::{
    PortError,
    data::{DataStore, RevertRequest},
    files::FileRepository,
    instruments::images::{AddAnnotationsError, AnnotationRepository},
    models::DatasetRepository,
};

use crate::{
    assertions::assert_not_found,
    files::{confirmed, of},
    given::{self, at},
    lab::lab,
};

lab!(
    /// Annotations of two organizations, and what they refer to.
    pub struct AnnotationsLab {
        /// Annotations.
        pub annotations: dyn AnnotationRepository,
        /// Images.
        pub files: dyn FileRepository,
        /// Reverts.
        pub data: dyn DataStore,
        /// Datasets, which have masks too.
        pub datasets: dyn DatasetRepository,
    }
);

impl AnnotationsLab {
    /// A new file of the organization.
    async fn image(&self, organization: OrganizationId, path: &str) -> FileId {
        let camera = self.instrument(organization, path).await;
        let file = confirmed(path, of(Some(camera.id), None), at(0));
        let unlimited = StorageQuota::UNLIMITED;
        let added = self.files.add(organization, &file, unlimited, at(0)).await;
        added.unwrap().file.id
    }

    /// An annotation of the image that is not stored yet.
    fn annotation(&self, file: FileId, label: &str, seconds: i64) -> Annotation {
        annotation(self.ada.id, file, label, seconds)
    }

    async fn try_add(
        &self,
        execution: Option<ExecutionId>,
        annotations: &[Annotation],
        quota: StorageQuota,
    ) -> Result<(), AddAnnotationsError> {
        let file = annotations[0].file;
        self.annotations
            .add(self.ours, file, execution, annotations, quota, at(1))
            .await
    }

    async fn add(&self, annotations: &[Annotation]) {
        let added = self.try_add(None, annotations, StorageQuota::UNLIMITED);
        added.await.unwrap();
    }

    async fn list(&self, file: FileId) -> Vec<Annotation> {
        self.annotations.list(self.ours, file).await.unwrap()
    }

    async fn revert(&self, execution: ExecutionId, dry_run: bool) -> u64 {
        let request = RevertRequest {
            execution,
            user: self.ada.id,
            api_key: None,
            rights: Rights::admin(),
            now: at(9),
            dry_run,
            restore: None,
        };
        let reverted = self.data.revert(self.ours, &request).await.unwrap();
        reverted.annotations_deleted_count
    }

    async fn unreferenced(&self, objects: &[ObjectKey]) -> Vec<ObjectKey> {
        let objects: Vec<_> = objects.iter().map(|object| (self.ours, *object)).collect();
        let found = self.files.unreferenced(&objects).await.unwrap();
        found.into_iter().map(|(_, object)| object).collect()
    }
}

/// An annotation of an image by that user, which is not stored yet.
pub(crate) fn annotation(user: UserId, file: FileId, label: &str, seconds: i64) -> Annotation {
    Annotation {
        id: AnnotationId::new(given::uuid()),
        file,
        execution: None,
        label: Label::parse(label).unwrap(),
        object: ObjectKey::new(given::uuid()),
        size_bytes: 100,
        shape: MaskShape {
            size: PixelSize {
                width: 40,
                height: 30,
            },
            foreground: 12,
            bounds: BoundingBox {
                x: 7,
                y: 5,
                width: 6,
                height: 2,
            },
        },
        is_human_vetted: false,
        created_by: user,
        created_at: at(seconds),
    }
}

crate::suite!(
    use instruments::annotations;

    /// Every field is stored, and the list is ordered by time, then id.
    async fn annotations_read_back_oldest_first(lab: &AnnotationsLab) {
        let file = lab.image(lab.ours, "a.png").await;
        let vetted = Annotation {
            is_human_vetted: true,
            ..lab.annotation(file, "Zellkern \"2\"", 5)
        };
        let same_time = [
            lab.annotation(file, "cell", 3),
            lab.annotation(file, "cell", 3),
        ];
        lab.add(std::slice::from_ref(&vetted)).await;
        lab.add(&same_time).await;
        let [first, second] = same_time;
        assert_eq!(lab.list(file).await, [first, second, vetted]);
    }

    /// Another organization's files and annotations look like ones that do not exist.
    async fn annotations_of_another_organization_are_not_found(lab: &AnnotationsLab) {
        let theirs = lab.image(lab.theirs, "a.png").await;
        let annotation = lab.annotation(theirs, "cell", 1);
        let added = lab
            .try_add(None, &[annotation], StorageQuota::UNLIMITED)
            .await;
        assert!(matches!(
            added,
            Err(AddAnnotationsError::Port(PortError::NotFound(_)))
        ));
        let ours = lab.image(lab.ours, "a.png").await;
        let annotation = lab.annotation(ours, "cell", 1);
        lab.add(std::slice::from_ref(&annotation)).await;
        assert_eq!(lab.annotations.list(lab.theirs, ours).await.unwrap(), []);
        let change = AnnotationChange::default();
        assert_not_found(
            lab.annotations
                .update(lab.theirs, ours, annotation.id, &change)
                .await,
        );
        assert_not_found(
            lab.annotations
                .delete(lab.theirs, ours, annotation.id)
                .await,
        );
        assert_eq!(lab.list(ours).await, [annotation]);
    }

    /// An annotation is changed and deleted under the file that it belongs to.
    async fn an_annotation_is_found_under_its_file(lab: &AnnotationsLab) {
        let file = lab.image(lab.ours, "a.png").await;
        let other = lab.image(lab.ours, "b.png").await;
        let annotation = lab.annotation(file, "cell", 1);
        lab.add(std::slice::from_ref(&annotation)).await;
        let change = AnnotationChange {
            label: Some(Label::parse("nucleus").unwrap()),
            is_human_vetted: None,
        };
        assert_not_found(
            lab.annotations
                .update(lab.ours, other, annotation.id, &change)
                .await,
        );
        assert_not_found(lab.annotations.delete(lab.ours, other, annotation.id).await);
        let changed = lab
            .annotations
            .update(lab.ours, file, annotation.id, &change)
            .await
            .unwrap();
        assert_eq!(changed, change.apply(annotation.clone()));
        assert_eq!(lab.list(file).await, std::slice::from_ref(&changed));
        let deleted = lab
            .annotations
            .delete(lab.ours, file, annotation.id)
            .await
            .unwrap();
        assert_eq!(deleted, changed);
        assert_eq!(lab.list(file).await, []);
        assert_not_found(lab.annotations.delete(lab.ours, file, annotation.id).await);
    }

    /// Concurrent changes of the label and of the vetting both take effect.
    async fn racing_changes_of_different_fields_both_hold(lab: &AnnotationsLab) {
        let file = lab.image(lab.ours, "a.png").await;
        let annotation = lab.annotation(file, "cell", 1);
        lab.add(std::slice::from_ref(&annotation)).await;
        let label = AnnotationChange {
            label: Some(Label::parse("nucleus").unwrap()),
            is_human_vetted: None,
        };
        let vet = AnnotationChange {
            label: None,
            is_human_vetted: Some(true),
        };
        let changes = [label, vet];
        let changes = changes.iter().map(|change| {
            lab.annotations
                .update(lab.ours, file, annotation.id, change)
        });
        for changed in join_all(changes).await {
            changed.unwrap();
        }
        let stored = lab.list(file).await;
        assert_eq!(
            (stored[0].label.as_str(), stored[0].is_human_vetted),
            ("nucleus", true)
        );
    }

    /// Under an execution that is unknown or closed nothing is stored.
    async fn the_execution_is_open(lab: &AnnotationsLab) {
        let file = lab.image(lab.ours, "a.png").await;
        let run = lab.execution(lab.ours, at(0), None).await;
        let unlimited = StorageQuota::UNLIMITED;
        let annotation = Annotation {
            execution: Some(run.id),
            ..lab.annotation(file, "cell", 1)
        };
        let own = [annotation];
        let unknown = ExecutionId::new(given::uuid());
        let refused = lab.try_add(Some(unknown), &own, unlimited).await;
        assert!(matches!(
            refused,
            Err(AddAnnotationsError::UnknownExecution)
        ));
        lab.try_add(Some(run.id), &own, unlimited).await.unwrap();
        let completed = FinalStatus::Completed;
        lab.executions
            .close(lab.ours, run.id, completed, at(1))
            .await
            .unwrap();
        let more = [Annotation {
            execution: Some(run.id),
            ..lab.annotation(file, "cell", 1)
        }];
        let refused = lab.try_add(Some(run.id), &more, unlimited).await;
        assert!(matches!(refused, Err(AddAnnotationsError::ExecutionClosed)));
        assert_eq!(lab.list(file).await, own);
    }

    /// The revert of an execution takes its annotations, and a dry run takes none.
    async fn a_revert_takes_the_annotations_of_its_execution(lab: &AnnotationsLab) {
        let file = lab.image(lab.ours, "a.png").await;
        let run = lab.execution(lab.ours, at(0), None).await;
        let own = [1, 2].map(|seconds| Annotation {
            execution: Some(run.id),
            ..lab.annotation(file, "cell", seconds)
        });
        lab.try_add(Some(run.id), &own, StorageQuota::UNLIMITED)
            .await
            .unwrap();
        let other = lab.annotation(file, "cell", 3);
        lab.add(std::slice::from_ref(&other)).await;
        assert_eq!(lab.revert(run.id, true).await, 2);
        assert_eq!(lab.list(file).await.len(), 3);
        assert_eq!(lab.revert(run.id, false).await, 2);
        assert_eq!(lab.list(file).await, [other]);
        assert_eq!(lab.revert(run.id, false).await, 0);
    }

    /// Annotations go with the record of their file, and their objects are unreferenced then.
    async fn annotations_go_with_their_file(lab: &AnnotationsLab) {
        let file = lab.image(lab.ours, "a.png").await;
        let annotation = lab.annotation(file, "cell", 1);
        lab.add(std::slice::from_ref(&annotation)).await;
        assert_eq!(lab.unreferenced(&[annotation.object]).await, []);
        lab.files.delete(lab.ours, file, at(2)).await.unwrap();
        assert_eq!(lab.list(file).await, []);
        assert_eq!(
            lab.unreferenced(&[annotation.object]).await,
            [annotation.object]
        );
    }

    /// Masks count for the quota, as kinds of their own and with their dataset.
    async fn masks_count_for_the_quota(lab: &AnnotationsLab) {
        let file = lab.image(lab.ours, "a.png").await;
        let before = lab.files.used_bytes(lab.ours).await.unwrap();
        let two = [
            lab.annotation(file, "cell", 1),
            lab.annotation(file, "cell", 1),
        ];
        let quota = StorageQuota::of_bytes(before + 199);
        let refused = lab.try_add(None, &two, quota).await;
        assert!(matches!(
            refused,
            Err(AddAnnotationsError::InsufficientStorage(_))
        ));
        assert_eq!(lab.list(file).await, []);
        lab.try_add(None, &two, StorageQuota::of_bytes(before + 200))
            .await
            .unwrap();
        assert_eq!(lab.files.used_bytes(lab.ours).await.unwrap(), before + 200);

        let dataset = given::dataset("cells", lab.ada.id, at(3));
        let object = ObjectKey::new(given::uuid());
        let masks = [DatasetMask { object, size: 7 }];
        let quota = StorageQuota::of_bytes(before + 200 + dataset.size + 6);
        lab.datasets
            .add_with_masks(lab.ours, &dataset, &masks, quota)
            .await
            .unwrap_err();
        assert!(!lab.datasets.has_mask(lab.ours, object).await.unwrap());
        let quota = StorageQuota::of_bytes(before + 200 + dataset.size + 7);
        lab.datasets
            .add_with_masks(lab.ours, &dataset, &masks, quota)
            .await
            .unwrap();
        assert!(lab.datasets.has_mask(lab.ours, object).await.unwrap());
        assert!(!lab.datasets.has_mask(lab.theirs, object).await.unwrap());
        assert_eq!(lab.unreferenced(&[object]).await, []);
        let usage = lab.files.usage(lab.ours).await.unwrap();
        let expected = [
            (StoredKind::Files, before),
            (StoredKind::Annotations, 200),
            (StoredKind::Datasets, dataset.size + 7),
        ];
        assert_eq!(usage, BytesByKind::of(expected));
    }

    /// An image has a limited number of annotations.
    async fn an_image_has_a_limited_number_of_annotations(lab: &AnnotationsLab) {
        let file = lab.image(lab.ours, "a.png").await;
        let most = (0..MAX_ANNOTATIONS_OF_IMAGE).map(|_| lab.annotation(file, "cell", 1));
        let most: Vec<Annotation> = most.collect();
        lab.add(&most).await;
        let more = [lab.annotation(file, "cell", 2)];
        let refused = lab.try_add(None, &more, StorageQuota::UNLIMITED).await;
        assert!(matches!(
            refused,
            Err(AddAnnotationsError::TooMany(MAX_ANNOTATIONS_OF_IMAGE))
        ));
    }

    /// Files with vetted masks of a label are found by it, each once.
    async fn files_with_vetted_masks_are_found_by_their_label(lab: &AnnotationsLab) {
        let mut files = Vec::new();
        for path in ["a.png", "b.png", "c.png"] {
            files.push(lab.image(lab.ours, path).await);
        }
        files.sort();
        let vetted = |file, label: &str| Annotation {
            is_human_vetted: true,
            ..lab.annotation(file, label, 1)
        };
        lab.add(&[vetted(files[1], "cell"), vetted(files[1], "cell")])
            .await;
        lab.add(&[vetted(files[0], "cell")]).await;
        lab.add(&[
            vetted(files[2], "dust"),
            lab.annotation(files[2], "cell", 1),
        ])
        .await;
        let found = async |limit| {
            let found = lab.annotations.vetted_files(lab.ours, "cell", limit);
            found.await.unwrap()
        };
        assert_eq!(found(10).await, files[..2]);
        assert_eq!(found(1).await, files[..1]);
        let theirs = lab
            .annotations
            .vetted_files(lab.theirs, "cell", 10)
            .await
            .unwrap();
        assert_eq!(theirs, []);
    }

    /// The label of a dataset of annotations reads back.
    async fn a_dataset_of_annotations_has_its_label(lab: &AnnotationsLab) {
        let dataset = labdata_domain::models::Dataset {
            source: labdata_domain::models::DatasetSource::Annotations("cell".to_owned()),
            ..given::dataset("cells", lab.ada.id, at(3))
        };
        lab.datasets
            .add(lab.ours, &dataset, StorageQuota::UNLIMITED)
            .await
            .unwrap();
        assert_eq!(
            lab.datasets.get(lab.ours, dataset.id).await.unwrap(),
            dataset
        );
    }
);
