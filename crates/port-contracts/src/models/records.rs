//! Contract of [`ModelRepository`](labdata_ports::models::ModelRepository).

use std::{cmp::Reverse, collections::BTreeSet};

use futures::future::join_all;
use labdata_domain::{
    ids::{DatasetId, ModelId, UserId},
    models::{ActivateError, ModelVersion, NewVersion, VersionState},
};
use labdata_ports::{
    PortError,
    files::FileRepository,
    models::{ActivateModelError, AddVersionError, CancelTrainingError, CreateModelError},
};

use crate::{
    Subject,
    assertions::assert_not_found,
    files::object,
    given::{self, at},
    models::lab::{
        Models, claim, claimed, failure, finish, lab, model, pending, ready, result, retrained,
        stored, success, token, version,
    },
    paging::{ALL, read_to_the_end},
};

/// Makes one test of each clause of [`crate::models::records`].
#[macro_export]
macro_rules! models_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, models in models::records:
            a_new_model_reads_back_as_it_was_requested,
            a_name_is_taken_by_a_model_that_is_not_archived,
            of_racing_models_of_one_name_one_is_created,
            a_version_needs_a_dataset_and_a_user_of_its_organization,
            versions_count_up,
            racing_versions_count_up_without_gaps,
            another_organizations_model_does_not_exist,
            the_list_has_the_newest_version_of_each_model,
            the_versions_of_a_model_are_listed_newest_first,
            a_model_is_found_by_its_name,
            an_earlier_version_is_activated_again,
            only_a_ready_version_is_activated,
            an_archived_model_is_left_alone,
            archiving_cancels_the_versions_in_flight,
            a_ready_version_has_its_result,
            the_objects_of_artifacts_are_referenced,
        }
        $crate::training_queue_limit_contract!($harness $(, $test)?);
    };
}

/// Every field is stored, with and without the optional ones.
pub async fn a_new_model_reads_back_as_it_was_requested<H: Models>(harness: &H) {
    let (lab, models) = (lab(harness, "lab").await, harness.models());
    let full = version(lab, at(1));
    let mut bare = NewVersion {
        description: None,
        ..version(lab, at(2))
    };
    bare.plan.features.clear();
    for (name, new) in [("Wein \"Süd\" – 2", full), ("bare", bare)] {
        let model = model(name);
        let expected = ModelVersion::queue(&model, 1, &new);
        let created = models.create(lab.organization, &model, &new).await;
        assert_eq!(created.unwrap(), expected);
        assert_eq!(stored(harness, lab, &expected).await, expected);
        let newest = models.get(lab.organization, model.id, None).await;
        assert_eq!(newest.unwrap(), expected);
    }
}

/// Archiving frees the name. Another organization's model takes none.
pub async fn a_name_is_taken_by_a_model_that_is_not_archived<H: Models>(harness: &H) {
    let (ours, theirs) = (lab(harness, "ours").await, lab(harness, "theirs").await);
    let models = harness.models();
    pending(harness, theirs, "wine", at(0)).await;
    let first = pending(harness, ours, "wine", at(1)).await;
    let create = async |name: &str| {
        let version = version(ours, at(2));
        models
            .create(ours.organization, &model(name), &version)
            .await
    };
    match create("wine").await {
        Err(CreateModelError::NameTaken(taken)) => assert_eq!(taken.0, "wine"),
        other => panic!("expected a refusal, got {other:?}"),
    }
    create("Wine").await.unwrap();
    models
        .archive(ours.organization, first.model, at(3))
        .await
        .unwrap();
    let second = create("wine").await.unwrap();
    assert_eq!((second.number, second.archived), (1, false));
}

/// All but one are refused, and leave nothing.
pub async fn of_racing_models_of_one_name_one_is_created<H: Models>(harness: &H) {
    let (lab, models) = (lab(harness, "lab").await, harness.models());
    let creating = (0..6).map(|_| {
        let (models, version) = (models.clone(), version(lab, at(0)));
        async move {
            models
                .create(lab.organization, &model("wine"), &version)
                .await
        }
    });
    let created = join_all(creating).await;
    assert_eq!(created.iter().filter(|created| created.is_ok()).count(), 1);
    for refused in created.into_iter().filter_map(Result::err) {
        assert!(matches!(refused, CreateModelError::NameTaken(_)));
    }
    let listed = models.list(lab.organization, ALL).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    assert_eq!(claim(harness, at(1), 10).await.len(), 1);
}

