//! Contract of [`TrashStore`]: files.

use labdata_domain::{
    files::{File, FileFilter},
    ids::{ExecutionId, TrashId},
    instruments::images::Annotation,
    people::rights::Rights,
    storage::{StorageQuota, StoredKind},
    trash::{Deletion, RestoreRefusal, TrashKind},
};
use labdata_ports::{
    data::{DataStore, RevertRequest},
    files::FileRepository,
    instruments::images::AnnotationRepository,
    trash::{RestoreError, TrashStore},
};

use crate::{
    assertions::assert_not_found,
    files::{awaiting, confirmed, of as attribution},
    given::{self, at},
    instruments::annotations::annotation,
    lab::lab,
    paging::ALL,
};

lab!(
    /// Files, and a trash.
    pub struct TrashedFilesLab {
        /// Files.
        pub files: dyn FileRepository,
        /// Trash.
        pub trash: dyn TrashStore,
        /// Annotations of images.
        pub annotations: dyn AnnotationRepository,
        /// Reverts.
        pub data: dyn DataStore,
    }
);

impl TrashedFilesLab {
    async fn add(&self, file: &File) {
        let added = self
            .files
            .add(self.ours, file, StorageQuota::UNLIMITED, file.created_at);
        added.await.unwrap();
    }

    async fn delete(&self, file: &File) -> TrashId {
        let deletion = Deletion {
            id: TrashId::new(given::uuid()),
            user: self.ada.id,
            api_key: self.api_key(&self.ada).await.id,
            at: at(50),
            purge_at: at(60),
        };
        let deleted = self.trash.delete_file(self.ours, file.id, &deletion);
        assert_eq!(deleted.await.unwrap(), *file);
        deletion.id
    }

    /// An image with two annotations that were saved under the execution.
    async fn annotated_image(&self, execution: Option<ExecutionId>) -> (File, [Annotation; 2]) {
        let camera = self.instrument(self.ours, "camera").await;
        let image = confirmed("a.png", attribution(Some(camera.id), None), at(1));
        self.add(&image).await;
        let masks = [2, 3].map(|second| Annotation {
            execution,
            ..annotation(self.ada.id, image.id, "cell", second)
        });
        let unlimited = StorageQuota::UNLIMITED;
        let added = self
            .annotations
            .add(self.ours, image.id, execution, &masks, unlimited, at(4));
        added.await.unwrap();
        (image, masks)
    }

    async fn used(&self) -> (u64, u64) {
        let usage = self.files.usage(self.ours).await.unwrap();
        let used = self.files.used_bytes(self.ours).await.unwrap();
        assert_eq!(used, usage.total());
        (usage.get(StoredKind::Files), usage.get(StoredKind::Trash))
    }
}

