//! Contract of [`TenancyRepository`].

use futures::future::join_all;
use labdata_domain::people::tenancy::{Organization, User};
use labdata_ports::people::tenancy::TenancyRepository;

use crate::{
    Subject,
    assertions::{assert_not_found, assert_unanimous},
    given::{self, at},
};

/// Makes one test of each clause of [`crate::people::tenancy`].
#[macro_export]
macro_rules! tenancy_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, tenancy in people::tenancy:
            a_new_platform_has_no_organization,
            a_missing_organization_is_stored_as_the_candidate,
            an_existing_organization_is_returned_unchanged,
            names_of_organizations_differ_by_case,
            every_organization_is_listed_the_oldest_first,
            racing_calls_end_with_one_organization,
            an_organization_is_found_by_its_id,
            a_missing_user_is_stored_as_the_candidate,
            an_existing_user_is_found_without_regard_to_case,
            an_address_may_belong_to_a_user_of_each_organization,
            racing_calls_end_with_one_user,
            a_secret_is_made_of_the_first_candidate_and_stays,
            each_purpose_has_its_own_secret,
            racing_calls_agree_on_a_secret,
            a_secret_is_no_organization,
        }
        $crate::clauses! { [$($test)?] $harness, users in people::users:
            a_user_reads_back_as_added,
            an_address_that_is_taken_in_any_case_conflicts,
            of_racing_users_with_one_address_one_is_added,
            the_list_of_users_is_newest_first_and_total,
            a_change_of_a_user_keeps_the_rest,
            racing_changes_of_a_user_all_take_effect,
            users_are_seen_and_changed_by_their_own_organization_only,
        }
    };
}

/// A new installation has no organization until the first one is created.
pub async fn a_new_platform_has_no_organization<H: Subject<dyn TenancyRepository>>(harness: &H) {
    let tenancy = harness.subject();
    assert_eq!(tenancy.organizations().await.unwrap(), []);
    let lab = tenancy
        .ensure_organization(&given::organization("lab"))
        .await
        .unwrap();
    assert_eq!(tenancy.organizations().await.unwrap(), [lab]);
}

/// A missing organization is created with the candidate's id, name and time.
pub async fn a_missing_organization_is_stored_as_the_candidate<
    H: Subject<dyn TenancyRepository>,
>(
    harness: &H,
) {
    let candidate = given::organization("Prüflabor \"A\" – 実験室");
    let stored = harness
        .subject()
        .ensure_organization(&candidate)
        .await
        .unwrap();
    assert_eq!(stored, candidate);
}

/// For a name that exists, the candidate is dropped and the stored organization returned.
pub async fn an_existing_organization_is_returned_unchanged<H: Subject<dyn TenancyRepository>>(
    harness: &H,
) {
    let tenancy = harness.subject();
    let first = tenancy
        .ensure_organization(&given::organization("lab"))
        .await
        .unwrap();
    let later = Organization {
        created_at: at(60),
        ..given::organization("lab")
    };
    assert_eq!(tenancy.ensure_organization(&later).await.unwrap(), first);
}

/// An organization is found by its id, and an unknown id finds none.
pub async fn an_organization_is_found_by_its_id<H: Subject<dyn TenancyRepository>>(harness: &H) {
    let tenancy = harness.subject();
    let lab = given::organization("lab");
    assert_not_found(tenancy.organization(lab.id).await);
    tenancy.ensure_organization(&lab).await.unwrap();
    tenancy
        .ensure_organization(&given::organization("other"))
        .await
        .unwrap();
    assert_eq!(tenancy.organization(lab.id).await.unwrap(), lab);
}

/// Names of organizations are compared exactly.
pub async fn names_of_organizations_differ_by_case<H: Subject<dyn TenancyRepository>>(harness: &H) {
    let tenancy = harness.subject();
    let lower = tenancy
        .ensure_organization(&given::organization("lab"))
        .await
        .unwrap();
    let upper = tenancy
        .ensure_organization(&given::organization("Lab"))
        .await
        .unwrap();
    assert_ne!(lower.id, upper.id);
}

/// Concurrent calls with one name all return the same organization.
pub async fn racing_calls_end_with_one_organization<H: Subject<dyn TenancyRepository>>(
    harness: &H,
) {
    let tenancy = harness.subject();
    let candidates: Vec<Organization> = (0..6).map(|_| given::organization("lab")).collect();
    let results = join_all(
        candidates
            .iter()
            .map(|candidate| tenancy.ensure_organization(candidate)),
    )
    .await;
    let winner = assert_unanimous(results);
    assert!(candidates.contains(&winner));
}

/// A missing user is created with the candidate's id, address and name.
pub async fn a_missing_user_is_stored_as_the_candidate<H: Subject<dyn TenancyRepository>>(
    harness: &H,
) {
    let tenancy = harness.subject();
    let lab = tenancy
        .ensure_organization(&given::organization("lab"))
        .await
        .unwrap();
    let candidate = given::user(lab.id, "Ada@Example.org");
    assert_eq!(tenancy.ensure_user(&candidate).await.unwrap(), candidate);
}

