//! Contract of [`ApiKeyRepository`].

pub mod sessions;
pub mod tenancy;
pub mod users;

use std::collections::BTreeSet;

use futures::future::join_all;
use labdata_domain::{
    ids::{ApiKeyId, OrganizationId},
    people::{
        ApiKey,
        scope::{Scope, Scopes},
        tenancy::UserChange,
    },
};
use labdata_ports::people::{ApiKeyRepository, tenancy::TenancyRepository};

use crate::{
    Subject,
    assertions::{assert_conflict_is, assert_not_found, assert_one_winner},
    fixtures::{Executions, Tenants},
    given::{self, at},
};

/// Makes one test of each clause of [`crate::people`].
#[macro_export]
macro_rules! api_keys_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, api_keys in people:
            a_key_reads_back_as_it_was_added,
            an_unknown_prefix_finds_nothing,
            a_key_is_found_by_its_id_within_its_organization,
            a_found_key_tells_since_when_its_user_is_disabled,
            a_prefix_is_unique_on_the_platform,
            of_racing_keys_with_one_prefix_one_is_added,
            every_set_of_scopes_reads_back,
            the_list_is_newest_first_and_total,
            the_list_leaves_out_ephemeral_keys,
            the_list_shows_revoked_and_expired_keys,
            the_list_shows_no_other_organization,
            revoking_notes_the_time_and_keeps_the_rest,
            revoking_again_changes_nothing,
            revoking_an_unknown_key_is_not_found,
            revoking_a_key_of_another_organization_is_not_found,
            racing_revocations_keep_one_time,
            a_use_is_noted,
            a_use_never_moves_back,
            the_latest_of_several_uses_in_one_call_counts,
            uses_of_unknown_keys_are_ignored,
            racing_uses_end_with_the_latest,
        }
    };
}

/// A key of a new organization.
async fn stored_key<H: Tenants + Subject<dyn ApiKeyRepository>>(harness: &H) -> ApiKey {
    let lab = harness.organization("lab").await;
    let key = given::api_key(&harness.user(lab.id, "ada@example.org").await);
    harness.subject().add(&key).await.unwrap();
    key
}

/// The stored form of a key, found by its prefix.
async fn found(keys: &dyn ApiKeyRepository, key: &ApiKey) -> ApiKey {
    keys.find_by_prefix(&key.prefix).await.unwrap().unwrap().key
}

/// The ids of an organization's list.
async fn listed(keys: &dyn ApiKeyRepository, organization: OrganizationId) -> Vec<ApiKeyId> {
    keys.list(organization)
        .await
        .unwrap()
        .iter()
        .map(|key| key.id)
        .collect()
}

/// Fails unless both keys are the same in every field.
#[track_caller]
fn assert_same(left: &ApiKey, right: &ApiKey) {
    assert!(left.hash.matches(&right.hash), "the hash is kept");
    // `ApiKeyHash` has no `==`, on purpose; the text form shows every field.
    assert_eq!(format!("{left:?}"), format!("{right:?}"));
}

/// Every field of a key is kept, times to the microsecond.
pub async fn a_key_reads_back_as_it_was_added<H>(harness: &H)
where
    H: Executions + Subject<dyn ApiKeyRepository>,
{
    let lab = harness.organization("lab").await;
    let user = harness.user(lab.id, "ada@example.org").await;
    let execution = harness.execution(lab.id, at(0), None).await;
    let plain = given::api_key(&user);
    let full = ApiKey {
        name: "Ünïcode \"name\"".to_owned(),
        execution: Some(execution.id),
        expires_at: Some(at(3600)),
        last_used_at: Some(at(60)),
        revoked_at: Some(at(120)),
        ..given::api_key(&user)
    };
    let keys = harness.subject();
    for key in [plain, full] {
        keys.add(&key).await.unwrap();
        assert_same(&found(&*keys, &key).await, &key);
    }
}

/// A key, also an ephemeral one, is found by its id, and by no other organization.
pub async fn a_key_is_found_by_its_id_within_its_organization<H>(harness: &H)
where
    H: Executions + Subject<dyn ApiKeyRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let user = harness.user(ours, "ada@example.org").await;
    let execution = harness.execution(ours, at(0), None).await;
    let ephemeral = ApiKey {
        execution: Some(execution.id),
        ..given::api_key(&user)
    };
    let keys = Subject::<dyn ApiKeyRepository>::subject(harness);
    for key in [given::api_key(&user), ephemeral] {
        keys.add(&key).await.unwrap();
        assert_same(&keys.get(ours, key.id).await.unwrap().key, &key);
        assert_not_found(keys.get(theirs, key.id).await);
    }
    assert_not_found(keys.get(ours, ApiKeyId::new(given::uuid())).await);
}

