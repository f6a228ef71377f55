//! Contract of [`TenancyRepository`](labdata_ports::people::tenancy::TenancyRepository): the users of an organization.

use futures::future::join_all;
use labdata_domain::{
    ids::{OrganizationId, UserId},
    people::{
        role::Role,
        tenancy::{User, UserChange},
    },
};
use labdata_ports::PortError;

use crate::{
    assertions::{assert_conflict_is, assert_not_found, assert_one_winner},
    given::{self, at},
    lab::lab,
    paging::{ALL, assert_pages},
};

lab!(
    /// Users of two organizations, which have one user each.
    pub struct UsersLab {}
);

impl UsersLab {
    async fn get(&self, id: UserId) -> Result<User, PortError> {
        self.tenancy.user(self.ours, id).await
    }

    async fn update(&self, id: UserId, change: &UserChange, now: i64) -> Result<User, PortError> {
        let updated = self.tenancy.update_user(self.ours, id, change, at(now));
        updated.await
    }

    /// Adds users created at these seconds to a new organization, and returns them newest first.
    async fn stored(&self, name: &str, seconds: &[i64]) -> (OrganizationId, Vec<User>) {
        let organization = self.organization(name).await.id;
        let mut added = Vec::new();
        for (number, seconds) in seconds.iter().enumerate() {
            let user = User {
                created_at: at(*seconds),
                ..given::user(organization, &format!("user{number}@example.org"))
            };
            self.tenancy.add_user(&user).await.unwrap();
            added.push(user);
        }
        added.sort_by_key(|user| std::cmp::Reverse((user.created_at, user.id)));
        (organization, added)
    }
}

fn disable() -> UserChange {
    UserChange {
        name: None,
        disabled: Some(true),
        ..UserChange::default()
    }
}

crate::suite!(
    use people::users;

    /// Every field is stored, times to the microsecond, and `ensure_user` finds the user.
    async fn a_user_reads_back_as_added(lab: &UsersLab) {
        let active = given::user(lab.ours, "Bea@Example.org");
        let disabled = User {
            name: "Bén \"B\"".to_owned(),
            role: Role::Viewer,
            disabled_at: Some(at(60)),
            ..given::user(lab.ours, "ben@example.org")
        };
        for user in [active, disabled] {
            lab.tenancy.add_user(&user).await.unwrap();
            assert_eq!(lab.get(user.id).await.unwrap(), user);
            let again = given::user(lab.ours, &user.email);
            assert_eq!(lab.tenancy.ensure_user(&again).await.unwrap(), user);
        }
    }

    /// An address of another user is a conflict in any case, and that user is unchanged.
    async fn an_address_that_is_taken_in_any_case_conflicts(lab: &UsersLab) {
        let again = given::user(lab.ours, "Ada@example.ORG");
        assert_conflict_is(lab.tenancy.add_user(&again).await, &again.email_taken());
        assert_eq!(
            lab.tenancy.users(lab.ours, ALL).await.unwrap().items,
            std::slice::from_ref(&lab.ada)
        );
    }

    /// Of users added concurrently under one address, exactly one is stored; the rest conflict.
    async fn of_racing_users_with_one_address_one_is_added(lab: &UsersLab) {
        let candidates: Vec<User> = (0..6)
            .map(|_| given::user(lab.ours, "bea@example.org"))
            .collect();
        let racing = candidates
            .iter()
            .map(|candidate| lab.tenancy.add_user(candidate));
        assert_one_winner(join_all(racing).await);
        assert_eq!(
            lab.tenancy.users(lab.ours, ALL).await.unwrap().items.len(),
            2
        );
    }

    /// The list is ordered by creation time, then id, newest first, with any page size, and has the users
    /// of no other organization.
    async fn the_list_of_users_is_newest_first_and_total(lab: &UsersLab) {
        lab.stored("other", &[15, 25]).await;
        let (organization, expected) = lab.stored("new", &[20, 10, 30, 10, 20]).await;
        assert_eq!(
            lab.tenancy.users(organization, ALL).await.unwrap().items,
            expected
        );
        let read = async |page| lab.tenancy.users(organization, page).await;
        assert_pages([1, 2, 5], &expected, read).await;
    }

    /// The response is the user after the change, and the user is stored so.
    async fn a_change_of_a_user_keeps_the_rest(lab: &UsersLab) {
        let rename = UserChange {
            name: Some("Ada L.".to_owned()),
            disabled: None,
            ..UserChange::default()
        };
        let enable = UserChange {
            name: None,
            disabled: Some(false),
            ..UserChange::default()
        };
        for (change, second) in [
            (rename, 10),
            (disable(), 20),
            (UserChange::default(), 30),
            (disable(), 40),
            (enable, 50),
        ] {
            let before = lab.get(lab.ada.id).await.unwrap();
            let after = lab.update(lab.ada.id, &change, second).await.unwrap();
            assert_eq!(after, change.apply(before, at(second)));
            assert_eq!(lab.get(lab.ada.id).await.unwrap(), after);
        }
    }

    /// Administrators who are not disabled are told, in the order of their ids, of one organization only, also
    /// beside one of them.
    async fn enabled_administrators_are_told(lab: &UsersLab) {
        let admins_with = |id| async move {
            let admins = lab.tenancy.enabled_admins_with(lab.ours, id);
            admins.await.unwrap()
        };
        let ben = lab.user(lab.ours, "ben@example.org").await;
        let mut both = vec![lab.ada.id, ben.id];
        both.sort_unstable();
        assert_eq!(lab.tenancy.enabled_admins(lab.ours).await.unwrap(), both);
        assert_eq!(admins_with(ben.id).await, both);
        let demote = UserChange {
            role: Some(Role::Member),
            ..UserChange::default()
        };
        let demoted = lab.update(ben.id, &demote, 60).await.unwrap();
        assert_eq!(demoted.role, Role::Member);
        let admins = lab.tenancy.enabled_admins(lab.ours).await;
        assert_eq!(admins.unwrap(), [lab.ada.id]);
        assert_eq!(admins_with(lab.ada.id).await, [lab.ada.id]);
        assert_eq!(admins_with(ben.id).await, []);
        lab.update(lab.ada.id, &disable(), 70).await.unwrap();
        assert_eq!(lab.tenancy.enabled_admins(lab.ours).await.unwrap(), []);
        assert_eq!(admins_with(lab.ada.id).await, []);
    }

    /// Concurrent changes of different fields lose nothing of each other.
    async fn racing_changes_of_a_user_all_take_effect(lab: &UsersLab) {
        let rename = UserChange {
            name: Some("Ada L.".to_owned()),
            disabled: None,
            ..UserChange::default()
        };
        let changes = [rename, disable()];
        let racing = changes
            .iter()
            .map(|change| lab.update(lab.ada.id, change, 60));
        for outcome in join_all(racing).await {
            outcome.unwrap();
        }
        let stored = lab.get(lab.ada.id).await.unwrap();
        assert_eq!(
            (stored.name.as_str(), stored.disabled_at),
            ("Ada L.", Some(at(60)))
        );
    }

    /// Another organization's user, or none, is not found, and stays as stored.
    async fn users_are_seen_and_changed_by_their_own_organization_only(lab: &UsersLab) {
        for id in [lab.eve.id, UserId::new(given::uuid())] {
            assert_not_found(lab.get(id).await);
            assert_not_found(lab.update(id, &disable(), 60).await);
        }
        assert_eq!(
            lab.tenancy.user(lab.theirs, lab.eve.id).await.unwrap(),
            lab.eve
        );
    }
);