/// For an address that exists in another case, the stored user is returned, unchanged.
pub async fn an_existing_user_is_found_without_regard_to_case<H: Subject<dyn TenancyRepository>>(
    harness: &H,
) {
    let tenancy = harness.subject();
    let lab = tenancy
        .ensure_organization(&given::organization("lab"))
        .await
        .unwrap();
    let first = tenancy
        .ensure_user(&given::user(lab.id, "Ada@Example.org"))
        .await
        .unwrap();
    let again = tenancy
        .ensure_user(&given::user(lab.id, "ada@example.ORG"))
        .await
        .unwrap();
    assert_eq!(again, first);
}

/// The same address in another organization is another user.
pub async fn an_address_may_belong_to_a_user_of_each_organization<
    H: Subject<dyn TenancyRepository>,
>(
    harness: &H,
) {
    let tenancy = harness.subject();
    let ours = tenancy
        .ensure_organization(&given::organization("ours"))
        .await
        .unwrap();
    let theirs = tenancy
        .ensure_organization(&given::organization("theirs"))
        .await
        .unwrap();
    let here = tenancy
        .ensure_user(&given::user(ours.id, "ada@example.org"))
        .await
        .unwrap();
    let there = tenancy
        .ensure_user(&given::user(theirs.id, "ada@example.org"))
        .await
        .unwrap();
    assert_ne!(here.id, there.id);
    assert_eq!(
        (here.organization, there.organization),
        (ours.id, theirs.id)
    );
}

/// Concurrent calls with one address in any case all return the same user.
pub async fn racing_calls_end_with_one_user<H: Subject<dyn TenancyRepository>>(harness: &H) {
    let tenancy = harness.subject();
    let lab = tenancy
        .ensure_organization(&given::organization("lab"))
        .await
        .unwrap();
    let candidates: Vec<User> = ["ada@example.org", "Ada@example.org", "ADA@EXAMPLE.ORG"]
        .iter()
        .cycle()
        .take(6)
        .map(|email| given::user(lab.id, email))
        .collect();
    let results = join_all(
        candidates
            .iter()
            .map(|candidate| tenancy.ensure_user(candidate)),
    )
    .await;
    let winner = assert_unanimous(results);
    assert!(candidates.contains(&winner));
}

/// The list holds each organization once, the oldest first.
pub async fn every_organization_is_listed_the_oldest_first<H: Subject<dyn TenancyRepository>>(
    harness: &H,
) {
    let tenancy = harness.subject();
    assert_eq!(tenancy.organizations().await.unwrap(), []);
    let (mut old, mut new) = (given::organization("b"), given::organization("a"));
    (old.created_at, new.created_at) = (at(0), at(60));
    for organization in [&new, &old, &new] {
        tenancy.ensure_organization(organization).await.unwrap();
    }
    assert_eq!(tenancy.organizations().await.unwrap(), [old, new]);
}

/// The first call's candidate becomes the secret; later candidates are dropped.
pub async fn a_secret_is_made_of_the_first_candidate_and_stays<
    H: Subject<dyn TenancyRepository>,
>(
    harness: &H,
) {
    let tenancy = harness.subject();
    assert_eq!(
        tenancy.ensure_secret("signing", &[1; 32]).await.unwrap(),
        [1; 32]
    );
    assert_eq!(
        tenancy.ensure_secret("signing", &[2; 32]).await.unwrap(),
        [1; 32]
    );
}

/// Secrets of different purposes are independent.
pub async fn each_purpose_has_its_own_secret<H: Subject<dyn TenancyRepository>>(harness: &H) {
    let tenancy = harness.subject();
    assert_eq!(
        tenancy.ensure_secret("signing", &[1; 32]).await.unwrap(),
        [1; 32]
    );
    assert_eq!(
        tenancy.ensure_secret("cursors", &[2; 32]).await.unwrap(),
        [2; 32]
    );
    assert_eq!(
        tenancy.ensure_secret("signing", &[3; 32]).await.unwrap(),
        [1; 32]
    );
}

/// Servers that start concurrently get the same secret, which is one of their candidates.
pub async fn racing_calls_agree_on_a_secret<H: Subject<dyn TenancyRepository>>(harness: &H) {
    let tenancy = harness.subject();
    let candidates: Vec<[u8; 32]> = (1..=6).map(|byte| [byte; 32]).collect();
    let results = join_all(
        candidates
            .iter()
            .map(|candidate| tenancy.ensure_secret("signing", candidate)),
    )
    .await;
    let winner = assert_unanimous(results);
    assert!(candidates.contains(&winner));
}

/// Secrets can be made before the first organization exists; it makes none.
pub async fn a_secret_is_no_organization<H: Subject<dyn TenancyRepository>>(harness: &H) {
    let tenancy = harness.subject();
    tenancy.ensure_secret("signing", &[1; 32]).await.unwrap();
    assert_eq!(tenancy.organizations().await.unwrap(), []);
}
