//! Contract of [`TenancyRepository`]: the users of an organization.

use futures::future::join_all;
use labdata_domain::{
    ids::{OrganizationId, UserId},
    people::tenancy::{User, UserChange},
};
use labdata_ports::people::tenancy::TenancyRepository;

use crate::{
    Subject,
    assertions::{assert_conflict_is, assert_not_found, assert_one_winner},
    fixtures::Tenants,
    given::{self, at},
    paging::{ALL, read_to_the_end},
};

/// Adds users created at these seconds, and returns them newest first.
async fn stored(
    tenancy: &dyn TenancyRepository,
    organization: OrganizationId,
    seconds: &[i64],
) -> Vec<User> {
    let mut added = Vec::new();
    for (number, seconds) in seconds.iter().enumerate() {
        let user = User {
            created_at: at(*seconds),
            ..given::user(organization, &format!("user{number}@example.org"))
        };
        tenancy.add_user(&user).await.unwrap();
        added.push(user);
    }
    added.sort_by_key(|user| std::cmp::Reverse((user.created_at, user.id)));
    added
}

fn disable() -> UserChange {
    UserChange {
        name: None,
        disabled: Some(true),
    }
}

/// Every field is stored, times to the microsecond, and `ensure_user` finds the user.
pub async fn a_user_reads_back_as_added<H>(harness: &H)
where
    H: Tenants + Subject<dyn TenancyRepository>,
{
    let lab = harness.organization("lab").await.id;
    let tenancy = harness.subject();
    let active = given::user(lab, "Ada@Example.org");
    let disabled = User {
        name: "Bén \"B\"".to_owned(),
        disabled_at: Some(at(60)),
        ..given::user(lab, "ben@example.org")
    };
    for user in [active, disabled] {
        tenancy.add_user(&user).await.unwrap();
        assert_eq!(tenancy.user(lab, user.id).await.unwrap(), user);
        let again = given::user(lab, &user.email);
        assert_eq!(tenancy.ensure_user(&again).await.unwrap(), user);
    }
}

/// An address of another user is a conflict in any case, and that user is unchanged.
pub async fn an_address_that_is_taken_in_any_case_conflicts<H>(harness: &H)
where
    H: Tenants + Subject<dyn TenancyRepository>,
{
    let lab = harness.organization("lab").await.id;
    let tenancy = harness.subject();
    let ada = given::user(lab, "Ada@Example.org");
    tenancy.add_user(&ada).await.unwrap();
    let again = given::user(lab, "ada@example.ORG");
    assert_conflict_is(tenancy.add_user(&again).await, &again.email_taken());
    assert_eq!(tenancy.users(lab, ALL).await.unwrap().items, [ada]);
}

/// Of users added concurrently under one address, exactly one is stored; the rest conflict.
pub async fn of_racing_users_with_one_address_one_is_added<H>(harness: &H)
where
    H: Tenants + Subject<dyn TenancyRepository>,
{
    let lab = harness.organization("lab").await.id;
    let tenancy = harness.subject();
    let candidates: Vec<User> = (0..6)
        .map(|_| given::user(lab, "ada@example.org"))
        .collect();
    let racing = candidates
        .iter()
        .map(|candidate| tenancy.add_user(candidate));
    assert_one_winner(join_all(racing).await);
    assert_eq!(tenancy.users(lab, ALL).await.unwrap().items.len(), 1);
}

/// The list is ordered by creation time, then id, newest first, with any page size, and has the users
/// of no other organization.
pub async fn the_list_of_users_is_newest_first_and_total<H>(harness: &H)
where
    H: Tenants + Subject<dyn TenancyRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let tenancy = harness.subject();
    stored(&*tenancy, theirs, &[15, 25]).await;
    let expected = stored(&*tenancy, ours, &[20, 10, 30, 10, 20]).await;
    assert_eq!(tenancy.users(ours, ALL).await.unwrap().items, expected);
    for limit in [1, 2, 5] {
        let items = read_to_the_end(limit, async |_, page| tenancy.users(ours, page).await).await;
        assert_eq!(items, expected, "in pages of {limit}");
    }
}

/// The answer is the user after the change, and the user is stored so.
pub async fn a_change_of_a_user_keeps_the_rest<H>(harness: &H)
where
    H: Tenants + Subject<dyn TenancyRepository>,
{
    let lab = harness.organization("lab").await.id;
    let tenancy = harness.subject();
    let user = harness.user(lab, "ada@example.org").await;
    let rename = UserChange {
        name: Some("Ada L.".to_owned()),
        disabled: None,
    };
    let enable = UserChange {
        name: None,
        disabled: Some(false),
    };
    for (change, second) in [
        (rename, 10),
        (disable(), 20),
        (UserChange::default(), 30),
        (disable(), 40),
        (enable, 50),
    ] {
        let before = tenancy.user(lab, user.id).await.unwrap();
        let after = tenancy
            .update_user(lab, user.id, &change, at(second))
            .await
            .unwrap();
        assert_eq!(after, change.apply(before, at(second)));
        assert_eq!(tenancy.user(lab, user.id).await.unwrap(), after);
    }
}

/// Concurrent changes of different fields lose nothing of each other.
pub async fn racing_changes_of_a_user_all_take_effect<H>(harness: &H)
where
    H: Tenants + Subject<dyn TenancyRepository>,
{
    let lab = harness.organization("lab").await.id;
    let tenancy = harness.subject();
    let user = harness.user(lab, "ada@example.org").await;
    let rename = UserChange {
        name: Some("Ada L.".to_owned()),
        disabled: None,
    };
    let changes = [rename, disable()];
    let racing = changes
        .iter()
        .map(|change| tenancy.update_user(lab, user.id, change, at(60)));
    for outcome in join_all(racing).await {
        outcome.unwrap();
    }
    let stored = tenancy.user(lab, user.id).await.unwrap();
    assert_eq!(
        (stored.name.as_str(), stored.disabled_at),
        ("Ada L.", Some(at(60)))
    );
}

/// Another organization's user, or none, is not found, and stays as stored.
pub async fn users_are_seen_and_changed_by_their_own_organization_only<H>(harness: &H)
where
    H: Tenants + Subject<dyn TenancyRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let tenancy = harness.subject();
    let user = harness.user(theirs, "ada@example.org").await;
    for id in [user.id, UserId::new(given::uuid())] {
        assert_not_found(tenancy.user(ours, id).await);
        assert_not_found(tenancy.update_user(ours, id, &disable(), at(60)).await);
    }
    assert_eq!(tenancy.user(theirs, user.id).await.unwrap(), user);
}