/// Those of another organization, and unknown ones, are not found, and nothing is stored.
pub async fn a_version_needs_a_dataset_and_a_user_of_its_organization<H: Models>(harness: &H) {
    let (ours, theirs) = (lab(harness, "ours").await, lab(harness, "theirs").await);
    let models = harness.models();
    let existing = pending(harness, ours, "wine", at(0)).await;
    for new in [
        NewVersion {
            dataset: theirs.dataset,
            ..version(ours, at(1))
        },
        NewVersion {
            dataset: DatasetId::new(given::uuid()),
            ..version(ours, at(1))
        },
        NewVersion {
            requested_by: theirs.user,
            ..version(ours, at(1))
        },
        NewVersion {
            requested_by: UserId::new(given::uuid()),
            ..version(ours, at(1))
        },
    ] {
        let created = models
            .create(ours.organization, &model("other"), &new)
            .await;
        match created {
            Err(CreateModelError::Port(PortError::NotFound(_))) => {}
            other => panic!("expected NotFound, got {other:?}"),
        }
        let added = models
            .add_version(ours.organization, existing.model, &new)
            .await;
        match added {
            Err(AddVersionError::Port(PortError::NotFound(_))) => {}
            other => panic!("expected NotFound, got {other:?}"),
        }
    }
    let listed = models.list(ours.organization, ALL).await.unwrap();
    assert_eq!(listed.items, [existing]);
}

/// Each retraining has the next number, also after failed and cancelled ones.
pub async fn versions_count_up<H: Models>(harness: &H) {
    let (lab, models) = (lab(harness, "lab").await, harness.models());
    let first = ready(harness, lab, "wine", at(0)).await;
    let new = version(lab, at(1));
    let second = models
        .add_version(lab.organization, first.model, &new)
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
    harness
        .models()
        .cancel(lab.organization, first.model, at(2))
        .await
        .unwrap();
    assert_eq!(retrained(harness, lab, first.model, at(3)).await.number, 3);
    assert_eq!(stored(harness, lab, &first).await, first);
    let newest = models.get(lab.organization, first.model, None).await;
    assert_eq!(newest.unwrap().number, 3);
}

/// Concurrent retrainings of one model have different numbers.
pub async fn racing_versions_count_up_without_gaps<H: Models>(harness: &H) {
    let lab = lab(harness, "lab").await;
    let first = pending(harness, lab, "wine", at(0)).await;
    let adding = (1..7).map(|second| retrained(harness, lab, first.model, at(second)));
    let added = join_all(adding).await.into_iter();
    let mut numbers: Vec<u32> = added.map(|version| version.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3, 4, 5, 6, 7]);
}

/// No call of another organization reads or changes it.
pub async fn another_organizations_model_does_not_exist<H: Models>(harness: &H) {
    let (ours, theirs) = (lab(harness, "ours").await, lab(harness, "theirs").await);
    let models = harness.models();
    let id = ready(harness, theirs, "wine", at(0)).await.model;
    retrained(harness, theirs, id, at(1)).await;
    let before = models.get(theirs.organization, id, None).await.unwrap();
    let own = ours.organization;
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
        match models.add_version(own, id, &version(ours, at(2))).await {
            Err(AddVersionError::Port(PortError::NotFound(_))) => {}
            other => panic!("expected NotFound, got {other:?}"),
        }
        match models.cancel(own, id, at(2)).await {
            Err(CancelTrainingError::Port(PortError::NotFound(_))) => {}
            other => panic!("expected NotFound, got {other:?}"),
        }
    }
    assert_eq!(models.list(own, ALL).await.unwrap().items, []);
    assert_eq!(models.find_by_name(own, "wine").await.unwrap(), None);
    let after = models.get(theirs.organization, id, None).await;
    assert_eq!(after.unwrap(), before);
}