crate::suite!(
    use trash::files as trash_files;

    /// A deleted file comes back as it was; until then it does not exist, its bytes count as trash, and its
    /// object is referenced.
    async fn a_deleted_file_comes_back_as_it_was(lab: &TrashedFilesLab) {
        let instrument = lab.instrument(lab.ours, "reader").await.id;
        let execution = lab.execution(lab.ours, at(0), None).await.id;
        let file = confirmed(
            "run/a.csv",
            attribution(Some(instrument), Some(execution)),
            at(1),
        );
        lab.add(&file).await;
        let objects = [(lab.ours, file.state.object())];
        let id = lab.delete(&file).await;
        assert_not_found(lab.files.get(lab.ours, file.id).await);
        let listed = lab.files.list(lab.ours, &FileFilter::default(), ALL).await;
        assert_eq!(listed.unwrap().items, []);
        assert_eq!(lab.used().await, (0, 1_500));
        assert_eq!(lab.files.unreferenced(&objects).await.unwrap(), []);
        for (organization, expected) in [(lab.ours, true), (lab.theirs, false)] {
            let held = lab.trash.holds_object(organization, file.state.object());
            assert_eq!(held.await.unwrap(), expected);
        }
        let entry = lab.trash.get(lab.ours, id).await.unwrap();
        assert_eq!((entry.kind, entry.size), (TrashKind::File, 1_500));
        assert_eq!(entry.name, "run/a.csv");
        assert_eq!(entry.deleted_by.user.id, lab.ada.id);
        assert_eq!(
            lab.trash.restore(lab.ours, id, at(55)).await.unwrap(),
            entry
        );
        assert_eq!(lab.files.get(lab.ours, file.id).await.unwrap(), file);
        assert_eq!(lab.used().await, (1_500, 0));
        let held = lab.trash.holds_object(lab.ours, file.state.object());
        assert!(!held.await.unwrap());
        assert_not_found(lab.trash.get(lab.ours, id).await);
    }

    /// The path is free: it can be uploaded again, and then the first file stays in the trash.
    async fn a_path_in_the_trash_is_free(lab: &TrashedFilesLab) {
        let instrument = lab.instrument(lab.ours, "reader").await.id;
        let of = attribution(Some(instrument), None);
        let first = confirmed("a.csv", of, at(1));
        lab.add(&first).await;
        let id = lab.delete(&first).await;
        for second in [awaiting("a.csv", of, at(2)), confirmed("a.csv", of, at(3))] {
            lab.add(&second).await;
            match lab.trash.restore(lab.ours, id, at(55)).await {
                Err(RestoreError::Refused(refusal)) => {
                    let (kind, name) = (TrashKind::File, "a.csv".to_owned());
                    assert_eq!(refusal, RestoreRefusal::NameTaken { kind, name });
                }
                other => panic!("{other:?}"),
            }
        }
        let usage = lab.used().await;
        assert_eq!(usage, (1_500, 1_500));
    }

    /// A file in the trash does not hold up the deletion of its instrument; then it cannot come back.
    async fn a_file_needs_its_instrument(lab: &TrashedFilesLab) {
        let instrument = lab.instrument(lab.ours, "reader").await.id;
        let file = confirmed("a.csv", attribution(Some(instrument), None), at(1));
        lab.add(&file).await;
        let id = lab.delete(&file).await;
        lab.instruments.delete(lab.ours, instrument).await.unwrap();
        match lab.trash.restore(lab.ours, id, at(55)).await {
            Err(RestoreError::Refused(RestoreRefusal::InstrumentGone)) => {}
            other => panic!("{other:?}"),
        }
    }

    /// Purging a file returns its object, to which nothing refers then.
    async fn a_purged_file_leaves_its_object(lab: &TrashedFilesLab) {
        let execution = lab.execution(lab.ours, at(0), None).await.id;
        let file = confirmed("a.csv", attribution(None, Some(execution)), at(1));
        lab.add(&file).await;
        let id = lab.delete(&file).await;
        let purged = lab.trash.purge(lab.ours, id).await.unwrap();
        let object = file.state.object();
        assert_eq!(purged.objects, [object]);
        let objects = [(lab.ours, object)];
        assert_eq!(lab.files.unreferenced(&objects).await.unwrap(), objects);
        assert_not_found(lab.trash.purge(lab.ours, id).await);
        assert_eq!(lab.used().await, (0, 0));
    }

    /// The annotations of an image go into the trash with it and come back with it; until then their masks are
    /// referenced, and count as trash.
    async fn annotations_come_back_with_their_image(lab: &TrashedFilesLab) {
        let (image, masks) = lab.annotated_image(None).await;
        let objects = masks.each_ref().map(|mask| (lab.ours, mask.object));
        let id = lab.delete(&image).await;
        let of_image = || lab.annotations.list(lab.ours, image.id);
        assert_eq!(of_image().await.unwrap(), []);
        assert_eq!(lab.used().await, (0, 1_700));
        assert_eq!(lab.trash.get(lab.ours, id).await.unwrap().size, 1_700);
        assert_eq!(lab.files.unreferenced(&objects).await.unwrap(), []);
        for (organization, object) in objects {
            assert!(lab.trash.holds_object(organization, object).await.unwrap());
            assert!(!lab.trash.holds_object(lab.theirs, object).await.unwrap());
        }
        lab.trash.restore(lab.ours, id, at(55)).await.unwrap();
        assert_eq!(of_image().await.unwrap(), masks);
        assert_eq!(lab.files.unreferenced(&objects).await.unwrap(), []);
        for (organization, object) in objects {
            assert!(!lab.trash.holds_object(organization, object).await.unwrap());
        }
    }

    /// Purging an image returns the objects of its masks too.
    async fn a_purged_image_leaves_its_masks(lab: &TrashedFilesLab) {
        let (image, masks) = lab.annotated_image(None).await;
        let id = lab.delete(&image).await;
        let purged = lab.trash.purge(lab.ours, id).await.unwrap();
        let mut expected = vec![image.state.object(), masks[0].object, masks[1].object];
        let mut found = purged.objects;
        assert_eq!(found.first(), Some(&image.state.object()));
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
        assert_eq!(lab.used().await, (0, 0));
    }

    /// A revert deletes what was saved under its execution in the trash too: it does not come back.
    async fn annotations_of_a_reverted_execution_do_not_come_back(lab: &TrashedFilesLab) {
        let execution = lab.execution(lab.ours, at(0), None).await.id;
        let (image, _) = lab.annotated_image(Some(execution)).await;
        let id = lab.delete(&image).await;
        let request = RevertRequest {
            execution,
            user: lab.ada.id,
            api_key: None,
            rights: Rights::admin(),
            now: at(52),
            dry_run: false,
            restore: None,
        };
        let reverted = lab.data.revert(lab.ours, &request).await.unwrap();
        assert_eq!(reverted.annotations_deleted_count, 2);
        lab.trash.restore(lab.ours, id, at(55)).await.unwrap();
        assert_eq!(lab.annotations.list(lab.ours, image.id).await.unwrap(), []);
    }

    /// A file that was never confirmed is removed for good.
    async fn an_unconfirmed_file_does_not_move(lab: &TrashedFilesLab) {
        let execution = lab.execution(lab.ours, at(0), None).await.id;
        let file = awaiting("a.csv", attribution(None, Some(execution)), at(1));
        lab.add(&file).await;
        let id = lab.delete(&file).await;
        assert_not_found(lab.trash.get(lab.ours, id).await);
        assert_not_found(lab.files.get(lab.ours, file.id).await);
    }
);