/// A key of a disabled user is found, with the time; enabled again, the user has none.
pub async fn a_found_key_tells_since_when_its_user_is_disabled<H>(harness: &H)
where
    H: Tenants + Subject<dyn ApiKeyRepository> + Subject<dyn TenancyRepository>,
{
    let lab = harness.organization("lab").await.id;
    let (ada, ben) = (
        harness.user(lab, "ada@example.org").await,
        harness.user(lab, "ben@example.org").await,
    );
    let keys = Subject::<dyn ApiKeyRepository>::subject(harness);
    let tenancy = Subject::<dyn TenancyRepository>::subject(harness);
    let (of_ada, of_ben) = (given::api_key(&ada), given::api_key(&ben));
    for key in [&of_ada, &of_ben] {
        keys.add(key).await.unwrap();
    }
    for (disabled, since) in [(true, Some(at(60))), (false, None)] {
        let change = UserChange {
            name: None,
            disabled: Some(disabled),
        };
        tenancy
            .update_user(lab, ada.id, &change, at(60))
            .await
            .unwrap();
        let found = async |key: &ApiKey| {
            let found = keys.find_by_prefix(&key.prefix).await.unwrap().unwrap();
            let by_id = keys.get(lab, key.id).await.unwrap();
            assert_eq!(by_id.user_disabled_at, found.user_disabled_at);
            found.user_disabled_at
        };
        assert_eq!((found(&of_ada).await, found(&of_ben).await), (since, None));
    }
}

/// An unknown prefix finds nothing and is no error.
pub async fn an_unknown_prefix_finds_nothing<H>(harness: &H)
where
    H: Tenants + Subject<dyn ApiKeyRepository>,
{
    stored_key(harness).await;
    for prefix in ["zzzzzzzz", "", "%", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"] {
        assert!(
            harness
                .subject()
                .find_by_prefix(prefix)
                .await
                .unwrap()
                .is_none(),
            "{prefix}"
        );
    }
}

/// A prefix used by a key of any organization is a conflict, and that key is unchanged.
pub async fn a_prefix_is_unique_on_the_platform<H>(harness: &H)
where
    H: Tenants + Subject<dyn ApiKeyRepository>,
{
    let first = stored_key(harness).await;
    let other = harness.organization("another lab").await;
    let user = harness.user(other.id, "ben@example.org").await;
    let second = ApiKey {
        prefix: first.prefix.clone(),
        ..given::api_key(&user)
    };
    let keys = harness.subject();
    assert_conflict_is(keys.add(&second).await, &second.prefix_taken());
    assert_same(&found(&*keys, &first).await, &first);
    assert_eq!(listed(&*keys, other.id).await, []);
}

/// Of keys added concurrently with one prefix, exactly one is stored; the rest conflict.
pub async fn of_racing_keys_with_one_prefix_one_is_added<H>(harness: &H)
where
    H: Tenants + Subject<dyn ApiKeyRepository>,
{
    let lab = harness.organization("lab").await;
    let user = harness.user(lab.id, "ada@example.org").await;
    let model = given::api_key(&user);
    let candidates: Vec<ApiKey> = (0..6)
        .map(|_| ApiKey {
            prefix: model.prefix.clone(),
            ..given::api_key(&user)
        })
        .collect();
    let keys = harness.subject();
    assert_one_winner(join_all(candidates.iter().map(|candidate| keys.add(candidate))).await);
    assert_eq!(keys.list(lab.id).await.unwrap().len(), 1);
}

/// Every set of scopes is kept, the empty one as well: a scope never implies another.
pub async fn every_set_of_scopes_reads_back<H>(harness: &H)
where
    H: Tenants + Subject<dyn ApiKeyRepository>,
{
    let lab = harness.organization("lab").await;
    let user = harness.user(lab.id, "ada@example.org").await;
    let keys = harness.subject();
    for number in 0..8_u8 {
        let scopes: Scopes = Scope::ALL
            .into_iter()
            .zip([1, 2, 4])
            .filter_map(|(scope, bit)| (number & bit != 0).then_some(scope))
            .collect();
        let key = ApiKey {
            scopes,
            ..given::api_key(&user)
        };
        keys.add(&key).await.unwrap();
        assert_eq!(found(&*keys, &key).await.scopes, scopes);
    }
}