/// The order is that of the models' first versions, with any page size. Archived models are left out.
pub async fn the_list_has_the_newest_version_of_each_model<H: Models>(harness: &H) {
    let (lab, models) = (lab(harness, "lab").await, harness.models());
    let mut expected = Vec::new();
    for (number, seconds) in [20, 10, 30, 10].into_iter().enumerate() {
        let first = pending(harness, lab, &format!("model {number}"), at(seconds)).await;
        expected.push((at(seconds), first.model, first));
    }
    let (_, retrained_model, newest) = &mut expected[1];
    *newest = retrained(harness, lab, *retrained_model, at(99)).await;
    let archived = pending(harness, lab, "archived", at(25)).await.model;
    models
        .archive(lab.organization, archived, at(26))
        .await
        .unwrap();
    expected.sort_by_key(|(created_at, model, _)| Reverse((*created_at, *model)));
    let expected: Vec<ModelVersion> = expected.into_iter().map(|(_, _, it)| it).collect();
    let all = models.list(lab.organization, ALL).await.unwrap();
    assert_eq!(all.items, expected);
    for limit in [1, 3, 4] {
        let items = read_to_the_end(limit, async |_, page| {
            models.list(lab.organization, page).await
        });
        assert_eq!(items.await, expected, "in pages of {limit}");
    }
}

/// Versions of one model only, with any page size.
pub async fn the_versions_of_a_model_are_listed_newest_first<H: Models>(harness: &H) {
    let (lab, models) = (lab(harness, "lab").await, harness.models());
    let first = ready(harness, lab, "wine", at(0)).await;
    pending(harness, lab, "other", at(1)).await;
    let mut expected = vec![first.clone()];
    for seconds in [2, 3] {
        let version = retrained(harness, lab, first.model, at(seconds)).await;
        expected.insert(0, version);
    }
    for limit in [1, 2, 3] {
        let items = read_to_the_end(limit, async |_, page| {
            models.versions(lab.organization, first.model, page).await
        });
        assert_eq!(items.await, expected, "in pages of {limit}");
    }
}

/// The newest version of it; archived models have no name.
pub async fn a_model_is_found_by_its_name<H: Models>(harness: &H) {
    let (lab, models) = (lab(harness, "lab").await, harness.models());
    let first = pending(harness, lab, "wine", at(0)).await;
    let second = retrained(harness, lab, first.model, at(1)).await;
    let find = async |name: &str| models.find_by_name(lab.organization, name).await.unwrap();
    assert_eq!(find("wine").await, Some(second));
    assert_eq!(find("Wine").await, None);
    models
        .archive(lab.organization, first.model, at(2))
        .await
        .unwrap();
    assert_eq!(find("wine").await, None);
}

/// A rollback: the newer version is no longer active.
pub async fn an_earlier_version_is_activated_again<H: Models>(harness: &H) {
    let (lab, models) = (lab(harness, "lab").await, harness.models());
    let first = ready(harness, lab, "wine", at(0)).await;
    assert!(first.is_active);
    retrained(harness, lab, first.model, at(1)).await;
    let second = claim(harness, at(2), 1).await.remove(0);
    let second = finish(harness, &second, &success(), at(3)).await.unwrap();
    let active = async || models.active(lab.organization, first.model).await.unwrap();
    assert_eq!(active().await.as_ref(), Some(&second));
    assert!(!stored(harness, lab, &first).await.is_active);
    let activated = models.activate(lab.organization, first.model, 1).await;
    assert_eq!(activated.unwrap(), first);
    assert_eq!(active().await, Some(first));
    assert!(!stored(harness, lab, &second).await.is_active);
}

/// Any other version, and one that does not exist, are refused, and the active version stays.
pub async fn only_a_ready_version_is_activated<H: Models>(harness: &H) {
    let (lab, models) = (lab(harness, "lab").await, harness.models());
    let first = ready(harness, lab, "wine", at(0)).await;
    retrained(harness, lab, first.model, at(1)).await;
    let second = claim(harness, at(2), 1).await.remove(0);
    let mut refusals = Vec::new();
    for number in [2, 9] {
        refusals.push(models.activate(lab.organization, first.model, number).await);
    }
    finish(harness, &second, &failure(), at(3)).await.unwrap();
    refusals.push(models.activate(lab.organization, first.model, 2).await);
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
    let active = models.active(lab.organization, first.model).await.unwrap();
    assert_eq!(active, Some(first));
}

