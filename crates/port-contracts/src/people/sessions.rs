//! Contract of [`SessionRepository`].

use std::sync::Arc;

use futures::future::join_all;
use labdata_domain::{
    ids::{ApiKeyId, OrganizationId, UserId},
    people::{
        ApiKey, ApiKeyHash,
        session::{
            LINK_LIFETIME, MAX_SESSIONS_PER_KEY, PlainToken, SESSION_LIFETIME, SESSION_PAUSE,
            Session, SignInLink,
        },
        tenancy::{User, UserChange},
    },
};
use labdata_ports::people::{
    ApiKeyRepository, sessions::SessionRepository, tenancy::TenancyRepository,
};
use time::Duration;

use crate::{
    Subject,
    assertions::assert_not_found,
    fixtures::{ApiKeys, Tenants},
    given::{self, at},
};

/// Makes one test of each clause of [`crate::people::sessions`].
#[macro_export]
macro_rules! sessions_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, sessions in people::sessions:
            a_session_is_found_with_its_key,
            a_session_needs_a_key_of_its_organization,
            the_oldest_session_of_a_key_ends_when_it_has_too_many,
            a_found_session_tells_of_its_key_and_its_user,
            a_use_is_noted_and_never_moves_back,
            a_removed_session_is_gone,
            of_racing_followers_of_a_link_one_gets_it,
            a_link_needs_a_user_of_its_organization,
            what_has_ended_is_removed,
        }
    };
}

/// Prerequisites of these clauses.
pub trait Sessions:
    Tenants
    + ApiKeys
    + Subject<dyn SessionRepository>
    + Subject<dyn TenancyRepository>
    + Subject<dyn ApiKeyRepository>
{
}

impl<H> Sessions for H where
    H: Tenants
        + ApiKeys
        + Subject<dyn SessionRepository>
        + Subject<dyn TenancyRepository>
        + Subject<dyn ApiKeyRepository>
{
}

fn sessions<H: Sessions>(harness: &H) -> Arc<dyn SessionRepository> {
    Subject::<dyn SessionRepository>::subject(harness)
}

fn token(number: u8) -> ApiKeyHash {
    PlainToken::from_random([number; 32]).hash()
}

/// A user with a key.
async fn holder<H: Sessions>(harness: &H) -> (User, ApiKey) {
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await;
    let key = harness.api_key(&user).await;
    (user, key)
}

fn session(key: &ApiKey, number: u8) -> Session {
    Session::begin(token(number), key.organization, key.id, at(0))
}

/// By its token only.
pub async fn a_session_is_found_with_its_key<H: Sessions>(harness: &H) {
    let (user, key) = holder(harness).await;
    let sessions = sessions(harness);
    sessions.add(&session(&key, 1)).await.unwrap();
    let found = sessions.find(token(1)).await.unwrap().unwrap();
    assert_eq!((found.key.key.id, found.key.key.user), (key.id, user.id));
    assert_eq!(found.key.key.scopes, key.scopes);
    assert_eq!(found.session.organization, user.organization);
    let times = (found.session.created_at, found.session.last_used_at);
    assert_eq!(times, (at(0), at(0)));
    assert!(sessions.find(token(2)).await.unwrap().is_none());
}

/// A key that is unknown or another organization's is not found, and nothing is stored.
pub async fn a_session_needs_a_key_of_its_organization<H: Sessions>(harness: &H) {
    let (ours, theirs) = harness.two_organizations().await;
    let user = harness.user(theirs, "ada@example.org").await;
    let foreign = harness.api_key(&user).await.id;
    let sessions = sessions(harness);
    for key in [foreign, ApiKeyId::new(given::uuid())] {
        let session = Session::begin(token(1), ours, key, at(0));
        assert_not_found(sessions.add(&session).await);
        assert!(sessions.find(token(1)).await.unwrap().is_none());
    }
}

/// The order of their beginning counts, not that in which they were stored. Other keys keep theirs.
pub async fn the_oldest_session_of_a_key_ends_when_it_has_too_many<H: Sessions>(harness: &H) {
    let (user, key) = holder(harness).await;
    let other = harness.api_key(&user).await;
    let sessions = sessions(harness);
    let begun = |key: &ApiKey, number: u8, seconds: i64| Session {
        created_at: at(seconds),
        last_used_at: at(seconds),
        ..session(key, number)
    };
    sessions.add(&begun(&other, 255, 0)).await.unwrap();
    let limit = u8::try_from(MAX_SESSIONS_PER_KEY).unwrap();
    // The second that is stored is the oldest.
    for number in 0..limit {
        let seconds = if number == 1 {
            1
        } else {
            i64::from(number) + 10
        };
        let session = begun(&key, number, seconds);
        sessions.add(&session).await.unwrap();
    }
    let exists = async |number| sessions.find(token(number)).await.unwrap().is_some();
    assert!(exists(0).await && exists(1).await);
    for (added, ended) in [(limit, 1), (limit + 1, 0)] {
        sessions.add(&begun(&key, added, 1000)).await.unwrap();
        assert!(!exists(ended).await, "{ended}");
        for left in (2..=added).chain([255]) {
            assert!(exists(left).await, "{left}");
        }
    }
}

