//! Contract of [`ApiKeyRepository`](labdata_ports::people::ApiKeyRepository).

pub mod groups;
pub mod invitations;
pub mod oidc;
pub mod sessions;
pub mod tenancy;
pub mod users;

use std::collections::BTreeSet;

use crate::{
    assertions::{assert_conflict_is, assert_not_found, assert_one_winner},
    given::{self, at},
    lab::lab,
};
use futures::future::join_all;
use labdata_domain::{
    ids::{ApiKeyId, OrganizationId},
    people::{
        ApiKey,
        scope::{Scope, Scopes},
        tenancy::UserChange,
    },
};
use time::OffsetDateTime;

lab!(
    /// API keys of two organizations.
    pub struct KeysLab {}
);

impl KeysLab {
    async fn stored_key(&self) -> ApiKey {
        self.api_key(&self.ada).await
    }

    /// The stored form of a key, found by its prefix.
    async fn found(&self, key: &ApiKey) -> ApiKey {
        let found = self.keys.find_by_prefix(&key.prefix).await.unwrap();
        found.unwrap().key
    }

    /// The ids of an organization's list.
    async fn listed(&self, organization: OrganizationId) -> Vec<ApiKeyId> {
        let keys = self.keys.list(organization).await.unwrap();
        keys.iter().map(|key| key.id).collect()
    }

    async fn revoke(&self, key: &ApiKey, seconds: i64) {
        let revoked = self.keys.revoke(key.organization, key.id, at(seconds));
        revoked.await.unwrap();
    }

    async fn touch(&self, uses: &[(ApiKeyId, OffsetDateTime)]) {
        self.keys.touch(uses).await.unwrap();
    }
}

/// Fails unless both keys are the same in every field.
#[track_caller]
fn assert_same(left: &ApiKey, right: &ApiKey) {
    assert!(left.hash.matches(&right.hash), "the hash is kept");
    // `ApiKeyHash` has no `==`, on purpose; the text form shows every field.
    assert_eq!(format!("{left:?}"), format!("{right:?}"));
}

