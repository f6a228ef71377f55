//! Contract of [`TenancyRepository`].

use futures::future::join_all;
use labdata_domain::people::tenancy::{Organization, User};
use labdata_ports::people::tenancy::TenancyRepository;

use crate::{
    Itself, Subject,
    assertions::{assert_not_found, assert_unanimous},
    given::{self, at},
};

async fn stored(tenancy: &dyn TenancyRepository, name: &str) -> Organization {
    let organization = given::organization(name);
    tenancy.ensure_organization(&organization).await.unwrap()
}

crate::suite!(
    use people::tenancy;

    /// A new installation has no organization until the first one is created.
    async fn a_new_platform_has_no_organization(
        harness: &Itself<impl Subject<dyn TenancyRepository>>,
    ) {
        let tenancy = harness.subject();
        assert_eq!(tenancy.organizations().await.unwrap(), []);
        let lab = stored(&*tenancy, "lab").await;
        assert_eq!(tenancy.organizations().await.unwrap(), [lab]);
    }

    /// A missing organization is created with the candidate's id, name and time.
    async fn a_missing_organization_is_stored_as_the_candidate(
        harness: &Itself<impl Subject<dyn TenancyRepository>>,
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
    async fn an_existing_organization_is_returned_unchanged(
        harness: &Itself<impl Subject<dyn TenancyRepository>>,
    ) {
        let tenancy = harness.subject();
        let first = stored(&*tenancy, "lab").await;
        let later = Organization {
            created_at: at(60),
            ..given::organization("lab")
        };
        assert_eq!(tenancy.ensure_organization(&later).await.unwrap(), first);
    }

    /// An organization is found by its id, and an unknown id finds none.
    async fn an_organization_is_found_by_its_id(
        harness: &Itself<impl Subject<dyn TenancyRepository>>,
    ) {
        let tenancy = harness.subject();
        let lab = given::organization("lab");
        assert_not_found(tenancy.organization(lab.id).await);
        tenancy.ensure_organization(&lab).await.unwrap();
        stored(&*tenancy, "other").await;
        assert_eq!(tenancy.organization(lab.id).await.unwrap(), lab);
    }

    /// Names of organizations are compared exactly.
    async fn names_of_organizations_differ_by_case(
        harness: &Itself<impl Subject<dyn TenancyRepository>>,
    ) {
        let tenancy = harness.subject();
        let lower = stored(&*tenancy, "lab").await;
        let upper = stored(&*tenancy, "Lab").await;
        assert_ne!(lower.id, upper.id);
    }

    /// Concurrent calls with one name all return the same organization.
    async fn racing_calls_end_with_one_organization(
        harness: &Itself<impl Subject<dyn TenancyRepository>>,
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
    async fn a_missing_user_is_stored_as_the_candidate(
        harness: &Itself<impl Subject<dyn TenancyRepository>>,
    ) {
        let tenancy = harness.subject();
        let lab = stored(&*tenancy, "lab").await;
        let candidate = given::user(lab.id, "Ada@Example.org");
        assert_eq!(tenancy.ensure_user(&candidate).await.unwrap(), candidate);
    }

    /// For an address that exists in another case, the stored user is returned, unchanged.
    async fn an_existing_user_is_found_without_regard_to_case(
        harness: &Itself<impl Subject<dyn TenancyRepository>>,
    ) {
        let tenancy = harness.subject();
        let lab = stored(&*tenancy, "lab").await;
        let first = given::user(lab.id, "Ada@Example.org");
        let first = tenancy.ensure_user(&first).await.unwrap();
        let again = given::user(lab.id, "ada@example.ORG");
        let again = tenancy.ensure_user(&again).await.unwrap();
        assert_eq!(again, first);
    }

    /// The same address in another organization is another user.
    async fn an_address_may_belong_to_a_user_of_each_organization(
        harness: &Itself<impl Subject<dyn TenancyRepository>>,
    ) {
        let tenancy = harness.subject();
        let ours = stored(&*tenancy, "ours").await;
        let theirs = stored(&*tenancy, "theirs").await;
        let here = given::user(ours.id, "ada@example.org");
        let here = tenancy.ensure_user(&here).await.unwrap();
        let there = given::user(theirs.id, "ada@example.org");
        let there = tenancy.ensure_user(&there).await.unwrap();
        assert_ne!(here.id, there.id);
        assert_eq!(
            (here.organization, there.organization),
            (ours.id, theirs.id)
        );
    }

    /// Concurrent calls with one address in any case all return the same user.
    async fn racing_calls_end_with_one_user(harness: &Itself<impl Subject<dyn TenancyRepository>>) {
        let tenancy = harness.subject();
        let lab = stored(&*tenancy, "lab").await;
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
    async fn every_organization_is_listed_the_oldest_first(
        harness: &Itself<impl Subject<dyn TenancyRepository>>,
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
    async fn a_secret_is_made_of_the_first_candidate_and_stays(
        harness: &Itself<impl Subject<dyn TenancyRepository>>,
    ) {
        let tenancy = harness.subject();
        let ensure =
            async |purpose, byte| tenancy.ensure_secret(purpose, &[byte; 32]).await.unwrap();
        assert_eq!(ensure("signing", 1).await, [1; 32]);
        assert_eq!(ensure("signing", 2).await, [1; 32]);
    }

    /// Secrets of different purposes are independent.
    async fn each_purpose_has_its_own_secret(
        harness: &Itself<impl Subject<dyn TenancyRepository>>,
    ) {
        let tenancy = harness.subject();
        let ensure =
            async |purpose, byte| tenancy.ensure_secret(purpose, &[byte; 32]).await.unwrap();
        assert_eq!(ensure("signing", 1).await, [1; 32]);
        assert_eq!(ensure("cursors", 2).await, [2; 32]);
        assert_eq!(ensure("signing", 3).await, [1; 32]);
    }

    /// Servers that start concurrently get the same secret, which is one of their candidates.
    async fn racing_calls_agree_on_a_secret(harness: &Itself<impl Subject<dyn TenancyRepository>>) {
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
    async fn a_secret_is_no_organization(harness: &Itself<impl Subject<dyn TenancyRepository>>) {
        let tenancy = harness.subject();
        tenancy.ensure_secret("signing", &[1; 32]).await.unwrap();
        assert_eq!(tenancy.organizations().await.unwrap(), []);
    }
);