/// Whether they are still valid is for the caller to judge.
pub async fn a_found_session_tells_of_its_key_and_its_user<H: Sessions>(harness: &H) {
    let (user, key) = holder(harness).await;
    let sessions = sessions(harness);
    sessions.add(&session(&key, 1)).await.unwrap();
    let keys: Arc<dyn ApiKeyRepository> = harness.subject();
    keys.revoke(key.organization, key.id, at(1)).await.unwrap();
    let tenancy: Arc<dyn TenancyRepository> = harness.subject();
    let change = UserChange {
        disabled: Some(true),
        ..UserChange::default()
    };
    let changed = tenancy.update_user(user.organization, user.id, &change, at(2));
    changed.await.unwrap();
    let found = sessions.find(token(1)).await.unwrap().unwrap();
    assert_eq!(found.key.key.revoked_at, Some(at(1)));
    assert_eq!(found.key.user_disabled_at, Some(at(2)));
}

/// Uses of unknown sessions are ignored.
pub async fn a_use_is_noted_and_never_moves_back<H: Sessions>(harness: &H) {
    let (_, key) = holder(harness).await;
    let sessions = sessions(harness);
    sessions.add(&session(&key, 1)).await.unwrap();
    for (number, seconds, expected) in [(1, 9, 9), (1, 5, 9), (2, 20, 9)] {
        sessions.touch(token(number), at(seconds)).await.unwrap();
        let found = sessions.find(token(1)).await.unwrap().unwrap();
        assert_eq!(found.session.last_used_at, at(expected));
    }
}

/// The others stay.
pub async fn a_removed_session_is_gone<H: Sessions>(harness: &H) {
    let (_, key) = holder(harness).await;
    let sessions = sessions(harness);
    for number in [1, 2] {
        sessions.add(&session(&key, number)).await.unwrap();
    }
    for _ in 0..2 {
        sessions.remove(token(1)).await.unwrap();
        assert!(sessions.find(token(1)).await.unwrap().is_none());
        assert!(sessions.find(token(2)).await.unwrap().is_some());
    }
}

/// It is of no use afterwards.
pub async fn of_racing_followers_of_a_link_one_gets_it<H: Sessions>(harness: &H) {
    let (user, _) = holder(harness).await;
    let sessions = sessions(harness);
    let link = SignInLink {
        token: token(1),
        organization: user.organization,
        user: user.id,
        expires_at: at(0) + LINK_LIFETIME,
    };
    sessions.add_link(&link).await.unwrap();
    assert!(sessions.take_link(token(2)).await.unwrap().is_none());
    let taken = join_all((0..4).map(|_| sessions.take_link(token(1)))).await;
    let taken: Vec<SignInLink> = taken.into_iter().filter_map(Result::unwrap).collect();
    let [taken] = taken.as_slice() else {
        panic!("{taken:?}")
    };
    assert_eq!(
        (taken.organization, taken.user),
        (user.organization, user.id)
    );
    assert_eq!(taken.expires_at, link.expires_at);
}

/// A user who is unknown or another organization's is not found.
pub async fn a_link_needs_a_user_of_its_organization<H: Sessions>(harness: &H) {
    let (ours, theirs) = harness.two_organizations().await;
    let foreign = harness.user(theirs, "ada@example.org").await.id;
    let sessions = sessions(harness);
    let link = |organization: OrganizationId, user: UserId| SignInLink {
        token: token(1),
        organization,
        user,
        expires_at: at(0),
    };
    for user in [foreign, UserId::new(given::uuid())] {
        assert_not_found(sessions.add_link(&link(ours, user)).await);
        assert!(sessions.take_link(token(1)).await.unwrap().is_none());
    }
}

/// Sessions that paused or lasted too long, and links that expired.
pub async fn what_has_ended_is_removed<H: Sessions>(harness: &H) {
    let (user, key) = holder(harness).await;
    let sessions = sessions(harness);
    let now = at(0) + SESSION_LIFETIME;
    let second = Duration::SECOND;
    for (number, created_at, last_used_at) in [
        (1, at(0), now),
        (2, at(1), now - SESSION_PAUSE),
        (3, at(1), now - SESSION_PAUSE + second),
    ] {
        let session = Session {
            created_at,
            last_used_at,
            ..session(&key, number)
        };
        sessions.add(&session).await.unwrap();
    }
    for (number, expires_at) in [(4, now), (5, now + second)] {
        let link = SignInLink {
            token: token(number),
            organization: user.organization,
            user: user.id,
            expires_at,
        };
        sessions.add_link(&link).await.unwrap();
    }
    assert_eq!(sessions.remove_ended(now).await.unwrap(), 3);
    assert!(sessions.find(token(3)).await.unwrap().is_some());
    assert!(sessions.take_link(token(5)).await.unwrap().is_some());
    assert_eq!(sessions.remove_ended(now).await.unwrap(), 0);
}