/// It is neither trained nor activated, and can still be read; archiving it again changes nothing.
pub async fn an_archived_model_is_left_alone<H: Models>(harness: &H) {
    let (lab, models) = (lab(harness, "lab").await, harness.models());
    let ready = ready(harness, lab, "wine", at(0)).await;
    let archived = models
        .archive(lab.organization, ready.model, at(1))
        .await
        .unwrap();
    let expected = ModelVersion {
        archived: true,
        ..ready.clone()
    };
    assert_eq!(archived, expected);
    let again = models.archive(lab.organization, ready.model, at(2)).await;
    assert_eq!(again.unwrap(), expected);
    let new = version(lab, at(3));
    match models
        .add_version(lab.organization, ready.model, &new)
        .await
    {
        Err(AddVersionError::Archived(_)) => {}
        other => panic!("expected a refusal, got {other:?}"),
    }
    match models.activate(lab.organization, ready.model, 1).await {
        Err(ActivateModelError::Archived(_)) => {}
        other => panic!("expected a refusal, got {other:?}"),
    }
    assert_eq!(stored(harness, lab, &ready).await, expected);
    let active = models.active(lab.organization, ready.model).await.unwrap();
    assert_eq!(active, Some(expected));
}

/// As if they were cancelled at that time.
pub async fn archiving_cancels_the_versions_in_flight<H: Models>(harness: &H) {
    let (lab, models) = (lab(harness, "lab").await, harness.models());
    let training = claimed(harness, lab, "wine", at(0)).await;
    let first = training.version.clone();
    retrained(harness, lab, first.model, at(1)).await;
    let newest = models
        .archive(lab.organization, first.model, at(2))
        .await
        .unwrap();
    let cancelled = |started_at| VersionState::Cancelled {
        started_at,
        completed_at: at(2),
    };
    assert_eq!((newest.number, newest.state), (2, cancelled(None)));
    assert_eq!(
        stored(harness, lab, &first).await.state,
        cancelled(Some(at(0)))
    );
    assert_eq!(claim(harness, at(3), 10).await, []);
    assert_eq!(finish(harness, &training, &success(), at(3)).await, None);
}

/// A version that is not ready has none.
pub async fn a_ready_version_has_its_result<H: Models>(harness: &H) {
    let (lab, models) = (lab(harness, "lab").await, harness.models());
    let claimed = claimed(harness, lab, "wine", at(0)).await;
    let model = claimed.version.model;
    let read = async |number| models.result(lab.organization, model, number).await;
    assert_eq!(read(1).await.unwrap(), None);
    finish(harness, &claimed, &success(), at(1)).await.unwrap();
    assert_eq!(read(1).await.unwrap(), Some(result()));
    assert_not_found(read(2).await);
}

/// Those of versions, archived or not, and those that a running training may upload. After the training
/// is over, an object that did not become its artifact is unreferenced.
pub async fn the_objects_of_artifacts_are_referenced<H: Models>(harness: &H) {
    let (lab, models) = (lab(harness, "lab").await, harness.models());
    let files = Subject::<dyn FileRepository>::subject(harness);
    let ready = ready(harness, lab, "wine", at(0)).await;
    let artifact = ready.artifact.unwrap().object;
    let training = claimed(harness, lab, "other", at(1)).await;
    let uploaded = object();
    let begun = harness
        .trainings()
        .begin(training.claim, token(), uploaded)
        .await;
    assert!(begun.unwrap());
    models
        .archive(lab.organization, ready.model, at(2))
        .await
        .unwrap();
    let [artifact, uploaded, stray] =
        [artifact, uploaded, object()].map(|object| (lab.organization, object));
    let objects = [artifact, uploaded, stray];
    assert_eq!(files.unreferenced(&objects).await.unwrap(), [stray]);
    finish(harness, &training, &failure(), at(3)).await.unwrap();
    let found = files.unreferenced(&objects).await.unwrap();
    assert_eq!(
        found.into_iter().collect::<BTreeSet<_>>(),
        BTreeSet::from([uploaded, stray])
    );
}
