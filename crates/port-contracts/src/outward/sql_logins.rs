//! Contract of [`SqlLoginRepository`].

use labdata_domain::{
    ids::{SqlLoginId, UserId},
    outward::sql_logins::{
        EndReason, SqlLogin, SqlLoginLimits, SqlLoginState, SqlPassword, TooManySqlLogins,
    },
    people::tenancy::UserChange,
};
use labdata_ports::outward::sql_logins::{AddedLogin, DueLogin, SqlLoginRepository};

use crate::{
    assertions::assert_not_found,
    given::{self, at},
    lab::lab,
    paging::{ALL, assert_pages},
};

lab!(
    /// SQL logins of two organizations.
    pub struct SqlLoginsLab {
        /// SQL logins.
        pub logins: dyn SqlLoginRepository,
    }
);

/// Limits that no clause reaches by chance.
const LIMITS: SqlLoginLimits = SqlLoginLimits {
    of_organization: 50,
    of_user: 50,
};

/// A login that is not stored yet, and ends after `expires` seconds if given.
#[must_use]
pub fn login(user: UserId, seconds: i64, expires: Option<i64>) -> SqlLogin {
    let id = SqlLoginId::new(given::uuid());
    let name = "Grafana in the hall".to_owned();
    SqlLogin::begin(id, user, name, expires.map(at), at(seconds)).unwrap()
}

/// A password of a login.
#[must_use]
pub fn password() -> SqlPassword {
    SqlPassword::from_random([7; 32])
}

impl SqlLoginsLab {
    async fn add(&self, login: SqlLogin) -> SqlLogin {
        let added = self
            .logins
            .add(self.ours, &login, &password(), LIMITS)
            .await;
        assert_eq!(added.unwrap(), AddedLogin::Added);
        login
    }

    async fn due(&self, seconds: i64) -> Vec<DueLogin> {
        self.logins.due(true, at(seconds), 50).await.unwrap()
    }
}