crate::suite!(
    use people as api_keys;

    /// Every field of a key is stored, times to the microsecond.
    async fn a_key_reads_back_as_it_was_added(lab: &KeysLab) {
        let execution = lab.execution(lab.ours, at(0), None).await;
        let plain = given::api_key(&lab.ada);
        let full = ApiKey {
            name: "Ünïcode \"name\"".to_owned(),
            execution: Some(execution.id),
            expires_at: Some(at(3600)),
            last_used_at: Some(at(60)),
            revoked_at: Some(at(120)),
            ..given::api_key(&lab.ada)
        };
        for key in [plain, full] {
            lab.keys.add(&key).await.unwrap();
            assert_same(&lab.found(&key).await, &key);
        }
    }

    /// A key, also an ephemeral one, is found by its id, and by no other organization.
    async fn a_key_is_found_by_its_id_within_its_organization(lab: &KeysLab) {
        let execution = lab.execution(lab.ours, at(0), None).await;
        let ephemeral = ApiKey {
            execution: Some(execution.id),
            ..given::api_key(&lab.ada)
        };
        for key in [given::api_key(&lab.ada), ephemeral] {
            lab.keys.add(&key).await.unwrap();
            assert_same(&lab.keys.get(lab.ours, key.id).await.unwrap().key, &key);
            assert_not_found(lab.keys.get(lab.theirs, key.id).await);
        }
        assert_not_found(lab.keys.get(lab.ours, ApiKeyId::new(given::uuid())).await);
    }

    /// A key of a disabled user is found, with the time; enabled again, the user has none.
    async fn a_found_key_tells_since_when_its_user_is_disabled(lab: &KeysLab) {
        let ben = lab.user(lab.ours, "ben@example.org").await;
        let (of_ada, of_ben) = (lab.stored_key().await, lab.api_key(&ben).await);
        for (disabled, since) in [(true, Some(at(60))), (false, None)] {
            let change = UserChange {
                name: None,
                disabled: Some(disabled),
                ..UserChange::default()
            };
            lab.tenancy
                .update_user(lab.ours, lab.ada.id, &change, at(60))
                .await
                .unwrap();
            let found = async |key: &ApiKey| {
                let found = lab.keys.find_by_prefix(&key.prefix).await.unwrap().unwrap();
                let by_id = lab.keys.get(lab.ours, key.id).await.unwrap();
                assert_eq!(by_id.user_disabled_at, found.user_disabled_at);
                found.user_disabled_at
            };
            assert_eq!((found(&of_ada).await, found(&of_ben).await), (since, None));
        }
    }

    /// An unknown prefix finds nothing and is no error.
    async fn an_unknown_prefix_finds_nothing(lab: &KeysLab) {
        lab.stored_key().await;
        for prefix in ["zzzzzzzz", "", "%", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"] {
            assert!(
                lab.keys.find_by_prefix(prefix).await.unwrap().is_none(),
                "{prefix}"
            );
        }
    }

    /// A prefix used by a key of any organization is a conflict, and that key is unchanged.
    async fn a_prefix_is_unique_on_the_platform(lab: &KeysLab) {
        let first = lab.stored_key().await;
        let second = ApiKey {
            prefix: first.prefix.clone(),
            ..given::api_key(&lab.eve)
        };
        assert_conflict_is(lab.keys.add(&second).await, &second.prefix_taken());
        assert_same(&lab.found(&first).await, &first);
        assert_eq!(lab.listed(lab.theirs).await, []);
    }

    /// Of keys added concurrently with one prefix, exactly one is stored; the rest conflict.
    async fn of_racing_keys_with_one_prefix_one_is_added(lab: &KeysLab) {
        let model = given::api_key(&lab.ada);
        let candidates: Vec<ApiKey> = (0..6)
            .map(|_| ApiKey {
                prefix: model.prefix.clone(),
                ..given::api_key(&lab.ada)
            })
            .collect();
        assert_one_winner(
            join_all(candidates.iter().map(|candidate| lab.keys.add(candidate))).await,
        );
        assert_eq!(lab.keys.list(lab.ours).await.unwrap().len(), 1);
    }

    /// Every set of scopes is stored, the empty one as well: a scope never implies another.
    async fn every_set_of_scopes_reads_back(lab: &KeysLab) {
        for number in 0..8_u8 {
            let scopes: Scopes = Scope::ALL
                .into_iter()
                .zip([1, 2, 4])
                .filter_map(|(scope, bit)| (number & bit != 0).then_some(scope))
                .collect();
            let key = ApiKey {
                scopes,
                ..given::api_key(&lab.ada)
            };
            lab.keys.add(&key).await.unwrap();
            assert_eq!(lab.found(&key).await.scopes, scopes);
        }
    }

    /// The list is ordered by creation time, then id, newest first, in any order of insertion.
    async fn the_list_is_newest_first_and_total(lab: &KeysLab) {
        let mut added: Vec<ApiKey> = [20, 10, 30, 10, 20, 10]
            .into_iter()
            .map(|seconds| ApiKey {
                created_at: at(seconds),
                ..given::api_key(&lab.ada)
            })
            .collect();
        added.swap(1, 5);
        for key in &added {
            lab.keys.add(key).await.unwrap();
        }
        added.sort_by_key(|key| std::cmp::Reverse((key.created_at, key.id)));
        let expected: Vec<ApiKeyId> = added.iter().map(|key| key.id).collect();
        assert_eq!(lab.listed(lab.ours).await, expected);
    }

    /// Keys that the platform made for an execution are found by prefix but not listed.
    async fn the_list_leaves_out_ephemeral_keys(lab: &KeysLab) {
        let stored = lab.stored_key().await;
        let execution = lab.execution(lab.ours, at(0), None).await;
        let ephemeral = ApiKey {
            execution: Some(execution.id),
            ..given::api_key(&lab.ada)
        };
        lab.keys.add(&ephemeral).await.unwrap();
        assert_eq!(lab.listed(stored.organization).await, [stored.id]);
        assert_same(&lab.found(&ephemeral).await, &ephemeral);
    }

    /// Revoked and expired keys stay in the list and are still found by prefix.
    async fn the_list_shows_revoked_and_expired_keys(lab: &KeysLab) {
        let revoked = ApiKey {
            revoked_at: Some(at(1)),
            ..given::api_key(&lab.ada)
        };
        let expired = ApiKey {
            expires_at: Some(at(1)),
            ..given::api_key(&lab.ada)
        };
        for key in [&revoked, &expired] {
            lab.keys.add(key).await.unwrap();
            assert_same(&lab.found(key).await, key);
        }
        let presented: BTreeSet<ApiKeyId> = lab.listed(lab.ours).await.into_iter().collect();
        assert_eq!(presented, BTreeSet::from([revoked.id, expired.id]));
    }

    /// An organization's list holds none of another's keys.
    async fn the_list_shows_no_other_organization(lab: &KeysLab) {
        let theirs = lab.api_key(&lab.eve).await;
        assert_eq!(lab.listed(lab.ours).await, []);
        assert_eq!(lab.listed(theirs.organization).await, [theirs.id]);
    }

    /// Revoking a key sets `revoked_at` and changes no other field.
    async fn revoking_notes_the_time_and_keeps_the_rest(lab: &KeysLab) {
        let key = lab.stored_key().await;
        lab.revoke(&key, 5).await;
        let expected = ApiKey {
            revoked_at: Some(at(5)),
            ..key.clone()
        };
        assert_same(&lab.found(&key).await, &expected);
    }

    /// Revoking a revoked key succeeds and retains the first time.
    async fn revoking_again_changes_nothing(lab: &KeysLab) {
        let key = lab.stored_key().await;
        for seconds in [5, 6, 4] {
            lab.revoke(&key, seconds).await;
            assert_eq!(lab.found(&key).await.revoked_at, Some(at(5)));
        }
    }

    /// Revoking an id that no key has is not found.
    async fn revoking_an_unknown_key_is_not_found(lab: &KeysLab) {
        let unknown = ApiKeyId::new(given::uuid());
        assert_not_found(lab.keys.revoke(lab.ours, unknown, at(0)).await);
    }

    /// Another organization's key is not found, and stays as it is.
    async fn revoking_a_key_of_another_organization_is_not_found(lab: &KeysLab) {
        let theirs = lab.api_key(&lab.eve).await;
        assert_not_found(lab.keys.revoke(lab.ours, theirs.id, at(5)).await);
        assert_same(&lab.found(&theirs).await, &theirs);
    }

    /// Concurrent revocations all succeed, and one of their times is stored.
    async fn racing_revocations_keep_one_time(lab: &KeysLab) {
        let key = lab.stored_key().await;
        join_all((1..=6).map(|seconds| lab.revoke(&key, seconds))).await;
        let stored = lab.found(&key).await.revoked_at;
        assert!(
            (1..=6).any(|seconds| stored == Some(at(seconds))),
            "{stored:?}"
        );
        lab.revoke(&key, 0).await;
        assert_eq!(lab.found(&key).await.revoked_at, stored);
    }

    /// One call records the uses of several keys, each with its time; an empty call is no error.
    async fn a_use_is_noted(lab: &KeysLab) {
        let first = lab.stored_key().await;
        let second = lab.stored_key().await;
        let unused = lab.stored_key().await;
        lab.touch(&[]).await;
        lab.touch(&[(first.id, at(1)), (second.id, at(2))]).await;
        for (key, time) in [
            (&first, Some(at(1))),
            (&second, Some(at(2))),
            (&unused, None),
        ] {
            let expected = ApiKey {
                last_used_at: time,
                ..key.clone()
            };
            assert_same(&lab.found(key).await, &expected);
        }
    }

    /// A use reported late does not overwrite a later time.
    async fn a_use_never_moves_back(lab: &KeysLab) {
        let key = lab.stored_key().await;
        for (seconds, expected) in [(10, 10), (5, 10), (10, 10), (11, 11)] {
            lab.touch(&[(key.id, at(seconds))]).await;
            assert_eq!(lab.found(&key).await.last_used_at, Some(at(expected)));
        }
    }

    /// A key that occurs several times in one call ends with the latest of its times.
    async fn the_latest_of_several_uses_in_one_call_counts(lab: &KeysLab) {
        let key = lab.stored_key().await;
        lab.touch(&[(key.id, at(2)), (key.id, at(9)), (key.id, at(1))])
            .await;
        assert_eq!(lab.found(&key).await.last_used_at, Some(at(9)));
    }

    /// A use of an unknown key is skipped; the rest of the call is recorded.
    async fn uses_of_unknown_keys_are_ignored(lab: &KeysLab) {
        let key = lab.stored_key().await;
        let unknown = ApiKeyId::new(given::uuid());
        lab.touch(&[(unknown, at(1)), (key.id, at(2))]).await;
        assert_eq!(lab.found(&key).await.last_used_at, Some(at(2)));
    }

    /// Concurrent calls with the same keys in any order all succeed and store the latest times.
    async fn racing_uses_end_with_the_latest(lab: &KeysLab) {
        let first = lab.stored_key().await;
        let second = lab.stored_key().await;
        let batches: Vec<_> = (1..=8)
            .map(|seconds| {
                let mut batch = vec![(first.id, at(seconds)), (second.id, at(seconds))];
                if seconds % 2 == 0 {
                    batch.reverse();
                }
                batch
            })
            .collect();
        join_all(batches.iter().map(|batch| lab.touch(batch))).await;
        for key in [&first, &second] {
            assert_eq!(lab.found(key).await.last_used_at, Some(at(8)));
        }
    }
);