/// The list is ordered by creation time, then id, newest first, in any order of insertion.
pub async fn the_list_is_newest_first_and_total<H>(harness: &H)
where
    H: Tenants + Subject<dyn ApiKeyRepository>,
{
    let lab = harness.organization("lab").await;
    let user = harness.user(lab.id, "ada@example.org").await;
    let keys = harness.subject();
    let mut added: Vec<ApiKey> = [20, 10, 30, 10, 20, 10]
        .into_iter()
        .map(|seconds| ApiKey {
            created_at: at(seconds),
            ..given::api_key(&user)
        })
        .collect();
    added.swap(1, 5);
    for key in &added {
        keys.add(key).await.unwrap();
    }
    added.sort_by_key(|key| std::cmp::Reverse((key.created_at, key.id)));
    let expected: Vec<ApiKeyId> = added.iter().map(|key| key.id).collect();
    assert_eq!(listed(&*keys, lab.id).await, expected);
}

/// Keys that the platform made for an execution are found by prefix but not listed.
pub async fn the_list_leaves_out_ephemeral_keys<H>(harness: &H)
where
    H: Executions + Subject<dyn ApiKeyRepository>,
{
    let stored = stored_key(harness).await;
    let user = harness.user(stored.organization, "ada@example.org").await;
    let execution = harness.execution(stored.organization, at(0), None).await;
    let ephemeral = ApiKey {
        execution: Some(execution.id),
        ..given::api_key(&user)
    };
    let keys = harness.subject();
    keys.add(&ephemeral).await.unwrap();
    assert_eq!(listed(&*keys, stored.organization).await, [stored.id]);
    assert_same(&found(&*keys, &ephemeral).await, &ephemeral);
}

/// Revoked and expired keys stay in the list and are still found by prefix.
pub async fn the_list_shows_revoked_and_expired_keys<H>(harness: &H)
where
    H: Tenants + Subject<dyn ApiKeyRepository>,
{
    let lab = harness.organization("lab").await;
    let user = harness.user(lab.id, "ada@example.org").await;
    let revoked = ApiKey {
        revoked_at: Some(at(1)),
        ..given::api_key(&user)
    };
    let expired = ApiKey {
        expires_at: Some(at(1)),
        ..given::api_key(&user)
    };
    let keys = harness.subject();
    for key in [&revoked, &expired] {
        keys.add(key).await.unwrap();
        assert_same(&found(&*keys, key).await, key);
    }
    let presented: BTreeSet<ApiKeyId> = listed(&*keys, lab.id).await.into_iter().collect();
    assert_eq!(presented, BTreeSet::from([revoked.id, expired.id]));
}

/// An organization's list holds none of another's keys.
pub async fn the_list_shows_no_other_organization<H>(harness: &H)
where
    H: Tenants + Subject<dyn ApiKeyRepository>,
{
    let theirs = stored_key(harness).await;
    let ours = harness.organization("another lab").await;
    let keys = harness.subject();
    assert_eq!(listed(&*keys, ours.id).await, []);
    assert_eq!(listed(&*keys, theirs.organization).await, [theirs.id]);
}

/// Revoking a key sets `revoked_at` and changes no other field.
pub async fn revoking_notes_the_time_and_keeps_the_rest<H>(harness: &H)
where
    H: Tenants + Subject<dyn ApiKeyRepository>,
{
    let key = stored_key(harness).await;
    let keys = harness.subject();
    keys.revoke(key.organization, key.id, at(5)).await.unwrap();
    let expected = ApiKey {
        revoked_at: Some(at(5)),
        ..key.clone()
    };
    assert_same(&found(&*keys, &key).await, &expected);
}

/// Revoking a revoked key succeeds and keeps the first time.
pub async fn revoking_again_changes_nothing<H>(harness: &H)
where
    H: Tenants + Subject<dyn ApiKeyRepository>,
{
    let key = stored_key(harness).await;
    let keys = harness.subject();
    for seconds in [5, 6, 4] {
        keys.revoke(key.organization, key.id, at(seconds))
            .await
            .unwrap();
        assert_eq!(found(&*keys, &key).await.revoked_at, Some(at(5)));
    }
}

/// Revoking an id that no key has is not found.
pub async fn revoking_an_unknown_key_is_not_found<H>(harness: &H)
where
    H: Tenants + Subject<dyn ApiKeyRepository>,
{
    let lab = harness.organization("lab").await;
    let unknown = ApiKeyId::new(given::uuid());
    assert_not_found(harness.subject().revoke(lab.id, unknown, at(0)).await);
}