crate::suite!(
    use outward::sql_logins;

    /// Every field is stored, with and without an end.
    async fn a_login_reads_back_as_it_was_added(lab: &SqlLoginsLab) {
        for expires in [None, Some(60)] {
            let login = lab.add(login(lab.ada.id, 0, expires)).await;
            assert_eq!(lab.logins.get(lab.ours, login.id).await.unwrap(), login);
        }
    }

    /// A user of another organization has no login here.
    async fn a_login_belongs_to_a_user_of_its_organization(lab: &SqlLoginsLab) {
        let theirs = login(lab.eve.id, 0, None);
        assert_not_found(lab.logins.add(lab.ours, &theirs, &password(), LIMITS).await);
    }

    /// Another organization's login is like one that does not exist.
    async fn another_organizations_login_is_not_found(lab: &SqlLoginsLab) {
        let ours = lab.add(login(lab.ada.id, 0, None)).await;
        for id in [ours.id, SqlLoginId::new(given::uuid())] {
            assert_not_found(lab.logins.get(lab.theirs, id).await);
            let ended = lab.logins.end(lab.theirs, id, EndReason::Revoked, at(1));
            assert_not_found(ended.await);
        }
        let theirs = lab.logins.list(lab.theirs, None, ALL).await.unwrap();
        assert!(theirs.items.is_empty());
        assert!(lab.logins.get(lab.ours, ours.id).await.unwrap().is_active());
    }

    /// Lists are by pages, newest first, of all users or of one.
    async fn lists_are_newest_first(lab: &SqlLoginsLab) {
        let bob = lab.user(lab.ours, "bob@example.org").await;
        let mut logins = Vec::new();
        for (seconds, user) in [lab.ada.id, bob.id, lab.ada.id].into_iter().enumerate() {
            let seconds = i64::try_from(seconds).unwrap();
            logins.insert(0, lab.add(login(user, seconds, None)).await);
        }
        assert_pages([1, 2, 50], &logins, async |page| {
            lab.logins.list(lab.ours, None, page).await
        })
        .await;
        let of_bob = lab.logins.list(lab.ours, Some(bob.id), ALL).await.unwrap();
        assert_eq!(of_bob.items, logins.get(1..2).unwrap());
    }

    /// At the limit nothing is stored. Revoked logins do not count.
    async fn an_organization_has_a_limited_number(lab: &SqlLoginsLab) {
        let first = lab.add(login(lab.ada.id, 0, None)).await;
        let ben = lab.user(lab.ours, "ben@example.org").await;
        let second = login(ben.id, 1, None);
        let limits = SqlLoginLimits {
            of_organization: 1,
            ..LIMITS
        };
        let add = async || {
            lab.logins
                .add(lab.ours, &second, &password(), limits)
                .await
                .unwrap()
        };
        assert_eq!(
            add().await,
            AddedLogin::TooMany(TooManySqlLogins::OfOrganization)
        );
        assert_not_found(lab.logins.get(lab.ours, second.id).await);
        let ended = lab
            .logins
            .end(lab.ours, first.id, EndReason::Revoked, at(1));
        ended.await.unwrap();
        assert_eq!(add().await, AddedLogin::Added);
    }

    /// At the limit of a user nothing of the user is stored; others have theirs.
    async fn a_user_has_a_limited_number(lab: &SqlLoginsLab) {
        lab.add(login(lab.ada.id, 0, None)).await;
        let ben = lab.user(lab.ours, "ben@example.org").await;
        let limits = SqlLoginLimits {
            of_user: 1,
            ..LIMITS
        };
        let too_many = AddedLogin::TooMany(TooManySqlLogins::OfUser);
        for (user, expected) in [
            (lab.ada.id, too_many),
            (ben.id, AddedLogin::Added),
            (ben.id, too_many),
        ] {
            let login = login(user, 1, None);
            let added = lab.logins.add(lab.ours, &login, &password(), limits).await;
            assert_eq!(added.unwrap(), expected);
        }
    }

    /// The owner of a login is known by its id alone, until it ends.
    async fn the_owner_of_a_login_is_found_until_it_ends(lab: &SqlLoginsLab) {
        let login = lab.add(login(lab.ada.id, 0, None)).await;
        let owner = async |id| lab.logins.owner(id).await.unwrap();
        assert_eq!(owner(login.id).await, Some((lab.ours, lab.ada.id)));
        assert_eq!(owner(SqlLoginId::new(given::uuid())).await, None);
        let ended = lab
            .logins
            .end(lab.ours, login.id, EndReason::Revoked, at(1));
        ended.await.unwrap();
        assert_eq!(owner(login.id).await, None);
    }

    /// A revoked login is found no more, and cannot be revoked again.
    async fn a_revoked_login_is_not_found(lab: &SqlLoginsLab) {
        let login = lab.add(login(lab.ada.id, 0, None)).await;
        let end = async || {
            lab.logins
                .end(lab.ours, login.id, EndReason::Revoked, at(1))
                .await
        };
        let ended = end().await.unwrap();
        let state = SqlLoginState::Ended {
            at: at(1),
            reason: EndReason::Revoked,
        };
        assert_eq!(ended.state, state);
        assert_not_found(end().await);
        assert_not_found(lab.logins.get(lab.ours, login.id).await);
        assert!(
            lab.logins
                .list(lab.ours, None, ALL)
                .await
                .unwrap()
                .items
                .is_empty()
        );
        lab.logins.maintain().await.unwrap();
        assert!(lab.due(1_000_000).await.is_empty());
    }

    /// A login is due when its time has passed; once ended it stays in lists, and can be revoked.
    async fn a_login_ends_when_its_time_has_passed(lab: &SqlLoginsLab) {
        let login = lab.add(login(lab.ada.id, 0, Some(60))).await;
        assert!(lab.due(59).await.is_empty());
        let due = DueLogin {
            organization: lab.ours,
            login: login.clone(),
            reason: EndReason::Expired,
        };
        assert_eq!(lab.due(60).await, [due]);
        let ended = lab
            .logins
            .end(lab.ours, login.id, EndReason::Expired, at(60));
        let ended = ended.await.unwrap();
        assert!(lab.due(61).await.is_empty());
        lab.logins.maintain().await.unwrap();
        assert_eq!(lab.logins.get(lab.ours, login.id).await.unwrap(), ended);
        let again = lab
            .logins
            .end(lab.ours, login.id, EndReason::UserDisabled, at(61));
        assert_not_found(again.await);
        let revoked = lab
            .logins
            .end(lab.ours, login.id, EndReason::Revoked, at(61));
        revoked.await.unwrap();
        lab.logins.maintain().await.unwrap();
        assert_not_found(lab.logins.get(lab.ours, login.id).await);
    }

    /// A login is due when its user is disabled.
    async fn a_login_ends_with_its_user(lab: &SqlLoginsLab) {
        let login = lab.add(login(lab.ada.id, 0, None)).await;
        let change = UserChange {
            disabled: Some(true),
            ..UserChange::default()
        };
        let disabled = lab
            .tenancy
            .update_user(lab.ours, lab.ada.id, &change, at(1));
        disabled.await.unwrap();
        let due = lab.due(1).await;
        assert_eq!(due.len(), 1);
        assert_eq!(
            (due[0].login.id, due[0].reason),
            (login.id, EndReason::UserDisabled)
        );
    }

    /// With several organizations, logins are due unless these share the catalogs.
    async fn a_login_ends_where_organizations_do_not_share(lab: &SqlLoginsLab) {
        lab.add(login(lab.ada.id, 0, None)).await;
        assert!(lab.due(1).await.is_empty());
        let due = lab.logins.due(false, at(1), 50).await.unwrap();
        assert_eq!(due[0].reason, EndReason::NotShared);
        let limited = lab.logins.due(false, at(1), 0).await.unwrap();
        assert!(limited.is_empty());
    }
);
