//! Contract of [`ModelRepository`](labdata_ports::models::ModelRepository).

use std::{cmp::Reverse, collections::BTreeSet};

use futures::future::join_all;
use labdata_domain::{
    ids::{DatasetId, ModelId, ModelVersionId, UserId},
    models::{ActivateError, ModelVersion, NameTaken, NewVersion, VersionState},
};
use labdata_ports::{
    PortError,
    models::{
        ActivateModelError, AddVersionError, CancelTrainingError, CreateModelError, ModelFilter,
        RestoreModelError,
    },
};

use crate::{
    assertions::assert_not_found,
    files::object,
    given::{self, at},
    models::lab::{TrainingsLab, failure, model, result, success, token},
    paging::{ALL, read_to_the_end},
};

/// Fails unless a model to restore was not found.
#[track_caller]
fn assert_not_found_model(restored: Result<ModelVersion, RestoreModelError>) {
    match restored {
        Err(RestoreModelError::Port(PortError::NotFound(_))) => {}
        other => panic!("expected no model, got {other:?}"),
    }
}

crate::suite!(
    use models::records as models;

    /// Every field is stored, with and without the optional ones.
    async fn a_new_model_reads_back_as_it_was_requested(lab: &TrainingsLab) {
        let models = &lab.models;
        let full = lab.version(lab.ours, at(1)).await;
        let mut bare = NewVersion {
            description: None,
            ..lab.version(lab.ours, at(2)).await
        };
        bare.plan.features.clear();
        for (name, new) in [("Wein \"Süd\" – 2", full), ("bare", bare)] {
            let model = model(name);
            let expected = ModelVersion::queue(&model, 1, &new);
            let created = models.create(lab.ours, &model, &new).await;
            assert_eq!(created.unwrap(), expected);
            assert_eq!(lab.stored(&expected).await, expected);
            let newest = models.get(lab.ours, model.id, None).await;
            assert_eq!(newest.unwrap(), expected);
        }
    }

    /// Archiving frees the name. Another organization's model takes none.
    async fn a_name_is_taken_by_a_model_that_is_not_archived(lab: &TrainingsLab) {
        let models = &lab.models;
        lab.pending(lab.theirs, "wine", at(0)).await;
        let first = lab.pending(lab.ours, "wine", at(1)).await;
        let create = async |name: &str| {
            let version = lab.version(lab.ours, at(2)).await;
            models.create(lab.ours, &model(name), &version).await
        };
        match create("wine").await {
            Err(CreateModelError::NameTaken(taken)) => assert_eq!(taken.0, "wine"),
            other => panic!("expected a refusal, got {other:?}"),
        }
        create("Wine").await.unwrap();
        lab.archive(first.model, at(3)).await;
        let second = create("wine").await.unwrap();
        assert_eq!((second.number, second.archived), (1, false));
    }

    /// All but one are refused, and leave nothing.
    async fn of_racing_models_of_one_name_one_is_created(lab: &TrainingsLab) {
        let models = &lab.models;
        let new = lab.version(lab.ours, at(0)).await;
        let creating = (0..6).map(async |_| {
            let version = NewVersion {
                id: ModelVersionId::new(given::uuid()),
                ..new.clone()
            };
            models.create(lab.ours, &model("wine"), &version).await
        });
        let created = join_all(creating).await;
        assert_eq!(created.iter().filter(|created| created.is_ok()).count(), 1);
        for refused in created.into_iter().filter_map(Result::err) {
            assert!(matches!(refused, CreateModelError::NameTaken(_)));
        }
        let listed = models
            .list(lab.ours, ModelFilter::default(), ALL)
            .await
            .unwrap();
        assert_eq!(listed.items.len(), 1);
        assert_eq!(lab.claim(at(1), 10).await.len(), 1);
    }

    /// Those of another organization, and unknown ones, are not found, and nothing is stored.
    async fn a_version_needs_a_dataset_and_a_user_of_its_organization(lab: &TrainingsLab) {
        let models = &lab.models;
        let existing = lab.pending(lab.ours, "wine", at(0)).await;
        let of_ours = lab.version(lab.ours, at(1)).await;
        let of_theirs = lab.version(lab.theirs, at(1)).await;
        let unknown = (DatasetId::new(given::uuid()), UserId::new(given::uuid()));
        for (dataset, requested_by) in [
            (of_theirs.dataset, of_ours.requested_by),
            (unknown.0, of_ours.requested_by),
            (of_ours.dataset, of_theirs.requested_by),
            (of_ours.dataset, unknown.1),
        ] {
            let new = NewVersion {
                id: ModelVersionId::new(given::uuid()),
                dataset,
                requested_by,
                ..of_ours.clone()
            };
            let created = models.create(lab.ours, &model("other"), &new).await;
            match created {
                Err(CreateModelError::Port(PortError::NotFound(_))) => {}
                other => panic!("expected NotFound, got {other:?}"),
            }
            let added = models.add_version(lab.ours, existing.model, &new).await;
            match added {
                Err(AddVersionError::Port(PortError::NotFound(_))) => {}
                other => panic!("expected NotFound, got {other:?}"),
            }
        }
        let listed = models
            .list(lab.ours, ModelFilter::default(), ALL)
            .await
            .unwrap();
        assert_eq!(listed.items, [existing]);
    }

    /// Each retraining has the next number, also after failed and cancelled ones.
    async fn versions_count_up(lab: &TrainingsLab) {
        let models = &lab.models;
        let first = lab.ready("wine", at(0)).await;
        let new = lab.version(lab.ours, at(1)).await;
        let second = models
            .add_version(lab.ours, first.model, &new)
            .await
            .unwrap();
        assert_eq!(
            second,
            ModelVersion {
                model: first.model,
                name: first.name.clone(),
                number: 2,
                ..ModelVersion::queue(&model("wine"), 2, &new)
            }
        );
        lab.cancel(first.model, at(2)).await;
        assert_eq!(lab.retrained(lab.ours, first.model, at(3)).await.number, 3);
        assert_eq!(lab.stored(&first).await, first);
        let newest = models.get(lab.ours, first.model, None).await;
        assert_eq!(newest.unwrap().number, 3);
    }

    /// Concurrent retrainings of one model have different numbers.
    async fn racing_versions_count_up_without_gaps(lab: &TrainingsLab) {
        let first = lab.pending(lab.ours, "wine", at(0)).await;
        let adding = (1..7).map(|second| lab.retrained(lab.ours, first.model, at(second)));
        let added = join_all(adding).await.into_iter();
        let mut numbers: Vec<u32> = added.map(|version| version.number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [2, 3, 4, 5, 6, 7]);
    }

    /// No call of another organization reads or changes it.
    async fn another_organizations_model_does_not_exist(lab: &TrainingsLab) {
        let models = &lab.models;
        let id = lab.pending(lab.theirs, "wine", at(0)).await.model;
        let training = lab.claim(at(0), 1).await.remove(0);
        lab.finish(&training, &success(), at(0)).await.unwrap();
        lab.retrained(lab.theirs, id, at(1)).await;
        let new = lab.version(lab.ours, at(2)).await;
        let before = models.get(lab.theirs, id, None).await.unwrap();
        let own = lab.ours;
        for id in [id, ModelId::new(given::uuid())] {
            assert_not_found(models.get(own, id, None).await);
            assert_not_found(models.get(own, id, Some(1)).await);
            assert_not_found(models.versions(own, id, ALL).await);
            assert_not_found(models.active(own, id).await);
            assert_not_found(models.result(own, id, 1).await);
            assert_not_found(models.archive(own, id, at(2)).await);
            match models.activate(own, id, 1).await {
                Err(ActivateModelError::Port(PortError::NotFound(_))) => {}
                other => panic!("expected NotFound, got {other:?}"),
            }
            match models.add_version(own, id, &new).await {
                Err(AddVersionError::Port(PortError::NotFound(_))) => {}
                other => panic!("expected NotFound, got {other:?}"),
            }
            match models.cancel(own, id, at(2)).await {
                Err(CancelTrainingError::Port(PortError::NotFound(_))) => {}
                other => panic!("expected NotFound, got {other:?}"),
            }
        }
        assert_eq!(
            models
                .list(own, ModelFilter::default(), ALL)
                .await
                .unwrap()
                .items,
            []
        );
        assert_eq!(models.find_by_name(own, "wine").await.unwrap(), None);
        let after = models.get(lab.theirs, id, None).await;
        assert_eq!(after.unwrap(), before);
    }

    /// The order is that of the models' first versions, with any page size. Archived models are left out.
    async fn the_list_has_the_newest_version_of_each_model(lab: &TrainingsLab) {
        let models = &lab.models;
        let mut expected = Vec::new();
        for (number, seconds) in [20, 10, 30, 10].into_iter().enumerate() {
            let first = lab
                .pending(lab.ours, &format!("model {number}"), at(seconds))
                .await;
            expected.push((at(seconds), first.model, first));
        }
        let (_, retrained_model, newest) = &mut expected[1];
        *newest = lab.retrained(lab.ours, *retrained_model, at(99)).await;
        let archived = lab.pending(lab.ours, "archived", at(25)).await.model;
        lab.archive(archived, at(26)).await;
        expected.sort_by_key(|(created_at, model, _)| Reverse((*created_at, *model)));
        let expected: Vec<ModelVersion> = expected.into_iter().map(|(_, _, it)| it).collect();
        let all = models
            .list(lab.ours, ModelFilter::default(), ALL)
            .await
            .unwrap();
        assert_eq!(all.items, expected);
        for limit in [1, 3, 4] {
            let items = read_to_the_end(limit, async |_, page| {
                models.list(lab.ours, ModelFilter::default(), page).await
            });
            assert_eq!(items.await, expected, "in pages of {limit}");
        }
    }

    /// Versions of one model only, with any page size.
    async fn the_versions_of_a_model_are_listed_newest_first(lab: &TrainingsLab) {
        let models = &lab.models;
        let first = lab.ready("wine", at(0)).await;
        lab.pending(lab.ours, "other", at(1)).await;
        let mut expected = vec![first.clone()];
        for seconds in [2, 3] {
            let version = lab.retrained(lab.ours, first.model, at(seconds)).await;
            expected.insert(0, version);
        }
        for limit in [1, 2, 3] {
            let items = read_to_the_end(limit, async |_, page| {
                models.versions(lab.ours, first.model, page).await
            });
            assert_eq!(items.await, expected, "in pages of {limit}");
        }
    }

    /// The newest version of it; archived models have no name.
    async fn a_model_is_found_by_its_name(lab: &TrainingsLab) {
        let models = &lab.models;
        let first = lab.pending(lab.ours, "wine", at(0)).await;
        let second = lab.retrained(lab.ours, first.model, at(1)).await;
        let find = async |name: &str| models.find_by_name(lab.ours, name).await.unwrap();
        assert_eq!(find("wine").await, Some(second));
        assert_eq!(find("Wine").await, None);
        lab.archive(first.model, at(2)).await;
        assert_eq!(find("wine").await, None);
    }

    /// A rollback: the newer version is no longer active.
    async fn an_earlier_version_is_activated_again(lab: &TrainingsLab) {
        let models = &lab.models;
        let first = lab.ready("wine", at(0)).await;
        assert!(first.is_active);
        lab.retrained(lab.ours, first.model, at(1)).await;
        let second = lab.claim(at(2), 1).await.remove(0);
        let second = lab.finish(&second, &success(), at(3)).await.unwrap();
        let active = async || models.active(lab.ours, first.model).await.unwrap();
        assert_eq!(active().await.as_ref(), Some(&second));
        assert!(!lab.stored(&first).await.is_active);
        let activated = models.activate(lab.ours, first.model, 1).await;
        assert_eq!(activated.unwrap(), first);
        assert_eq!(active().await, Some(first));
        assert!(!lab.stored(&second).await.is_active);
    }

    /// Any other version, and one that does not exist, are refused, and the active version stays.
    async fn only_a_ready_version_is_activated(lab: &TrainingsLab) {
        let models = &lab.models;
        let first = lab.ready("wine", at(0)).await;
        lab.retrained(lab.ours, first.model, at(1)).await;
        let second = lab.claim(at(2), 1).await.remove(0);
        let mut refusals = Vec::new();
        for number in [2, 9] {
            refusals.push(models.activate(lab.ours, first.model, number).await);
        }
        lab.finish(&second, &failure(), at(3)).await.unwrap();
        refusals.push(models.activate(lab.ours, first.model, 2).await);
        let refusals = refusals.into_iter().map(|refused| match refused {
            Err(ActivateModelError::Refused(refusal)) => refusal,
            other => panic!("expected a refusal, got {other:?}"),
        });
        let not_ready = |state| ActivateError::NotReady { number: 2, state };
        assert_eq!(
            refusals.collect::<Vec<_>>(),
            [
                not_ready("training"),
                ActivateError::Unknown(9),
                not_ready("failed")
            ]
        );
        let active = models.active(lab.ours, first.model).await.unwrap();
        assert_eq!(active, Some(first));
    }

    /// It is neither trained nor activated, and can still be read; archiving it again changes nothing.
    async fn an_archived_model_is_left_alone(lab: &TrainingsLab) {
        let models = &lab.models;
        let ready = lab.ready("wine", at(0)).await;
        let archived = lab.archive(ready.model, at(1)).await;
        let expected = ModelVersion {
            archived: true,
            ..ready.clone()
        };
        assert_eq!(archived, expected);
        let again = models.archive(lab.ours, ready.model, at(2)).await;
        assert_eq!(again.unwrap(), expected);
        let new = lab.version(lab.ours, at(3)).await;
        match models.add_version(lab.ours, ready.model, &new).await {
            Err(AddVersionError::Archived(_)) => {}
            other => panic!("expected a refusal, got {other:?}"),
        }
        match models.activate(lab.ours, ready.model, 1).await {
            Err(ActivateModelError::Archived(_)) => {}
            other => panic!("expected a refusal, got {other:?}"),
        }
        assert_eq!(lab.stored(&ready).await, expected);
        let active = models.active(lab.ours, ready.model).await.unwrap();
        assert_eq!(active, Some(expected));
    }

    /// It is active again under its name, as it was, unless another model has taken the name.
    async fn an_archived_model_is_restored(lab: &TrainingsLab) {
        let models = &lab.models;
        let ready = lab.ready("wine", at(0)).await;
        let restore = async || models.restore(lab.ours, ready.model).await;
        assert_eq!(restore().await.unwrap(), ready);
        lab.archive(ready.model, at(1)).await;
        let all = ModelFilter {
            include_archived: true,
        };
        let listed = models.list(lab.ours, all, ALL).await.unwrap();
        assert_eq!(listed.items.len(), 1);
        assert!(listed.items[0].archived);
        let other = lab.pending(lab.ours, "wine", at(2)).await;
        match restore().await {
            Err(RestoreModelError::NameTaken(NameTaken(name))) => assert_eq!(name, "wine"),
            other => panic!("expected a refusal, got {other:?}"),
        }
        let listed = models.list(lab.ours, all, ALL).await.unwrap();
        let listed: Vec<_> = listed.items.iter().map(|it| it.archived).collect();
        assert_eq!(listed, [false, true]);
        lab.archive(other.model, at(3)).await;
        assert_eq!(restore().await.unwrap(), ready);
        assert_eq!(lab.stored(&ready).await, ready);
        let active = models.active(lab.ours, ready.model).await.unwrap();
        assert_eq!(active, Some(ready.clone()));
        assert_not_found_model(models.restore(lab.theirs, ready.model).await);
    }

    /// As if they were cancelled at that time.
    async fn archiving_cancels_the_versions_in_flight(lab: &TrainingsLab) {
        let training = lab.claimed("wine", at(0)).await;
        let first = training.version.clone();
        lab.retrained(lab.ours, first.model, at(1)).await;
        let newest = lab.archive(first.model, at(2)).await;
        let cancelled = |started_at| VersionState::Cancelled {
            started_at,
            completed_at: at(2),
        };
        assert_eq!((newest.number, newest.state), (2, cancelled(None)));
        assert_eq!(lab.stored(&first).await.state, cancelled(Some(at(0))));
        assert_eq!(lab.claim(at(3), 10).await, []);
        assert_eq!(lab.finish(&training, &success(), at(3)).await, None);
    }

    /// A version that is not ready has none.
    async fn a_ready_version_has_its_result(lab: &TrainingsLab) {
        let models = &lab.models;
        let claimed = lab.claimed("wine", at(0)).await;
        let model = claimed.version.model;
        let read = async |number| models.result(lab.ours, model, number).await;
        assert_eq!(read(1).await.unwrap(), None);
        lab.finish(&claimed, &success(), at(1)).await.unwrap();
        assert_eq!(read(1).await.unwrap(), Some(result()));
        assert_not_found(read(2).await);
    }

    /// Those of versions, archived or not, and those that a running training may upload. After the training
    /// is over, an object that did not become its artifact is unreferenced.
    async fn the_objects_of_artifacts_are_referenced(lab: &TrainingsLab) {
        let files = &lab.files;
        let ready = lab.ready("wine", at(0)).await;
        let artifact = ready.artifact.unwrap().object;
        let training = lab.claimed("other", at(1)).await;
        let uploaded = object();
        let begun = lab.trainings.begin(training.claim, token(), uploaded).await;
        assert!(begun.unwrap());
        lab.archive(ready.model, at(2)).await;
        let [artifact, uploaded, stray] =
            [artifact, uploaded, object()].map(|object| (lab.ours, object));
        let objects = [artifact, uploaded, stray];
        assert_eq!(files.unreferenced(&objects).await.unwrap(), [stray]);
        lab.finish(&training, &failure(), at(3)).await.unwrap();
        let found = files.unreferenced(&objects).await.unwrap();
        assert_eq!(
            found.into_iter().collect::<BTreeSet<_>>(),
            BTreeSet::from([uploaded, stray])
        );
    }
);