/// Another organization's key is not found, and stays as it is.
pub async fn revoking_a_key_of_another_organization_is_not_found<H>(harness: &H)
where
    H: Tenants + Subject<dyn ApiKeyRepository>,
{
    let theirs = stored_key(harness).await;
    let ours = harness.organization("another lab").await;
    let keys = harness.subject();
    assert_not_found(keys.revoke(ours.id, theirs.id, at(5)).await);
    assert_same(&found(&*keys, &theirs).await, &theirs);
}

/// Concurrent revocations all succeed, and one of their times is stored.
pub async fn racing_revocations_keep_one_time<H>(harness: &H)
where
    H: Tenants + Subject<dyn ApiKeyRepository>,
{
    let key = stored_key(harness).await;
    let keys = harness.subject();
    let revocations = (1..=6).map(|seconds| keys.revoke(key.organization, key.id, at(seconds)));
    for result in join_all(revocations).await {
        result.unwrap();
    }
    let stored = found(&*keys, &key).await.revoked_at;
    assert!(
        (1..=6).any(|seconds| stored == Some(at(seconds))),
        "{stored:?}"
    );
    keys.revoke(key.organization, key.id, at(0)).await.unwrap();
    assert_eq!(found(&*keys, &key).await.revoked_at, stored);
}

/// One call records the uses of several keys, each with its time; an empty call is no error.
pub async fn a_use_is_noted<H>(harness: &H)
where
    H: Tenants + Subject<dyn ApiKeyRepository>,
{
    let first = stored_key(harness).await;
    let second = stored_key(harness).await;
    let unused = stored_key(harness).await;
    let keys = harness.subject();
    keys.touch(&[]).await.unwrap();
    keys.touch(&[(first.id, at(1)), (second.id, at(2))])
        .await
        .unwrap();
    for (key, time) in [
        (&first, Some(at(1))),
        (&second, Some(at(2))),
        (&unused, None),
    ] {
        let expected = ApiKey {
            last_used_at: time,
            ..key.clone()
        };
        assert_same(&found(&*keys, key).await, &expected);
    }
}

/// A use reported late does not overwrite a later time.
pub async fn a_use_never_moves_back<H>(harness: &H)
where
    H: Tenants + Subject<dyn ApiKeyRepository>,
{
    let key = stored_key(harness).await;
    let keys = harness.subject();
    for (seconds, expected) in [(10, 10), (5, 10), (10, 10), (11, 11)] {
        keys.touch(&[(key.id, at(seconds))]).await.unwrap();
        assert_eq!(found(&*keys, &key).await.last_used_at, Some(at(expected)));
    }
}

/// A key that occurs several times in one call ends with the latest of its times.
pub async fn the_latest_of_several_uses_in_one_call_counts<H>(harness: &H)
where
    H: Tenants + Subject<dyn ApiKeyRepository>,
{
    let key = stored_key(harness).await;
    let keys = harness.subject();
    keys.touch(&[(key.id, at(2)), (key.id, at(9)), (key.id, at(1))])
        .await
        .unwrap();
    assert_eq!(found(&*keys, &key).await.last_used_at, Some(at(9)));
}

/// A use of an unknown key is skipped; the rest of the call is recorded.
pub async fn uses_of_unknown_keys_are_ignored<H>(harness: &H)
where
    H: Tenants + Subject<dyn ApiKeyRepository>,
{
    let key = stored_key(harness).await;
    let keys = harness.subject();
    let unknown = ApiKeyId::new(given::uuid());
    keys.touch(&[(unknown, at(1)), (key.id, at(2))])
        .await
        .unwrap();
    assert_eq!(found(&*keys, &key).await.last_used_at, Some(at(2)));
}

/// Concurrent calls with the same keys in any order all succeed and store the latest times.
pub async fn racing_uses_end_with_the_latest<H>(harness: &H)
where
    H: Tenants + Subject<dyn ApiKeyRepository>,
{
    let first = stored_key(harness).await;
    let second = stored_key(harness).await;
    let keys = harness.subject();
    let batches: Vec<_> = (1..=8)
        .map(|seconds| {
            let mut batch = vec![(first.id, at(seconds)), (second.id, at(seconds))];
            if seconds % 2 == 0 {
                batch.reverse();
            }
            batch
        })
        .collect();
    for result in join_all(batches.iter().map(|batch| keys.touch(batch))).await {
        result.unwrap();
    }
    for key in [&first, &second] {
        assert_eq!(found(&*keys, key).await.last_used_at, Some(at(8)));
    }
}
